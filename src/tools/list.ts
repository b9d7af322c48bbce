import picomatch from 'picomatch';
import { toolOf, ToolInputError, type Bench, type Tool } from './tool.ts';
import { joined, walk } from './walk.ts';

const PATH = { type: 'string', description: 'The directory: absolute, or relative to the root of the tree. Default: the root.' } as const;

/** `list`: the names in a directory. */
export function listTool({ files, limits }: Bench): Tool {
  return toolOf({
    name: 'list',
    description: `Lists a directory: a name a line, directories with a slash after it, symlinks with where they lead. At most ${limits.entries} entries.`,
    properties: { path: PATH },
    required: [],
    act: ({ path = '.' }: { path?: string }) => {
      const entries = files.list(path).map(({ name, type }) => {
        const shown = name.toWellFormed();
        return type === 'symlink' ? { name: shown, type, target: files.readlink(joined(path, name)).toWellFormed() } : { name: shown, type, target: undefined };
      });
      const lines = entries.slice(0, limits.entries).map(({ name, type, target }) =>
        type === 'directory' ? `${name}/` : target === undefined ? name : `${name} -> ${target}`);
      if (entries.length > lines.length) lines.push(`(${lines.length} of ${entries.length} entries)`);
      if (entries.length === 0) lines.push('(empty directory)');
      return { text: lines.join('\n'), data: { entries } };
    },
  });
}

/** `glob`: files by their names. */
export function globTool({ files, limits }: Bench): Tool {
  return toolOf({
    name: 'glob',
    description: 'Finds files by a glob such as `**/*.ts` or `src/{a,b}/*.js`, sorted by path. Names with a leading dot match too; `.git` is left out. ' +
      `At most ${limits.entries} files.`,
    properties: {
      pattern: { type: 'string', description: 'The glob, relative to `path`. Without a slash it matches names in that directory alone.' },
      path: PATH,
      gitignore: { type: 'boolean', description: 'Whether to leave out what `.gitignore` files ignore. Default false.' },
    },
    required: ['pattern'],
    act: ({ pattern, path = '.', gitignore = false }: { pattern: string; path?: string; gitignore?: boolean }) => {
      const matches = matcherOf('glob', 'pattern', pattern), found: string[] = [];
      const { base, glob } = picomatch.scan(pattern), deep = glob.includes('**');
      const enters = (below: string): boolean => (base === '' || isAlong(base, below)) && (deep || below.split('/').length < pattern.split('/').length);
      for (const { path: name, below, type } of walk(files, path, { gitignore, enters }, 'glob')) {
        if (type !== 'directory' && matches(below)) found.push(name.toWellFormed());
      }
      const shown = found.slice(0, limits.entries), lines = [...shown];
      if (found.length > shown.length) lines.push(`(${shown.length} of ${found.length} files)`);
      return { text: found.length === 0 ? 'No files found.' : lines.join('\n'), data: { files: shown, total: found.length } };
    },
  });
}

/** Whether names match a glob, those with a leading dot too. Throws `ToolInputError` for one that is malformed. */
export function matcherOf(tool: string, parameter: string, glob: string): (name: string) => boolean {
  if (glob === '' || glob.startsWith('/') || glob.split('/').includes('..')) {
    throw new ToolInputError(`${tool}: "${parameter}" has to be a glob relative to the directory: ${JSON.stringify(glob)}`);
  }
  try {
    return picomatch(glob.replace(/^\.\//, ''), { dot: true, strictBrackets: true });
  } catch (error) {
    throw new ToolInputError(`${tool}: "${parameter}" is no glob: ${(error as Error).message}`);
  }
}

/** Whether a directory is on the way to `base`, or below it. */
function isAlong(base: string, below: string): boolean {
  return base === below || base.startsWith(`${below}/`) || below.startsWith(`${base}/`);
}

import { FsError, type HeldFile } from '../index.ts';
import { linesOf, shownText, startOf, type Line } from './lines.ts';
import { matcherOf } from './list.ts';
import { toolOf, ToolInputError, type Bench, type Tool, type ToolAnswer } from './tool.ts';
import { walk } from './walk.ts';

/** A larger file is not looked through; the answer says so. */
const SEARCHED_BYTES = 16 * 1024 * 1024;

interface Input {
  readonly pattern: string;
  readonly path?: string;
  readonly glob?: string;
  readonly type?: string;
  readonly output_mode?: 'content' | 'files_with_matches' | 'count';
  readonly '-i'?: boolean;
  readonly '-n'?: boolean;
  readonly '-A'?: number;
  readonly '-B'?: number;
  readonly '-C'?: number;
  readonly multiline?: boolean;
  readonly head_limit?: number;
  readonly gitignore?: boolean;
}

/** Names of files by what ripgrep calls their type. */
const TYPES: Readonly<Record<string, string>> = {
  c: '*.{c,h}', cpp: '*.{cpp,cc,cxx,hpp,hh,hxx,h,c++,inl}', cs: '*.cs', css: '*.{css,scss}', go: '*.go', html: '*.{html,htm}', java: '*.java',
  js: '*.{js,jsx,mjs,cjs,vue}', json: '*.json', kotlin: '*.{kt,kts}', lua: '*.lua', make: '{Makefile,makefile,GNUmakefile,*.mk}', md: '*.{md,markdown,mdx}',
  php: '*.php', py: '*.{py,pyi}', ruby: '*.{rb,gemspec,rake}', rust: '*.rs', sh: '*.{sh,bash,zsh}', sql: '*.sql', swift: '*.swift', toml: '*.toml',
  ts: '*.{ts,tsx,mts,cts}', txt: '*.txt', xml: '*.xml', yaml: '*.{yaml,yml}', zig: '*.zig',
};

/** `grep`: text in files. */
export function grepTool(bench: Bench): Tool {
  const count = (description: string) => ({ type: 'integer', minimum: 0, description }) as const, flag = (description: string) => ({ type: 'boolean', description }) as const;
  return toolOf({
    name: 'grep',
    description: 'Searches file contents with a regular expression (JavaScript\'s, with the `u` flag where it allows). Binary files, `.git` and symlinks are passed over. ' +
      'The answer is the files with a match, the lines (`content`), or the number of matching lines in each file (`count`).',
    properties: {
      pattern: { type: 'string', description: 'The regular expression.' },
      path: { type: 'string', description: 'The file or directory to search: absolute, or relative to the root of the tree. Default: the root.' },
      glob: { type: 'string', description: 'Only files that this glob matches, by name, or by the path below `path` where it has a slash.' },
      type: { type: 'string', enum: Object.keys(TYPES), description: 'Only files of this type.' },
      output_mode: { type: 'string', enum: ['content', 'files_with_matches', 'count'], description: 'What to answer. Default files_with_matches.' },
      '-i': flag('Whether case is ignored. Default false.'),
      '-n': flag('Whether lines are numbered, in `content`. Default true.'),
      '-A': count('Lines to show after each match, in `content`.'),
      '-B': count('Lines to show before each match, in `content`.'),
      '-C': count('Lines to show before and after each match, in `content`.'),
      multiline: flag('Whether a match may go over several lines, and `.` matches a line feed. Default false.'),
      head_limit: { type: 'integer', minimum: 1, description: `How many lines or entries to answer. Default and at most ${bench.limits.entries}.` },
      gitignore: flag('Whether to leave out what `.gitignore` files ignore. Default false.'),
    },
    required: ['pattern'],
    act: (input: Input) => search(bench, input),
  });
}

function search({ files, limits }: Bench, input: Input): ToolAnswer {
  const { path = '.', output_mode = 'files_with_matches' } = input, pattern = patternOf(input), chosen = choiceOf(input);
  const limit = Math.min(input.head_limit ?? limits.entries, limits.entries), skipped: string[] = [], matches: Match[] = [];
  const isDirectory = files.stat(path, { verb: 'grep' })?.type === 'directory';
  const found: { path: string; count: number }[] = [], out: string[] = [];
  const names = isDirectory ? filesBelow(input, path) : [{ path, below: path.slice(path.lastIndexOf('/') + 1) }];
  function* filesBelow({ gitignore = false }: Input, from: string): Generator<{ path: string; below: string }> {
    for (const entry of walk(files, from, { gitignore }, 'grep')) if (entry.type === 'file' && chosen(entry.below)) yield entry;
  }
  for (const { path: name } of names) {
    const file = heldOf(name, isDirectory, skipped);
    if (file === undefined) continue;
    const hits = hitsOf(file.bytes, pattern, input.multiline === true), told = name.toWellFormed();
    const room = output_mode === 'content' ? limit - out.length : 0, shown = room > 0 && hits.length > 0 ? contextOf(file, hits, input, told, room, limits.lineCharacters) : undefined;
    file.show(shown?.ranges ?? [], { search: true });
    if (hits.length === 0) continue;
    found.push({ path: told, count: hits.length });
    if (shown !== undefined) {
      if (out.length > 0 && hasContext(input)) out.push('--');
      out.push(...shown.lines);
      matches.push(...shown.matches);
    }
  }
  const all = output_mode === 'content' ? out : found.map((each) => output_mode === 'count' ? `${each.path}:${each.count}` : each.path);
  const total = found.reduce((sum, each) => sum + each.count, 0), lines = all.slice(0, limit);
  const isCut = output_mode === 'content' ? matches.length < total : all.length > lines.length;
  if (isCut) lines.push(output_mode === 'content' ? `(${matches.length} of ${total} matching lines)` : `(${lines.length} of ${all.length} files)`);
  for (const name of skipped) lines.push(`(not searched, too large: ${name})`);
  return {
    text: found.length === 0 && skipped.length === 0 ? 'No matches found.' : lines.join('\n'),
    data: { files: found.slice(0, limits.entries), total, ...(output_mode === 'content' ? { matches } : undefined), truncated: isCut, ...(skipped.length > 0 ? { skipped } : undefined) },
  };

  /** A file to look through; none where it is binary, gone by now or, among many, one that may not be read. */
  function heldOf(name: string, isOneOfMany: boolean, large: string[]): HeldFile | undefined {
    try {
      const file = files.hold(name, { verb: 'grep', limit: SEARCHED_BYTES });
      return file.bytes.subarray(0, 8192).includes(0) ? undefined : file;
    } catch (error) {
      if (!isOneOfMany || !(error instanceof FsError)) throw error;
      if (error.code === 'FS_TOO_LARGE') large.push(name.toWellFormed());
      return undefined;
    }
  }
}

interface Match {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

function patternOf({ pattern, multiline, '-i': ignoresCase }: Input): RegExp {
  const flags = `gm${multiline === true ? 's' : ''}${ignoresCase === true ? 'i' : ''}`;
  for (const more of ['u', '']) {
    try {
      return new RegExp(pattern, flags + more);
    } catch (error) {
      if (more === '') throw new ToolInputError(`grep: "pattern" is no regular expression: ${(error as Error).message}`);
    }
  }
  throw new ToolInputError('grep: "pattern" is no regular expression');
}

function choiceOf({ glob, type }: Input): (below: string) => boolean {
  const globs: ((below: string) => boolean)[] = [];
  for (const [parameter, text] of [['glob', glob], ['type', type === undefined ? undefined : TYPES[type]]] as const) {
    if (text === undefined) continue;
    const matches = matcherOf('grep', parameter, text), byName = !text.includes('/');
    globs.push((below) => matches(byName ? below.slice(below.lastIndexOf('/') + 1) : below));
  }
  return (below) => globs.every((matches) => matches(below));
}

/** The lines, from 0, in which there is a match, or part of one. */
function hitsOf(bytes: Uint8Array, pattern: RegExp, multiline: boolean): readonly number[] {
  const lines = linesOf(bytes), hits = new Set<number>();
  if (!multiline) {
    for (const [at, { start, end }] of lines.entries()) {
      pattern.lastIndex = 0;
      if (pattern.test(shownText(bytes, start, end))) hits.add(at);
    }
    return [...hits];
  }
  const text = shownText(bytes, startOf(bytes));
  let line = 0, counted = 0;
  for (const { 0: found, index } of text.matchAll(pattern)) {
    for (; counted < index; counted++) if (text.charCodeAt(counted) === 10) line++;
    const height = found.replace(/\n$/, '').split('\n').length;
    for (let at = line; at < line + height && at < lines.length; at++) hits.add(at);
  }
  return [...hits].sort((a, b) => a - b);
}

const hasContext = (input: Input): boolean => (input['-A'] ?? input['-B'] ?? input['-C'] ?? 0) > 0;

/** The lines to show, with those around them, and which bytes these are. */
function contextOf({ bytes }: HeldFile, hits: readonly number[], input: Input, path: string, room: number, characters: number) {
  const before = input['-B'] ?? input['-C'] ?? 0, after = input['-A'] ?? input['-C'] ?? 0, lines = linesOf(bytes), isHit = new Set(hits);
  const out: string[] = [], ranges: [number, number][] = [], matches: Match[] = [];
  let last = -1;
  for (const hit of hits) {
    const from = Math.max(hit - before, last + 1, 0), to = Math.min(hit + after, lines.length - 1);
    if (last >= 0 && from > last + 1 && hasContext(input)) out.push('--');
    for (let at = from; at <= to; at++) {
      if (out.length >= room) return { lines: out, ranges, matches };
      const { start, end, next } = lines[at] as Line, whole = shownText(bytes, start, end), sign = isHit.has(at) ? ':' : '-';
      const text = whole.length > characters ? `${whole.slice(0, characters)}…` : whole;
      out.push(`${path}${sign}${input['-n'] === false ? '' : `${at + 1}${sign}`}${text}`);
      if (text === whole) ranges.push([start, next]);
      if (isHit.has(at)) matches.push({ path, line: at + 1, text });
      last = at;
    }
  }
  return { lines: out, ranges, matches };
}

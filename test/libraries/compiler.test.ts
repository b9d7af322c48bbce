import { cpSync, type Dirent, type Stats } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';
import { WORK_MS, onBoth, packagesInto, repository, twin, type Fs, type Side } from './twin.ts';

/** The part of this repository that its compiler reads. */
function fill(dir: string): void {
  for (const name of ['src', 'package.json', 'tsconfig.json', 'tsconfig.build.json']) cpSync(join(repository, name), join(dir, name), { recursive: true });
  packagesInto(dir, ['@types/node', 'undici-types', '@types/picomatch', 'immer', 'nanoid', 'picomatch']);
}

/** `ts.sys` with its files taken from `fs`. */
function systemOf(fs: Fs, dir: string): ts.System {
  // Below a file there is nothing: the real statSync throws ENOTDIR for that, whatever its options say.
  const stat = (path: string): Stats | undefined => (fs.existsSync(path) ? fs.statSync(path) : undefined);
  const entries = (path: string): Dirent[] => (fs.existsSync(path) ? fs.readdirSync(path, { withFileTypes: true }) : []);
  return {
    ...ts.sys,
    getCurrentDirectory: () => dir,
    fileExists: (path) => stat(path)?.isFile() ?? false,
    directoryExists: (path) => stat(path)?.isDirectory() ?? false,
    getDirectories: (path) => entries(path).filter((entry) => entry.isDirectory()).map(({ name }) => name),
    readFile: (path) => (fs.existsSync(path) ? fs.readFileSync(path, 'utf8') : undefined),
    writeFile: (path, text) => {
      fs.mkdirSync(join(path, '..'), { recursive: true });
      fs.writeFileSync(path, text);
    },
    realpath: (path) => fs.realpathSync(path),
    // The project's `include` names directories only, so this needs no patterns.
    readDirectory: (path, extensions = [], _exclude, include = []) => include.flatMap((directory) =>
      fs.readdirSync(join(path, directory), { recursive: true, encoding: 'utf8' })
        .filter((name) => extensions.some((extension) => name.endsWith(extension))).map((name) => join(path, directory, name))),
  };
}

/** Checks and emits a project: every complaint about it or only about some files, and every file written. */
function compile({ fs, dir }: Side, files?: readonly string[]): { complaints: string[]; emitted: Record<string, string> } {
  const system = systemOf(fs, dir);
  const config = ts.getParsedCommandLineOfConfigFile(join(dir, 'tsconfig.build.json'), { noEmitOnError: false }, {
    ...system, onUnRecoverableConfigFileDiagnostic: (diagnostic) => { throw new Error(ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n')); },
  });
  if (config === undefined) throw new Error('no tsconfig.build.json');
  const host: ts.CompilerHost = {
    getSourceFile: (path, languageVersion) => {
      const text = system.readFile(path);
      return text === undefined ? undefined : ts.createSourceFile(path, text, languageVersion);
    },
    getDefaultLibFileName: (options) => ts.getDefaultLibFilePath(options),
    getCanonicalFileName: (path) => path,
    useCaseSensitiveFileNames: () => true,
    getNewLine: () => '\n',
    getCurrentDirectory: system.getCurrentDirectory,
    writeFile: (path, text) => { system.writeFile(path, text); },
    fileExists: system.fileExists,
    readFile: system.readFile,
    directoryExists: system.directoryExists,
    getDirectories: system.getDirectories,
    realpath: (path) => fs.realpathSync(path),
  };
  const program = ts.createProgram(config.fileNames, config.options, host);
  const { diagnostics } = program.emit();
  const checked = files === undefined ? ts.getPreEmitDiagnostics(program)
    : files.flatMap((name) => ts.getPreEmitDiagnostics(program, program.getSourceFile(join(dir, name))));
  const complaints = [...checked, ...diagnostics].map(({ file, start, messageText }) =>
    `${file?.fileName.replace(dir, '')}:${start} ${ts.flattenDiagnosticMessageText(messageText, '\n')}`.replaceAll(dir, '<dir>'));
  const written = fs.readdirSync(join(dir, 'dist'), { recursive: true, encoding: 'utf8' }).filter((path) => /\.[jt]s$/.test(path)).sort();
  return { complaints, emitted: Object.fromEntries(written.map((path) => [path, fs.readFileSync(join(dir, 'dist', path), 'utf8')])) };
}

it('TypeScript checks and builds this project over the overlay, before and after a mistake is made in it', { timeout: WORK_MS }, async () => {
  const { sides } = twin(fill, { outside: 'readonly' });
  const [ours, real] = await onBoth(sides, (side) => {
    const { fs, dir } = side;
    const before = compile(side);
    fs.rmSync(join(dir, 'dist'), { recursive: true });
    fs.renameSync(join(dir, 'src/core/path.ts'), join(dir, 'src/core/route.ts'));
    fs.writeFileSync(join(dir, 'src/core/mistake.ts'), `import { ROOT } from './path.ts';\nexport const wrong: number = ROOT + 'x';\n`);
    return { before, after: compile(side, ['src/core/mistake.ts', 'src/core/event.ts', 'src/core/route.ts']) };
  });
  expect(ours).toEqual(real);
  expect(Object.keys(ours.before.emitted)).toContain('core/path.js');
  expect(ours.after.complaints.join('\n')).toContain("Cannot find module './path.ts'");
  expect(Object.keys(ours.after.emitted)).toContain('core/route.js');
});

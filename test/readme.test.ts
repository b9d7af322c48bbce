import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { format } from 'node:util';
import ts from 'typescript';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

const root = join(import.meta.dirname, '..');
const readme = readFileSync(join(root, 'README.md'), 'utf8');

/** Programs of the README, each with the heading above it and what it says it prints. */
const programs = [...readme.matchAll(/### (.+)\n(?:(?!###|```)[^\n]*\n)*```ts\n([^]*?)```\n```text\n([^]*?)```/g)]
  .map(([, title = '', code = '', output = '']) => ({ title, code, output }));

/** Writes a program below the repository, where packages are found as in it and git looks away; gives the file's path. */
function fileOf({ title, code }: { title: string; code: string }): string {
  const file = join(root, '.cache/readme', `${title.replaceAll(/\W+/g, '-')}.ts`);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, code.replaceAll(`'palimpsest'`, `'../../src/index.ts'`).replaceAll(`'palimpsest/tools'`, `'../../src/tools/index.ts'`));
  return file;
}

describe('README.md', () => {
  const home = process.cwd();
  let scratch = '';

  beforeEach(() => {
    scratch = mkdtempSync(join(realpathSync(tmpdir()), 'palimpsest-readme-'));
    mkdirSync(join(scratch, 'repo/src'), { recursive: true });
    writeFileSync(join(scratch, 'repo/README.md'), '# A repository\n');
    writeFileSync(join(scratch, 'repo/config.json'), '{ "answer": 42 }\n');
    writeFileSync(join(scratch, 'repo/src/index.js'), 'export default 0;\n');
    process.chdir(scratch);
  });
  afterEach(() => {
    process.chdir(home);
    rmSync(scratch, { recursive: true });
  });

  it('has a program with its output for every block of TypeScript', () => {
    expect(programs).toHaveLength(readme.match(/^```ts$/gm)?.length ?? 0);
    expect(programs.length).toBeGreaterThan(4);
  });

  it('has programs that the compiler accepts', { timeout: 120_000 }, () => {
    const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (path) => ts.sys.readFile(path)) as { config: object };
    const { options } = ts.parseJsonConfigFileContent({ ...config, include: [] }, ts.sys, root);
    const program = ts.createProgram(programs.map(fileOf), { ...options, noEmit: true, typeRoots: [join(root, 'node_modules/@types')] });
    // Only the programs: what they import is checked elsewhere.
    const complaints = programs.flatMap((each) => ts.getPreEmitDiagnostics(program, program.getSourceFile(fileOf(each))))
      .map(({ file, messageText }) => `${file?.fileName.replace(root, '')}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`);
    expect(complaints).toEqual([]);
  });

  it.each(programs)('prints what it says: $title', async (program) => {
    const file = fileOf(program);
    const before = contents();
    const lines: string[] = [];
    vi.spyOn(console, 'log').mockImplementation((...words: unknown[]) => {
      lines.push(`${format(...words)}\n`);
    });
    await import(file);
    expect(lines.join('')).toBe(program.output);
    expect(contents()).toEqual(before);
  });

  /** What the real directory holds: no program may change it. */
  function contents(): string[] {
    return readdirSync('repo', { recursive: true, withFileTypes: true })
      .map((entry) => `${join(entry.parentPath, entry.name)} ${entry.isFile() ? readFileSync(join(entry.parentPath, entry.name), 'utf8') : ''}`).sort();
  }

  it('names only scripts that package.json has', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
    const named = [...readme.matchAll(/npm (?:run (\w+)|(test))/g)].map(([, script, test]) => script ?? test ?? '');
    expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
  });
});

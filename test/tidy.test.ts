import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

/** Lines; a longer file has a second noun hidden in it. */
const FILE_LINES = 450;

/** What a file of code holds that has no place there: `line: what`. `src` files have the stricter rules. */
function blemishes(file: string, text: string): string[] {
  const found: string[] = [];
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const at = (position: number): number => source.getLineAndCharacterOfPosition(position).line + 1;
  const inSrc = file.startsWith('src/');

  const lines = text.split('\n').length - 1;
  if (inSrc && lines > FILE_LINES) found.push(`${lines} lines`);
  for (const { 0: word, index } of text.matchAll(/\b(?:TODO|FIXME|XXX|HACK)\b(?!: waits for \S)/g)) {
    found.push(`${at(index)}: ${word} that does not say what it waits for`);
  }
  for (const { 0: word, index } of text.matchAll(/@ts-(?:ignore|nocheck|expect-error)/g)) found.push(`${at(index)}: ${word}`);
  for (const { 0: word, index } of text.matchAll(/\b(?:it|test|describe)(?:\.\w+)*\.(?:only|skip|todo|fails)\b/g)) {
    found.push(`${at(index)}: ${word}`);
  }

  const documented = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (node.kind === ts.SyntaxKind.AnyKeyword) found.push(`${at(node.getStart())}: any`);
    if (inSrc && !file.startsWith('src/cli/') && ts.isPropertyAccessExpression(node) && node.expression.getText() === 'console') {
      found.push(`${at(node.getStart())}: ${node.getText()}`);
    }
    if (inSrc && (ts.isFunctionDeclaration(node) || ts.isClassDeclaration(node)) && isExported(node)) {
      const name = node.name?.text ?? 'default';
      // Of overloads the first one speaks for all.
      if (ts.getJSDocCommentsAndTags(node).length > 0) documented.add(name);
      else if (!documented.has(name)) found.push(`${at(node.getStart())}: ${name} has no docstring`);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function isExported(node: ts.FunctionDeclaration | ts.ClassDeclaration): boolean {
  return node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false;
}

const root = join(import.meta.dirname, '..');
const files = ['src', 'test', 'bench'].flatMap((top) =>
  readdirSync(join(root, top), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.[cm]?[jt]s$/.test(name) && !name.includes('node_modules/')).map((name) => `${top}/${name}`))
  // This file holds an example of everything that is not wanted.
  .filter((file) => file !== 'test/tidy.test.ts');

describe('tidy', () => {
  it('finds every other file of code in order', () => {
    expect(files.length).toBeGreaterThan(10);
    const found = files.flatMap((file) => blemishes(file, readFileSync(join(root, file), 'utf8')).map((what) => `${file}:${what}`));
    expect(found).toEqual([]);
  });

  it('finds every file of src in the reading order of src/README.md', () => {
    const story = readFileSync(join(root, 'src/README.md'), 'utf8');
    expect(files.filter((file) => file.startsWith('src/') && !story.includes(`\`${basename(file)}\``))).toEqual([]);
  });

  it.each([
    ['a file that is too long', 'const a = 1;\n'.repeat(FILE_LINES + 1)],
    ['any as a type', 'let a: any;'],
    ['a cast to any', 'f(a as any);'],
    ['a note without its reason', '// TODO later'],
    ['a switched-off type check', '// @ts-ignore\nf();'],
    ['a test that runs alone', 'it.only("x", f);'],
    ['a skipped group', 'describe.skip("x", f);'],
    ['words to the console', 'console.log(1);'],
    ['an exported function without a docstring', 'export function f() {}'],
    ['an exported class without a docstring', '// not one\nexport class A {}'],
  ])('notices %s', (_, text) => {
    expect(blemishes('src/core/a.ts', text)).toHaveLength(1);
  });

  it('accepts documented exports, overloads, and a note that says what it waits for', () => {
    const text = '/** Says. */\nexport function f(a: 1): void;\nexport function f(a: 2): void;\nexport function f(): void {}\n' +
      '// TODO: waits for the mount\n/** any word */\nexport class A {}\n';
    expect(blemishes('src/core/a.ts', text)).toEqual([]);
    expect(blemishes('src/cli/a.ts', 'console.log(1);')).toEqual([]);
  });
});

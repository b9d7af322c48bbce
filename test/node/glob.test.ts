import * as nodeFs from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PathName } from '../../src/core/path.ts';
import { expandBraces } from '../../src/overlay/node/braces.ts';
import { globs, NODE_HAS_GLOB, type GlobOptions } from '../../src/overlay/node/glob.ts';
import type { System } from '../../src/overlay/system.ts';
import { realSystem } from '../support/real-system.ts';
import { call, FACES, inTemporary, make, type Face } from './twin.ts';

const byText = (a: unknown, b: unknown) => String(a) < String(b) ? -1 : 1;

let dir: string;
beforeAll(() => {
  dir = nodeFs.realpathSync(nodeFs.mkdtempSync('/tmp/palimpsest-glob-'));
  make(dir, {
    'src/a.ts': '', 'src/b.js': '', 'src/deep/c.ts': '', 'src/deep/er/d.ts': '', 'src/.hidden/e.ts': '', 'src/.f.ts': '',
    'README.md': '', 'empty': null, 'link': { to: 'src' }, 'x/loop': { to: '..' }, 'odd/[a]': '',
    'odd/a b\nc': '', 'dangling': { to: 'nowhere' },
  });
});
afterAll(() => nodeFs.rmSync(dir, { recursive: true }));

async function find(
  face: Face, pattern: string | string[], options: GlobOptions = {}, system: System = realSystem(),
): Promise<unknown[]> {
  const calls = globs(system);
  const given: GlobOptions = { cwd: dir, ...options };
  if (face !== 'promise') return await call(calls, face, 'glob', [pattern, given]) as unknown[];
  const all = [];
  for await (const found of calls.promises.glob(pattern, given)) all.push(found);
  return all;
}

const patterns: [pattern: string | string[], expected: string[]][] = [
  ['README.md', ['README.md']], ['nothing', []], ['README.md/', []], ['src/', ['src']], ['*.md', ['README.md']],
  ['src/*.ts', ['src/a.ts']], ['src/.*.ts', ['src/.f.ts']], ['src/*', ['src/a.ts', 'src/b.js', 'src/deep']],
  ['src/*/', ['src/deep']], ['**/*.ts', ['src/a.ts', 'src/deep/c.ts', 'src/deep/er/d.ts']],
  ['./**/*.md', ['README.md', 'x/loop/README.md']],
  ['src/**', ['src', 'src/a.ts', 'src/b.js', 'src/deep', 'src/deep/c.ts', 'src/deep/er', 'src/deep/er/d.ts']],
  ['src/**/', ['src', 'src/deep', 'src/deep/er']], ['src/**/d.ts', ['src/deep/er/d.ts']],
  ['src/**/**/d.ts', ['src/deep/er/d.ts']],
  ['src/{a,deep/c}.ts', ['src/a.ts', 'src/deep/c.ts']], ['src/[!b].*', ['src/a.ts']],
  ['src/?.@(ts|js)', ['src/a.ts', 'src/b.js']],
  ['src/!(a).*', ['src/b.js']], ['link/*.ts', ['link/a.ts']], ['lin*/*.ts', ['link/a.ts']],
  ['x/loop/src/a.ts', ['x/loop/src/a.ts']],
  ['src//deep/./c.ts', ['src/deep/c.ts']], ['src/deep/../a.ts', ['src/a.ts']], ['src\\a.ts', ['src/a.ts']],
  ['src/**/..', ['.', 'src', 'src/deep']], ['dangling', ['dangling']], ['dangling/', []], ['dangling/*', []],
  ['d*', ['dangling']],
  ['odd/[[]a]', ['odd/[a]']], ['odd/a*', ['odd/a b\nc']], ['README.md/*', []], ['empty/*', []],
  [['*.md', 'src/*.js', 'README.*'], ['README.md', 'src/b.js']], [[], []], ['', []],
];

describe.each(FACES)('glob, %s', (face) => {
  it.each(patterns)('finds what %j means', async (pattern, expected) => {
    expect((await find(face, pattern)).toSorted(byText)).toEqual(expected);
  });

  it('finds by absolute patterns, and from a file: URL', async () => {
    expect(await find(face, `${dir}/src/*.ts`, { cwd: '/' })).toEqual([join(dir, 'src/a.ts')]);
    expect(await find(face, 'src/*.ts', { cwd: pathToFileURL(dir) })).toEqual(['src/a.ts']);
    expect((await find(face, '../*.md', { cwd: join(dir, 'src') }))).toEqual(['../README.md']);
  });

  it('gives Dirents where they are asked for', async () => {
    const entries = await find(face, 'src/{a.ts,deep}', { withFileTypes: true }) as nodeFs.Dirent[];
    expect(entries.map((entry) => [entry.name, entry.parentPath, entry.isDirectory()]).toSorted(byText)).toEqual([
      ['a.ts', join(dir, 'src'), false], ['deep', join(dir, 'src'), true],
    ]);
    for (const entry of entries) expect(entry).toBeInstanceOf(nodeFs.Dirent);
  });
});

const excluded: [exclude: GlobOptions['exclude'], expected: string[]][] = [
  [['src/deep'], ['src', 'src/a.ts', 'src/b.js']], [['**/*.ts'], ['src', 'src/b.js', 'src/deep', 'src/deep/er']],
  [['./src/deep/'], ['src', 'src/a.ts', 'src/b.js']],
  [['src/a.ts/'], ['src', 'src/a.ts', 'src/b.js', 'src/deep', 'src/deep/c.ts', 'src/deep/er', 'src/deep/er/d.ts']],
  [['src/**'], []], [['*'], []], [['src/{a,b}.*', '**/er'], ['src', 'src/deep', 'src/deep/c.ts']], [() => true, []],
  [(path: string) => path.includes('deep'), ['src', 'src/a.ts', 'src/b.js']],
];

it.each(excluded)('leaves out %s, with all beneath it', async (exclude, expected) => {
  expect((await find('sync', 'src/**', { exclude })).toSorted(byText)).toEqual(expected);
});

it('asks an exclusion by Dirent where Dirents are asked for', async () => {
  const exclude = (entry: nodeFs.Dirent) => entry.isDirectory() && entry.name !== 'src';
  const found = await find('sync', 'src/**', { withFileTypes: true, exclude });
  expect((found as nodeFs.Dirent[]).map(({ name }) => name).toSorted(byText)).toEqual(['a.ts', 'b.js', 'src']);
});

it('lists only what a pattern has to know, each directory once', async () => {
  const real = realSystem(), listed: string[] = [];
  const system = Object.create(real, { readdir: { value(path: PathName) {
    listed.push(path);
    return real.readdir(path);
  } } }) as System;
  await find('sync', ['src/deep/er/d.ts', 'src/deep/c.ts'], {}, system);
  expect(listed).toEqual([]);
  await find('sync', ['src/deep/*.ts', 'src/deep/*.js', 'src/deep/**'], {}, system);
  expect(listed).toEqual([join(dir, 'src/deep'), join(dir, 'src/deep/er')]);
});

const wrong: [pattern: unknown, options: unknown][] = [[1, {}], ['*', 1], ['*', { exclude: 'x' }], ['*', { exclude: [1] }], [['*', 1], {}]];

it.each(wrong)('refuses (%j, %j)', (pattern, options) => {
  const refused = expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' });
  expect(() => globs(realSystem()).globSync(pattern as never, options as never)).toThrow(refused);
  expect(() => globs(realSystem()).glob(pattern as never, options as never, () => undefined)).toThrow(refused);
});

it('finds names that are not UTF-8, as node shows them', async () => {
  await inTemporary(async (cwd) => {
    nodeFs.writeFileSync(Buffer.concat([Buffer.from(`${cwd}/a`), Buffer.from([0xff])]), '');
    expect(await find('sync', 'a*', { cwd })).toEqual(['a\ufffd']);
  });
});

it('is there where this node has it', () => {
  expect(NODE_HAS_GLOB).toBe(typeof (nodeFs as { globSync?: unknown }).globSync === 'function');
});

it.each([
  ['a', ['a']], ['{a,b}', ['a', 'b']], ['x{a,b}y', ['xay', 'xby']], ['{a,b}{c,d}', ['ac', 'ad', 'bc', 'bd']],
  ['{a,{b,c}}', ['a', 'b', 'c']],
  ['{a}', ['{a}']], ['{}', ['{}']], ['{a,b', ['{a,b']], ['a}', ['a}']], ['{,a}', ['', 'a']],
  ['{1..3}', ['1', '2', '3']],
  ['{3..1}', ['3', '2', '1']], ['{08..10}', ['08', '09', '10']], ['{1..9..4}', ['1', '5', '9']],
  ['{a..c}', ['a', 'b', 'c']],
  ['{-1..1}', ['-1', '0', '1']], ['{x}{a,b}', ['{x}a', '{x}b']], ['{{a,b},c}d', ['ad', 'bd', 'cd']],
])('expands %s', (pattern, expected) => {
  expect(expandBraces(pattern)).toEqual(expected);
});

it('refuses braces that stand for too much', () => {
  expect(() => expandBraces('{0..999999999}')).toThrow(RangeError);
  expect(() => expandBraces('{0..999}{0..999}')).toThrow(RangeError);
});

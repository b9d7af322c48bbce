import { execFileSync } from 'node:child_process';
import nodeFs, { linkSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { childOf, fromBytes, toBytes } from '../../src/core/path.ts';
import { openDirectoryLower } from '../../src/lower/directory.ts';
import { fsShapedLower } from '../../src/lower/shaped.ts';
import type { Lower } from '../../src/lower/lower.ts';
import { at, kept, outcome, temporary } from './ground.ts';

const MAKERS: readonly (readonly [string, (root: string) => Lower])[] = [
  ['a directory by descriptors', (root) => openDirectoryLower(root, { by: 'descriptors' })],
  ['a directory by checks', (root) => openDirectoryLower(root, { by: 'checks' })],
  ['node:fs', (root) => fsShapedLower(nodeFs, root)],
];

/** Names of bytes that a careless reader loses. */
const NAMES: readonly (readonly [string, Uint8Array])[] = [
  ['a byte that is no UTF-8', Uint8Array.of(0x61, 0xff, 0x62)],
  ['Latin-1', Uint8Array.of(0x63, 0x61, 0x66, 0xe9)],
  ['an encoded surrogate', Uint8Array.of(0xed, 0xb2, 0x80)],
  ['a torn sequence', Uint8Array.of(0xf0, 0x9f, 0x98)],
  ['a replacement character that is really there', toBytes('\uFFFD')],
  ['an emoji', toBytes('😀')],
  ['two spellings of one letter', toBytes('e\u0301')],
  ['a newline, quotes and a backslash', toBytes('a\n"\'\\%')],
  ['spaces', toBytes('  ')],
  ['a leading dash', toBytes('-rf')],
  ['dots', toBytes('...')],
  ['255 bytes', toBytes('n'.repeat(255))],
  ['255 bytes that are no UTF-8', new Uint8Array(255).fill(0xe9)],
  ['85 characters of three bytes', toBytes('€'.repeat(85))],
];

describe.each(MAKERS)('%s', (_, make) => {
  it.each(NAMES)('knows a file, a directory and a symlink by a name of %s', async (_name, bytes) => {
    const root = temporary();
    const prefix = Buffer.from(root + '/');
    mkdirSync(Buffer.concat([prefix, Buffer.from('f')]));
    writeFileSync(Buffer.concat([prefix, Buffer.from('f/'), bytes]), 'text');
    mkdirSync(Buffer.concat([prefix, bytes]));
    writeFileSync(Buffer.concat([prefix, bytes, Buffer.from('/'), bytes]), 'below');
    symlinkSync(Buffer.from(bytes), Buffer.concat([prefix, Buffer.from('link')]));
    await new Promise((resolve) => { setTimeout(resolve, 30); });

    const name = fromBytes(bytes);
    const lower = kept(make(root));
    for (let look = 0; look < 30; look++) {
      expect(lower.list(at('f'))).toEqual([{ name, type: 'file' }]);
      expect(outcome(() => lower.slurp(at(`f/${name}`), 100))).toBe('whole: text');
      expect(outcome(() => lower.open(at(`f/${name}`)))).toBe('open: text');
      expect(outcome(() => lower.lstat(at(name)))).toBe('a directory');
      expect(outcome(() => lower.list(at(name)))).toEqual([`${name} file`]);
      expect(outcome(() => lower.slurp(at(`${name}/${name}`), 100))).toBe('whole: below');
      expect(lower.readlink(at('link'))).toBe(name);
      expect(outcome(() => lower.lstat(at(`f/${name}/x`)))).toBe('unwalkable');
    }
  });

  it('tells names apart that differ in one byte which is no UTF-8', () => {
    const root = temporary();
    const names = [0x80, 0x81, 0xfe].map((byte) => Uint8Array.of(0x61, byte));
    for (const name of names) writeFileSync(Buffer.concat([Buffer.from(root + '/'), name]), String(name[1]));
    const lower = kept(make(root));
    expect(lower.list(at('')).map(({ name }) => name).sort()).toEqual(names.map(fromBytes).sort());
    for (const name of names) expect(outcome(() => lower.slurp(at(fromBytes(name)), 100))).toBe(`whole: ${name[1]}`);
    expect(outcome(() => lower.slurp(at(fromBytes(Uint8Array.of(0x61, 0x82))), 100))).toBe('absent');
  });

  it('refuses a name too long for the file system, remembered or not', () => {
    const root = temporary();
    writeFileSync(join(root, 'x'), '');
    const lower = kept(make(root));
    for (let look = 0; look < 30; look++) {
      expect(outcome(() => lower.lstat(at('n'.repeat(256))))).toBe('refused ENAMETOOLONG');
      expect(outcome(() => lower.lstat(at('€'.repeat(86))))).toBe('refused ENAMETOOLONG');
    }
  });
});

it('takes a root whose own name is no UTF-8', () => {
  const parent = temporary();
  const name = Uint8Array.of(0x61, 0xff);
  const root = Buffer.concat([Buffer.from(parent + '/'), name]);
  mkdirSync(Buffer.concat([root, Buffer.from('/a/b/c/d')]), { recursive: true });
  writeFileSync(Buffer.concat([root, Buffer.from('/a/b/c/d/x')]), 'text');
  symlinkSync(root, join(parent, 'link'));
  for (const by of ['descriptors', 'checks'] as const) {
    const lower = kept(openDirectoryLower(join(parent, 'link'), { by }));
    expect(lower.root).toBe(`${parent}/${fromBytes(name)}`);
    for (let look = 0; look < 3; look++) expect(outcome(() => lower.slurp(at('a/b/c/d/x'), 100))).toBe('whole: text');
  }
});

it('walks paths of any length, one directory after the other', () => {
  const root = temporary();
  const [name, depth] = ['d'.repeat(60), 150];
  // Longer than PATH_MAX in all, so only one who walks can make and remove it.
  onTestFinished(() => { execFileSync('rm', ['-rf', join(root, name)]); });
  execFileSync(process.execPath, ['-e', `for (let i = 1; i <= ${depth}; i++) {
    fs.mkdirSync('${name}'); process.chdir('${name}'); fs.writeFileSync('x', String(i)); }`], { cwd: root });
  const lower = kept(openDirectoryLower(root, { by: 'descriptors' }));
  const before = readdirSync('/proc/self/fd').length;
  for (let round = 0; round < 3; round++) {
    let path = at('');
    for (let level = 1; level <= depth; level++) {
      path = childOf(path, name);
      expect(outcome(() => lower.slurp(childOf(path, 'x'), 100))).toBe(`whole: ${level}`);
      expect(outcome(() => lower.lstat(childOf(path, 'none')))).toBe('absent');
      expect(outcome(() => lower.list(path))).toEqual(level === depth ? ['x file'] : [`${name} directory`, 'x file']);
    }
  }
  // Only so many levels are held, whatever the depth.
  expect(readdirSync('/proc/self/fd').length - before).toBeLessThan(70);
  execFileSync('rm', ['-rf', join(root, name)]);
  expect(outcome(() => lower.slurp(at([...Array.from({ length: depth }, () => name), 'x'].join('/')), 100))).toBe('unwalkable');
});

it('lists more names than it remembers', { timeout: 60_000 }, async () => {
  const root = temporary(), names = Array.from({ length: 14_000 }, (_, index) => `n${String(index).padStart(5, '0')}`);
  for (const directory of 'abcde') {
    mkdirSync(join(root, directory));
    writeFileSync(join(root, directory, 'n00000'), '');
    // Links are made faster than files.
    for (const name of names.slice(1)) linkSync(join(root, directory, 'n00000'), join(root, directory, name));
  }
  await new Promise((resolve) => { setTimeout(resolve, 30); });
  const lower = kept(openDirectoryLower(root, { by: 'descriptors' }));
  for (let round = 0; round < 2; round++) {
    for (const directory of 'abcde') {
      expect(lower.list(at(directory)).map(({ name }) => name)).toEqual(names);
      for (const name of names.slice(0, 40)) expect(outcome(() => lower.lstat(at(`${directory}/${name}`)))).toBe('a file');
    }
  }
});

it.each(MAKERS)('lists names by their bytes, remembered or not: %s', async (_, make) => {
  const root = temporary();
  // Byte order is not UTF-16 order where surrogates come in: U+FFFD before an emoji, both before a byte that is no UTF-8.
  const sorted = '-.09AZ_az'.split('').map((name) => toBytes(`${name}x`)).concat(toBytes('é'), toBytes('\uFFFD'), toBytes('😀'), Uint8Array.of(0xff));
  for (const name of sorted.toReversed()) writeFileSync(Buffer.concat([Buffer.from(root + '/'), name]), '');
  await new Promise((resolve) => { setTimeout(resolve, 30); });
  const lower = kept(make(root));
  const names = sorted.map(fromBytes);
  for (let look = 0; look < 30; look++) outcome(() => lower.lstat(at(`none${look}`)));
  for (let look = 0; look < 3; look++) expect(lower.list(at('')).map(({ name }) => name)).toEqual(names);
});

import nodeFs from 'node:fs';
import { Volume } from 'memfs';
import { Union } from 'unionfs';
import { expect, it } from 'vitest';
import { fsShapedLower } from '../../src/lower/shaped.ts';
import type { FsShape } from '../../src/lower/shaped.ts';
import { at, outcome, plant, planted } from './ground.ts';

const METHODS = [
  'lstatSync', 'readdirSync', 'readlinkSync', 'readFileSync', 'openSync', 'fstatSync', 'readSync', 'closeSync',
] as const;

/** The methods of `fs`, each call recorded; any other is not there. */
function recorded(fs: FsShape, calls: string[]): FsShape {
  return Object.fromEntries(METHODS.map((name) => [name, (...args: never[]) => {
    calls.push(name);
    return fs[name](...args);
  }])) as FsShape;
}

it.each(METHODS)('refuses an object without %s, by name, before any call', (name) => {
  const volume = Volume.fromJSON({ '/x': '' });
  const calls: string[] = [];
  const lacking = { ...recorded(volume, calls), [name]: undefined };
  expect(() => fsShapedLower(lacking)).toThrow(expect.objectContaining({ name: 'TypeError', message: expect.stringContaining(name) }));
  expect(calls).toEqual([]);
});

it.each([undefined, null, 1, 'fs', {}])('refuses %j', (what) => {
  expect(() => fsShapedLower(what as FsShape)).toThrow(TypeError);
});

it('calls nothing but the methods that it asks for, and leaves no descriptor open', () => {
  const volume = Volume.fromJSON({ '/d/x': 'text' });
  const calls: string[] = [];
  const lower = fsShapedLower(recorded(volume, calls));
  expect(outcome(() => lower.list(at('d')))).toEqual(['x file']);
  expect(outcome(() => lower.slurp(at('d/x'), 100))).toBe('whole: text');
  expect(outcome(() => lower.open(at('d/x')))).toBe('open: text');
  expect(outcome(() => lower.slurp(at('d/x'), 1))).toBe('open: text');
  expect(outcome(() => lower.lstat(at('d/y')))).toBe('absent');
  expect(lower.statfs().bsize).toBe(4096n);
  lower.watch(at('d'), { recursive: true }, () => {}).close();
  expect(new Set(calls)).toEqual(new Set(METHODS.filter((name) => name !== 'readlinkSync')));
  expect(calls.filter((name) => name === 'openSync').length).toBe(calls.filter((name) => name === 'closeSync').length);
  expect(volume.toJSON()).toEqual({ '/d/x': 'text' });
});

it('takes number stats where there are no others', () => {
  const volume = Volume.fromJSON({ '/d/x': 'text' });
  const numbers = (fs: FsShape): FsShape => ({
    ...recorded(fs, []),
    lstatSync: ((path: string) => volume.lstatSync(path)),
    fstatSync: ((fd: number) => volume.fstatSync(fd)),
  });
  const lower = fsShapedLower(numbers(volume));
  const exact = volume.lstatSync('/d/x', { bigint: true });
  const found = lower.lstat(at('d/x'));
  expect(found).toMatchObject({ ino: exact.ino, size: 4, mode: Number(exact.mode), nlink: 1 });
  if (typeof found === 'string') throw new Error('absent');
  expect(found.mtime / 1_000_000n).toBe(exact.mtimeMs);
  expect(outcome(() => lower.open(at('d/x')))).toBe('open: text');
});

it('keeps the nanoseconds of exact stats', () => {
  const root = planted({ x: '' });
  const exact = nodeFs.lstatSync(`${root}/x`, { bigint: true });
  expect(fsShapedLower(nodeFs, root).lstat(at('x'))).toMatchObject({ mtime: exact.mtimeNs, ctime: exact.ctimeNs, ino: exact.ino, dev: exact.dev });
});

it('takes names without types, and types of entries that tell them', () => {
  const volume = new Volume();
  plant('/', { 'd/x': '', 'd/l': { link: 'x' }, 'd/e': null }, volume);
  const named = { ...recorded(volume, []), readdirSync: ((path: string) => volume.readdirSync(path)) as FsShape['readdirSync'] };
  const expected = ['e directory', 'l symlink', 'x file'];
  expect(outcome(() => fsShapedLower(named).list(at('d')))).toEqual(expected);
  expect(outcome(() => fsShapedLower(volume).list(at('d')))).toEqual(expected);
});

it('reads every layer of a unionfs, open files of two layers at a time included', () => {
  const [one, two] = [Volume.fromJSON({ '/d/one': 'first' }), Volume.fromJSON({ '/d/two': 'second', '/d/one': 'hidden' })];
  const lower = fsShapedLower(new Union().use(two as unknown as typeof nodeFs).use(one as unknown as typeof nodeFs));
  expect(outcome(() => lower.slurp(at('d/one'), 100))).toBe('whole: first');
  expect(outcome(() => lower.slurp(at('d/two'), 100))).toBe('whole: second');
  expect(outcome(() => lower.list(at('d')))).toEqual(['one file', 'two file']);
  expect(outcome(() => lower.lstat(at('d/none')))).toBe('absent');
  // A unionfs may take a descriptor of one layer for another's: that is told, never the wrong bytes.
  const first = lower.open(at('d/one'));
  expect(['open: second', 'refused EIO']).toContain(outcome(() => lower.open(at('d/two'))));
  expect(outcome(() => first)).toBe('open: first');
});

it('passes on the faults of the object', () => {
  const volume = Volume.fromJSON({ '/d/x': 'text' });
  const failing = { ...recorded(volume, []), readFileSync: (() => { throw Object.assign(new Error('bad disk'), { code: 'EIO' }); }) as FsShape['readFileSync'] };
  expect(outcome(() => fsShapedLower(failing).slurp(at('d/x'), 100))).toBe('refused EIO');
  const buggy = { ...recorded(volume, []), readFileSync: (() => { throw new TypeError('a bug'); }) as FsShape['readFileSync'] };
  expect(() => fsShapedLower(buggy).slurp(at('d/x'), 100)).toThrow(TypeError);
});

it('starts at the root it was given', () => {
  const volume = Volume.fromJSON({ '/a/b/x': 'text', '/x': 'outside' });
  const lower = fsShapedLower(volume, '/a/b');
  expect(outcome(() => lower.list(at('')))).toEqual(['x file']);
  expect(outcome(() => lower.slurp(at('x'), 100))).toBe('whole: text');
  expect(() => fsShapedLower(volume, '/a/b/x')).toThrow(expect.objectContaining({ code: 'ENOTDIR' }));
});

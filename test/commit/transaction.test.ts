import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Step } from '../../src/core/plan.ts';
import { forecast } from '../../src/commit/transaction.ts';
import { pending } from '../../src/commit/site.ts';
import { openDirectoryLower } from '../../src/lower/directory.ts';
import { at, below, census, commit, content, file, now, plant, scratch, transaction, versionOf } from './ground.ts';

let root: string, clear: () => void;
beforeEach(() => { ({ root, clear } = scratch('commit')); });
afterEach(() => clear());

const read = (name: string): string => fs.readFileSync(path.join(root, name), 'utf8');
const names = (name = ''): string[] => fs.readdirSync(path.join(root, name)).sort();
const stat = (name: string): fs.BigIntStats => fs.lstatSync(path.join(root, name), { bigint: true });

describe('a commit', () => {
  it('of nothing is done, and touches nothing', async () => {
    const before = stat('').ctimeNs;
    await commit(root, []);
    expect(stat('').ctimeNs).toBe(before);
  });

  it('creates files, directories and symlinks', async () => {
    await commit(root, [
      { act: 'create', path: at('a'), node: file('one', { mode: 0o640, mtime: 1_600_000_000_000_000_000n }) },
      { act: 'create', path: at('d'), node: { type: 'directory', mode: 0o750 } },
      { act: 'create', path: at('d/e'), node: { type: 'directory', mode: 0o500, mtime: 1_500_000_000_000_000_000n } },
      { act: 'create', path: at('d/e/f'), node: file('', { mode: 0o755 }) },
      { act: 'create', path: at('d/l'), node: { type: 'symlink', target: '../a' } },
    ]);
    expect(names()).toEqual(['a', 'd']);
    expect(read('a')).toBe('one');
    expect(Number(stat('a').mode) & 0o7777).toBe(0o640);
    expect(stat('a').mtimeNs).toBe(1_600_000_000_000_000_000n);
    expect(Number(stat('d').mode) & 0o7777).toBe(0o750);
    expect(Number(stat('d/e').mode) & 0o7777).toBe(0o500);
    expect(stat('d/e').mtimeNs).toBe(1_500_000_000_000_000_000n);
    expect(names('d/e')).toEqual(['f']);
    expect(stat('a').nlink).toBe(1n);
    expect(fs.readlinkSync(path.join(root, 'd/l'))).toBe('../a');
  });

  it('replaces, removes, moves, adjusts', async () => {
    plant(root, { a: 'old', b: 'gone', 'c/x': '1', 'c/y/z': '2', m: 'moved', 't/one': '1', k: 'kept' });
    fs.chmodSync(path.join(root, 'a'), 0o4755);
    const kept = stat('k').ino;
    await commit(root, [
      { act: 'replace', path: at('a'), before: now(root, 'a'), node: file('new'), attributes: 'kept' },
      { act: 'remove', path: at('b'), before: now(root, 'b') },
      { act: 'remove', path: at('t'), before: now(root, 't'), below: below(root, 't') },
      { act: 'create', path: at('t'), node: file('a file now') },
      { act: 'move', from: at('c'), to: at('n'), before: now(root, 'c') },
      { act: 'replace', path: at('n/y/z'), before: now(root, 'c/y/z'), node: file('3'), attributes: 'kept' },
      { act: 'move', from: at('m'), to: at('n/m'), before: now(root, 'm') },
      { act: 'adjust', path: at('k'), before: now(root, 'k'), set: { mode: 0o600, mtime: 1_000_000_000n } },
    ]);
    expect(names()).toEqual(['a', 'k', 'n', 't']);
    expect(read('a')).toBe('new');
    expect(Number(stat('a').mode) & 0o7777).toBe(0o4755);
    expect(names('n')).toEqual(['m', 'x', 'y']);
    expect(read('n/y/z')).toBe('3');
    expect(read('t')).toBe('a file now');
    expect(stat('k')).toMatchObject({ ino: kept, mtimeNs: 1_000_000_000n });
    expect(stat('n/m').nlink).toBe(1n);
  });

  it('swaps names by way of a parking place', async () => {
    plant(root, { 'a/in': 'a', b: 'b' });
    await commit(root, [
      { act: 'park', path: at('a'), before: now(root, 'a'), slot: 0 },
      { act: 'move', from: at('b'), to: at('a'), before: now(root, 'b') },
      { act: 'unpark', slot: 0, path: at('b') },
    ]);
    expect([read('a'), read('b/in')]).toEqual(['b', 'a']);
    expect(names()).toEqual(['a', 'b']);
  });

  it('edits and adjusts what it has moved or swapped itself', async () => {
    plant(root, { 'd/a': '', b: 'b', c: 'c', e: 'e' });
    await commit(root, [
      { act: 'park', path: at('b'), before: now(root, 'b'), slot: 0 },
      { act: 'move', from: at('d/a'), to: at('n'), before: now(root, 'd/a') },
      { act: 'move', from: at('c'), to: at('b'), before: now(root, 'c') },
      { act: 'move', from: at('e'), to: at('f'), before: now(root, 'e') },
      { act: 'unpark', slot: 0, path: at('c') },
      { act: 'replace', path: at('n'), before: now(root, 'd/a'), node: file('new a'), attributes: 'kept' },
      { act: 'replace', path: at('c'), before: now(root, 'b'), node: file('new b'), attributes: 'kept' },
      { act: 'adjust', path: at('b'), before: now(root, 'c'), set: { mode: 0o600 } },
      { act: 'remove', path: at('f'), before: now(root, 'e') },
    ]);
    expect([read('n'), read('c'), read('b'), names()]).toEqual(['new a', 'new b', 'c', ['b', 'c', 'd', 'n']]);
    expect(Number(stat('b').mode) & 0o7777).toBe(0o600);
  });

  it('makes names of one file, also of one that it makes itself', async () => {
    plant(root, { a: 'a', b: 'b' });
    fs.linkSync(path.join(root, 'a'), path.join(root, 'a2'));
    await commit(root, [
      { act: 'replace', path: at('a'), before: now(root, 'a'), node: file('new a'), attributes: 'kept' },
      { act: 'replace', path: at('a2'), before: now(root, 'a2'), node: { type: 'link', of: at('a') }, attributes: 'own' },
      { act: 'create', path: at('b2'), node: { type: 'link', of: at('b') } },
    ]);
    expect(stat('a').ino).toBe(stat('a2').ino);
    expect(stat('b').ino).toBe(stat('b2').ino);
    expect([read('a2'), read('b2')]).toEqual(['new a', 'b']);
    expect(stat('a').nlink).toBe(2n);
  });

  it('reports that other names of an edited file are left behind', async () => {
    plant(root, { a: 'a' });
    fs.linkSync(path.join(root, 'a'), path.join(root, 'other'));
    const { losses } = await commit(root, [{ act: 'replace', path: at('a'), before: now(root, 'a'), node: file('new'), attributes: 'kept' }]);
    expect(losses).toEqual([{ path: 'a', what: 'links', words: '1 other name of the file stays with what it held before: the link is broken' }]);
    expect(read('other')).toBe('a');
  });

  it('leaves the times of the root and of untouched directories alone', async () => {
    plant(root, { 'd/a': 'a', 'u/b': 'b' });
    const past = new Date(1_000_000_000_000);
    for (const name of ['d', 'u', '']) fs.utimesSync(path.join(root, name), past, past);
    await commit(root, [{ act: 'create', path: at('d/new'), node: file('x') }]);
    expect(stat('').mtimeMs).toBe(BigInt(past.getTime()));
    expect(stat('u').mtimeMs).toBe(BigInt(past.getTime()));
    expect(stat('d').mtimeMs).toBeGreaterThan(BigInt(past.getTime()));
  });

  it('keeps holes', async () => {
    const size = 64 * 1024 * 1024;
    const end = Buffer.from('end');
    await commit(root, [{ act: 'create', path: at('sparse'), node: { type: 'file', content: {
      size, version: undefined, pieces: () => [{ at: 10, bytes: Buffer.from('x') }, { at: size - 3, bytes: end }],
    } } }]);
    expect(stat('sparse')).toMatchObject({ size: BigInt(size) });
    expect(stat('sparse').blocks * 512n).toBeLessThan(1_000_000n);
    expect(fs.readFileSync(path.join(root, 'sparse')).subarray(size - 3).toString()).toBe('end');
  });

  it('hands out what goes away, and tells what is there now', async () => {
    plant(root, { a: 'old a', 'd/b': 'old b', 'd/e/c': '' });
    const kept = new Map<string, string>(), published: [number, string][] = [];
    await commit(root, [
      { act: 'replace', path: at('a'), before: now(root, 'a'), node: file('new a'), attributes: 'kept' },
      { act: 'remove', path: at('d'), before: now(root, 'd'), below: below(root, 'd') },
    ], {
      keep(name) {
        let text = '';
        return { add: (bytes) => { text += Buffer.from(bytes).toString(); }, end: (version) => { expect(version).toBe(versionOf(text)); kept.set(name, text); } };
      },
      published: (index, attr) => published.push([index, String(attr?.ctime)]),
    });
    expect(Object.fromEntries(kept)).toEqual({ a: 'old a', 'd/b': 'old b', 'd/e/c': '' });
    expect(published).toEqual([[0, String(stat('a').ctimeNs)], [1, 'undefined']]);
  });

  it('makes FIFOs, renames by case alone, and sets attributes of what stays', async () => {
    plant(root, { name: 'name', a: 'a', l: '->a' });
    const hasXattrs = spawnSync('setfattr', ['-n', 'user.old', '-v', 'x', path.join(root, 'a')]).status === 0;
    await commit(root, [
      { act: 'create', path: at('pipe'), node: { type: 'fifo', mode: 0o622 } },
      { act: 'move', from: at('name'), to: at('NAME'), before: now(root, 'name') },
      { act: 'adjust', path: at('l'), before: now(root, 'l'), set: { mtime: 1_000_000_000n } },
      { act: 'adjust', path: at('a'), before: now(root, 'a'), set: { mode: 0o4711, ...(hasXattrs ? { xattrs: new Map([['user.new', 'bmV3'], ['user.old', null]]) } : {}) } },
    ]);
    expect(names()).toEqual(['NAME', 'a', 'l', 'pipe']);
    expect([stat('pipe').isFIFO(), Number(stat('pipe').mode) & 0o7777]).toEqual([true, 0o622]);
    expect([stat('l').mtimeNs, Number(stat('a').mode) & 0o7777, read('a')]).toEqual([1_000_000_000n, 0o4711, 'a']);
    const told = spawnSync('getfattr', ['-d', path.join(root, 'a')]).stdout?.toString() ?? '';
    expect(told.match(/user\.\w+/g) ?? []).toEqual(hasXattrs ? ['user.new'] : []);
  });

  it('keeps extended attributes and access lists of what it edits', async (context) => {
    plant(root, { a: 'a', b: 'b' });
    const set = (...args: string[]): boolean => spawnSync('setfattr', [...args, path.join(root, 'a')]).status === 0;
    if (!set('-n', 'user.note', '-v', 'hi')) {
      if (process.env['CI'] === 'true') throw new Error('setfattr must be usable in CI');
      context.skip('setfattr is missing, or the file system has no extended attributes');
    }
    const acl = '0sAgAAAAEABgD/////AgAGAOgDAAAEAAQA/////xAABgD/////IAAEAP////8=';
    const acls = set('-n', 'system.posix_acl_access', '-v', acl) ? ['system.posix_acl_access'] : [];
    await commit(root, [
      { act: 'replace', path: at('a'), before: now(root, 'a'), node: file('new'), attributes: 'kept' },
      { act: 'replace', path: at('b'), before: now(root, 'b'), node: file('new', { xattrs: new Map([['user.b', 'Yg==']]) }), attributes: 'kept' },
    ]);
    const told = (name: string): string => spawnSync('getfattr', ['-d', '-m', '-', path.join(root, name)]).stdout.toString();
    expect(told('a')).toContain('user.note="hi"');
    expect(told('a').match(/system\.posix_acl_access/g) ?? []).toEqual(acls);
    expect(told('b')).toContain('user.b="b"');
  });
});

describe('a commit beside others', () => {
  it('waits for the one that is at the root, or is told of it when its patience ends', async () => {
    plant(root, { a: 'a' });
    let release = (): void => undefined, begin = (): void => undefined;
    const begun = new Promise<void>((resolve) => { begin = resolve; });
    const first = commit(root, [{ act: 'create', path: at('one'), node: file('1') }], { confirm: () => {
      begin();
      return new Promise<void>((resolve) => { release = resolve; });
    } });
    await begun;
    const steps: Step[] = [{ act: 'create', path: at('two'), node: file('2') }];
    await expect(commit(root, steps, { id: 'second', patience: 30 })).rejects.toMatchObject({ code: 'ERR_ROOT_LOCKED', pid: process.pid });
    expect(pending(root)).toMatchObject({ state: 'harmless', pid: process.pid });
    const second = commit(root, steps, { id: 'second' });
    release();
    await Promise.all([first, second]);
    expect(names()).toEqual(['a', 'one', 'two']);
  });

  it('is not seen by who looks at the tree', async () => {
    plant(root, { a: 'a' });
    const lower = openDirectoryLower(root), seen: string[] = [], told: string[] = [];
    const watcher = lower.watch(at(''), { recursive: true }, (_, name) => told.push(name));
    await commit(root, [{ act: 'create', path: at('new'), node: file('1') }], { confirm: () => {
      seen.push(...lower.list(at('')).map(({ name }) => name));
      expect(fs.readdirSync(root)).toContain('.palimpsest-commit');
    } });
    expect(seen).toEqual(['a', 'new']);
    await expect.poll(() => told.includes('new'), { timeout: 10_000 }).toBe(true);
    expect(told.filter((name) => name.includes('palimpsest'))).toEqual([]);
    watcher.close();
    lower.close();
  });
});

describe('a commit that finds the disk changed', () => {
  it('names every conflict, and changes nothing', async () => {
    plant(root, { a: 'a', b: 'b', 'd/x': 'x', taken: 'somebody', m: 'm' });
    const steps: Step[] = [
      { act: 'create', path: at('fine'), node: file('1') },
      { act: 'replace', path: at('a'), before: now(root, 'a'), node: file('2'), attributes: 'kept' },
      { act: 'remove', path: at('d'), before: now(root, 'd'), below: below(root, 'd') },
      { act: 'create', path: at('taken'), node: file('3') },
      { act: 'move', from: at('m'), to: at('m2'), before: now(root, 'm') },
      { act: 'adjust', path: at('b'), before: now(root, 'b'), set: { mode: 0o600 } },
    ];
    plant(root, { a: 'A', 'd/stranger': '!', m: 'other bytes' });
    fs.chmodSync(path.join(root, 'b'), 0o700);
    const before = census(root);
    await expect(commit(root, steps)).rejects.toMatchObject({ code: 'ERR_CONFLICT', conflicts: [
      { path: 'a' }, { path: 'd/stranger', expected: 'nothing', actual: 'a file of 1 bytes' }, { path: 'taken', expected: 'nothing' },
      { path: 'm', expected: 'a file of 1 bytes', actual: 'a file of 11 bytes' }, { path: 'b', actual: expect.stringContaining('0700') as string },
    ] });
    expect(census(root)).toEqual(before);
    expect(forecast(transaction(root, steps)).conflicts).toHaveLength(5);
    expect(census(root)).toEqual(before);
  });

  it('does not mind a file that was saved with the same bytes, but one of the same size and time with others', async () => {
    plant(root, { same: 'same', other: 'aaaa' });
    const past = new Date(1_000_000_000_000);
    fs.utimesSync(path.join(root, 'other'), past, past);
    const steps: Step[] = ['same', 'other'].map((name) =>
      ({ act: 'replace', path: at(name), before: now(root, name, 'content'), node: file('new'), attributes: 'kept' }));
    plant(root, { same: 'same', other: 'bbbb' });
    fs.utimesSync(path.join(root, 'other'), past, past);
    await expect(commit(root, steps)).rejects.toMatchObject({ conflicts: [{ path: 'other' }] });
    await commit(root, steps.slice(0, 1));
    expect(read('same')).toBe('new');
  });

  it('also notices what was only read, listed or missed', async () => {
    plant(root, { a: 'a', 'd/x': 'x' });
    const listing = { listing: versionOf('100000 x\0') };
    const reliances = [
      { path: at('a'), expected: now(root, 'a', 'content'), actor: 'ann', seq: 1 }, { path: at('none'), expected: now(root, 'none'), actor: 'bob', seq: 2 },
      { path: at('d'), expected: listing, actor: 'ann', seq: 3, time: '2024-01-01T00:00:00.000Z' },
    ];
    const steps: Step[] = [{ act: 'create', path: at('new'), node: file('x') }];
    expect(forecast(transaction(root, steps, { reliances })).conflicts).toEqual([]);
    plant(root, { a: 'b', none: '', 'd/y': '' });
    await expect(commit(root, steps, { reliances })).rejects.toMatchObject({ conflicts: [
      { path: 'a', actor: 'ann', seq: 1 }, { path: 'none', actor: 'bob' }, { path: 'd', actor: 'ann', time: '2024-01-01T00:00:00.000Z' },
    ] });
    expect(names()).toEqual(['a', 'd', 'none']);
    await commit(root, steps, { reliances, guard: 'none' });
    expect(names()).toEqual(['a', 'd', 'new', 'none']);
  });

  it('without guards replaces whatever is there', async () => {
    plant(root, { 'a/deep': 'x', b: 'b' });
    const before = { state: { type: 'absent' }, aspects: 'all' } as const;
    await commit(root, [
      { act: 'create', path: at('a'), node: file('file') },
      { act: 'replace', path: at('b'), before, node: { type: 'directory' }, attributes: 'own' },
      { act: 'remove', path: at('nothing'), before },
    ], { guard: 'none' });
    expect(read('a')).toBe('file');
    expect(stat('b').isDirectory()).toBe(true);
  });
});

it('is told of bytes that are not those they were', async () => {
  plant(root, { a: 'a' });
  const before = census(root), wrong = { ...content('x'), version: versionOf('y') };
  await expect(commit(root, [{ act: 'create', path: at('new'), node: { type: 'file', content: wrong } }]))
    .rejects.toMatchObject({ code: 'EIO', path: 'new' });
  expect(census(root)).toEqual(before);
});

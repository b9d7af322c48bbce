import { execFileSync, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, type TestContext } from 'vitest';
import { watch } from './faults.ts';
import { at, below, census, commit, file, now, plant, scratch } from './ground.ts';

let root: string, clear: () => void;
beforeEach(() => { ({ root, clear } = scratch('refusal')); });
afterEach(() => clear());

const read = (name: string): string => fs.readFileSync(path.join(root, name), 'utf8');

/** What only root can set up; in CI it has to be. */
function demandMount(context: TestContext): void {
  const place = path.join(root, 'probe');
  fs.mkdirSync(place);
  const mounted = spawnSync('mount', ['-t', 'tmpfs', 'tmpfs', place]).status === 0;
  if (mounted) execFileSync('umount', [place]);
  fs.rmdirSync(place);
  if (!mounted && process.env['CI'] === 'true') throw new Error('mounting must be allowed in CI');
  if (!mounted) context.skip('mounting is not allowed here');
}

async function mounted<T>(name: string, options: string, act: () => Promise<T>): Promise<T> {
  const place = path.join(root, name);
  execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', place]);
  try {
    return await act();
  } finally {
    execFileSync('umount', [place]);
  }
}

/** As a user who is not root, where this is root. */
async function unprivileged<T>(act: () => Promise<T>): Promise<T> {
  const { geteuid, seteuid } = process;
  if (geteuid?.() !== 0 || seteuid === undefined) return act();
  seteuid.call(process, 65534);
  try {
    return await act();
  } finally {
    seteuid.call(process, 0);
  }
}

describe('a commit is refused, and the disk is as before,', () => {
  it('where the root is nowhere, or no directory', async () => {
    const steps = [{ act: 'create', path: at('a'), node: file('') }] as const;
    await expect(commit(path.join(root, 'none'), steps)).rejects.toMatchObject({ code: 'ENOENT', message: expect.stringContaining('none') as string });
    plant(root, { a: '' });
    await expect(commit(path.join(root, 'a'), steps)).rejects.toMatchObject({ code: 'ENOTDIR' });
  });

  it('where a directory may not be written', async () => {
    plant(root, { 'd/a': 'a', 'e/b': 'b' });
    fs.chmodSync(root, 0o777);
    for (const name of ['e', 'e/b']) fs.chmodSync(path.join(root, name), 0o777);
    fs.chmodSync(path.join(root, 'd'), 0o555);
    const before = census(root);
    await unprivileged(async () => {
      const steps = [
        { act: 'create', path: at('e/new'), node: file('') },
        { act: 'replace', path: at('d/a'), before: now(root, 'd/a'), node: file('x'), attributes: 'own' },
      ] as const;
      await expect(commit(root, steps)).rejects.toMatchObject({ code: 'EACCES', message: expect.stringMatching(/\/d(\/a)?: permission denied/) as string });
    });
    expect(census(root)).toEqual(before);
  });

  it('where the root may not be written', async () => {
    fs.chmodSync(root, 0o555);
    await unprivileged(() => expect(commit(root, [{ act: 'create', path: at('a'), node: file('') }]))
      .rejects.toMatchObject({ code: 'EACCES', path: '' }));
    fs.chmodSync(root, 0o755);
    expect(fs.readdirSync(root)).toEqual([]);
  });

  it('where a name is too long, in what is there and in what is made', async () => {
    const long = 'n'.repeat(256);
    await expect(commit(root, [{ act: 'create', path: at(long), node: file('') }])).rejects.toMatchObject({ code: 'ENAMETOOLONG', path: long });
    await expect(commit(root, [
      { act: 'create', path: at('d'), node: { type: 'directory' } }, { act: 'create', path: at(`d/${long}`), node: file('') },
    ])).rejects.toMatchObject({ code: 'ENAMETOOLONG', path: `d/${long}` });
    expect(fs.readdirSync(root)).toEqual([]);
  });

  it('where a directory has taken the place of its target', async () => {
    plant(root, { a: 'a' });
    const before = now(root, 'a');
    fs.unlinkSync(path.join(root, 'a'));
    plant(root, { 'a/in': 'in' });
    await expect(commit(root, [{ act: 'replace', path: at('a'), before, node: file('x'), attributes: 'kept' }]))
      .rejects.toMatchObject({ conflicts: [{ path: 'a', actual: 'a directory' }] });
    expect(read('a/in')).toBe('in');
  });

  it('where the root is moved away meanwhile', async () => {
    plant(root, { 'r/a': 'a' });
    const inner = path.join(root, 'r'), moved = path.join(root, 'elsewhere');
    const steps = [{ act: 'replace', path: at('a'), before: now(inner, 'a'), node: file('x'), attributes: 'kept' }] as const;
    let isMoved = false;
    const watcher = watch((_, name, target) => {
      if (isMoved || name !== 'renameSync' || !target.endsWith('/staging')) return undefined;
      isMoved = true;
      fs.renameSync(inner, moved);
      fs.mkdirSync(inner);
      return undefined;
    });
    const outcome = commit(inner, steps);
    await expect(outcome.finally(() => watcher.end())).rejects.toMatchObject({ code: 'EIO', message: expect.stringContaining('moved away') as string });
    expect(fs.readFileSync(path.join(moved, 'a'), 'utf8')).toBe('a');
    expect(fs.readdirSync(inner)).toEqual([]);
  });

  it('where no space is left, on a full disk', async (context) => {
    demandMount(context);
    plant(root, { 'disk/keep': '' });
    await mounted('disk', 'size=256k', async () => {
      const disk = path.join(root, 'disk');
      plant(disk, { a: 'a' });
      const before = census(disk);
      for (const size of [64, 150, 300]) {
        const steps = [
          { act: 'replace', path: at('a'), before: now(disk, 'a'), node: file('x'.repeat(1000)), attributes: 'kept' },
          { act: 'create', path: at('b'), node: file(Buffer.alloc(size * 1024)) }, { act: 'create', path: at('c'), node: file(Buffer.alloc(size * 1024)) },
        ] as const;
        const outcome = await commit(disk, steps).then(() => 'done', (error: NodeJS.ErrnoException) => error.code);
        expect(outcome).toBe(size === 64 ? 'done' : 'ENOSPC');
        if (size === 64) for (const name of ['b', 'c']) fs.unlinkSync(path.join(disk, name));
        if (size === 64) plant(disk, { a: 'a' });
        expect(census(disk)).toEqual(before);
      }
    });
  });

  it('where the file system is read-only', async (context) => {
    demandMount(context);
    plant(root, { 'disk/keep': '' });
    await mounted('disk', 'ro', () => expect(commit(path.join(root, 'disk'), [{ act: 'create', path: at('a'), node: file('') }]))
      .rejects.toMatchObject({ code: 'EROFS', path: '' }));
  });

  it('where something is mounted on what is to go', async (context) => {
    demandMount(context);
    plant(root, { 'd/disk/keep': '' });
    const before = now(root, 'd');
    await mounted('d/disk', 'size=64k', () => expect(commit(root, [{ act: 'remove', path: at('d'), before, below: below(root, 'd') }]))
      .rejects.toMatchObject({ code: 'EBUSY', path: 'd/disk' }));
    expect(fs.existsSync(path.join(root, 'd/disk/keep'))).toBe(true);
  });
});

describe('a commit', () => {
  it('spans the file systems of its tree', async (context) => {
    demandMount(context);
    plant(root, { 'disk/keep': '', a: 'a', 'd/x': 'x', 'd/l': '->x' });
    fs.chmodSync(path.join(root, 'a'), 0o640);
    await mounted('disk', 'size=256k', async () => {
      plant(root, { 'disk/b': 'b' });
      await commit(root, [
        { act: 'move', from: at('a'), to: at('disk/a'), before: now(root, 'a') },
        { act: 'move', from: at('d'), to: at('disk/d'), before: now(root, 'd') },
        { act: 'replace', path: at('disk/b'), before: now(root, 'disk/b'), node: file('new b'), attributes: 'kept' },
        { act: 'create', path: at('disk/n'), node: { type: 'directory' } },
        { act: 'create', path: at('disk/n/f'), node: file('f') },
      ]);
      expect([read('disk/a'), read('disk/d/x'), read('disk/b'), read('disk/n/f')]).toEqual(['a', 'x', 'new b', 'f']);
      expect(fs.statSync(path.join(root, 'disk/a')).mode & 0o7777).toBe(0o640);
      expect(fs.readlinkSync(path.join(root, 'disk/d/l'))).toBe('x');
      expect([fs.readdirSync(root), fs.readdirSync(path.join(root, 'disk')).sort()]).toEqual([['disk'], ['a', 'b', 'd', 'n']]);
      const before = census(root);
      let hasFailed = false;
      const failing = watch((_, name, target) => {
        if (hasFailed || name !== 'renameSync' || !target.endsWith('/journal')) return undefined;
        hasFailed = true;
        throw Object.assign(new Error('EIO: injected'), { code: 'EIO', errno: -5 });
      });
      await expect(commit(root, [
        { act: 'move', from: at('disk/d'), to: at('d'), before: now(root, 'disk/d') },
        { act: 'remove', path: at('disk/b'), before: now(root, 'disk/b') },
      ]).finally(() => failing.end())).rejects.toMatchObject({ code: 'EIO' });
      expect(census(root)).toEqual(before);
    });
  });

  it('replaces a program that runs', async () => {
    fs.copyFileSync('/bin/sleep', path.join(root, 'program'));
    const child = spawn(path.join(root, 'program'), ['60'], { stdio: 'ignore' });
    await new Promise((resolve) => { child.on('spawn', resolve); });
    await commit(root, [{ act: 'replace', path: at('program'), before: now(root, 'program'), node: file('#!/bin/sh\n'), attributes: 'kept' }]);
    child.kill();
    expect(read('program')).toBe('#!/bin/sh\n');
    expect(fs.statSync(path.join(root, 'program')).mode & 0o111).not.toBe(0);
  });

  it.each(['journal', 'link'])('never leaves the tree, though a directory becomes a symlink out of it meanwhile (before the %s)', async (moment) => {
    const outside = scratch('outside');
    plant(outside.root, { f: 'outside', old: 'outside' });
    plant(root, { 'd/old': 'old' });
    const steps = [
      { act: 'create', path: at('d/new'), node: file('new') },
      { act: 'replace', path: at('d/old'), before: now(root, 'd/old'), node: file('x'), attributes: 'kept' },
      { act: 'remove', path: at('d/f'), before: { state: { type: 'absent' }, aspects: 'type' } },
    ] as const;
    let isSwapped = false;
    const watcher = watch((_, name, target) => {
      const isTime = moment === 'journal' ? name === 'renameSync' && target.endsWith('/staging') : name === 'linkSync' && target.endsWith('/n0');
      if (isSwapped || !isTime) return undefined;
      isSwapped = true;
      fs.renameSync(path.join(root, 'd'), path.join(root, 'away'));
      fs.symlinkSync(outside.root, path.join(root, 'd'));
      return undefined;
    });
    await expect(commit(root, steps, { guard: 'none' }).finally(() => watcher.end())).rejects.toThrow();
    expect(isSwapped).toBe(true);
    expect(fs.readdirSync(outside.root).map((name) => [name, fs.readFileSync(path.join(outside.root, name), 'utf8')])).toEqual([['f', 'outside'], ['old', 'outside']]);
    expect(read('away/old')).toBe('old');
    outside.clear();
  });
});

import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { PathName } from '../../src/core/path.ts';
import { Refusal } from '../../src/core/refusal.ts';
import { removals } from '../../src/overlay/node/rm.ts';
import type { System } from '../../src/overlay/system.ts';
import { realSystem } from '../support/real-system.ts';
import { against, call, FACES, inTemporary, make, type FsLike } from './twin.ts';

const fs = removals(realSystem()) as unknown as FsLike;

function prepare(dir: string): void {
  make(dir, {
    'file': 'x', 'empty': null, 'full/a/b/c': 'deep', 'full/a/d': 'file',
    'full/link': { to: '../file' }, 'full/dangling': { to: 'nowhere' },
    'link': { to: 'full' }, 'loop': { to: 'loop' },
    'sp ace/new\nline': 'name', 'neighbour': 'stays', 'full2/a': 'stays',
  });
}

const removed: [title: string, path: string, options?: unknown][] = [
  ['a file', 'file'], ['a file, recursively', 'file', { recursive: true }],
  ['a symlink, not what it leads to', 'link'],
  ['a symlink to itself', 'loop'], ['an empty directory without recursive', 'empty'],
  ['a full directory without recursive', 'full'],
  ['a full directory, recursively', 'full', { recursive: true }],
  ['an odd name', 'sp ace', { recursive: true, force: true }],
  ['nothing', 'nothing'], ['nothing, by force', 'nothing', { force: true }],
  ['nothing, recursively', 'nothing', { recursive: true }],
  ['something below a file', 'file/x'], ['something below a file, by force', 'file/x', { force: true }],
  ['something below a file, by all force', 'file/x', { force: true, recursive: true }],
  ['a symlink with a slash after it', 'link/'],
  ['what is no options object', 'file', null], ['with a recursion that is no boolean', 'file', { recursive: 1 }],
  ['with a force that is no boolean', 'file', { force: 'yes' }],
  ['with a negative delay', 'file', { retryDelay: -1 }],
  ['with a fraction of a retry', 'file', { maxRetries: 1.5 }], ['a path with NUL', 'a\0b'],
];

describe.each(FACES)('rm, %s', (face) => {
  it.each(removed)('removes or refuses %s as node does', async (_, path, ...options) => {
    await against({ fs, prepare, act: (subject, dir) => call(subject, face, 'rm', [join(dir, path), ...options]) });
  });

  it('takes Buffers and names that are not UTF-8', async () => {
    await against({
      fs,
      prepare(dir) {
        make(dir, { d: null });
        writeFileSync(Buffer.concat([Buffer.from(`${dir}/d/`), Buffer.from([0x80, 0xff])]), 'x');
      },
      act: (subject, dir) => call(subject, face, 'rm', [Buffer.from(join(dir, 'd')), { recursive: true }]),
    });
  });
});

const emptied: [title: string, path: string, options?: unknown][] = [
  ['an empty directory', 'empty'], ['a full directory', 'full'],
  ['a full directory, recursively', 'full', { recursive: true }],
  ['a file', 'file'], ['a file, recursively', 'file', { recursive: true }], ['nothing', 'nothing'],
  ['nothing, recursively', 'nothing', { recursive: true }], ['a symlink', 'link'],
  ['a symlink, recursively', 'link', { recursive: true }],
  ['what is no options object', 'empty', 3], ['with null for options', 'empty', null],
];

describe.each(FACES)('rmdir, %s', (face) => {
  it.each(emptied)('removes or refuses %s as node does', async (_, path, ...options) => {
    await against({ fs, prepare, act: (subject, dir) => call(subject, face, 'rmdir', [join(dir, path), ...options]) });
  });
});

describe('rm of what resists', () => {
  /** A system that refuses the first calls of one kind. */
  function resisting(name: 'unlink' | 'rmdir', code: 'EBUSY' | 'EACCES', times: number) {
    const real = realSystem();
    let calls = 0;
    const system = Object.create(real, {
      [name]: { value(path: PathName) {
        if (calls++ < times) throw new Refusal(code);
        real[name](path);
      } },
    }) as System;
    return { system, calls: () => calls };
  }

  it.each(FACES)('tries again as often as it may, %s', async (face) => {
    await inTemporary(async (dir) => {
      make(dir, { 'd/file': 'x' });
      const { system, calls } = resisting('unlink', 'EBUSY', 2);
      await call(removals(system), face, 'rm', [join(dir, 'd'), { recursive: true, maxRetries: 2, retryDelay: 1 }]);
      expect(existsSync(join(dir, 'd'))).toBe(false);
      expect(calls()).toBe(3);
    });
  });

  it.each(FACES)('gives up after the last try with what stood in the way, %s', async (face) => {
    await inTemporary(async (dir) => {
      make(dir, { 'd/e/file': 'x' });
      const { system } = resisting('unlink', 'EBUSY', 3);
      const removal = call(removals(system), face, 'rm', [
        join(dir, 'd'), { recursive: true, maxRetries: 2, retryDelay: 0 },
      ]);
      await expect(removal).rejects.toMatchObject({ code: 'EBUSY', syscall: 'unlink', path: join(dir, 'd/e/file') });
      expect(existsSync(join(dir, 'd/e/file'))).toBe(true);
    });
  });

  it('does not try again where no waiting helps', async () => {
    await inTemporary(async (dir) => {
      make(dir, { 'd/e': null });
      const { system, calls } = resisting('rmdir', 'EACCES', 1);
      const removal = call(removals(system), 'sync', 'rm', [join(dir, 'd/e'), { recursive: true, maxRetries: 5 }]);
      await expect(removal).rejects.toMatchObject({ code: 'EACCES', syscall: 'rmdir' });
      expect(calls()).toBe(1);
    });
  });

  it('removes a directory that appears where a file was listed', async () => {
    await inTemporary(async (dir) => {
      make(dir, { 'd/e/f': 'x' });
      const real = realSystem();
      const system = Object.create(real, {
        readdir: { value: (path: PathName) => real.readdir(path).map(({ name }) => ({ name, type: 'file' as const })) },
      }) as System;
      removals(system).rmSync(join(dir, 'd'), { recursive: true });
      expect(existsSync(join(dir, 'd'))).toBe(false);
    });
  });

  it('goes through an exported rmdirSync that was patched', async () => {
    await inTemporary((dir) => {
      make(dir, { 'd/e': 'x' });
      const seen: string[] = [];
      const exported: { rmdirSync?: (path: never) => void } = {};
      const calls = removals(realSystem(), exported);
      exported.rmdirSync = (path) => {
        seen.push(path);
        calls.rmdirSync(path);
      };
      calls.rmSync(join(dir, 'd'), { recursive: true });
      expect(seen).toEqual([join(dir, 'd')]);
    });
  });

  it('lets others have a turn while it removes much', async () => {
    await inTemporary(async (dir) => {
      make(dir, Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`d/${i}/f`, 'x'])));
      const real = realSystem();
      const slow = Object.create(real, {
        unlink: { value(path: PathName) {
          real.unlink(path);
          for (const start = performance.now(); performance.now() - start < 0.2;);
        } },
      }) as System;
      let turns = 0;
      const timer = setInterval(() => turns++, 1);
      await removals(slow).promises.rm(join(dir, 'd'), { recursive: true });
      clearInterval(timer);
      expect(turns).toBeGreaterThan(0);
      expect(existsSync(join(dir, 'd'))).toBe(false);
    });
  });
});

it('warns of a recursive rmdir once', async () => {
  const warnings: unknown[] = [];
  const heard = (warning: Error & { code?: string }) => warnings.push(warning.code);
  process.on('warning', heard);
  await inTemporary(async (dir) => {
    make(dir, { 'd/e/f': 'x', 'g/h': 'y' });
    const calls = removals(realSystem());
    calls.rmdirSync(join(dir, 'd'), { recursive: true });
    await calls.promises.rmdir(join(dir, 'g'), { recursive: true });
    await new Promise((resolve) => setImmediate(resolve));
  });
  process.off('warning', heard);
  // Whether the first of this process was here or in an earlier test.
  expect(warnings.filter((code) => code === 'DEP0147').length).toBeLessThanOrEqual(1);
});

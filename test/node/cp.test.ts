import { chmodSync, existsSync, mkdirSync, readFileSync, readlinkSync, statSync, utimesSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { PathName } from '../../src/core/path.ts';
import { copies, type CopyOptions } from '../../src/overlay/node/cp.ts';
import type { System } from '../../src/overlay/system.ts';
import { realSystem } from '../support/real-system.ts';
import { against, call, FACES, inTemporary, make, type Face, type FsLike, type Twin } from './twin.ts';

const fs = copies(realSystem()) as unknown as FsLike;

function prepare(dir: string): void {
  make(dir, {
    'file': 'one', 'other': 'two', 'tree/a': 'A', 'tree/sub/b': 'B', 'tree/sub/deep/c': 'C', 'tree/empty': null,
    'tree/relative': { to: 'sub/b' }, 'tree/absolute': { to: '<dir>/file' }, 'tree/dangling': { to: 'nowhere' },
    'target/a': 'old', 'target/sub/kept': 'kept', 'links/in': { to: '<dir>/tree' }, 'links/below': { to: '<dir>/tree/sub' },
    'pair/from/l': { to: '<dir>/pair/onto' }, 'pair/onto/l': { to: '<dir>/pair/onto' },
    'above/from/a/b': null, 'above/from/a/c': { to: '<dir>/above/from/a/b' }, 'above/onto/a/c': { to: '<dir>/above/from' },
    'moved/from/l': { to: '<dir>/other' }, 'moved/onto/l': { to: '<dir>/file' }, 'linked': { to: 'file' },
  });
  chmodSync(join(dir, 'tree/a'), 0o751);
  chmodSync(join(dir, 'tree/sub'), 0o500);
  chmodSync(join(dir, 'file'), 0o444);
}

const HALFWAY = new Set(['a directory, to where files are', 'what symlinks lead to, one of them to nothing']);

type Case = [title: string, from: string, to: string, options?: Partial<CopyOptions> | null | (() => void)];
const cases: Case[] = [
  ['a file', 'file', 'new'], ['a file into directories that are not there', 'file', 'x/y/z'],
  ['a file onto a file', 'other', 'file'],
  ['a file onto a file, without force', 'other', 'file', { force: false }],
  ['a file onto a file, as an error', 'other', 'file', { force: false, errorOnExist: true }],
  ['a file onto itself', 'file', 'file'], ['a file onto a symlink to it', 'file', 'linked', { dereference: true }],
  ['a file onto a symlink', 'other', 'linked'], ['a file onto a directory', 'file', 'target'],
  ['a file below a file', 'other', 'file/x'],
  ['a file below a symlink to nothing', 'file', 'tree/dangling/x'],
  ['nothing', 'nothing', 'new'], ['a directory without recursive', 'tree', 'new'],
  ['a directory without recursive, deep', 'tree', 'x/y'],
  ['a directory', 'tree', 'new', { recursive: true }],
  ['a directory onto a directory', 'tree', 'target', { recursive: true }],
  ['a directory, keeping what is there', 'tree', 'target', { recursive: true, force: false }],
  ['a directory, to where files are', 'tree', 'target', { recursive: true, force: false, errorOnExist: true }],
  ['a directory onto a file', 'tree', 'file', { recursive: true }],
  ['a directory into itself', 'tree', 'tree/sub/x', { recursive: true }],
  ['a directory into itself, through a symlink', 'tree', 'links/in/x', { recursive: true }],
  ['a directory beside one whose name it begins', 'tree', 'tree2', { recursive: true }],
  ['symlinks as they are', 'tree', 'new', { recursive: true, verbatimSymlinks: true }],
  ['what symlinks lead to, one of them to nothing', 'tree', 'new', { recursive: true, dereference: true }],
  ['what a symlink leads to', 'linked', 'new', { dereference: true }], ['a symlink', 'linked', 'new'],
  ['a symlink onto a file', 'linked', 'other'], ['a symlink onto a directory', 'linked', 'target'],
  ['symlinks that lead to the target', 'pair/from', 'pair/onto', { recursive: true }],
  ['onto a symlink that leads above the source', 'above/from', 'above/onto', { recursive: true }],
  ['onto a symlink that leads elsewhere', 'moved/from', 'moved/onto', { recursive: true }],
  ['with a mode no copy has', 'file', 'new', { mode: 8 }],
  ['with a mode that is exclusive', 'other', 'new', { mode: 1 }],
  ['with options that contradict', 'file', 'new', { dereference: true, verbatimSymlinks: true }],
  ['with null for options', 'file', 'new', null],
  ['with recursion that is no boolean', 'file', 'new', { recursive: 1 as never }],
  ['with a filter that is no function', 'file', 'new', { filter: 'x' as never }],
  ['with a filter', 'tree', 'new', { recursive: true, filter: (from) => !/(sub|dangling)$/.test(from) }],
  ['with a filter that wants nothing', 'tree', 'new', { recursive: true, filter: () => false }],
  ['with a filter of destinations', 'tree', 'new', { recursive: true, filter: (_, to) => !to.includes('new/sub') }],
  ['with a filter that throws', 'tree', 'new', { recursive: true, filter: () => { throw new Error('no'); } }],
];

function copying(face: Face, from: string, to: string, ...options: unknown[]): Twin {
  return { fs, prepare, act: (subject, dir) => call(subject, face, 'cp', [join(dir, from), join(dir, to), ...options]) };
}

describe.each(FACES)('cp, %s', (face) => {
  it.each(cases)('copies or refuses %s as node does', async (title, from, to, ...options) => {
    await against({ ...copying(face, from, to, ...options), halfway: HALFWAY.has(title) });
  });

  it('takes file: URLs and refuses Buffers', async () => {
    for (const given of [pathToFileURL, Buffer.from] as ((path: string) => unknown)[]) {
      await against({
        fs, prepare,
        act: (subject, dir) => call(subject, face, 'cp', [given(join(dir, 'tree')), join(dir, 'new'), { recursive: true }]),
      });
    }
  });

  it('asks the filter in the order node does', async () => {
    await against({ fs, prepare, act: async (subject, dir) => {
      const asked: string[] = [];
      const filter = (from: string, to: string) => asked.push(`${from.slice(dir.length)} ${to.slice(dir.length)}`);
      await call(subject, face, 'cp', [join(dir, 'tree'), join(dir, 'new'), { recursive: true, filter }]);
      return asked.sort();
    } });
  });

  it('refuses a FIFO and a socket', async () => {
    await inTemporary(async (dir) => {
      execFileSync('mkfifo', [join(dir, 'fifo')]);
      const server = createServer().listen(join(dir, 'socket'));
      await expect(call(fs, face, 'cp', [join(dir, 'fifo'), join(dir, 'new')])).rejects.toMatchObject({
        code: 'ERR_FS_CP_FIFO_PIPE',
        message: `Cannot copy a FIFO pipe: cp returned EINVAL (cannot copy a FIFO pipe: ${dir}/new) ${dir}/new`,
      });
      await expect(call(fs, face, 'cp', [join(dir, 'socket'), join(dir, 'new')])).rejects.toMatchObject({
        code: 'ERR_FS_CP_SOCKET', errno: 22, syscall: 'cp', path: join(dir, 'new'),
      });
      server.close();
    });
  });

  it('keeps times to the nanosecond where it is asked to, of a file without write permission too', async () => {
    await inTemporary(async (dir) => {
      make(dir, { file: 'x' });
      utimesSync(join(dir, 'file'), 1000.000001, 2000.000002);
      chmodSync(join(dir, 'file'), 0o400);
      await call(fs, face, 'cp', [join(dir, 'file'), join(dir, 'new'), { preserveTimestamps: true }]);
      const { mtimeNs, mode } = statSync(join(dir, 'new'), { bigint: true });
      expect(mtimeNs).toBe(statSync(join(dir, 'file'), { bigint: true }).mtimeNs);
      expect(mode & 0o777n).toBe(0o400n);
    });
  });
});

describe('cp', () => {
  it.each(['callback', 'promise'] as const)('waits for a filter that promises its answer, %s', async (face) => {
    await against(copying(face, 'tree', 'new', { recursive: true, filter: async (from: string) => {
      await new Promise((resolve) => { setImmediate(resolve); });
      return !from.endsWith('deep');
    } }));
    await against(copying(face, 'tree', 'new', { recursive: true, filter: () => Promise.reject(new Error('no answer')) }));
  });

  it('does not wait in its synchronous face', async () => {
    await against(copying('sync', 'tree', 'new', { filter: () => Promise.resolve(true) }));
  });

  it('takes relative paths from the working directory of the system', async () => {
    await inTemporary((dir) => {
      make(dir, { 'd/l': { to: 'x' } });
      const system = Object.create(realSystem(), { cwd: { value: () => dir } }) as System;
      copies(system).cpSync(join(dir, 'd/l'), join(dir, 'm'));
      expect(readlinkSync(join(dir, 'm'))).toBe(join(dir, 'd/x'));
    });
  });

  it('copies content by the system alone', async () => {
    await inTemporary((dir) => {
      make(dir, { 'd/f': 'x' });
      const real = realSystem(), copied: string[] = [];
      const system = Object.create(real, { copyFile: { value(from: PathName, to: PathName, options: { exclusive: boolean }) {
        copied.push(from);
        real.copyFile(from, to, options);
      } } }) as System;
      copies(system).cpSync(join(dir, 'd'), join(dir, 'e'), { recursive: true });
      expect(copied).toEqual([join(dir, 'd/f')]);
      expect(readFileSync(join(dir, 'e/f'), 'utf8')).toBe('x');
    });
  });

  it('does not look above the directories it needs', async () => {
    await inTemporary((dir) => {
      make(dir, { 'in/d/f': 'x' });
      const real = realSystem(), looked: string[] = [];
      const system = Object.create(real, { mustStat: { value(path: PathName, options: { follow: boolean }) {
        looked.push(path);
        return real.mustStat(path, options);
      } } }) as System;
      copies(system).cpSync(join(dir, 'in/d'), join(dir, 'in/e'), { recursive: true });
      expect(looked.filter((path) => !path.startsWith(join(dir, 'in')))).toEqual([]);
    });
  });

  it('unlinks a file in its way, so that its other names keep what they had', async () => {
    await against({
      fs,
      prepare(dir) {
        make(dir, { new: 'new', old: 'old' });
        execFileSync('ln', [join(dir, 'old'), join(dir, 'name')]);
      },
      act: (subject, dir) => call(subject, 'sync', 'cp', [join(dir, 'new'), join(dir, 'old')]),
    });
  });

  it('has no effect before its arguments are right', async () => {
    await inTemporary((dir) => {
      mkdirSync(join(dir, 'd'));
      expect(() => copies(realSystem()).cp(join(dir, 'd'), join(dir, 'e'), { recursive: true }, undefined)).toThrow(
        expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }));
      expect(existsSync(join(dir, 'e'))).toBe(false);
    });
  });
});

import * as nodeFs from 'node:fs';
import { linkSync, mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, it } from 'vitest';
import { createNodeFs } from '../../src/overlay/node/fs.ts';
import { realSystem } from '../support/real-system.ts';
import { against, call, FACES, make, type FsLike } from './twin.ts';

/** One table: a call with its arguments, held against node in all three faces, over the real file system and an overlay. */
const fs = createNodeFs(realSystem()) as unknown as FsLike;

function prepare(dir: string): void {
  make(dir, {
    'file': 'content\n', 'empty': null, 'full/a/b': 'deep', 'full/c': 'x', 'full/link': { to: 'a' },
    'link': { to: 'file' }, 'toDirectory': { to: 'full' }, 'dangling': { to: 'nowhere' }, 'loop': { to: 'loop' },
    'absolute': { to: '<dir>/file' }, 'é ü': 'names',
  });
  linkSync(join(dir, 'file'), join(dir, 'second'));
  writeFileSync(Buffer.concat([Buffer.from(`${dir}/`), Buffer.from([0x66, 0xff])]), 'bytes');
  mkdirSync(join(dir, 'locked'), { mode: 0o500 });
  // The clocks of two runs differ; the files' need not.
  for (const name of ['file', 'empty', 'full', 'full/c']) utimesSync(join(dir, name), 1_000_000_000.25, 1_100_000_000.5);
}

/** Arguments that are functions get the directory: a path below it. */
type Argument = unknown;
const at = (path: string): Argument => (dir: string) => join(dir, path);
const bytesAt = (path: string): Argument => (dir: string) => Buffer.from(join(dir, path));
const urlAt = (path: string): Argument => (dir: string) => pathToFileURL(join(dir, path));
const rawAt = (...bytes: number[]): Argument => (dir: string) => Buffer.concat([Buffer.from(`${dir}/`), Buffer.from(bytes)]);

const kinds = ['file', 'empty', 'link', 'toDirectory', 'dangling', 'loop', 'nowhere', 'file/below', 'nowhere/below', 'empty/'];
const everyKind = (name: string, ...rest: Argument[]): [string, ...Argument[]][] => kinds.map((kind) => [name, at(kind), ...rest]);

const looking: [name: string, ...args: Argument[]][] = [
  ...everyKind('access'), ['access', at('file'), 4], ['access', at('file'), 1], ['access', at('file'), 7],
  ...everyKind('readFile'), ['readFile', at('file'), 'utf8'], ['readFile', at('file'), { encoding: 'base64' }],
  ['readFile', at('file'), { encoding: 'latin1', flag: 'r+' }], ['readFile', bytesAt('file')], ['readFile', urlAt('é ü')],
  ['readFile', rawAt(0x66, 0xff)], ['readFile', at('new'), { flag: 'a+' }], ['readFile', at('file'), 'nonsense'],
  ['readFile', at('file'), { flag: 'q' }], ['readFile', at('file'), 5], ['readFile', at('a\0b')], ['readFile', undefined], ['readFile', {}],
  ...everyKind('readdir'), ['readdir', at('.')], ['readdir', at('.'), 'buffer'], ['readdir', at('.'), { encoding: 'hex' }],
  ['readdir', bytesAt('full')], ['readdir', urlAt('full')],
  ...everyKind('readlink'), ['readlink', at('absolute')], ['readlink', at('link'), 'buffer'], ['readlink', at('link'), 'hex'],
  ...everyKind('realpath'), ['realpath', at('full/link/b')], ['realpath', at('link'), 'hex'], ['realpath', at('full/../link')],
  ['stat', at('a\0b')], ['stat', 7], ['stat', null], ['lstat', true], ['readlink', []],
];

const changing: [name: string, ...args: Argument[]][] = [
  ...everyKind('writeFile', 'new'), ['writeFile', at('new'), 'é', 'latin1'], ['writeFile', at('new'), 'x', { mode: 0o600 }],
  ['writeFile', at('file'), 'x', { flag: 'wx' }], ['writeFile', at('file'), 'x', { flag: 'r' }], ['writeFile', at('file'), 'XY', { flag: 'r+' }],
  ['writeFile', at('file'), Buffer.from('bytes')], ['writeFile', at('file'), new Uint16Array([1, 2])], ['writeFile', at('new'), 'x', { flush: true }],
  ['writeFile', at('file'), 5], ['writeFile', at('file'), null], ['writeFile', at('file'), 'x', { flush: 1 }], ['writeFile', at('file'), 'x', { mode: 'rw' }],
  ['writeFile', at('file'), 'abc', 'hex'], ['writeFile', rawAt(0x80), 'x'],
  ...everyKind('appendFile', 'more'), ['appendFile', at('file'), Buffer.from('more')], ['appendFile', at('file'), 'x', { flag: 'wx' }],
  ...everyKind('truncate', 3), ['truncate', at('file')], ['truncate', at('file'), 20], ['truncate', at('file'), -5], ['truncate', at('file'), 1.5], ['truncate', at('file'), 'x'],
  ...everyKind('unlink'), ['unlink', at('second')], ['unlink', rawAt(0x66, 0xff)],
  ...everyKind('mkdir'), ...everyKind('mkdir', { recursive: true }), ['mkdir', at('new'), 0o700], ['mkdir', at('new'), '700'], ['mkdir', at('new'), '9'],
  ['mkdir', at('new/a/b'), { recursive: true, mode: 0o711 }], ['mkdir', at('full/new//b/'), { recursive: true }], ['mkdir', at('new'), { recursive: 1 }],
  ['mkdir', at('file/x/y'), { recursive: true }], ['mkdir', at('new'), { mode: 2 ** 33 }],
  ...everyKind('rename', at('new')), ...kinds.map((kind): [string, ...Argument[]] => ['rename', at('file'), at(kind)]),
  ['rename', at('full'), at('empty')], ['rename', at('empty'), at('full')], ['rename', at('full'), at('full/a/x')], ['rename', at('file'), at('second')],
  ['rename', at('full'), at('file')], ['rename', at('file'), 3],
  ...everyKind('link', at('new')), ['link', at('file'), at('second')], ['link', at('file'), at('nowhere/x')], ['link', 1, at('x')],
  ['symlink', 'target', at('new')], ['symlink', 'target', at('file')], ['symlink', '', at('new')], ['symlink', 'target', at('new'), 'junction'],
  ['symlink', 'target', at('new'), 'sideways'], ['symlink', Buffer.from([0x66, 0xff]), at('new')], ['symlink', 'a\0', at('new')],
  ...everyKind('chmod', 0o640), ['chmod', at('file'), '4755'], ['chmod', at('file'), 'x'], ['chmod', at('file'), undefined], ['chmod', at('file'), -1],
  ...everyKind('chown', 12, 34), ...everyKind('lchown', 12, 34), ['chown', at('file'), -1, -1], ['chown', at('file'), 'x', 1], ['chown', at('file'), 1, 2 ** 32],
  ...everyKind('utimes', 1, 2), ...everyKind('lutimes', 1, 2), ['utimes', at('file'), 'x', 2], ['utimes', at('file'), undefined, 2], ['utimes', at('file'), '12.5', new Date(-1500)],
  ...everyKind('copyFile', at('new')), ['copyFile', at('file'), at('full/c')], ['copyFile', at('file'), at('full/c'), 1], ['copyFile', at('file'), at('empty')],
  ['copyFile', at('file'), at('new'), 8], ['copyFile', at('file'), at('nowhere/x')], ['copyFile', at('empty'), at('new')],
  ['access', at('file'), 8], ['access', at('file'), '1'], ['copyFile', at('file'), at('new'), 1.5], ['mkdtemp', 3], ['mkdtemp', 'a\0'],
];

/** Calls of which node's own faces say different things; ours all say what the synchronous one says. */
const unlike: [name: string, ...args: Argument[]][] = [
  // Node's promise takes anything for `recursive`.
  ['readdir', at('full'), { recursive: 1 }],
  // Asynchronously node blames the dangling link: ENOTDIR.
  ['mkdir', at('dangling/x'), { recursive: true }],
  // Asynchronously node tells the name that it tried.
  ['mkdtemp', at('nowhere/x-')],
];

const shown = ([name, ...args]: [string, ...Argument[]]): string =>
  `${name}(${args.map((arg) => typeof arg === 'function' ? JSON.stringify(String((arg as (dir: string) => unknown)('.'))) : arg instanceof Buffer ? `<${arg.toString('hex')}>`
    : typeof arg === 'bigint' ? String(arg) : JSON.stringify(arg) ?? String(arg)).join(', ')})`;

const given = (args: Argument[], dir: string): unknown[] =>
  args.map((arg) => typeof arg === 'function' ? (arg as (dir: string) => unknown)(dir) : arg);

const titled = (calls: [name: string, ...args: Argument[]][]) => calls.map((row): [string, typeof row] => [shown(row), row]);

describe.each(FACES)('a call that looks, %s', (face) => {
  it.each(titled(looking))('%s answers as node', async (_, [name, ...args]) => {
    await against({ fs, prepare, act: async (subject, dir) => plain(await call(subject, face, name, given(args, dir)), dir) });
  });

  it.each(kinds)('stat, lstat and statfs of %s tell what node tells', async (kind) => {
    for (const name of ['stat', 'lstat', 'statfs']) {
      for (const options of [{}, { bigint: true }]) {
        await against({ fs, prepare, act: async (subject, dir) => facts(await call(subject, face, name, [join(dir, kind), options])) });
      }
    }
  });

  it.each(kinds)('stat and lstat of %s that shall not throw do so for the same reasons', async (kind) => {
    for (const name of ['stat', 'lstat']) {
      await against({
        fs, prepare, act: async (subject, dir) => {
          const stats = await call(subject, face, name, [join(dir, kind), { throwIfNoEntry: false }]);
          return stats && facts(stats);
        },
      });
    }
  });

  it.each([{}, { recursive: true }])('readdir with types and %o gives the same entries', async (options) => {
    await against({
      fs, prepare,
      act: async (subject, dir) => {
        const entries = await call(subject, face, 'readdir', [dir, { withFileTypes: true, ...options }]) as { name: string; parentPath: string; isDirectory(): boolean }[];
        return entries.map((entry) => `${entry.parentPath.replaceAll(dir, '<dir>')} ${entry.name} ${String(entry.isDirectory())}`).sort();
      },
    });
  });

  it('readdir below gives the same names, through symlinks too', async () => {
    await against({
      fs, prepare, act: async (subject, dir) => (await call(subject, face, 'readdir', [join(dir), { recursive: true }]) as string[]).sort(),
    });
  });
});

describe.each(FACES)('a call that changes, %s', (face) => {
  it.each(titled(changing))('%s does as node', async (_, [name, ...args]) => {
    await against({ fs, prepare, act: async (subject, dir) => plain(await call(subject, face, name, given(args, dir)), dir) });
  });
});

describe.each(FACES)('where node has two answers, %s', (face) => {
  it.each(titled(unlike))('%s answers as node does synchronously', async (_, [name, ...args]) => {
    await against({
      fs, prepare,
      act: async (subject, dir) => {
        // Node itself is asked by its synchronous face, which is the only one it shares with ours.
        const asked = subject['promises'] !== nodeFs.promises ? face : 'sync';
        return plain(await call(subject, asked, name, given(args, dir)), dir);
      },
    });
  });
});

function plain(value: unknown, dir: string): unknown {
  if (typeof value === 'string') return value.replaceAll(dir, '<dir>').replaceAll(Buffer.from(dir).toString('hex'), '<dir>');
  return value instanceof Buffer ? value.toString('latin1').replaceAll(dir, '<dir>') : value;
}

/** What two look-ups of like files in two places have in common. */
function facts(stats: unknown): unknown {
  const { mode, nlink, uid, gid, size, mtime, mtimeMs, bsize, type } = stats as Record<string, unknown>;
  const directory = (Number(mode) & 0o170000) === 0o040000;
  // Of a directory size and link count belong to the file system, and those just made have no time in common.
  const set = Number(mtimeMs) === 1_100_000_000_500;
  return { mode, nlink: directory || nlink, uid, gid, size: directory || size, bsize, type, mtime: set && mtime, mtimeMs: set && mtimeMs };
}

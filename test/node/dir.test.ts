import * as nodeFs from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { Dir, directories } from '../../src/overlay/node/dir.ts';
import { realSystem } from '../support/real-system.ts';
import { against, call, FACES, inTemporary, make, type FsLike } from './twin.ts';

const fs = directories(realSystem()) as unknown as FsLike;
const { opendirSync, promises } = directories(realSystem());

function prepare(dir: string): void {
  make(dir, { 'a': 'x', 'sub/b': 'y', 'sub/deep/c': 'z', 'link': { to: 'sub' }, 'file/x': '1', 'empty': null, 'ünï': 'u' });
}

type Entry = Record<'name' | 'parentPath' | 'path', string | Buffer>;

const byText = (a: unknown, b: unknown) => String(a) < String(b) ? -1 : 1;

/** All entries that a Dir gives, in an order of their own. */
async function entriesOf(opened: unknown, dir: string): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const entry of opened as AsyncIterable<nodeFs.Dirent>) {
    const { name, parentPath, path } = entry as unknown as Entry;
    const kinds = [entry.isFile(), entry.isDirectory(), entry.isSymbolicLink(), entry.isFIFO(), entry.isSocket()];
    const places = [parentPath, path].map((place) => place.toString().replace(dir, ''));
    all.push([Buffer.from(name).toString('hex'), typeof name, ...places, ...kinds]);
  }
  return all.toSorted(byText);
}

const opened: [title: string, path: string, options?: unknown][] = [
  ['a directory', ''], ['an empty one', 'empty'], ['recursively', '', { recursive: true }],
  ['with one entry at a time', '', { bufferSize: 1 }],
  ['names as Buffers', '', { encoding: 'buffer' }], ['names in hex', '', 'hex'], ['through a symlink', 'link'],
  ['a file', 'a'], ['nothing', 'nothing'], ['below a file', 'a/b'],
  ['with an encoding there is none of', '', 'klingon'],
  ['with a number for options', '', 7], ['a path with NUL', 'a\0'],
];

describe.each(FACES)('opendir, %s', (face) => {
  it.each(opened)('opens or refuses %s as node does', async (_, path, ...options) => {
    await against({ fs, prepare, act: async (subject, dir) => {
      const args = [join(dir, path), ...options];
      try {
        return await entriesOf(await call(subject, face, 'opendir', args), dir);
      } catch (error) {
        const { code, syscall, message } = error as NodeJS.ErrnoException;
        // Node 20's opendirSync alone forgets to say the path.
        if (face === 'sync' && syscall === 'opendir') return [code, syscall, message.split(' \'')[0]];
        throw error;
      }
    } });
  });

  it('takes a file: URL and a Buffer, and shows the path as it was given', async () => {
    await against({ fs, prepare, act: async (subject, dir) => {
      const byUrl = await call(subject, face, 'opendir', [pathToFileURL(join(dir, 'sub'))]) as nodeFs.Dir;
      const byBytes = await call(subject, face, 'opendir', [Buffer.from(join(dir, 'sub'))]) as nodeFs.Dir;
      const shown = [byUrl.path.replace(dir, ''), Buffer.isBuffer(byBytes.path)];
      return [shown, await entriesOf(byUrl, dir), await entriesOf(byBytes, dir)];
    } });
  });
});

const sizes = [0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 32, null, '1', undefined];

it.each(sizes)('refuses a bufferSize of %s', async (bufferSize) => {
  await against({ fs, prepare, act: (subject, dir) => call(subject, 'sync', 'opendir', [dir, { bufferSize }]) });
});

/** What every program of reads and closes gives, in node and here. */
type Program = (dir: nodeFs.Dir) => unknown;

/** Does `act` while a read runs. */
function during(dir: nodeFs.Dir, act: () => unknown): unknown {
  void dir.read();
  return act();
}

const programs: [title: string, program: Program][] = [
  ['reads past the end', (dir) => [dir.readSync()?.name, dir.readSync(), dir.readSync()]],
  ['reads after a close', (dir) => { dir.closeSync(); return dir.readSync(); }],
  ['closes twice', (dir) => { dir.closeSync(); dir.closeSync(); }],
  ['closes twice, later', async (dir) => { await dir.close(); await dir.close(); }],
  ['reads by promise after a close', (dir) => { dir.closeSync(); return dir.read(); }],
  ['closes by callback after a close', (dir) => {
    dir.closeSync();
    return promisify((done: () => void) => dir.close(done))();
  }],
  ['reads while another read runs', (dir) => during(dir, () => dir.readSync())],
  ['closes while a read runs', (dir) => during(dir, () => dir.closeSync())],
  ['reads twice at once', async (dir) => (await Promise.all([dir.read(), dir.read()])).map((entry) => entry?.name)],
  ['reads and closes at once', async (dir) => [(await Promise.all([dir.read(), dir.close()]))[0]?.name]],
  ['reads synchronously after a read that has ended', async (dir) => { await dir.read(); return dir.readSync(); }],
  ['reads with what is no callback', (dir) => dir.read('x' as never)],
  ['closes with what is no callback', (dir) => dir.close('x' as never)],
  ['breaks out of a loop', async (dir) => { for await (const _ of dir) break; return dir.readSync(); }],
  ['throws out of a loop', async (dir) => { for await (const _ of dir) throw new Error('out'); }],
  ['closes in a loop', async (dir) => { for await (const _ of dir) await dir.close(); }],
];

it.each(programs)('%s as node does', async (_, program) => {
  await against({ fs, prepare: (dir) => make(dir, { 'only/one': 'x' }), act: async (subject, dir) => {
    const opened = await call(subject, 'promise', 'opendir', [join(dir, 'only')]) as nodeFs.Dir;
    try {
      return await program(opened);
    } finally {
      await opened.close().catch(() => 'closed already');
    }
  } });
});

describe('a Dir', () => {
  it('calls back in a later turn, whether it has an entry or not', async () => {
    await inTemporary(async (path) => {
      make(path, { a: '', b: '' });
      const dir = await promises.opendir(path);
      const names = [];
      for (let i = 0; i < 3; i++) {
        let early = true;
        names.push(await new Promise((resolve, reject) => {
          dir.read((error, entry) => error || early ? reject(new Error('early')) : resolve(entry?.name));
          early = false;
        }));
      }
      dir.closeSync();
      expect(names.toSorted(byText)).toEqual(['a', 'b', undefined]);
    });
  });

  it('reads to its end what it listed when it was opened, though the directory is gone', async () => {
    await inTemporary(async (path) => {
      make(path, { 'd/a': '', 'd/b': '' });
      const dir = opendirSync(join(path, 'd'), { bufferSize: 1 });
      nodeFs.rmSync(join(path, 'd'), { recursive: true });
      const names = [];
      for await (const { name } of dir) names.push(name);
      expect(names.toSorted(byText)).toEqual(['a', 'b']);
    });
  });

  it('gives every entry of a large directory below, whatever its buffer', async () => {
    await inTemporary(async (path) => {
      make(path, Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`d/${i}`, ''])));
      const names = [];
      for await (const { name } of opendirSync(path, { recursive: true, bufferSize: 4 })) names.push(name);
      expect(names).toHaveLength(101);
    });
  });

  it('names directories below that are not UTF-8, and reads them', async () => {
    await inTemporary(async (path) => {
      const odd = Buffer.concat([Buffer.from(`${path}/`), Buffer.from([0x64, 0xff])]);
      nodeFs.mkdirSync(odd);
      nodeFs.writeFileSync(Buffer.concat([odd, Buffer.from('/f')]), '');
      const names = [];
      for await (const { name } of opendirSync(path, { recursive: true })) names.push(name);
      expect(names).toEqual(['d\ufffd', 'f']);
    });
  });

  it('is made by opendir alone', () => {
    expect(() => new Dir(undefined as never, '/x')).toThrow(expect.objectContaining({ code: 'ERR_MISSING_ARGS' }));
    expect(Dir.prototype[Symbol.asyncIterator]).toBe(Dir.prototype.entries);
  });

  it('gives entries of node\'s own class', () => {
    const dir = opendirSync('/');
    expect(dir.readSync()).toBeInstanceOf(nodeFs.Dirent);
    dir.closeSync();
  });
});

import type { EventEmitter } from 'node:events';
import type * as nodeFs from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { describe, expect, it } from 'vitest';
import { createNodeFs, type NodeFs } from '../../src/overlay/node/fs.ts';
import { realSystem } from '../support/real-system.ts';
import { against, inTemporary, make, outcome, type FsLike, type Twin } from './twin.ts';

const face = createNodeFs(realSystem());
const prepare = (dir: string) => make(dir, { file: 'first line\nsecond\r\nthird', empty: '', d: null });

/** A program of steps whose every answer must be the same through node and through the face. */
function alike(program: (fs: NodeFs, dir: string) => (() => unknown)[] | Promise<(() => unknown)[]>): Twin {
  return {
    fs: face as unknown as FsLike, prepare,
    act: async (subject, dir) => {
      const seen: unknown[] = [];
      for (const step of await program(subject as unknown as NodeFs, dir)) seen.push(await outcome(step, dir));
      return seen;
    },
  };
}

describe('descriptors', () => {
  it('read and write at their own position and at given ones', () => against(alike((fs, dir) => {
    const fd = fs.openSync(join(dir, 'file'), 'r+'), buffer = Buffer.alloc(8);
    const read = (...args: unknown[]) => () => {
      buffer.fill(0);
      return [(fs.readSync as (...all: unknown[]) => number)(fd, buffer, ...args), buffer.toString('latin1')];
    };
    const write = (...args: unknown[]) => () => (fs.writeSync as (...all: unknown[]) => number)(fd, ...args);
    return [
      read(), read(0, 4, 2), read(2, 3, null), read({ position: 1n }), read({ offset: 7 }), read(0, 0, 0), read(0, 9, 0), read(-1, 1, 0),
      read(0, 8, -2), read(0, 8, 'x'), read(0, 8, 1e9), read(5), read(0, undefined, 0), read(8, 1, 0), read(null),
      write('text'), write('ü', 1), write('abc', 2, 'latin1'), write('abc', 0, 'hex'), write(buffer, 1, 3, 0), write(buffer, 1), write(buffer, { offset: 4 }),
      write(buffer, 9), write(buffer, 0, 9), write(buffer, 0, -1), write(7), write(null), write(new Float64Array(1), 0, 8, 30), write(buffer, 0, 0),
      () => fs.writevSync(fd, [Buffer.from('a'), Buffer.alloc(0), Buffer.from('bc')], 40), () => fs.writevSync(fd, []),
      () => fs.readvSync(fd, [buffer.subarray(0, 2), buffer.subarray(2)], 0), () => fs.readvSync(fd, [7] as never), () => fs.readvSync(fd, {} as never),
      () => fs.fstatSync(fd).size, () => fs.ftruncateSync(fd, 5), () => fs.ftruncateSync(fd, 1.5), () => fs.fstatSync(fd, { bigint: true }).size,
      () => fs.fchmodSync(fd, 0o600), () => fs.fchmodSync(fd, 'x'), () => fs.fchownSync(fd, 3, 'x' as never), () => fs.futimesSync(fd, 1, 2), () => fs.futimesSync(fd, 'x', 2),
      () => fs.fsyncSync(fd), () => fs.fdatasyncSync(fd), () => fs.readFileSync(fd, 'utf8'), () => fs.writeFileSync(fd, 'whole'), () => fs.appendFileSync(fd, '+'),
      () => fs.closeSync(fd), () => fs.closeSync(fd), () => fs.fstatSync(fd), read(), write('x'), () => fs.fsyncSync(fd), () => fs.readFileSync(fd, 'utf8'),
      () => fs.closeSync('x' as never), () => fs.closeSync(-1), () => fs.closeSync(1.5), () => fs.openSync(join(dir, 'd'), 'w'), () => fs.openSync(join(dir, 'file'), 'wx'),
      () => fs.openSync(join(dir, 'file'), 'nonsense'), () => fs.openSync(join(dir, 'file'), 'r', 'x'), () => fs.openSync(join(dir, 'file'), 0.5),
    ];
  })));

  it('append at the end whatever the position says', () => against(alike((fs, dir) => {
    const fd = fs.openSync(join(dir, 'file'), 'a+');
    return [() => fs.writeSync(fd, 'X', 0), () => fs.writeSync(fd, Buffer.from('Y'), 0, 1, 3), () => fs.readFileSync(fd, 'utf8'),
      () => fs.readFileSync(join(dir, 'file'), 'utf8'), () => fs.closeSync(fd)];
  })));
});

describe('a FileHandle', () => {
  it('answers as node\'s does', () => against(alike(async (fs, dir) => {
    const handle = await fs.promises.open(join(dir, 'file'), 'r+');
    const read = handle.read.bind(handle) as (...args: unknown[]) => Promise<{ bytesRead: number; buffer: Buffer }>;
    const seen = (...args: unknown[]) => async () => {
      const { bytesRead, buffer } = await read(...args);
      return [bytesRead, buffer.subarray(0, 20).toString('latin1')];
    };
    const buffer = () => Buffer.alloc(6);
    return [
      seen(buffer()), seen(buffer(), 1, 3, 0), seen(buffer(), null, null, 2), seen(buffer(), { position: 1, length: 2 }), seen({ buffer: buffer(), position: 3 }),
      seen({ position: 0 }), seen(null), seen(7), seen(buffer(), 'x'), seen(buffer(), 7), seen(Buffer.alloc(0)), seen({ buffer: 7 }),
      () => handle.write('text', 0), () => handle.write(Buffer.from('bytes'), 1, 2, 0), () => handle.write(Buffer.alloc(0)), () => handle.write(7 as never), () => handle.write('abc', 0, 'hex'),
      () => handle.writev([Buffer.from('a'), Buffer.from('b')], 4), () => handle.writev([]), () => handle.writev(7 as never), () => handle.readv([buffer()], 0),
      () => handle.truncate(12), () => handle.truncate('x' as never), async () => (await handle.stat()).size, async () => (await handle.stat({ bigint: true })).size,
      () => handle.chmod(0o600), () => handle.chmod('x'), () => handle.chown(1, 'x' as never), () => handle.utimes(1, 2), () => handle.utimes('x', 2), () => handle.sync(), () => handle.datasync(),
      () => handle.readFile('utf8'), () => handle.readFile({ encoding: 'nonsense' as never }), () => handle.writeFile('whole'), () => handle.writeFile(['in ', 'parts'] as never), () => handle.appendFile('+'),
      () => fs.promises.readFile(handle, 'utf8'), () => fs.promises.writeFile(handle, 'more'), () => fs.promises.appendFile(handle, 'most'),
      () => fs.promises.readFile(join(dir, 'file'), 'utf8'), () => handle.close(), () => handle.fd, () => handle.close(), seen(buffer()), () => handle.stat(), () => handle.appendFile('x'), () => handle.writeFile('x'),
    ];
  })));

  it('is closed when the last that uses it is done', () => inTemporary(async (dir) => {
    prepare(dir);
    const handle = await face.promises.open(join(dir, 'file'));
    const reading = handle.readFile('utf8');
    let closed = false;
    (handle as unknown as EventEmitter).on('close', () => {
      closed = true;
    });
    const closing = handle.close();
    expect(closed).toBe(true);
    expect(await reading).toMatch(/^first line/);
    await closing;
    expect(handle.fd).toBe(-1);
    await expect(handle.readFile()).rejects.toMatchObject({ code: 'EBADF', message: 'file closed', syscall: 'readFile' });
  }));

  it('reads lines, streams and web streams', () => inTemporary(async (dir) => {
    prepare(dir);
    const path = join(dir, 'file'), lines: string[] = [];
    const first = await face.promises.open(path);
    for await (const line of first.readLines()) lines.push(line);
    expect(lines).toEqual(['first line', 'second', 'third']);
    for (const type of ['bytes', undefined] as const) {
      const handle = await face.promises.open(path);
      const chunks: Buffer[] = [];
      for await (const chunk of handle.readableWebStream(type ? { type } : {})) chunks.push(Buffer.from(chunk as ArrayBuffer));
      expect(Buffer.concat(chunks).toString()).toBe('first line\nsecond\r\nthird');
      expect(() => handle.readableWebStream()).toThrow('Invalid state: The FileHandle is locked');
      await handle.close();
    }
    const last = await face.promises.open(path, 'r+');
    await pipeline(['new', ' content'], last.createWriteStream());
    expect(face.readFileSync(path, 'utf8')).toBe('new contentsecond\r\nthird');
    expect(last.fd).toBe(-1);
  }));
});

describe('streams', () => {
  it('read ranges and write from an offset as node\'s do', () => against(alike((fs, dir) => {
    const path = join(dir, 'file');
    return [
      () => text(fs.createReadStream(path)), () => text(fs.createReadStream(path, { start: 3, end: 8 })), () => text(fs.createReadStream(path, { highWaterMark: 2, encoding: 'latin1' })),
      () => text(fs.createReadStream(path, 'utf8')), () => text(fs.createReadStream(join(dir, 'nothing'))), () => text(fs.createReadStream(join(dir, 'd'))),
      () => fs.createReadStream(path, { start: 9, end: 3 }), () => fs.createReadStream(7 as never), () => fs.createReadStream(path, 7 as never), () => fs.createReadStream(path, { fd: {} as never }),
      () => pipeline(['a', 'b'], fs.createWriteStream(path, { flags: 'r+', start: 6 })), () => pipeline(['x'], fs.createWriteStream(path, { flags: 'a', flush: true })),
      () => pipeline(['x'], fs.createWriteStream(path, { flags: 'wx' })), () => pipeline(['x'], fs.createWriteStream(join(dir, 'new'), { mode: 0o600 })), () => text(fs.createReadStream(path)),
    ];
  })));

  it('go through what stands in the face when they call', () => inTemporary(async (dir) => {
    const fs = createNodeFs(realSystem()), used: string[] = [];
    for (const name of ['open', 'read', 'write', 'close'] as const) {
      const own = fs[name] as (...args: unknown[]) => void;
      (fs as unknown as Record<string, unknown>)[name] = (...args: unknown[]) => {
        used.push(name);
        own(...args);
      };
    }
    await pipeline(['content'], fs.createWriteStream(join(dir, 'file')));
    expect(await text(fs.createReadStream(join(dir, 'file')))).toBe('content');
    expect(used).toEqual(['open', 'write', 'close', 'open', 'read', 'read', 'close']);
  }));

  it('are made of the class that stands in the face, with or without new', () => {
    const fs = createNodeFs(realSystem());
    const ReadStream = fs.ReadStream as unknown as (path: string) => nodeFs.ReadStream;
    expect(ReadStream('/dev/null')).toBeInstanceOf(fs.ReadStream);
    class Marked extends fs.ReadStream {}
    fs.ReadStream = Marked;
    expect(fs.createReadStream('/dev/null')).toBeInstanceOf(Marked);
  });
});

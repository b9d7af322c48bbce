import { fileURLToPath } from 'node:url';
import type { NodeFs } from '../model/world.ts';

type Name = string | Buffer | URL;

/** The everyday acts of a program, in one of the styles that node offers for them. */
export interface Face {
  readonly name: 'sync' | 'callback' | 'promises' | 'descriptor' | 'streams' | 'mount';
  read(path: Name): Promise<Buffer>;
  /** Makes the file where there is none; `mode` only counts then. */
  write(path: Name, data: string | Buffer, mode?: number): Promise<void>;
  append(path: Name, data: string | Buffer): Promise<void>;
  truncate(path: Name, size: number): Promise<void>;
  list(path: Name): Promise<string[]>;
  /** Type, permission bits, and what else stat tells. */
  stat(path: Name): Promise<Seen>;
  lstat(path: Name): Promise<Seen>;
  readlink(path: Name): Promise<string>;
  makeDirectory(path: Name): Promise<void>;
  removeFile(path: Name): Promise<void>;
  removeDirectory(path: Name): Promise<void>;
  removeTree(path: Name): Promise<void>;
  rename(from: Name, to: Name): Promise<void>;
  link(from: Name, to: Name): Promise<void>;
  symlink(target: string, path: Name): Promise<void>;
  copy(from: Name, to: Name): Promise<void>;
  chmod(path: Name, mode: number): Promise<void>;
}

export interface Seen {
  readonly type: 'file' | 'directory' | 'symlink' | 'other';
  readonly permissions: number;
  readonly ino: bigint;
  readonly dev: bigint;
  readonly nlink: number;
  readonly size: number;
  readonly mtimeNs: bigint;
}

interface StatsLike {
  readonly mode: bigint;
  readonly ino: bigint;
  readonly dev: bigint;
  readonly nlink: bigint;
  readonly size: bigint;
  readonly mtimeNs: bigint;
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

function seen(stats: StatsLike): Seen {
  const type = stats.isFile() ? 'file' : stats.isDirectory() ? 'directory' : stats.isSymbolicLink() ? 'symlink' : 'other';
  return {
    type, permissions: Number(stats.mode) & 0o7777, ino: stats.ino, dev: stats.dev, nlink: Number(stats.nlink),
    size: Number(stats.size), mtimeNs: stats.mtimeNs,
  };
}

/** Every style. What a style has no call of its own for, it does as the style it is built on. */
export function facesOf(fs: NodeFs): Face[] {
  const sync = syncFace(fs), callback = callbackFace(fs), promises = promisesFace(fs);
  return [sync, callback, promises, descriptorFace(fs, sync), streamFace(fs, callback)];
}

/** What a process is asked to do that calls the real `node:fs` for us, and what it answers. */
export interface Order {
  readonly id: number;
  readonly call: string;
  readonly args: readonly unknown[];
  readonly umask: number;
}
export interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly fault?: { readonly message: string; readonly code?: string };
}

/**
 * The real `node:fs` of another process, on a mount of the overlay at `mount`, by the names that the others know. `order`
 * has it called there: this process serves the mount, and must not wait for it.
 */
export function mountFace(root: string, mount: string, order: (call: string, args: readonly unknown[]) => Promise<unknown>): Face {
  const at = (path: unknown): unknown => {
    const plain = path instanceof URL ? fileURLToPath(path) : path, text = Buffer.isBuffer(plain) ? plain.toString('latin1') : String(plain);
    if (text !== root && !text.startsWith(`${root}/`)) return plain;
    const moved = mount + text.slice(root.length);
    return Buffer.isBuffer(plain) ? Buffer.from(moved, 'latin1') : moved;
  };
  const one = <T>(call: keyof Face) => (path: Name, ...rest: unknown[]): Promise<T> => order(call, [at(path), ...rest]) as Promise<T>;
  const two = (call: keyof Face) => (from: Name, to: Name): Promise<void> => order(call, [at(from), at(to)]) as Promise<void>;
  return {
    name: 'mount',
    read: async (path) => Buffer.from(await one<Uint8Array>('read')(path)),
    write: one('write'), append: one('append'), truncate: one('truncate'), list: one('list'), stat: one('stat'), lstat: one('lstat'),
    readlink: one('readlink'), makeDirectory: one('makeDirectory'), removeFile: one('removeFile'), removeDirectory: one('removeDirectory'),
    removeTree: one('removeTree'), chmod: one('chmod'), rename: two('rename'), link: two('link'), copy: two('copy'),
    symlink: (target, path) => order('symlink', [target, at(path)]) as Promise<void>,
  };
}

function syncFace(fs: NodeFs): Face {
  return {
    name: 'sync',
    read: async (path) => fs.readFileSync(path),
    write: async (path, data, mode = 0o666) => fs.writeFileSync(path, data, { mode }),
    append: async (path, data) => fs.appendFileSync(path, data),
    truncate: async (path, size) => fs.truncateSync(path, size),
    list: async (path) => fs.readdirSync(path).sort(),
    stat: async (path) => seen(fs.statSync(path, { bigint: true })),
    lstat: async (path) => seen(fs.lstatSync(path, { bigint: true })),
    readlink: async (path) => fs.readlinkSync(path),
    makeDirectory: async (path) => fs.mkdirSync(path),
    removeFile: async (path) => fs.unlinkSync(path),
    removeDirectory: async (path) => fs.rmdirSync(path),
    removeTree: async (path) => fs.rmSync(path, { recursive: true }),
    rename: async (from, to) => fs.renameSync(from, to),
    link: async (from, to) => fs.linkSync(from, to),
    symlink: async (target, path) => fs.symlinkSync(target, path),
    copy: async (from, to) => fs.copyFileSync(from, to),
    chmod: async (path, mode) => fs.chmodSync(path, mode),
  };
}

function callbackFace(fs: NodeFs): Face {
  return {
    name: 'callback',
    read: (path) => lift((done) => fs.readFile(path, done)),
    write: (path, data, mode = 0o666) => lift((done) => fs.writeFile(path, data, { mode }, done)),
    append: (path, data) => lift((done) => fs.appendFile(path, data, done)),
    truncate: (path, size) => lift((done) => fs.truncate(path, size, done)),
    list: async (path) => (await lift<string[]>((done) => fs.readdir(path, done))).sort(),
    stat: async (path) => seen(await lift<StatsLike>((done) => fs.stat(path, { bigint: true }, done))),
    lstat: async (path) => seen(await lift<StatsLike>((done) => fs.lstat(path, { bigint: true }, done))),
    readlink: (path) => lift((done) => fs.readlink(path, done)),
    makeDirectory: (path) => lift((done) => fs.mkdir(path, done)),
    removeFile: (path) => lift((done) => fs.unlink(path, done)),
    removeDirectory: (path) => lift((done) => fs.rmdir(path, done)),
    removeTree: (path) => lift((done) => fs.rm(path, { recursive: true }, done)),
    rename: (from, to) => lift((done) => fs.rename(from, to, done)),
    link: (from, to) => lift((done) => fs.link(from, to, done)),
    symlink: (target, path) => lift((done) => fs.symlink(target, path, done)),
    copy: (from, to) => lift((done) => fs.copyFile(from, to, done)),
    chmod: (path, mode) => lift((done) => fs.chmod(path, mode, done)),
  };
}

function promisesFace(fs: NodeFs): Face {
  const { promises } = fs;
  return {
    name: 'promises',
    read: (path) => promises.readFile(path),
    write: (path, data, mode = 0o666) => promises.writeFile(path, data, { mode }),
    append: (path, data) => promises.appendFile(path, data),
    truncate: (path, size) => promises.truncate(path, size),
    list: async (path) => (await promises.readdir(path)).sort(),
    stat: async (path) => seen(await promises.stat(path, { bigint: true })),
    lstat: async (path) => seen(await promises.lstat(path, { bigint: true })),
    readlink: (path) => promises.readlink(path),
    makeDirectory: async (path) => promises.mkdir(path),
    removeFile: (path) => promises.unlink(path),
    removeDirectory: (path) => promises.rmdir(path),
    removeTree: (path) => promises.rm(path, { recursive: true }),
    rename: (from, to) => promises.rename(from, to),
    link: (from, to) => promises.link(from, to),
    symlink: (target, path) => promises.symlink(target, path),
    copy: (from, to) => promises.copyFile(from, to),
    chmod: (path, mode) => promises.chmod(path, mode),
  };
}

/** Content through descriptors in small pieces; metadata through `fstat` and its like where there is one. */
function descriptorFace(fs: NodeFs, base: Face): Face {
  const using = <T>(path: Name, flags: string, act: (fd: number) => T, mode = 0o666): T => {
    const fd = fs.openSync(path, flags, mode);
    try {
      return act(fd);
    } finally {
      fs.closeSync(fd);
    }
  };
  const writeAll = (fd: number, data: string | Buffer): void => {
    const bytes = Buffer.from(data);
    for (let at = 0; at < bytes.length;) at += fs.writeSync(fd, bytes, at, Math.min(bytes.length - at, 1000));
  };
  return {
    ...base,
    name: 'descriptor',
    read: async (path) => using(path, 'r', (fd) => {
      const chunks: Buffer[] = [], chunk = Buffer.alloc(1000);
      for (let n = fs.readSync(fd, chunk); n > 0; n = fs.readSync(fd, chunk)) chunks.push(Buffer.from(chunk.subarray(0, n)));
      return Buffer.concat(chunks);
    }),
    write: async (path, data, mode = 0o666) => using(path, 'w', (fd) => writeAll(fd, data), mode),
    append: async (path, data) => using(path, 'a', (fd) => writeAll(fd, data)),
    truncate: async (path, size) => using(path, 'r+', (fd) => fs.ftruncateSync(fd, size)),
    stat: async (path) => using(path, 'r', (fd) => seen(fs.fstatSync(fd, { bigint: true }))),
    chmod: async (path, mode) => using(path, 'r', (fd) => fs.fchmodSync(fd, mode)),
    copy: async (from, to) => {
      const handle = await fs.promises.open(from, 'r');
      try {
        await fs.promises.writeFile(to, await handle.readFile());
      } finally {
        await handle.close();
      }
    },
  };
}

function streamFace(fs: NodeFs, base: Face): Face {
  const read = async (path: Name): Promise<Buffer> => {
    const chunks: Buffer[] = [];
    for await (const chunk of fs.createReadStream(path, { highWaterMark: 1000 })) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks);
  };
  const write = (path: Name, data: string | Buffer, flags: string, mode = 0o666): Promise<void> =>
    new Promise((resolve, reject) => {
      const stream = fs.createWriteStream(path, { flags, mode });
      const bytes = Buffer.from(data), half = bytes.length >> 1;
      stream.on('error', reject).on('close', () => resolve());
      stream.write(bytes.subarray(0, half));
      stream.end(bytes.subarray(half));
    });
  return {
    ...base,
    name: 'streams',
    read,
    write: (path, data, mode) => write(path, data, 'w', mode),
    append: (path, data) => write(path, data, 'a'),
    copy: async (from, to) => write(to, await read(from), 'w'),
  };
}

function lift<T>(start: (done: (error: Error | null, result?: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    start((error, result) => {
      if (error) reject(error);
      else resolve(result as T);
    });
  });
}

import * as fs from 'node:fs';
import type { Attr, NodeType } from '../../src/core/attr.ts';
import { compareNames, fromBytes, toBytes, type PathName } from '../../src/core/path.ts';
import { Refusal } from '../../src/core/refusal.ts';
import { FIRST_DESCRIPTOR, type System, type SystemEntry, type SystemTime } from '../../src/overlay/system.ts';

/**
 * A `System` that is the real file system itself: what the faces are tested over where the overlay is not the subject.
 * Descriptors of files it opened are real ones, shifted; others are taken as they are.
 */
export function realSystem(): System {
  return {
    open: (path, flags, mode) => refused(() => fs.openSync(bytes(path), flags, mode) + FIRST_DESCRIPTOR),
    reopen: unsupported,
    close: (fd) => refused(() => fs.closeSync(real(fd))),
    read: (fd, into, offset, length, position) => refused(() => fs.readSync(real(fd), into, offset, length, position)),
    readLater: (fd, into, offset, length, position) => new Promise((resolve, reject) => {
      fs.read(real(fd), into, offset, length, position, (error, count) => error ? reject(Refusal.of(error)) : resolve(count));
    }),
    write: (fd, from, offset, length, position) => refused(() => fs.writeSync(real(fd), from, offset, length, position)),
    ftruncate: (fd, size) => refused(() => fs.ftruncateSync(real(fd), size)),
    fsync: (fd) => refused(() => fs.fsyncSync(real(fd))),
    fstat: (fd) => refused(() => attrOf(fs.fstatSync(real(fd), BIGINT))),
    fchmod: (fd, mode) => refused(() => fs.fchmodSync(real(fd), mode)),
    fchown: (fd, uid, gid) => refused(() => fs.fchownSync(real(fd), uid, gid)),
    futimes: (fd, atime, mtime) => refused(() => fs.futimesSync(real(fd), seconds(atime), seconds(mtime))),
    fallocate: unsupported,
    seek: unsupported,
    copyRange: unsupported,
    tmpfile: unsupported,
    linkOpen: unsupported,
    readFile: readFile as System['readFile'],
    writeFile: (path, content, flags, mode) => refused(() => {
      const fd = fs.openSync(bytes(path), flags, mode);
      try {
        fs.writeFileSync(fd, content);
      } finally {
        fs.closeSync(fd);
      }
    }),
    copyFile: (from, to, { exclusive }) => refused(() => {
      fs.copyFileSync(bytes(from), bytes(to), exclusive ? fs.constants.COPYFILE_EXCL : 0);
    }),
    stat: (path) => missing(() => attrOf(fs.statSync(bytes(path), BIGINT))),
    lstat: (path) => missing(() => attrOf(fs.lstatSync(bytes(path), BIGINT))),
    mustStat: (path, { follow }) => refused(() => attrOf(follow ? fs.statSync(bytes(path), BIGINT) : fs.lstatSync(bytes(path), BIGINT))),
    exists: (path) => fs.existsSync(bytes(path)),
    access: (path, mode) => refused(() => fs.accessSync(bytes(path), mode)),
    readdir: (path) => refused(() => fs.readdirSync(bytes(path), { withFileTypes: true, encoding: 'buffer' } as unknown as { withFileTypes: true })
      .map(entryOf).sort((a, b) => compareNames(a.name, b.name))),
    readlink: (path) => refused(() => fromBytes(fs.readlinkSync(bytes(path), { encoding: 'buffer' }))),
    realpath: (path) => refused(() => fromBytes(fs.realpathSync.native(bytes(path), { encoding: 'buffer' }))),
    statfs: (path) => refused(() => fs.statfsSync(bytes(path), BIGINT)),
    mkdir: (path, mode) => refused(() => fs.mkdirSync(bytes(path), mode)),
    mknod: unsupported,
    xattrs: { get: unsupported, set: unsupported, list: unsupported, remove: unsupported },
    symlink: (target, path) => refused(() => fs.symlinkSync(bytes(target), bytes(path))),
    link: (from, to) => refused(() => fs.linkSync(bytes(from), bytes(to))),
    rename: (from, to) => refused(() => fs.renameSync(bytes(from), bytes(to))),
    unlink: (path) => refused(() => fs.unlinkSync(bytes(path))),
    rmdir: (path) => refused(() => fs.rmdirSync(bytes(path))),
    truncate: (path, size) => refused(() => fs.truncateSync(bytes(path), size)),
    chmod: (path, mode) => refused(() => fs.chmodSync(bytes(path), mode)),
    chown: (path, uid, gid, { follow }) => refused(() => (follow ? fs.chownSync : fs.lchownSync)(bytes(path), uid, gid)),
    utimes: (path, atime, mtime, { follow }) => refused(() => {
      (follow ? fs.utimesSync : fs.lutimesSync)(bytes(path), seconds(atime), seconds(mtime));
    }),
    watch: (path, { recursive }, changed) => {
      const watcher = refused(() => fs.watch(path, { recursive, persistent: false }, (event, name) => changed(event, name ?? '')));
      watcher.on('error', () => watcher.close());
      return watcher;
    },
    cwd: () => process.cwd(),
  };
}

function readFile(path: PathName, flags: number, limit = Infinity): Uint8Array | number {
  if (limit === Infinity) return refused(() => fs.readFileSync(bytes(path), { flag: flags as unknown as string }));
  const fd = refused(() => fs.openSync(bytes(path), flags, 0o666));
  const stats = fs.fstatSync(fd);
  if (stats.isFile() && stats.size > limit) return fd + FIRST_DESCRIPTOR;
  try {
    return refused(() => fs.readFileSync(fd));
  } finally {
    fs.closeSync(fd);
  }
}

const BIGINT = { bigint: true } as const;

function real(fd: number): number {
  return fd >= FIRST_DESCRIPTOR ? fd - FIRST_DESCRIPTOR : fd;
}

function bytes(path: string): Buffer {
  return Buffer.from(toBytes(path));
}

/** Rounded up by half a microsecond: seconds as a double lose the last digits, and the call cuts. */
function seconds(ns: SystemTime): string {
  if (typeof ns === 'string') throw new Refusal('ENOTSUP');
  const away = ns < 0n ? -5e-7 : 5e-7;
  // As a string: a number below 0 stands for now.
  return String(Number(ns / 1_000_000_000n) + Number(ns % 1_000_000_000n) / 1e9 + away);
}

/** Node has no call for it, and no face makes it. */
function unsupported(): never {
  throw new Refusal('ENOTSUP');
}

function refused<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw Refusal.of(error);
  }
}

function missing(call: () => Attr): Attr | undefined {
  try {
    return call();
  } catch (error) {
    const refusal = Refusal.of(error);
    if (refusal.code === 'ENOENT' || refusal.code === 'ENOTDIR') return undefined;
    throw refusal;
  }
}

function attrOf(stats: fs.BigIntStats): Attr {
  return {
    dev: stats.dev, ino: stats.ino, mode: Number(stats.mode), nlink: Number(stats.nlink), uid: Number(stats.uid),
    gid: Number(stats.gid), rdev: Number(stats.rdev), size: Number(stats.size), blksize: Number(stats.blksize),
    blocks: Number(stats.blocks), atime: stats.atimeNs, mtime: stats.mtimeNs, ctime: stats.ctimeNs, birthtime: stats.birthtimeNs,
  };
}

function entryOf(entry: fs.Dirent): SystemEntry {
  return { name: fromBytes(entry.name as unknown as Uint8Array), type: direntType(entry) };
}

function direntType(entry: fs.Dirent): NodeType {
  if (entry.isFile()) return 'file';
  if (entry.isDirectory()) return 'directory';
  if (entry.isSymbolicLink()) return 'symlink';
  if (entry.isFIFO()) return 'fifo';
  if (entry.isSocket()) return 'socket';
  return entry.isBlockDevice() ? 'block' : 'character';
}

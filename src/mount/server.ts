import { constants as system } from 'node:os';
import { constants } from 'node:fs';
import {
  fromBytes, Refusal, sameContent, toBytes, typeBits,
  type Attr, type Caller, type Found, type PathName, type Served, type System, type SystemEntry, type TreePath,
} from '../index/front-end.ts';
import type { Callers } from './callers.ts';
import { Looks } from './looks.ts';
import { Nodes, ROOT_ID, type Node } from './nodes.ts';
import {
  ENTRY_BYTES, FOPEN_KEEP_CACHE, GETATTR_FH, InitFlag, Opcode, RENAME_EXCHANGE, RENAME_NOREPLACE, Reply, Request, SetAttr,
  WRITE_KILL_SUIDGID,
} from './wire.ts';

/** Protocol version spoken; the older of ours and the kernel's counts. */
const MAJOR = 7, MINOR = 31, OLDEST_MINOR = 31;
/** Most bytes of one read or write. */
export const TRANSFER_BYTES = 1 << 20;
/** What a buffer for requests needs beyond the bytes of a write. */
export const REQUEST_ROOM = 4096;
const PAGE_BYTES = 4096;
const NAME_MAX = 255;
/** Seconds that the kernel keeps names and attributes that only the overlay can change, and those of the lower. */
const OWN_SECONDS = 86_400, LOWER_SECONDS = 1;
const SECOND_NS = 1_000_000_000n;
const UNCHANGED = 0xffffffff;
const DIRENT_BYTES = 24;

const { ENOENT, ENOSYS, EIO, EINVAL, ESTALE, EPROTO } = system.errno;
const ERRNO = new Map<string, number>(Object.entries(system.errno));

interface OpenFile {
  readonly node: Node;
  readonly caller: Caller;
}

interface OpenDirectory {
  readonly node: Node;
  entries: readonly SystemEntry[];
}

/** How a server serves. */
export interface ServerOptions {
  /** No names and attributes are kept: every look is asked and told. */
  readonly exact: boolean;
  /** Names in the root that begin so are no files: a look at one calls `woken` with the rest of it. */
  readonly reserved: string;
  readonly woken: (rest: string, caller: Caller) => void;
  /** A bug, or a fault without a name: the request got EIO. */
  readonly failed: (error: unknown) => void;
}

/**
 * Answers the requests of one FUSE connection from an overlay. Knows nothing of where they come from: a driver puts one
 * into the request's buffer and sends what is in the reply's. Never waits for anything.
 */
export class Server {
  readonly request = new Request(Buffer.allocUnsafeSlow(TRANSFER_BYTES + REQUEST_ROOM));
  readonly reply = new Reply(Buffer.allocUnsafeSlow(TRANSFER_BYTES + REQUEST_ROOM));
  private readonly served: Served;
  private readonly callers: Callers;
  private readonly options: ServerOptions;
  private readonly nodes = new Nodes();
  private readonly looks: Looks;
  private readonly files = new Map<number, OpenFile>();
  private readonly directories = new Map<number, OpenDirectory>();
  private nextDirectory = 1;
  private ringer: number | undefined = undefined;

  constructor(served: Served, callers: Callers, options: ServerOptions) {
    this.served = served;
    this.callers = callers;
    this.options = options;
    this.looks = new Looks(served);
  }

  /** The thread that rings looks at nothing for its own sake. */
  knowRinger(thread: number): void {
    this.ringer = thread;
  }

  /** Answers the request of `length` bytes in the buffer. Bytes of the reply; 0 where the kernel wants none. */
  handle(length: number): number {
    const { request, reply } = this;
    request.begin(length);
    reply.begin(request);
    try {
      return this.answer(request.opcode);
    } catch (error) {
      if (error instanceof Refusal) return reply.fail(ERRNO.get(error.code) ?? EIO);
      this.options.failed(error);
      return reply.fail(EIO);
    } finally {
      this.served.rest();
    }
  }

  /** No request is expected for now: what was held back goes to the log, and the log where its durability says. */
  idle(): void {
    this.looks.tellAll();
    this.served.rest();
    this.served.flush();
  }

  private answer(opcode: number): number {
    switch (opcode) {
      case Opcode.LOOKUP: return this.lookup();
      case Opcode.FORGET: return this.forget(this.request.node, this.request.u64(0));
      case Opcode.BATCH_FORGET: return this.forgetMany();
      case Opcode.GETATTR: return this.getattr();
      case Opcode.SETATTR: return this.setattr();
      case Opcode.READLINK: return this.readlink();
      case Opcode.SYMLINK: return this.symlink();
      case Opcode.MKNOD: return this.mknod();
      case Opcode.MKDIR: return this.mkdir();
      case Opcode.UNLINK: return this.unlink();
      case Opcode.RMDIR: return this.rmdir();
      case Opcode.RENAME: return this.rename(8, 0);
      case Opcode.RENAME2: return this.rename(16, this.request.u32(8));
      case Opcode.LINK: return this.link();
      case Opcode.OPEN: return this.open();
      case Opcode.CREATE: return this.create();
      case Opcode.READ: return this.read();
      case Opcode.WRITE: return this.write();
      case Opcode.RELEASE: return this.release();
      case Opcode.FSYNC: case Opcode.FSYNCDIR: return this.sync();
      case Opcode.OPENDIR: return this.opendir();
      case Opcode.READDIR: return this.readdir({ plus: false });
      case Opcode.READDIRPLUS: return this.readdir({ plus: true });
      case Opcode.RELEASEDIR: return this.releasedir();
      case Opcode.STATFS: return this.statfs();
      case Opcode.INIT: return this.init();
      case Opcode.INTERRUPT: return 0;
      case Opcode.DESTROY: return this.reply.done();
      default: return this.reply.fail(ENOSYS);
    }
  }

  private init(): number {
    const { request, reply } = this, minor = Math.min(request.u32(4), MINOR);
    if (request.u32(0) !== MAJOR || minor < OLDEST_MINOR) return reply.fail(EPROTO);
    const offered = request.u32(12);
    const wanted = InitFlag.ASYNC_READ | InitFlag.ATOMIC_O_TRUNC | InitFlag.BIG_WRITES | InitFlag.DO_READDIRPLUS |
      InitFlag.READDIRPLUS_AUTO | InitFlag.PARALLEL_DIROPS | InitFlag.MAX_PAGES | InitFlag.HANDLE_KILLPRIV_V2;
    reply.u32(MAJOR);
    reply.u32(MINOR);
    reply.u32(request.u32(8));
    reply.u32(offered & wanted);
    reply.u16(64);
    reply.u16(48);
    reply.u32(TRANSFER_BYTES);
    reply.u32(1);
    reply.u16(TRANSFER_BYTES / PAGE_BYTES);
    reply.u16(0);
    reply.zeros(32);
    return reply.done();
  }

  private lookup(): number {
    const { request, served } = this, parent = this.nodes.get(request.node), name = request.name(0);
    if (parent.id === ROOT_ID && name.startsWith(this.options.reserved)) return this.wake(name);
    const path = this.nodes.pathIn(parent, name);
    if (path === undefined) return this.reply.fail(ENOENT);
    const above = this.nodes.pathOf(parent);
    this.looks.settle(request.thread, (held, found) => found && held === above);
    const caller = this.callers.of(request);
    served.acting(caller);
    const found = served.look(path);
    if (request.thread !== this.ringer) this.looks.hold(request.thread, { caller, path, attr: found?.attr });
    if (found === undefined) {
      this.nodes.unnamed(parent, name);
      return this.reply.fail(ENOENT);
    }
    this.entry(this.nodes.lookedUp(parent, name, found.attr), found);
    return this.reply.done();
  }

  private wake(name: string): number {
    const caller = this.callers.of(this.request);
    this.idle();
    this.options.woken(name.slice(this.options.reserved.length), caller);
    return this.reply.fail(ENOENT);
  }

  private forget(id: number, count: number): number {
    this.nodes.forget(id, count);
    return 0;
  }

  private forgetMany(): number {
    const { request } = this;
    for (let at = 8, left = request.u32(0); left > 0; left--, at += 16) this.nodes.forget(request.u64(at), request.u64(at + 8));
    return 0;
  }

  private getattr(): number {
    const { request, served, reply } = this, node = this.nodes.get(request.node), path = this.nodes.pathOf(node);
    const system = this.begin(() => false);
    const fd = (request.u32(0) & GETATTR_FH) !== 0 && this.files.has(request.u64(8)) ? request.u64(8) : this.anyOpen(node);
    if (path === undefined) {
      if (fd === undefined) return reply.fail(ESTALE);
      this.attributes({ attr: system.fstat(fd), isOwn: true });
      return reply.done();
    }
    const found = served.look(path);
    if (found === undefined) return reply.fail(ENOENT);
    if (request.thread !== this.ringer) served.tellStat(path, found.attr);
    this.attributes(found);
    return reply.done();
  }

  private setattr(): number {
    const { request, served, reply } = this, node = this.nodes.get(request.node), path = this.nodes.pathOf(node);
    const system = this.begin((held) => held === path), valid = request.u32(0);
    const fd = (valid & SetAttr.FH) !== 0 ? request.u64(8) : path === undefined ? this.anyOpen(node) : undefined;
    if (path === undefined && fd === undefined) return reply.fail(ESTALE);
    const name = path === undefined ? undefined : served.named(path);
    if ((valid & SetAttr.SIZE) !== 0) {
      const size = request.u64(16);
      if (fd !== undefined) system.ftruncate(fd, size);
      else system.truncate(name as PathName, size);
      if ((valid & SetAttr.KILL_SUIDGID) !== 0) this.dropPrivileges(system, fd, name);
    }
    if ((valid & (SetAttr.UID | SetAttr.GID)) !== 0) {
      const uid = (valid & SetAttr.UID) !== 0 ? request.u32(76) : UNCHANGED, gid = (valid & SetAttr.GID) !== 0 ? request.u32(80) : UNCHANGED;
      if (name !== undefined) system.chown(name, uid, gid, { follow: false });
      else system.fchown(fd as number, uid, gid);
    }
    if ((valid & SetAttr.MODE) !== 0) {
      const mode = request.u32(68) & 0o7777;
      if (name !== undefined) system.chmod(name, mode, { follow: false });
      else system.fchmod(fd as number, mode);
    }
    if ((valid & (SetAttr.ATIME | SetAttr.MTIME)) !== 0) this.setTimes(system, { fd, name, path }, valid);
    const found = path === undefined ? { attr: system.fstat(fd as number), isOwn: true } : served.look(path);
    if (found === undefined) return reply.fail(ENOENT);
    this.attributes(found);
    return reply.done();
  }

  private setTimes(system: System, at: { fd: number | undefined; name: PathName | undefined; path: TreePath | undefined }, valid: number): void {
    const { request, served } = this, now = served.now();
    const attr = at.path === undefined ? system.fstat(at.fd as number) : served.look(at.path)?.attr;
    if (attr === undefined) throw new Refusal('ENOENT');
    const time = (which: number, isNow: number, seconds: number, nanos: number, old: bigint): bigint =>
      (valid & which) === 0 ? old : (valid & isNow) !== 0 ? now : request.i64(seconds) * SECOND_NS + BigInt(request.u32(nanos));
    const atime = time(SetAttr.ATIME, SetAttr.ATIME_NOW, 32, 56, attr.atime);
    const mtime = time(SetAttr.MTIME, SetAttr.MTIME_NOW, 40, 60, attr.mtime);
    if (at.name !== undefined) system.utimes(at.name, atime, mtime, { follow: false });
    else system.futimes(at.fd as number, atime, mtime);
  }

  /** Setuid goes, and setgid where the group may execute: the kernel has found that the writer may not keep them. */
  private dropPrivileges(system: System, fd: number | undefined, name: PathName | undefined): void {
    const attr = fd !== undefined ? system.fstat(fd) : system.lstat(name as PathName);
    if (attr === undefined) return;
    const mode = attr.mode & 0o7777 & ~0o4000 & ((attr.mode & 0o010) !== 0 ? ~0o2000 : ~0);
    if (mode === (attr.mode & 0o7777)) return;
    if (fd !== undefined) system.fchmod(fd, mode);
    else system.chmod(name as PathName, mode, { follow: false });
  }

  private readlink(): number {
    const { request, reply, served } = this, path = this.pathOf(request.node);
    const system = this.begin((held) => held === path);
    reply.bytes(toBytes(system.readlink(served.named(path))));
    return reply.done();
  }

  private symlink(): number {
    const name = this.request.name(0), target = fromBytes(this.request.rest(this.request.after(0)).subarray(0, -1));
    return this.make(name, (system, path) => system.symlink(target, path));
  }

  private mknod(): number {
    const mode = this.request.u32(0), rdev = this.request.u32(4);
    return this.make(this.request.name(16), (system, path) => system.mknod(path, mode, rdev));
  }

  private mkdir(): number {
    const mode = this.request.u32(0);
    return this.make(this.request.name(8), (system, path) => system.mkdir(path, mode));
  }

  private link(): number {
    const from = this.pathOf(this.request.u64(0));
    return this.make(this.request.name(8), (system, path) => system.link(this.served.named(from), path));
  }

  /** Something new under a name of the directory that the request is about. */
  private make(name: string, act: (system: System, path: PathName) => void): number {
    const { request, served } = this, parent = this.nodes.get(request.node), path = this.within(parent, name);
    const system = this.begin((held) => held === path || held === this.nodes.pathOf(parent));
    act(system, served.named(path));
    const found = served.look(path);
    if (found === undefined) return this.reply.fail(ENOENT);
    this.entry(this.nodes.lookedUp(parent, name, found.attr), found);
    return this.reply.done();
  }

  private unlink(): number {
    return this.remove((system, path) => system.unlink(path));
  }

  private rmdir(): number {
    return this.remove((system, path) => system.rmdir(path));
  }

  private remove(act: (system: System, path: PathName) => void): number {
    const { request } = this, parent = this.nodes.get(request.node), name = request.name(0), path = this.within(parent, name);
    const system = this.begin((held) => held === path || held === this.nodes.pathOf(parent));
    act(system, this.served.named(path));
    this.nodes.unnamed(parent, name);
    return this.reply.done();
  }

  private rename(names: number, flags: number): number {
    const { request, reply, served } = this, from = this.nodes.get(request.node), to = this.nodes.get(request.u64(0));
    if ((flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE)) !== 0) return reply.fail(EINVAL);
    const oldName = request.name(names), newName = request.name(request.after(names));
    const a = this.within(from, oldName), b = this.within(to, newName);
    const system = this.begin((held) => held === a || held === b || held === this.nodes.pathOf(from) || held === this.nodes.pathOf(to));
    const exchange = (flags & RENAME_EXCHANGE) !== 0;
    system.rename(served.named(a), served.named(b), { exchange, noReplace: (flags & RENAME_NOREPLACE) !== 0 });
    this.nodes.renamed({ parent: from, name: oldName }, { parent: to, name: newName }, exchange);
    return reply.done();
  }

  private open(): number {
    const { request, reply, served } = this, node = this.nodes.get(request.node), path = this.nodes.pathOf(node);
    if (path === undefined) return reply.fail(ESTALE);
    const caller = this.callers.of(request), flags = request.u32(0);
    this.looks.settle(request.thread, (held) => held === path);
    served.acting(caller);
    const { fd, print } = served.open(path, flags & ~(constants.O_CREAT | constants.O_EXCL | constants.O_NOCTTY));
    this.hold(fd, node, caller);
    const keep = sameContent(node.pages, print) && (flags & constants.O_TRUNC) === 0;
    node.pages = print;
    this.opened(fd, keep ? FOPEN_KEEP_CACHE : 0);
    return reply.done();
  }

  private create(): number {
    const { request, reply, served } = this, parent = this.nodes.get(request.node), name = request.name(16);
    const path = this.within(parent, name), caller = this.callers.of(request), flags = request.u32(0);
    this.looks.settle(request.thread, (held) => held === path || held === this.nodes.pathOf(parent));
    const fd = served.acting(caller).open(served.named(path), (flags & ~constants.O_NOCTTY) | constants.O_CREAT | constants.O_NOFOLLOW, request.u32(4));
    const found = served.look(path);
    if (found === undefined) {
      served.close(fd);
      return reply.fail(ENOENT);
    }
    const node = this.nodes.lookedUp(parent, name, found.attr);
    this.hold(fd, node, caller);
    this.entry(node, found);
    this.opened(fd, 0);
    return reply.done();
  }

  private read(): number {
    const { request, reply, served } = this, fd = request.u64(0), size = Math.min(request.u32(16), reply.room);
    reply.length += served.read(fd, reply.buffer, reply.length, size, request.u64(8));
    return reply.done();
  }

  private write(): number {
    const { request, reply, served } = this, fd = request.u64(0), size = request.u32(16), file = this.files.get(fd);
    if (file === undefined) return reply.fail(EINVAL);
    const system = served.acting(this.callers.of(request, file.caller));
    reply.u32(system.write(fd, request.rest(40), 0, size, request.u64(8)));
    if ((request.u32(20) & WRITE_KILL_SUIDGID) !== 0) this.dropPrivileges(system, fd, undefined);
    reply.u32(0);
    return reply.done();
  }

  private release(): number {
    const fd = this.request.u64(0), file = this.files.get(fd);
    if (file === undefined) return this.reply.fail(EINVAL);
    this.files.delete(fd);
    file.node.open.delete(fd);
    this.served.close(fd);
    return this.reply.done();
  }

  private sync(): number {
    this.served.sync();
    return this.reply.done();
  }

  private opendir(): number {
    const { request, reply } = this, node = this.nodes.get(request.node), path = this.nodes.pathOf(node);
    this.begin((held) => held === path);
    const handle = this.nextDirectory++;
    this.directories.set(handle, { node, entries: [] });
    this.opened(handle, 0);
    return reply.done();
  }

  private readdir({ plus }: { plus: boolean }): number {
    const { request, reply, served } = this, directory = this.directories.get(request.u64(0)), offset = request.u64(8);
    if (directory === undefined) return reply.fail(EINVAL);
    const path = this.nodes.pathOf(directory.node);
    if (path === undefined) return reply.done();
    this.begin(() => false);
    if (offset === 0) {
      directory.entries = served.entries(path);
      served.tellList(path, directory.entries);
    }
    const end = reply.length + Math.min(request.u32(16), reply.room);
    for (let at = offset; at < directory.entries.length + 2; at++) {
      const entry = at < 2 ? { name: at === 0 ? '.' : '..', type: 'directory' as const } : directory.entries[at - 2] as SystemEntry;
      if (!this.direntry(directory.node, entry, at, end, plus)) break;
    }
    return reply.done();
  }

  /** One entry of a listing, if there is room before `end`. */
  private direntry(parent: Node, entry: SystemEntry, at: number, end: number, plus: boolean): boolean {
    const { reply } = this, name = toBytes(entry.name), length = (DIRENT_BYTES + name.length + 7) & ~7;
    if (reply.length + length + (plus ? ENTRY_BYTES : 0) > end) return false;
    let ino = parent.id;
    if (plus && at < 2) reply.zeros(ENTRY_BYTES);
    else if (plus) {
      const path = this.nodes.pathIn(parent, entry.name) as TreePath, found = this.served.look(path);
      // Gone since the list was made.
      if (found === undefined) return true;
      const node = this.nodes.lookedUp(parent, entry.name, found.attr);
      this.entry(node, found);
      ino = numberOf(found.attr);
    } else ino = at + 1;
    reply.u64(ino);
    reply.u64(at + 1);
    reply.u32(name.length);
    reply.u32(typeBits(entry.type) >> 12);
    reply.bytes(name);
    reply.zeros(length - DIRENT_BYTES - name.length);
    return true;
  }

  private releasedir(): number {
    this.directories.delete(this.request.u64(0));
    return this.reply.done();
  }

  private statfs(): number {
    const { reply } = this, { blocks, bfree, bavail, files, ffree, bsize } = this.served.statfs();
    for (const count of [blocks, bfree, bavail, files, ffree]) reply.big(count);
    reply.u32(Number(bsize));
    reply.u32(NAME_MAX);
    reply.u32(Number(bsize));
    reply.zeros(28);
    return reply.done();
  }

  /** The request's caller acts from here on. `way`: whether a look held back was only the way to this. */
  private begin(way: (path: TreePath) => boolean): System {
    this.looks.settle(this.request.thread, way);
    return this.served.acting(this.callers.of(this.request));
  }

  private pathOf(id: number): TreePath {
    const path = this.nodes.pathOf(this.nodes.get(id));
    if (path === undefined) throw new Refusal('ENOENT');
    return path;
  }

  private within(parent: Node, name: string): TreePath {
    const path = this.nodes.pathIn(parent, name);
    if (path === undefined) throw new Refusal('ENOENT');
    return path;
  }

  private anyOpen(node: Node): number | undefined {
    return node.open.values().next().value;
  }

  private hold(fd: number, node: Node, caller: Caller): void {
    this.files.set(fd, { node, caller });
    node.open.add(fd);
  }

  private opened(handle: number, flags: number): void {
    this.reply.u64(handle);
    this.reply.u32(flags);
    this.reply.u32(0);
  }

  private seconds({ isOwn }: Found): number {
    return this.options.exact ? 0 : isOwn ? OWN_SECONDS : LOWER_SECONDS;
  }

  private entry(node: Node, found: Found): void {
    const { reply } = this, seconds = this.seconds(found);
    reply.u64(node.id);
    reply.u64(0);
    reply.u64(seconds);
    reply.u64(seconds);
    reply.u64(0);
    this.attr(found.attr);
  }

  private attributes(found: Found): void {
    this.reply.u64(this.seconds(found));
    this.reply.u64(0);
    this.attr(found.attr);
  }

  private attr(attr: Attr): void {
    const { reply } = this;
    reply.u64(numberOf(attr));
    reply.u64(attr.size);
    reply.u64(attr.blocks);
    for (const time of [attr.atime, attr.mtime, attr.ctime]) reply.big(floorSeconds(time));
    for (const time of [attr.atime, attr.mtime, attr.ctime]) reply.u32(Number(time - floorSeconds(time) * SECOND_NS));
    reply.u32(attr.mode);
    reply.u32(attr.nlink);
    reply.u32(attr.uid);
    reply.u32(attr.gid);
    reply.u32(attr.rdev);
    reply.u32(attr.blksize);
    reply.u32(0);
  }
}

function floorSeconds(time: bigint): bigint {
  const seconds = time / SECOND_NS;
  return time < 0n && seconds * SECOND_NS !== time ? seconds - 1n : seconds;
}

function numberOf(attr: Attr): number {
  return Number(attr.ino);
}

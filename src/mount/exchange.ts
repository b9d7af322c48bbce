import {
  Refusal, type Attr, type Caller, type Found, type PathName, type Served, type System, type TreePath,
} from '../index/front-end.ts';
import type { Callers } from './callers.ts';
import { Looks } from './looks.ts';
import { Nodes, type Node } from './nodes.ts';
import { Reply, Request } from './wire.ts';

/** Most bytes of one read or write. */
export const TRANSFER_BYTES = 1 << 20;
/** What a buffer for requests needs beyond the bytes of a write. */
const REQUEST_ROOM = 4096;
/** Seconds that the kernel keeps names and attributes that only the overlay can change, and those of the lower. */
const OWN_SECONDS = 86_400, LOWER_SECONDS = 1;
const SECOND_NS = 1_000_000_000n;

/** A file that the kernel holds open. */
export interface OpenFile {
  readonly node: Node;
  readonly caller: Caller;
}

/** What all answers of one connection share: the request at hand, its reply, and what the kernel knows by now. */
export class Exchange {
  readonly request = new Request(Buffer.allocUnsafeSlow(TRANSFER_BYTES + REQUEST_ROOM));
  readonly reply = new Reply(Buffer.allocUnsafeSlow(TRANSFER_BYTES + REQUEST_ROOM));
  readonly served: Served;
  readonly callers: Callers;
  readonly nodes = new Nodes();
  readonly looks: Looks;
  readonly files = new Map<number, OpenFile>();
  /** Others change the overlay too. */
  readonly isShared: boolean;
  /** The kernel keeps what is written for a while, and decides where it goes. */
  readonly writeBack: boolean;
  /** Gives the kernel what it has not asked for; whether it took it. */
  readonly push: (parts: readonly Uint8Array[]) => boolean;
  private readonly ringer: () => number;
  private readonly exact: boolean;

  constructor(parts: { served: Served; callers: Callers; exact: boolean; isShared: boolean; writeBack: boolean; ringer: () => number;
    push: (parts: readonly Uint8Array[]) => boolean; }) {
    this.served = parts.served;
    this.callers = parts.callers;
    this.exact = parts.exact || parts.isShared;
    this.isShared = parts.isShared;
    this.writeBack = parts.writeBack;
    this.ringer = parts.ringer;
    this.push = parts.push;
    this.looks = new Looks(parts.served);
  }

  /** Whether whoever rings asks: it looks at nothing for its own sake. */
  get isRinger(): boolean {
    return this.request.thread === this.ringer();
  }

  /** The request's caller acts from here on. `way`: whether a look held back was only the way to this. */
  begin(way: (path: TreePath) => boolean): System {
    this.looks.settle(this.request.thread, way);
    return this.served.acting(this.callers.of(this.request));
  }

  /** The path of a node. Throws ENOENT once its names are gone. */
  pathOf(id: number): TreePath {
    const path = this.nodes.pathOf(this.nodes.get(id));
    if (path === undefined) throw new Refusal('ENOENT');
    return path;
  }

  /** The path of the entry `name` in `parent`. Throws ENOENT where the directory is gone. */
  within(parent: Node, name: string): TreePath {
    const path = this.nodes.pathIn(parent, name);
    if (path === undefined) throw new Refusal('ENOENT');
    return path;
  }

  /** A descriptor through which the node is open. */
  anyOpen(node: Node): number | undefined {
    return node.open.values().next().value;
  }

  /**
   * Does what may take the name `name` from `parent`. A program may still look at what has lost its last name (its working directory,
   * a FIFO that it has open), so that stays open here until the kernel has forgotten it.
   */
  parting(parent: Node, name: string, act: () => void): void {
    const node = parent.children.get(name);
    if (node === undefined || node.aliases.length > 1 || node.open.size > 0) return act();
    const path = this.nodes.pathIn(parent, name), kept = path === undefined ? undefined : this.served.keep(path);
    if (kept === undefined) return act();
    node.open.add(node.kept = kept);
    try {
      act();
    } finally {
      if (node.aliases.length > 0) this.letGo(node);
    }
  }

  /** The kernel has forgotten `count` look-ups of a node. */
  forget(id: number, count: number): void {
    const node = this.nodes.forget(id, count);
    if (node !== undefined) this.letGo(node);
  }

  private letGo(node: Node): void {
    if (node.kept === undefined) return;
    node.open.delete(node.kept);
    this.served.close(node.kept);
    node.kept = undefined;
  }

  /** The kernel holds `node` open as `fd` from here on. */
  hold(fd: number, node: Node, caller: Caller): void {
    this.files.set(fd, { node, caller });
    node.open.add(fd);
  }

  /** What OPEN, OPENDIR and CREATE end with. */
  opened(handle: number, flags: number): void {
    this.reply.u64(handle);
    this.reply.u32(flags);
    this.reply.u32(0);
  }

  /** A node as LOOKUP gives it, with what was found there. Of a file with several names none is kept: opening it tells only the file. */
  entry(node: Node, found: Found): void {
    const { reply } = this, seconds = this.seconds(found);
    reply.u64(node.id);
    reply.u64(0);
    reply.u64(node.isDirectory || found.attr.nlink <= 1 ? seconds : 0);
    reply.u64(seconds);
    reply.u64(0);
    this.attr(found.attr);
  }

  /** What GETATTR and SETATTR give. */
  attributes(found: Found): void {
    this.reply.u64(this.seconds(found));
    this.reply.u64(0);
    this.attr(found.attr);
  }

  private seconds({ isOwn }: Found): number {
    return this.exact ? 0 : isOwn ? OWN_SECONDS : LOWER_SECONDS;
  }

  private attr(attr: Attr): void {
    const { reply } = this;
    reply.u64(numberOf(attr));
    reply.u64(attr.size);
    reply.u64(attr.blocks);
    const { atime, mtime, ctime } = attr, a = floorSeconds(atime), m = floorSeconds(mtime), c = floorSeconds(ctime);
    reply.big(a);
    reply.big(m);
    reply.big(c);
    reply.u32(Number(atime - a * SECOND_NS));
    reply.u32(Number(mtime - m * SECOND_NS));
    reply.u32(Number(ctime - c * SECOND_NS));
    reply.u32(attr.mode);
    reply.u32(attr.nlink);
    reply.u32(attr.uid);
    reply.u32(attr.gid);
    reply.u32(attr.rdev);
    reply.u32(attr.blksize);
    reply.u32(0);
  }
}

/** Setuid goes, and setgid where the group may execute: the kernel has found that the writer may not keep them. */
export function dropPrivileges(system: System, fd: number | undefined, name: PathName | undefined): void {
  const attr = fd !== undefined ? system.fstat(fd) : system.lstat(name as PathName);
  if (attr === undefined) return;
  const mode = attr.mode & 0o7777 & ~0o4000 & ((attr.mode & 0o010) !== 0 ? ~0o2000 : ~0);
  if (mode === (attr.mode & 0o7777)) return;
  if (fd !== undefined) system.fchmod(fd, mode);
  else system.chmod(name as PathName, mode, { follow: false });
}

function floorSeconds(time: bigint): bigint {
  const seconds = time / SECOND_NS;
  return time < 0n && seconds * SECOND_NS !== time ? seconds - 1n : seconds;
}

/** The inode number that a program sees. */
export function numberOf(attr: Attr): number {
  return Number(attr.ino);
}

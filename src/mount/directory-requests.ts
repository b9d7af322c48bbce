import { constants } from 'node:os';
import { byteLength, typeBits, type SystemEntry, type TreePath } from '../index/front-end.ts';
import { numberOf, type Exchange } from './exchange.ts';
import type { Node } from './nodes.ts';
import { ENTRY_BYTES, FOPEN_CACHE_DIR, FOPEN_KEEP_CACHE } from './wire.ts';

const { EINVAL } = constants.errno;
const DIRENT_BYTES = 24;
/** What an entry says whose file nobody has looked at; libfuse's own word for it. */
const UNKNOWN_INO = 0xffffffff;

interface OpenDirectory {
  readonly node: Node;
  entries: readonly SystemEntry[];
  /** Some of it has been read. */
  begun?: true;
}

/** Requests about listings. */
export class DirectoryRequests {
  private readonly exchange: Exchange;
  private readonly directories = new Map<number, OpenDirectory>();
  private nextHandle = 1;

  constructor(exchange: Exchange) {
    this.exchange = exchange;
  }

  /** The listing is told here: what the kernel has kept of it, it does not ask for again. */
  opendir(): number {
    const { reply, nodes, served } = this.exchange, node = nodes.get(this.exchange.request.node), path = nodes.pathOf(node);
    this.exchange.begin((held) => held === path);
    if (path !== undefined) served.openDirectory(path);
    const entries = path === undefined ? [] : served.entries(path), handle = this.nextHandle++;
    const version = path === undefined ? undefined : served.tellList(path, entries);
    this.directories.set(handle, { node, entries });
    this.exchange.opened(handle, FOPEN_CACHE_DIR | (version !== undefined && version === node.listing ? FOPEN_KEEP_CACHE : 0));
    node.listing = version;
    return reply.done();
  }

  readdir({ plus }: { plus: boolean }): number {
    const { request, reply, served, nodes } = this.exchange, directory = this.directories.get(request.u64(0)), offset = request.u64(8);
    if (directory === undefined) return reply.fail(EINVAL);
    const { node } = directory, path = nodes.pathOf(node);
    if (path === undefined) return reply.done();
    this.exchange.begin(() => false);
    // Read from the start once more: as it is now.
    if (offset === 0 && directory.begun) {
      directory.entries = served.entries(path);
      node.listing = served.tellList(path, directory.entries);
    }
    directory.begun = true;
    const end = reply.length + Math.min(request.u32(16), reply.room), { entries } = directory;
    for (let at = offset; at < entries.length + 2; at++) {
      const entry = at < 2 ? { name: at === 0 ? '.' : '..', type: 'directory' as const } : entries[at - 2] as SystemEntry;
      if (!this.direntry(node, entry, at, end, plus)) break;
    }
    return reply.done();
  }

  releasedir(): number {
    this.directories.delete(this.exchange.request.u64(0));
    return this.exchange.reply.done();
  }

  /** One entry of a listing, if there is room before `end`. */
  private direntry(parent: Node, entry: SystemEntry, at: number, end: number, plus: boolean): boolean {
    const { reply } = this.exchange, bytes = byteLength(entry.name), length = (DIRENT_BYTES + bytes + 7) & ~7;
    if (reply.length + length + (plus ? ENTRY_BYTES : 0) > end) return false;
    let ino: number = UNKNOWN_INO;
    const path = this.exchange.nodes.pathIn(parent, entry.name) as TreePath;
    // A zero node: the kernel has to look it up.
    if (plus && (at < 2 || this.exchange.served.isRuled(path))) reply.zeros(ENTRY_BYTES);
    else if (plus) {
      const found = this.exchange.served.look(path);
      // Gone since the list was made.
      if (found === undefined) return true;
      const node = this.exchange.nodes.lookedUp(parent, entry.name, found.attr);
      this.exchange.entry(node, found);
      ino = numberOf(found.attr);
    } else if (at >= 2) ino = Number(parent.children.get(entry.name)?.ino ?? UNKNOWN_INO);
    reply.u64(ino);
    reply.u64(at + 1);
    reply.u32(bytes);
    reply.u32(typeBits(entry.type) >> 12);
    reply.name(entry.name, bytes);
    reply.zeros(length - DIRENT_BYTES - bytes);
    return true;
  }
}

import { constants } from 'node:os';
import { toBytes, typeBits, type SystemEntry, type TreePath } from '../index/front-end.ts';
import { numberOf, type Exchange } from './exchange.ts';
import type { Node } from './nodes.ts';
import { ENTRY_BYTES } from './wire.ts';

const { EINVAL } = constants.errno;
const DIRENT_BYTES = 24;

interface OpenDirectory {
  readonly node: Node;
  entries: readonly SystemEntry[];
}

/** Requests about listings. */
export class DirectoryRequests {
  private readonly exchange: Exchange;
  private readonly directories = new Map<number, OpenDirectory>();
  private nextDirectory = 1;

  constructor(exchange: Exchange) {
    this.exchange = exchange;
  }

  opendir(): number {
    const { request, reply } = this.exchange, node = this.exchange.nodes.get(request.node), path = this.exchange.nodes.pathOf(node);
    this.exchange.begin((held) => held === path);
    const handle = this.nextDirectory++;
    this.directories.set(handle, { node, entries: [] });
    this.exchange.opened(handle, 0);
    return reply.done();
  }

  readdir({ plus }: { plus: boolean }): number {
    const { request, reply, served } = this.exchange, directory = this.directories.get(request.u64(0)), offset = request.u64(8);
    if (directory === undefined) return reply.fail(EINVAL);
    const path = this.exchange.nodes.pathOf(directory.node);
    if (path === undefined) return reply.done();
    this.exchange.begin(() => false);
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

  releasedir(): number {
    this.directories.delete(this.exchange.request.u64(0));
    return this.exchange.reply.done();
  }

  /** One entry of a listing, if there is room before `end`. */
  private direntry(parent: Node, entry: SystemEntry, at: number, end: number, plus: boolean): boolean {
    const { reply } = this.exchange, name = toBytes(entry.name), length = (DIRENT_BYTES + name.length + 7) & ~7;
    if (reply.length + length + (plus ? ENTRY_BYTES : 0) > end) return false;
    let ino = parent.id;
    if (plus && at < 2) reply.zeros(ENTRY_BYTES);
    else if (plus) {
      const path = this.exchange.nodes.pathIn(parent, entry.name) as TreePath, found = this.exchange.served.look(path);
      // Gone since the list was made.
      if (found === undefined) return true;
      const node = this.exchange.nodes.lookedUp(parent, entry.name, found.attr);
      this.exchange.entry(node, found);
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
}

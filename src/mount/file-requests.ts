import { constants } from 'node:fs';
import { constants as system } from 'node:os';
import { sameContent } from '../index/front-end.ts';
import { dropPrivileges, type Exchange } from './exchange.ts';
import type { Node } from './nodes.ts';
import { FOPEN_KEEP_CACHE, storeNotice, WRITE_KILL_SUIDGID } from './wire.ts';

const { EINVAL, ENOENT, ESTALE } = system.errno;
const O_ACCMODE = 3;

/** Requests about open files and their bytes. */
export class FileRequests {
  private readonly exchange: Exchange;

  constructor(exchange: Exchange) {
    this.exchange = exchange;
  }

  open(): number {
    const { request, reply, served, nodes, looks } = this.exchange, node = nodes.get(request.node);
    const path = nodes.pathMeant(node, looks.heldBy(request.thread));
    if (path === undefined) return this.reopen(node);
    const caller = this.exchange.callers.of(request), flags = request.u32(0);
    this.exchange.looks.settle(request.thread, (held) => held === path);
    served.acting(caller);
    const reads = (flags & O_ACCMODE) !== constants.O_WRONLY;
    const { fd, print, bytes } = served.open(path, this.writable(flags & ~(constants.O_CREAT | constants.O_EXCL | constants.O_NOCTTY)), { reads });
    const given = bytes !== undefined && this.give(node, bytes);
    this.exchange.hold(fd, node, caller);
    // What is the overlay's own has no print: only this connection changes it, unless the overlay is shared.
    const keep = given || sameContent(node.pages, print) && (flags & constants.O_TRUNC) === 0 && (print !== undefined || !this.exchange.isShared);
    node.pages = print;
    this.exchange.opened(fd, keep ? FOPEN_KEEP_CACHE : 0);
    return reply.done();
  }

  /**
   * Bytes read at the opening go into the kernel's pages before it asks for them, which saves it a request for each small file.
   * Only while nobody has it open, and so nobody waits for a page that this thread would have to bring; and only the first time.
   */
  private give(node: Node, bytes: Uint8Array): boolean {
    return bytes.length > 0 && node.open.size === 0 && node.pages === undefined && this.exchange.push([storeNotice(node.id, bytes.length), bytes]);
  }

  /** A file without a name, by way of `/proc`. */
  private reopen(node: Node): number {
    const { request, reply, served } = this.exchange, held = this.exchange.anyOpen(node), caller = this.exchange.callers.of(request);
    if (held === undefined) return reply.fail(ESTALE);
    const fd = served.acting(caller).reopen(held, this.writable(request.u32(0) & ~constants.O_NOCTTY));
    this.exchange.hold(fd, node, caller);
    this.exchange.opened(fd, 0);
    return reply.done();
  }

  create(): number {
    const { request, reply, served } = this.exchange, parent = this.exchange.nodes.get(request.node), name = request.name(16);
    const path = this.exchange.within(parent, name), caller = this.exchange.callers.of(request), flags = request.u32(0);
    this.exchange.looks.settle(request.thread, (held) => held === path || held === this.exchange.nodes.pathOf(parent));
    const fd = served.acting(caller).open(served.named(path), this.writable(flags & ~constants.O_NOCTTY) | constants.O_CREAT | constants.O_NOFOLLOW, request.u32(4));
    const found = served.look(path);
    if (found === undefined) {
      served.close(fd);
      return reply.fail(ENOENT);
    }
    const node = this.exchange.nodes.lookedUp(parent, name, found.attr);
    this.exchange.hold(fd, node, caller);
    this.exchange.entry(node, found);
    this.exchange.opened(fd, 0);
    return reply.done();
  }

  /** A file without a name: the kernel may link it later. */
  tmpfile(): number {
    const { request, reply, served, nodes } = this.exchange, parent = nodes.get(request.node), directory = this.exchange.pathOf(request.node);
    const caller = this.exchange.callers.of(request);
    this.exchange.looks.settle(request.thread, (held) => held === directory);
    const system = served.acting(caller), fd = system.tmpfile(served.named(directory), this.writable(request.u32(0) & ~constants.O_NOCTTY), request.u32(4));
    const attr = system.fstat(fd), name = `#${attr.ino}`, node = nodes.lookedUp(parent, name, attr);
    nodes.unnamed(parent, name);
    this.exchange.hold(fd, node, caller);
    this.exchange.entry(node, { attr, isOwn: true });
    this.exchange.opened(fd, 0);
    return reply.done();
  }

  /** With write-back the kernel says where bytes go, at the end too, and reads what it writes only a part of. */
  private writable(flags: number): number {
    if (!this.exchange.writeBack) return flags;
    const writes = (flags & O_ACCMODE) === constants.O_WRONLY ? (flags & ~O_ACCMODE) | constants.O_RDWR : flags;
    return writes & ~constants.O_APPEND;
  }

  read(): number {
    const { request, reply, served } = this.exchange, fd = request.u64(0), size = Math.min(request.u32(16), reply.room);
    reply.length += served.read(fd, reply.buffer, reply.length, size, request.u64(8));
    return reply.done();
  }

  write(): number {
    const { request, reply, served } = this.exchange, fd = request.u64(0), size = request.u32(16), file = this.exchange.files.get(fd);
    if (file === undefined) return reply.fail(EINVAL);
    const system = served.acting(this.exchange.callers.of(request, file.caller));
    reply.u32(system.write(fd, request.rest(40), 0, size, request.u64(8)));
    if ((request.u32(20) & WRITE_KILL_SUIDGID) !== 0) dropPrivileges(system, fd, undefined);
    reply.u32(0);
    return reply.done();
  }

  release(): number {
    const fd = this.exchange.request.u64(0), file = this.exchange.files.get(fd);
    if (file === undefined) return this.exchange.reply.fail(EINVAL);
    this.exchange.files.delete(fd);
    file.node.open.delete(fd);
    this.exchange.served.close(fd);
    return this.exchange.reply.done();
  }

  sync(): number {
    this.exchange.served.sync();
    return this.exchange.reply.done();
  }
}

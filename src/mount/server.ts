import { constants } from 'node:os';
import { Refusal, type Served } from '../index/front-end.ts';
import { AttributeRequests } from './attribute-requests.ts';
import type { Callers } from './callers.ts';
import { DirectoryRequests } from './directory-requests.ts';
import { Exchange, TRANSFER_BYTES } from './exchange.ts';
import { FileRequests } from './file-requests.ts';
import { NameRequests } from './name-requests.ts';
import { RangeRequests } from './range-requests.ts';
import { entryNotice, InitFlag, inodeNotice, Opcode, type Reply, type Request } from './wire.ts';
import { XattrRequests } from './xattr-requests.ts';

/** Protocol version spoken; a kernel with an older one is refused. */
const MAJOR = 7, MINOR = 31;
const PAGE_BYTES = 4096;
const WANTED = InitFlag.ASYNC_READ | InitFlag.ATOMIC_O_TRUNC | InitFlag.BIG_WRITES | InitFlag.DO_READDIRPLUS |
  InitFlag.READDIRPLUS_AUTO | InitFlag.PARALLEL_DIROPS | InitFlag.MAX_PAGES | InitFlag.HANDLE_KILLPRIV_V2;
/** Requests that the kernel may have waiting that nobody waits for, and from where on it holds back. */
const BACKGROUND = 64, CONGESTED = 48;
const { ENOENT, ENOSYS, EIO, EPROTO } = constants.errno;
const ERRNO = new Map<string, number>(Object.entries(constants.errno));

/** How a server serves. */
export interface ServerOptions {
  /** No names and attributes are kept: every look is asked and told. */
  readonly exact: boolean;
  /** The kernel may keep what is written, and write it later. */
  readonly writeBack?: boolean;
  /** Others change the overlay too: nothing of what is its own is kept. */
  readonly isShared: boolean;
  /**
   * A name that is no file, in whatever directory: a look at it calls `woken`. A longer name that begins so is a claim: `claimed` gets
   * the rest, after a dash, and the thread that looked.
   */
  readonly bell: string;
  /** The thread that does so. */
  readonly ringer: () => number;
  readonly woken: () => void;
  readonly claimed: (claim: string, thread: number) => void;
  /** Gives the kernel what it has not asked for, at once; whether it took it. */
  readonly push?: (parts: readonly Uint8Array[]) => boolean;
  /** A bug, or a fault without a name: the request got EIO. */
  readonly failed: (error: unknown) => void;
}

/**
 * Answers the requests of one FUSE connection from an overlay. Knows nothing of where they come from: a driver puts one
 * into the request's buffer and sends what is in the reply's. Never waits for anything.
 */
export class Server {
  readonly request: Request;
  readonly reply: Reply;
  private readonly exchange: Exchange;
  private readonly options: ServerOptions;
  private readonly answers: ReadonlyMap<number, () => number>;

  constructor(served: Served, callers: Callers, options: ServerOptions) {
    this.options = options;
    this.exchange = new Exchange({ served, callers, exact: options.exact, isShared: options.isShared, writeBack: options.writeBack === true, ringer: options.ringer,
      push: options.push ?? (() => false) });
    this.request = this.exchange.request;
    this.reply = this.exchange.reply;
    this.answers = this.table();
  }

  /** Answers the request of `length` bytes in the buffer. Bytes of the reply; 0 where the kernel wants none. */
  handle(length: number): number {
    const { request, reply, exchange } = this;
    request.begin(length);
    reply.begin(request);
    try {
      const answer = this.answers.get(request.opcode);
      return answer === undefined ? reply.fail(ENOSYS) : answer();
    } catch (error) {
      if (error instanceof Refusal) return reply.fail(ERRNO.get(error.code) ?? EIO);
      this.options.failed(error);
      return reply.fail(EIO);
    } finally {
      exchange.served.rest();
    }
  }

  /** What was held back for long goes to the log, and the log where its durability says. Gives whether that was all. */
  idle(): boolean {
    const { looks, served } = this.exchange, left = looks.tellOld();
    served.rest();
    served.flush();
    return left === 0;
  }

  /** No request is to come, or something else is to be told after all that came. */
  settle(): void {
    const { looks, served } = this.exchange;
    looks.tellAll();
    served.rest();
  }

  /** What tells the kernel to forget all that it has kept: the overlay has changed behind it. */
  notices(): Uint8Array[] {
    const notices: Uint8Array[] = [];
    for (const { node, names } of this.exchange.nodes.all()) {
      node.pages = node.listing = undefined;
      for (const { parent, name } of names) notices.push(entryNotice(parent.id, name));
      notices.push(inodeNotice(node.id));
    }
    return notices;
  }

  private table(): ReadonlyMap<number, () => number> {
    const { exchange, request, reply } = this;
    const names = new NameRequests(exchange), files = new FileRequests(exchange);
    const attributes = new AttributeRequests(exchange), directories = new DirectoryRequests(exchange);
    const xattrs = new XattrRequests(exchange), ranges = new RangeRequests(exchange);
    return new Map<number, () => number>([
      [Opcode.INIT, () => this.init()],
      [Opcode.LOOKUP, () => this.lookup(names, request.name(0))],
      [Opcode.FORGET, () => this.forget(request.node, request.u64(0))],
      [Opcode.BATCH_FORGET, () => this.forgetMany()],
      [Opcode.GETATTR, () => attributes.getattr()],
      [Opcode.SETATTR, () => attributes.setattr()],
      [Opcode.STATFS, () => attributes.statfs()],
      [Opcode.READLINK, () => names.readlink()],
      [Opcode.SYMLINK, () => names.symlink()],
      [Opcode.MKNOD, () => names.mknod()],
      [Opcode.MKDIR, () => names.mkdir()],
      [Opcode.UNLINK, () => names.unlink()],
      [Opcode.RMDIR, () => names.rmdir()],
      [Opcode.RENAME, () => names.rename(8, 0)],
      [Opcode.RENAME2, () => names.rename(16, request.u32(8))],
      [Opcode.LINK, () => names.link()],
      [Opcode.OPEN, () => files.open()],
      [Opcode.CREATE, () => files.create()],
      [Opcode.READ, () => files.read()],
      [Opcode.WRITE, () => files.write()],
      [Opcode.RELEASE, () => files.release()],
      [Opcode.FSYNC, () => files.sync()],
      [Opcode.FSYNCDIR, () => files.sync()],
      [Opcode.OPENDIR, () => directories.opendir()],
      [Opcode.READDIR, () => directories.readdir({ plus: false })],
      [Opcode.READDIRPLUS, () => directories.readdir({ plus: true })],
      [Opcode.RELEASEDIR, () => directories.releasedir()],
      [Opcode.SETXATTR, () => xattrs.set()],
      [Opcode.GETXATTR, () => xattrs.get()],
      [Opcode.LISTXATTR, () => xattrs.list()],
      [Opcode.REMOVEXATTR, () => xattrs.remove()],
      [Opcode.FALLOCATE, () => ranges.allocate()],
      [Opcode.LSEEK, () => ranges.seek()],
      [Opcode.COPY_FILE_RANGE, () => ranges.copy()],
      [Opcode.TMPFILE, () => files.tmpfile()],
      // Nothing takes so long that it could be interrupted.
      [Opcode.INTERRUPT, () => 0],
      [Opcode.DESTROY, () => reply.done()],
    ]);
  }

  private init(): number {
    const { request, reply } = this;
    if (request.u32(0) !== MAJOR || request.u32(4) < MINOR) return reply.fail(EPROTO);
    const readahead = request.u32(8), offered = request.u32(12);
    reply.u32(MAJOR);
    reply.u32(MINOR);
    reply.u32(readahead);
    reply.u32(offered & (this.options.writeBack === true ? WANTED | InitFlag.WRITEBACK_CACHE : WANTED));
    reply.u16(BACKGROUND);
    reply.u16(CONGESTED);
    reply.u32(TRANSFER_BYTES);
    reply.u32(1);
    reply.u16(TRANSFER_BYTES / PAGE_BYTES);
    reply.u16(0);
    reply.zeros(32);
    return reply.done();
  }

  private lookup(names: NameRequests, name: string): number {
    return name.startsWith(this.options.bell) ? this.wake(name) : names.lookup(name);
  }

  private wake(name: string): number {
    const { bell, woken, claimed } = this.options;
    if (name === bell) woken();
    else claimed(name.slice(bell.length + 1), this.request.thread);
    return this.reply.fail(ENOENT);
  }

  private forget(id: number, count: number): number {
    this.exchange.forget(id, count);
    return 0;
  }

  private forgetMany(): number {
    const { request } = this;
    for (let at = 8, left = request.u32(0); left > 0; left--, at += 16) this.forget(request.u64(at), request.u64(at + 8));
    return 0;
  }
}

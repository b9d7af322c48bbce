import { fromBytes, toBytes } from '../index/front-end.ts';

/**
 * The FUSE protocol as Linux's `include/uapi/linux/fuse.h` has it, version 7.31 and up, little-endian. A request is
 *
 *     0 u32 length   4 u32 opcode   8 u64 unique   16 u64 node id   24 u32 uid   28 u32 gid   32 u32 thread id   40 …
 *
 * and a reply `0 u32 length, 4 i32 -errno, 8 u64 unique, 16 …`. 64-bit numbers that count (ids, sizes, offsets) are read
 * as JavaScript numbers, which are exact up to 2^53; `unique` is copied as bytes.
 */

/** Request codes. Those that are not here are answered ENOSYS, which tells the kernel not to ask again. */
export const Opcode = {
  LOOKUP: 1, FORGET: 2, GETATTR: 3, SETATTR: 4, READLINK: 5, SYMLINK: 6, MKNOD: 8, MKDIR: 9, UNLINK: 10, RMDIR: 11,
  RENAME: 12, LINK: 13, OPEN: 14, READ: 15, WRITE: 16, STATFS: 17, RELEASE: 18, FSYNC: 20, SETXATTR: 21, GETXATTR: 22,
  LISTXATTR: 23, REMOVEXATTR: 24, FLUSH: 25, INIT: 26, OPENDIR: 27, READDIR: 28, RELEASEDIR: 29, FSYNCDIR: 30, ACCESS: 34,
  CREATE: 35, INTERRUPT: 36, DESTROY: 38, BATCH_FORGET: 42, FALLOCATE: 43, READDIRPLUS: 44, RENAME2: 45, LSEEK: 46,
  COPY_FILE_RANGE: 47, SYNCFS: 50, TMPFILE: 51,
} as const;

/** What is agreed on at INIT. */
export const InitFlag = {
  ASYNC_READ: 1, ATOMIC_O_TRUNC: 1 << 3, BIG_WRITES: 1 << 5, DO_READDIRPLUS: 1 << 13, READDIRPLUS_AUTO: 1 << 14,
  WRITEBACK_CACHE: 1 << 16, PARALLEL_DIROPS: 1 << 18, MAX_PAGES: 1 << 22, HANDLE_KILLPRIV_V2: 1 << 28,
} as const;

/** Fields of SETATTR that are to be set. */
export const SetAttr = {
  MODE: 1, UID: 1 << 1, GID: 1 << 2, SIZE: 1 << 3, ATIME: 1 << 4, MTIME: 1 << 5, FH: 1 << 6, ATIME_NOW: 1 << 7,
  MTIME_NOW: 1 << 8, CTIME: 1 << 10, KILL_SUIDGID: 1 << 11,
} as const;

export const GETATTR_FH = 1;
export const WRITE_KILL_SUIDGID = 1 << 2;
export const FOPEN_KEEP_CACHE = 1 << 1;
export const FOPEN_CACHE_DIR = 1 << 3;
export const RENAME_NOREPLACE = 1;
export const RENAME_EXCHANGE = 2;

export const REQUEST_HEADER_BYTES = 40;
export const REPLY_HEADER_BYTES = 16;
export const ENTRY_BYTES = 128;

const HIGH = 2 ** 32;

/** The request in a buffer; one object serves one driver, request after request. Offsets are from the header's end. */
export class Request {
  readonly buffer: Buffer;
  private end = 0;

  constructor(buffer: Buffer) {
    this.buffer = buffer;
  }

  /** A request of `length` bytes is in the buffer. Throws RangeError for one that is cut short. */
  begin(length: number): void {
    if (length < REQUEST_HEADER_BYTES || this.buffer.readUInt32LE(0) !== length) {
      throw new RangeError(`a FUSE request of ${length} bytes says it has ${length < 4 ? 'none' : this.buffer.readUInt32LE(0)}`);
    }
    this.end = length;
  }

  get opcode(): number {
    return this.buffer.readUInt32LE(4);
  }

  get node(): number {
    return this.word(16);
  }

  get uid(): number {
    return this.buffer.readUInt32LE(24);
  }

  get gid(): number {
    return this.buffer.readUInt32LE(28);
  }

  /** The thread that asks, in the pid namespace of whoever mounted; 0: the kernel itself. */
  get thread(): number {
    return this.buffer.readUInt32LE(32);
  }

  u32(at: number): number {
    return this.buffer.readUInt32LE(REQUEST_HEADER_BYTES + at);
  }

  i32(at: number): number {
    return this.buffer.readInt32LE(REQUEST_HEADER_BYTES + at);
  }

  u64(at: number): number {
    return this.word(REQUEST_HEADER_BYTES + at);
  }

  i64(at: number): bigint {
    return this.buffer.readBigInt64LE(REQUEST_HEADER_BYTES + at);
  }

  /** The bytes from `at` to the end. They are the buffer's. */
  rest(at: number): Buffer {
    return this.buffer.subarray(REQUEST_HEADER_BYTES + at, this.end);
  }

  /** The name that starts at `at` and ends with NUL, escaped as names of the tree are. */
  name(at: number): string {
    const start = REQUEST_HEADER_BYTES + at, stop = this.buffer.indexOf(0, start);
    return nameIn(this.buffer, start, stop < 0 || stop > this.end ? this.end : stop);
  }

  /** Where the field after the name at `at` starts. */
  after(at: number): number {
    return this.buffer.indexOf(0, REQUEST_HEADER_BYTES + at) + 1 - REQUEST_HEADER_BYTES;
  }

  private word(at: number): number {
    return this.buffer.readUInt32LE(at) + this.buffer.readUInt32LE(at + 4) * HIGH;
  }
}

/** Most names are short and ASCII, for which this is faster than a decoder. */
function nameIn(buffer: Buffer, start: number, stop: number): string {
  for (let at = start; at < stop; at++) if ((buffer[at] as number) > 127) return fromBytes(buffer.subarray(start, stop));
  return buffer.toString('latin1', start, stop);
}

/** A reply in the making, in a buffer that is used again for the next one. Numbers lie where their size says they may. */
export class Reply {
  readonly buffer: Buffer;
  /** Bytes so far, header included. */
  length = REPLY_HEADER_BYTES;
  private readonly words: Uint32Array;
  private readonly longs: BigInt64Array;

  /** `buffer` begins where an ArrayBuffer does, and ends at a multiple of 8 bytes. */
  constructor(buffer: Buffer) {
    this.buffer = buffer;
    this.words = new Uint32Array(buffer.buffer, buffer.byteOffset, buffer.length / 4);
    this.longs = new BigInt64Array(buffer.buffer, buffer.byteOffset, buffer.length / 8);
  }

  begin(request: Request): void {
    this.length = REPLY_HEADER_BYTES;
    this.words[2] = request.buffer.readUInt32LE(8);
    this.words[3] = request.buffer.readUInt32LE(12);
  }

  /** Room left, in bytes. */
  get room(): number {
    return this.buffer.length - this.length;
  }

  u32(value: number): void {
    this.words[this.length >> 2] = value;
    this.length += 4;
  }

  u16(value: number): void {
    this.length = this.buffer.writeUInt16LE(value, this.length);
  }

  u64(value: number): void {
    const at = this.length >> 2;
    this.words[at] = value;
    this.words[at + 1] = value / HIGH;
    this.length += 8;
  }

  big(value: bigint): void {
    this.longs[this.length >> 3] = value;
    this.length += 8;
  }

  bytes(bytes: Uint8Array): void {
    this.buffer.set(bytes, this.length);
    this.length += bytes.length;
  }

  /** A name of the tree; its bytes number `length`. */
  name(name: string, length: number): void {
    if (length === name.length) this.buffer.write(name, this.length, 'latin1');
    else this.buffer.set(toBytes(name), this.length);
    this.length += length;
  }

  zeros(count: number): void {
    this.buffer.fill(0, this.length, this.length += count);
  }

  /** Ends the reply: what was put in stands. */
  done(): number {
    return this.finish(0);
  }

  /** Ends the reply as a failure; what was put in is dropped. */
  fail(errno: number): number {
    this.length = REPLY_HEADER_BYTES;
    return this.finish(-errno);
  }

  private finish(error: number): number {
    this.words[0] = this.length;
    this.words[1] = error;
    return this.length;
  }
}

const NOTIFY_INVAL_INODE = 2, NOTIFY_INVAL_ENTRY = 3, NOTIFY_STORE = 4;

/** Tells the kernel to forget a node's attributes and pages. */
export function inodeNotice(node: number): Uint8Array {
  const notice = Buffer.alloc(REPLY_HEADER_BYTES + 24);
  notice.writeUInt32LE(notice.length, 0);
  notice.writeInt32LE(NOTIFY_INVAL_INODE, 4);
  notice.writeBigUInt64LE(BigInt(node), 16);
  return notice;
}

/** Tells the kernel to forget what a name in a directory leads to. */
export function entryNotice(parent: number, name: string): Uint8Array {
  const bytes = toBytes(name), notice = Buffer.alloc(REPLY_HEADER_BYTES + 16 + bytes.length + 1);
  notice.writeUInt32LE(notice.length, 0);
  notice.writeInt32LE(NOTIFY_INVAL_ENTRY, 4);
  notice.writeBigUInt64LE(BigInt(parent), 16);
  notice.writeUInt32LE(bytes.length, 24);
  notice.set(bytes, 32);
  return notice;
}

/** Gives the kernel the first `size` bytes of a file, which follow. */
export function storeNotice(node: number, size: number): Uint8Array {
  const notice = Buffer.alloc(REPLY_HEADER_BYTES + 24);
  notice.writeUInt32LE(notice.length + size, 0);
  notice.writeInt32LE(NOTIFY_STORE, 4);
  notice.writeBigUInt64LE(BigInt(node), 16);
  notice.writeUInt32LE(size, 32);
  return notice;
}

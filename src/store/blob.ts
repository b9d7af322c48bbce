import { Refusal } from '../core/refusal.ts';
import type { Version } from '../core/version.ts';

/** Bytes kept by their digest. */
export interface Blobs {
  put(digest: Version, bytes: Uint8Array): void;
  /** Throws EFBIG where so many bytes more would exceed the limit. */
  demandRoom(bytes: number): void;
  has(digest: Version): boolean;
  /** The bytes are shared with the store: not to be changed. */
  get(digest: Version): Uint8Array;
  read(digest: Version, into: Uint8Array, offset: number, length: number, position: number): number;
  /** Bytes that `write` would hand to the file system. */
  readonly pending: number;
  write(barrier: { through: boolean }): void;
  close(): void;
}

/** Blobs of a session in memory: the very bytes that were put. */
export class MemoryBlobs implements Blobs {
  readonly pending = 0;
  readonly #limit: number;
  readonly #blobs = new Map<Version, Uint8Array>();
  #bytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  put(digest: Version, bytes: Uint8Array): void {
    if (this.#blobs.has(digest)) return;
    this.demandRoom(bytes.length);
    this.#blobs.set(digest, ownBytes(bytes));
    this.#bytes += bytes.length;
  }

  demandRoom(bytes: number): void {
    checkLimit(this.#bytes + bytes, this.#limit);
  }

  has(digest: Version): boolean {
    return this.#blobs.has(digest);
  }

  get(digest: Version): Uint8Array {
    const bytes = this.#blobs.get(digest);
    if (bytes === undefined) throw goneBlob(digest);
    return bytes;
  }

  read(digest: Version, into: Uint8Array, offset: number, length: number, position: number): number {
    return copyPart(this.get(digest), into, offset, length, position);
  }

  write(): void {}
  close(): void {}
}

/** Throws EFBIG where all blobs together would have more bytes than the limit. */
export function checkLimit(bytes: number, limit: number): void {
  if (bytes > limit) throw new Refusal('EFBIG', { reason: `blob limit of ${limit} bytes reached` });
}

/** The refusal for a blob that is not there. */
export function goneBlob(digest: Version): Refusal {
  return new Refusal('EIO', { reason: `blob ${digest} is gone` });
}

/** The refusal for a blob whose bytes are not those of its digest. */
export function otherBlob(digest: Version): Refusal {
  return new Refusal('EIO', { reason: `blob ${digest} has other bytes than its digest says` });
}

/** Copies `length` bytes of `bytes` from `position` on, fewer at its end; gives how many. */
export function copyPart(bytes: Uint8Array, into: Uint8Array, offset: number, length: number, position: number): number {
  const count = Math.max(0, Math.min(length, bytes.length - position));
  if (count > 0) into.set(bytes.subarray(position, position + count), offset);
  return count;
}

/** `bytes`, copied where keeping them would keep a much larger buffer alive. */
export function ownBytes(bytes: Uint8Array): Uint8Array {
  return bytes.buffer.byteLength > 2 * bytes.length ? new Uint8Array(bytes) : bytes;
}

/**
 * Blobs used lately, up to a number of bytes. Two generations: what is used moves to the young one; when that holds half
 * the limit, the old one is dropped and it becomes the old one. (One Map with its oldest entry deleted each time
 * costs microseconds, since its iteration steps over the holes.)
 */
export class BlobCache {
  readonly #limit: number;
  #young = new Map<Version, Uint8Array>();
  #old = new Map<Version, Uint8Array>();
  #youngBytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get(digest: Version): Uint8Array | undefined {
    const young = this.#young.get(digest);
    if (young !== undefined) return young;
    const old = this.#old.get(digest);
    if (old !== undefined) this.set(digest, old);
    return old;
  }

  /** Keeps `bytes`, unless they alone would take more than an eighth of the cache. */
  set(digest: Version, bytes: Uint8Array): void {
    if (bytes.length * 8 > this.#limit) return;
    if (this.#youngBytes + bytes.length > this.#limit / 2) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#youngBytes = 0;
    }
    const young = this.#young, before = young.size;
    young.set(digest, ownBytes(bytes));
    if (young.size > before) this.#youngBytes += bytes.length;
  }
}

import { crc32 } from 'node:zlib';
import type { Version } from '../core/version.ts';
import { hexOf } from './pack.ts';

/**
 * The catalog: which blob lies where in the packs, as one file that is searched as it is, without parsing.
 *
 *     0   8  "PLMCATA1"
 *     8   4  number of packs P, little-endian as all numbers
 *    12   4  number of entries N
 *    16  6P  bytes of each pack that the entries cover
 *        40N  entries, sorted by digest
 *         4  crc32 of everything before
 *
 * An entry: 32 digest, 2 pack (from 0), 4 place of the content, 2 length. A pack is below 4 GiB and a packed blob below
 * 64 KiB. A catalog with a wrong crc, or one that covers more than a pack has, is left aside; the packs are scanned.
 */

const MAGIC = Buffer.from('PLMCATA1');
const HEAD_BYTES = 16;
const COVER_BYTES = 6;
const ENTRY_BYTES = 40;

/** Where a blob's content lies. */
export interface PackPlace {
  readonly pack: number;
  readonly at: number;
  readonly length: number;
}

/** Where each packed blob lies, kept as a file so that opening need not scan the packs. Only a cache. */
export class Catalog {
  /** Bytes of each pack that are catalogued. */
  readonly covered: readonly number[];
  readonly count: number;
  readonly #entries: Buffer;

  private constructor(covered: readonly number[], entries: Buffer) {
    this.covered = covered;
    this.count = entries.length / ENTRY_BYTES;
    this.#entries = entries;
  }

  static readonly empty = new Catalog([], Buffer.alloc(0));

  /** The catalog in a file's bytes, or `undefined` where they are none or damaged. */
  static decode(bytes: Buffer): Catalog | undefined {
    if (bytes.length < HEAD_BYTES + 4 || bytes.compare(MAGIC, 0, 8, 0, 8) !== 0) return undefined;
    const packs = bytes.readUInt32LE(8), count = bytes.readUInt32LE(12);
    const entriesAt = HEAD_BYTES + packs * COVER_BYTES, crcAt = entriesAt + count * ENTRY_BYTES;
    if (bytes.length !== crcAt + 4 || crc32(bytes.subarray(0, crcAt)) !== bytes.readUInt32LE(crcAt)) return undefined;
    const covered = Array.from({ length: packs }, (_, i) => bytes.readUIntLE(HEAD_BYTES + i * COVER_BYTES, 6));
    return new Catalog(covered, bytes.subarray(entriesAt, crcAt));
  }

  /** The file of a catalog of this one's entries and further ones. */
  encode(covered: readonly number[], further: ReadonlyMap<Version, PackPlace>): Buffer {
    const entriesAt = HEAD_BYTES + covered.length * COVER_BYTES;
    const bytes = Buffer.allocUnsafe(entriesAt + (this.count + further.size) * ENTRY_BYTES + 4);
    const entry = Buffer.allocUnsafe(ENTRY_BYTES);
    let to = entriesAt, old = 0;
    // Hex digits sort as their bytes do.
    for (const digest of [...further.keys()].sort()) {
      encodeEntry(entry, 0, digest, further.get(digest) as PackPlace);
      let end = old, order = -1;
      while (end < this.count && (order = this.#compare(end, entry)) < 0) end++;
      to += this.#entries.copy(bytes, to, old * ENTRY_BYTES, end * ENTRY_BYTES);
      to += entry.copy(bytes, to);
      old = order === 0 ? end + 1 : end;
    }
    to += this.#entries.copy(bytes, to, old * ENTRY_BYTES);
    MAGIC.copy(bytes);
    bytes.writeUInt32LE(covered.length, 8);
    bytes.writeUInt32LE((to - entriesAt) / ENTRY_BYTES, 12);
    covered.forEach((length, i) => bytes.writeUIntLE(length, HEAD_BYTES + i * COVER_BYTES, 6));
    bytes.writeUInt32LE(crc32(bytes.subarray(0, to)), to);
    return bytes.subarray(0, to + 4);
  }

  find(digest: Version): PackPlace | undefined {
    if (this.count === 0) return undefined;
    const wanted = Buffer.from(hexOf(digest), 'hex');
    let low = 0, high = this.count - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const order = wanted.compare(this.#entries, middle * ENTRY_BYTES, middle * ENTRY_BYTES + 32);
      if (order === 0) return decodeEntry(this.#entry(middle));
      if (order < 0) high = middle - 1;
      else low = middle + 1;
    }
    return undefined;
  }

  *digests(): IterableIterator<Version> {
    for (let i = 0; i < this.count; i++) yield `sha256:${this.#entry(i).toString('hex', 0, 32)}` as Version;
  }

  /** Order of entry `i` and another by digest. */
  #compare(i: number, entry: Buffer): number {
    return this.#entries.compare(entry, 0, 32, i * ENTRY_BYTES, i * ENTRY_BYTES + 32);
  }

  #entry(i: number): Buffer {
    return this.#entries.subarray(i * ENTRY_BYTES, (i + 1) * ENTRY_BYTES);
  }
}

function encodeEntry(bytes: Buffer, to: number, digest: Version, { pack, at, length }: PackPlace): void {
  bytes.write(hexOf(digest), to, 'hex');
  bytes.writeUInt16LE(pack, to + 32);
  bytes.writeUInt32LE(at, to + 34);
  bytes.writeUInt16LE(length, to + 38);
}

function decodeEntry(entry: Buffer): PackPlace {
  return { pack: entry.readUInt16LE(32), at: entry.readUInt32LE(34), length: entry.readUInt16LE(38) };
}

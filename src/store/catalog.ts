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
    const fresh = Array.from(further, ([digest, place]) => encodeEntry(digest, place)).sort(compareEntries);
    const entriesAt = HEAD_BYTES + covered.length * COVER_BYTES;
    const bytes = Buffer.allocUnsafe(entriesAt + (this.count + fresh.length) * ENTRY_BYTES + 4);
    let to = entriesAt, old = 0;
    const takeOld = () => {
      to += this.#entries.copy(bytes, to, old * ENTRY_BYTES, (old + 1) * ENTRY_BYTES);
      old++;
    };
    for (const entry of fresh) {
      let order = -1;
      while (old < this.count && (order = compareEntries(this.#entry(old), entry)) < 0) takeOld();
      if (old < this.count && order === 0) old++;
      to += entry.copy(bytes, to);
    }
    while (old < this.count) takeOld();
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

  #entry(i: number): Buffer {
    return this.#entries.subarray(i * ENTRY_BYTES, (i + 1) * ENTRY_BYTES);
  }
}

function encodeEntry(digest: Version, { pack, at, length }: PackPlace): Buffer {
  const entry = Buffer.allocUnsafe(ENTRY_BYTES);
  entry.write(hexOf(digest), 'hex');
  entry.writeUInt16LE(pack, 32);
  entry.writeUInt32LE(at, 34);
  entry.writeUInt16LE(length, 38);
  return entry;
}

function decodeEntry(entry: Buffer): PackPlace {
  return { pack: entry.readUInt16LE(32), at: entry.readUInt32LE(34), length: entry.readUInt16LE(38) };
}

function compareEntries(a: Buffer, b: Buffer): number {
  return a.compare(b, 0, 32, 0, 32);
}

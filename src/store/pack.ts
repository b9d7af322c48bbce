import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Version } from '../core/version.ts';
import type { Readable } from './bytes.ts';

/**
 * A pack: small blobs one after another in one file.
 *
 *     file    "PLMPACK1", then records
 *     record  0  4  "blob"
 *             4  4  length of the content in bytes, little-endian
 *             8 32  sha256 of the content
 *            40  4  crc32 of the 40 bytes before, little-endian
 *            44  …  content
 *
 * A record is valid when its crc is right, its content is all there and has that sha256. What is not valid is skipped
 * (a torn end, damage) and the next valid record is looked for; nothing is ever cut off a pack, and new records go
 * behind whatever is there. So bytes found in the skipped part can only be blobs by their own digest.
 */

export const PACK_MAGIC = Buffer.from('PLMPACK1');
export const RECORD_BYTES = 44;
/** Blobs of this size and more are files of their own: their bytes weigh more than the cost of a file. */
export const PACKED_BELOW_BYTES = 64 * 1024;

const RECORD_MAGIC = Buffer.from('blob');
const RECORD_MAGIC_NUMBER = RECORD_MAGIC.readUInt32LE(0);

/** The head that is being made: a view of a part of a larger buffer costs as much as all the rest of it. */
const head = Buffer.alloc(RECORD_BYTES), headBeforeCrc = head.subarray(0, 40);
head.writeUInt32LE(RECORD_MAGIC_NUMBER, 0);

/** Writes a record's head to `bytes` at `at`. */
export function writeHead(bytes: Buffer, at: number, digest: Version, length: number): void {
  head.writeUInt32LE(length, 4);
  head.write(hexOf(digest), 8, 'hex');
  head.writeUInt32LE(crc32(headBeforeCrc), 40);
  bytes.set(head, at);
}

/** The record whose head is at `at`, or `undefined` where none is. Whether its content is there is not looked at. */
export function readHead(bytes: Buffer, at: number): { digest: Version; length: number } | undefined {
  if (at + RECORD_BYTES > bytes.length || bytes.readUInt32LE(at) !== RECORD_MAGIC_NUMBER) return undefined;
  if (crc32(bytes.subarray(at, at + 40)) !== bytes.readUInt32LE(at + 40)) return undefined;
  const length = bytes.readUInt32LE(at + 4);
  if (length >= PACKED_BELOW_BYTES) return undefined;
  return { digest: `sha256:${bytes.toString('hex', at + 8, at + 40)}` as Version, length };
}

/** The 64 hex digits of a version. */
export function hexOf(digest: Version): string {
  return digest.slice(7);
}

/** The version of bytes. */
export function digestOf(bytes: Uint8Array): Version {
  return `sha256:${hash('sha256', bytes)}` as Version;
}

const WINDOW_BYTES = 1024 * 1024;

/** Calls `found` for every valid record from byte `from` on, with the place of its content; gives the bytes skipped. */
export function scanPack(
  source: Readable, from: number, found: (digest: Version, at: number, length: number) => void,
): number {
  const { size } = source;
  const window = Buffer.allocUnsafe(Math.min(WINDOW_BYTES, Math.max(0, size - from)));
  let start = from, filled = 0, skipped = 0;
  for (let at = from; at < size;) {
    const wanted = Math.min(size, at + RECORD_BYTES + PACKED_BELOW_BYTES);
    if (wanted > start + filled) {
      start = at;
      filled = source.read(window, 0, window.length, start);
      if (filled === 0) break;
    }
    const bytes = window.subarray(0, filled), record = readHead(bytes, at - start);
    const content = at - start + RECORD_BYTES;
    if (record !== undefined && content + record.length <= filled &&
      digestOf(bytes.subarray(content, content + record.length)) === record.digest) {
      found(record.digest, start + content, record.length);
      at += RECORD_BYTES + record.length;
      continue;
    }
    const next = bytes.indexOf(RECORD_MAGIC, at - start + 1);
    // The magic may lie across the end of the window.
    const to = next >= 0 ? start + next : start + filled === size ? size : Math.max(at + 1, start + filled - 3);
    skipped += to - at;
    at = to;
  }
  return skipped;
}

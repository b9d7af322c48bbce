import type { Hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Readable } from './bytes.ts';

/**
 * A line of a log: a JSON object whose last member is `"crc":"xxxxxxxx"`, then a newline. The crc is the crc32 of
 * the line's bytes before `,"crc"`, in eight lower-case hex digits. An event begins with `{"seq":N,`.
 */

/** Bytes that `sealLine` adds to an object without its `}`: `,"crc":"xxxxxxxx"}` and the newline. */
export const CRC_BYTES = 19;

const NEWLINE = 10;
const CRC_KEY = Buffer.from(',"crc":"');
const SEQ_KEY = Buffer.from('{"seq":');
const HEX = Buffer.from('0123456789abcdef');

/** Ends the object at `bytes[start … end)` with its crc and a newline; gives the place after it. */
export function sealLine(bytes: Uint8Array, start: number, end: number): number {
  const sum = crc32(bytes.subarray(start, end));
  for (let i = 0; i < 8; i++) bytes[end + i] = CRC_KEY[i] as number;
  for (let i = 0; i < 8; i++) bytes[end + 8 + i] = HEX[(sum >>> (28 - 4 * i)) & 15] as number;
  bytes[end + 16] = 0x22;
  bytes[end + 17] = 0x7d;
  bytes[end + 18] = NEWLINE;
  return end + CRC_BYTES;
}

/** Whether the line `bytes[start … end)` (no newline) is as it was written. */
export function checkLine(bytes: Uint8Array, start: number, end: number): 'good' | 'bad crc' | 'no crc' {
  const tail = end - CRC_BYTES + 1;
  if (tail <= start || bytes[end - 1] !== 0x7d || bytes[end - 2] !== 0x22) return 'no crc';
  for (let i = 0; i < 8; i++) if (bytes[tail + i] !== CRC_KEY[i]) return 'no crc';
  const sum = crc32(bytes.subarray(start, tail));
  for (let i = 0; i < 8; i++) if (bytes[tail + 8 + i] !== HEX[(sum >>> (28 - 4 * i)) & 15]) return 'bad crc';
  return 'good';
}

/** The number in `{"seq":N,` at the start of a line; -1 where it does not begin so. */
export function seqOf(bytes: Uint8Array, start: number, end: number): number {
  for (let i = 0; i < 7; i++) if (bytes[start + i] !== SEQ_KEY[i]) return -1;
  let seq = 0, at = start + 7;
  for (; at < end; at++) {
    const digit = (bytes[at] as number) - 48;
    if (digit < 0 || digit > 9) break;
    seq = seq * 10 + digit;
  }
  return at > start + 7 && bytes[at] === 0x2c ? seq : -1;
}

/** The crc in a line that ends at `end` (no newline), as written there. */
export function crcOf(bytes: Buffer, end: number): string {
  return bytes.toString('latin1', end - 10, end - 2);
}

const FIRST_BYTES = 64 * 1024;

/** Walks over the lines of a file. `bytes[start … end)` is the current line, without its newline. */
export class LineReader {
  bytes: Buffer;
  start = 0;
  end = 0;
  /** Place of the current line in the file; after the last line, of what follows it without a newline. */
  position: number;

  readonly #source: Readable;
  readonly #limit: number;
  readonly #hash: Hash | undefined;
  /** In `bytes`: where the next line starts, how much is valid, how much of that the hash has seen. */
  #next = 0;
  #filled = 0;
  #hashed = 0;

  /** With a hash, every byte from `position` on goes through it; `position` is where the first line starts. */
  constructor(source: Readable, position: number, limit: number, hash?: Hash) {
    this.#source = source;
    this.position = position;
    this.#limit = limit;
    this.#hash = hash;
    this.bytes = Buffer.allocUnsafe(Math.max(1, Math.min(FIRST_BYTES, limit - position)));
  }

  /** Steps to the next line; false where no further whole line is. */
  next(): boolean {
    this.position += this.#next - this.start;
    this.start = this.#next;
    for (let from = this.start; ;) {
      const newline = this.#filled > from ? this.bytes.indexOf(NEWLINE, from) : -1;
      if (newline >= 0 && newline < this.#filled) {
        this.end = newline;
        this.#next = newline + 1;
        return true;
      }
      from = this.#filled - this.start;
      if (!this.#fill()) {
        this.end = this.start;
        return false;
      }
    }
  }

  /** The current line. */
  text(): string {
    return this.bytes.toString('utf8', this.start, this.end);
  }

  /** sha256 state of everything from where the reader began up to the current line (at the end: of all whole lines). */
  hashBefore(): Hash {
    const hash = this.#hash as Hash;
    hash.update(this.bytes.subarray(this.#hashed, this.start));
    this.#hashed = this.start;
    return hash.copy();
  }

  /** Moves the current line to the front and reads on behind it; false at the end of the file. */
  #fill(): boolean {
    this.#hash?.update(this.bytes.subarray(this.#hashed, this.start));
    const kept = this.#filled - this.start;
    if (kept * 2 > this.bytes.length) {
      const larger = Buffer.allocUnsafe(this.bytes.length * 2);
      this.bytes.copy(larger, 0, this.start, this.#filled);
      this.bytes = larger;
    } else this.bytes.copyWithin(0, this.start, this.#filled);
    this.start = this.#next = this.#hashed = 0;
    this.#filled = kept;
    const place = this.position + kept;
    const room = Math.min(this.#limit - place, this.bytes.length - kept);
    const got = room > 0 ? this.#source.read(this.bytes, kept, room, place) : 0;
    this.#filled += got;
    return got > 0;
  }
}

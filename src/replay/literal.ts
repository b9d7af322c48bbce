import { constants, deflateRawSync } from 'node:zlib';

/**
 * A content whole in git's binary patch: deflated, as lines in git's base 85. It is made a piece at a time, whatever its size: each
 * piece is deflated by itself up to a byte's end, which zlib's format allows; head, end and checksum are ours.
 */

const DIGITS = Buffer.from('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~');
/** Bytes that a line stands for, at most; a letter in front tells how many. */
const LINE_BYTES = 52;
/** Of a full line: the letter, five digits for every four bytes, the newline. */
const LINE_LENGTH = 1 + LINE_BYTES / 4 * 5 + 1;
const NEWLINE = 10;

/** The largest prime below 2^16, and how many bytes may be summed before a sum leaves 32 bits (RFC 1950). */
const ADLER_BASE = 65521;
const ADLER_RUN = 3800;

/** A hunk from `literal` to its blank line, of a content of `size` bytes. */
export function* literalHunk(size: number, pieces: Iterable<Uint8Array>): Generator<Uint8Array> {
  yield Buffer.from(`literal ${size}\n`);
  let rest: Buffer = Buffer.alloc(0);
  for (const piece of zlibStream(pieces)) {
    const bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece]), full = bytes.length - bytes.length % LINE_BYTES;
    if (full > 0) yield lines(bytes.subarray(0, full));
    rest = bytes.subarray(full);
  }
  if (rest.length > 0) yield lines(rest);
  yield Buffer.from('\n');
}

function* zlibStream(pieces: Iterable<Uint8Array>): Generator<Buffer> {
  let a = 1, b = 0;
  yield Buffer.of(0x78, 0x9c);
  for (const piece of pieces) {
    for (let at = 0; at < piece.length;) {
      for (const end = Math.min(at + ADLER_RUN, piece.length); at < end; at++) b += a += piece[at] as number;
      a %= ADLER_BASE;
      b %= ADLER_BASE;
    }
    yield deflateRawSync(piece, { finishFlush: constants.Z_SYNC_FLUSH });
  }
  // An empty block that says it is the last, and the checksum.
  yield Buffer.of(0x03, 0x00, b >> 8, b & 255, a >> 8, a & 255);
}

function lines(bytes: Uint8Array): Buffer {
  const text = Buffer.allocUnsafe(Math.ceil(bytes.length / LINE_BYTES) * LINE_LENGTH);
  let to = 0;
  for (let at = 0; at < bytes.length; at += LINE_BYTES) {
    const end = Math.min(at + LINE_BYTES, bytes.length), length = end - at;
    text[to++] = length <= 26 ? 64 + length : 96 + length - 26;
    for (let from = at; from < end; from += 4, to += 5) {
      let word = 0;
      for (let i = 0; i < 4; i++) word = word * 256 + (from + i < end ? bytes[from + i] as number : 0);
      for (let i = 4; i >= 0; i--) {
        text[to + i] = DIGITS[word % 85] as number;
        word = Math.floor(word / 85);
      }
    }
    text[to++] = NEWLINE;
  }
  return text.subarray(0, to);
}

import { constants, deflateRawSync } from 'node:zlib';

/**
 * Binary hunks of git's patches: deflated bytes as lines in git's base 85. They are made a piece at a time, whatever their size: each
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

/** Of a piece so many bytes are deflated on trial: where that gains less than a part in 32, the rest is only wrapped, which is 20 times as fast. */
const TRIAL_BYTES = 64 * 1024;
const TRIAL_GAIN = 31 / 32;

/** A binary hunk from its first word to its blank line: `literal`, a content of `size` bytes, or `delta`, the same of what `deltaOf` gives. */
export function* binaryHunk(kind: 'literal' | 'delta', size: number, pieces: Iterable<Uint8Array>): Generator<Uint8Array> {
  yield Buffer.from(`${kind} ${size}\n`);
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
    yield deflateRawSync(piece, { finishFlush: constants.Z_SYNC_FLUSH, level: isCompressible(piece) ? constants.Z_DEFAULT_COMPRESSION : 0 });
  }
  // An empty block that says it is the last, and the checksum.
  yield Buffer.of(0x03, 0x00, b >> 8, b & 255, a >> 8, a & 255);
}

function isCompressible(piece: Uint8Array): boolean {
  if (piece.length <= TRIAL_BYTES) return true;
  return deflateRawSync(piece.subarray(0, TRIAL_BYTES), { level: 1 }).length < TRIAL_BYTES * TRIAL_GAIN;
}

/** Two digits by the number that they stand for. */
const PAIRS = Uint16Array.from({ length: 85 * 85 }, (_, value) => (DIGITS[Math.floor(value / 85)] as number) << 8 | (DIGITS[value % 85] as number));

function lines(bytes: Uint8Array): Buffer {
  const text = Buffer.allocUnsafe(Math.ceil(bytes.length / LINE_BYTES) * LINE_LENGTH);
  let to = 0;
  for (let at = 0; at < bytes.length; at += LINE_BYTES) {
    const end = Math.min(at + LINE_BYTES, bytes.length), length = end - at;
    text[to++] = length <= 26 ? 64 + length : 96 + length - 26;
    for (let from = at; from < end; from += 4) {
      let word = 0;
      for (let i = 0; i < 4; i++) word = word << 8 | (from + i < end ? bytes[from + i] as number : 0);
      // Five digits: one, and twice two.
      const above = Math.floor((word >>> 0) / 7225), last = PAIRS[(word >>> 0) - above * 7225] as number;
      const first = Math.floor(above / 7225), middle = PAIRS[above - first * 7225] as number;
      text[to++] = DIGITS[first] as number;
      text[to++] = middle >> 8;
      text[to++] = middle & 255;
      text[to++] = last >> 8;
      text[to++] = last & 255;
    }
    text[to++] = NEWLINE;
  }
  return text.subarray(0, to);
}

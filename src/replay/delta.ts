/**
 * What to take of one content, and what to add, to get another: git's delta. Only bytes that stay at their place are found, block by block: what is
 * changed in the middle of a large file, or added to its end. It is made a piece at a time, and made again each time it is gone through.
 */

/** Blocks that are the same or not. */
const BLOCK_BYTES = 4096;
/** The most that one instruction copies (24 bits) and adds (7 bits), and the furthest place it copies from (32 bits). */
const COPIED_BYTES = 0xffffff;
const ADDED_BYTES = 127;
const FURTHEST = 0xffffffff;

/** One of the two contents. */
export interface Source {
  readonly size: number;
  chunks(): Iterable<Uint8Array>;
}

/** Bytes of the delta from one content to another; `undefined` where it is not worth while, or would not reach. */
export function deltaSize(from: Source, to: Source): number | undefined {
  if (from.size > FURTHEST || to.size < 2 * BLOCK_BYTES || from.size < 2 * BLOCK_BYTES) return undefined;
  const limit = to.size / 2;
  let size = 0;
  for (const piece of deltaOf(from, to)) {
    size += piece.length;
    if (size > limit) return undefined;
  }
  return size;
}

/** The delta from one content to another. */
export function* deltaOf(from: Source, to: Source): Generator<Uint8Array> {
  yield Buffer.from([...sizeBytes(from.size), ...sizeBytes(to.size)]);
  const old = blocks(from.chunks()), run = { at: 0, length: 0 };
  let at = 0;
  try {
    for (const block of blocks(to.chunks())) {
      const same = old.next();
      if (same.done !== true && same.value.length === block.length && Buffer.compare(same.value, block) === 0) {
        if (run.length === 0) run.at = at;
        run.length += block.length;
      } else {
        yield* copied(run);
        run.length = 0;
        yield added(block);
      }
      at += block.length;
    }
    yield* copied(run);
  } finally {
    old.return(undefined);
  }
}

function* copied({ at, length }: { at: number; length: number }): Generator<Uint8Array> {
  for (let done = 0; done < length; done += COPIED_BYTES) {
    const part = Math.min(COPIED_BYTES, length - done), bytes = [0x80];
    for (const [value, first, count] of [[at + done, 0, 4], [part, 4, 3]] as const) {
      for (let i = 0; i < count; i++) {
        const byte = Math.floor(value / 2 ** (8 * i)) % 256;
        if (byte === 0) continue;
        bytes[0] = (bytes[0] as number) | 1 << (first + i);
        bytes.push(byte);
      }
    }
    yield Buffer.from(bytes);
  }
}

function added(block: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < block.length; at += ADDED_BYTES) {
    const part = block.subarray(at, at + ADDED_BYTES);
    parts.push(Buffer.of(part.length), part);
  }
  return Buffer.concat(parts);
}

/** A size as seven bits a byte, the lowest first. */
function sizeBytes(size: number): number[] {
  const bytes: number[] = [];
  for (let rest = size; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest];
    bytes.push(rest % 128 | 128);
  }
}

/** The same bytes in blocks, however they come. */
function* blocks(chunks: Iterable<Uint8Array>): Generator<Uint8Array> {
  let rest: Uint8Array = Buffer.alloc(0);
  for (const chunk of chunks) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    for (; at + BLOCK_BYTES <= bytes.length; at += BLOCK_BYTES) yield bytes.subarray(at, at + BLOCK_BYTES);
    rest = bytes.subarray(at);
  }
  if (rest.length > 0) yield rest;
}

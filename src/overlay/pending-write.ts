import type { Content, Draft } from '../core/content.ts';
import { emptyExtents, overwrite, type ExtentMap } from '../core/extents.ts';
import { contentSize } from './attributes.ts';

/**
 * A file up to this size is stored whole at each change, so that its version is always known; above, only the ranges
 * written are, so that a change never costs what the file weighs. The store's own bound between packed and single blobs.
 */
export const WHOLE_BYTES = 64 * 1024;
/** Bytes of a buffer that gathers small writes to a large file: the first one, and the largest. */
const FIRST_BLOCK_BYTES = 64 * 1024;
const LAST_BLOCK_BYTES = 1024 * 1024;
const FIRST_DRAFT_BYTES = 256;

/** [start, end) in bytes. */
export type Range = readonly [number, number];

/** Bytes of a write whose event is not published yet; more may follow. */
export class PendingWrite {
  held: Draft | { readonly kind: 'extents'; readonly map: ExtentMap };
  /** What was written, sorted and apart; of a file held whole, all of it. */
  ranges: Range[];
  /** The file's content must not be stored, whatever it is called by now. */
  secret = false;
  private block: { readonly bytes: Uint8Array; used: number; end: number } | undefined = undefined;

  private constructor(held: PendingWrite['held'], ranges: Range[]) {
    this.held = held;
    this.ranges = ranges;
  }

  /** A file that is `bytes` from now on; the bytes are kept, not copied. */
  static whole(bytes: Uint8Array): PendingWrite {
    if (bytes.length <= WHOLE_BYTES) return new PendingWrite({ kind: 'draft', bytes, size: bytes.length }, []);
    const map = overwrite(emptyExtents(0), 0, bytes.length, { kind: 'bytes', bytes, from: 0 });
    return new PendingWrite({ kind: 'extents', map }, [[0, bytes.length]]);
  }

  /** Writes to a large file whose other bytes stay where they are. */
  static over(map: ExtentMap): PendingWrite {
    return new PendingWrite({ kind: 'extents', map }, []);
  }

  get size(): number {
    return contentSize(this.held);
  }

  /** Bytes that will have to be stored. */
  get bytes(): number {
    if (this.held.kind === 'draft') return this.held.size;
    return this.ranges.reduce((sum, [start, end]) => sum + end - start, 0);
  }

  get content(): Content {
    return this.held;
  }

  /** Writes `bytes` at `at`; a gap before them is zeros. The bytes are copied. */
  put(at: number, bytes: Uint8Array): void {
    if (this.held.kind === 'draft') {
      if (at + bytes.length <= WHOLE_BYTES) return this.putInDraft(this.held, at, bytes);
      this.outgrow(this.held);
    }
    this.putInBlock(at, bytes);
    this.ranges = withRange(this.ranges, at, at + bytes.length);
  }

  private putInDraft(draft: Draft, at: number, bytes: Uint8Array): void {
    const end = at + bytes.length;
    if (end > draft.bytes.length) {
      const room = Math.min(WHOLE_BYTES, Math.max(end, draft.bytes.length * 2, FIRST_DRAFT_BYTES));
      const grown = Buffer.allocUnsafeSlow(room);
      grown.set(draft.bytes.subarray(0, draft.size));
      draft.bytes = grown;
    }
    if (at > draft.size) draft.bytes.fill(0, draft.size, at);
    draft.bytes.set(bytes, at);
    draft.size = Math.max(draft.size, end);
  }

  private outgrow(draft: Draft): void {
    const { size } = draft, bytes = draft.bytes.subarray(0, size);
    const map = size === 0 ? emptyExtents(0) : overwrite(emptyExtents(0), 0, size, { kind: 'bytes', bytes, from: 0 });
    this.held = { kind: 'extents', map };
    this.ranges = size === 0 ? [] : [[0, size]];
  }

  private putInBlock(at: number, bytes: Uint8Array): void {
    let { block } = this;
    if (block === undefined || block.end !== at || block.used + bytes.length > block.bytes.length) {
      const room = block === undefined ? FIRST_BLOCK_BYTES : Math.min(LAST_BLOCK_BYTES, block.bytes.length * 2);
      block = { bytes: Buffer.allocUnsafeSlow(Math.max(room, bytes.length)), used: 0, end: at };
    }
    block.bytes.set(bytes, block.used);
    const map = this.held.kind === 'extents' ? this.held.map : emptyExtents(0);
    this.held = { kind: 'extents', map: overwrite(map, at, bytes.length, { kind: 'bytes', bytes: block.bytes, from: block.used }) };
    block.used += bytes.length;
    block.end = at + bytes.length;
    this.block = block;
  }
}

/** `ranges` with one more, overlapping and touching ones joined. */
export function withRange(ranges: readonly Range[], start: number, end: number): Range[] {
  const last = ranges.at(-1);
  if (last !== undefined && start >= last[0]) {
    const rest = ranges.slice(0, -1);
    return start > last[1] ? [...ranges, [start, end]] : [...rest, [last[0], Math.max(last[1], end)]];
  }
  let from = start, to = end;
  const before: Range[] = [], after: Range[] = [];
  for (const range of ranges) {
    if (range[1] < from) before.push(range);
    else if (range[0] > to) after.push(range);
    else {
      from = Math.min(from, range[0]);
      to = Math.max(to, range[1]);
    }
  }
  return [...before, [from, to], ...after];
}

import { unreachable } from './unreachable.ts';
import type { Version } from './version.ts';

/**
 * What the bytes of a file are made of: extents that tile it from 0 to its size without gap or overlap, so a hole is an extent
 * of zeros and what was cut off is gone for good. Maps never change; every operation gives a new one.
 *
 * Extents lie in blocks of at most `BLOCK_EXTENTS`. A change in the middle copies the blocks it touches and the list of
 * blocks: a few µs among 100,000 extents, where one flat list would copy 800 KB.
 * A file that is only appended to must not pay that every time: its last block is open. Of `tail` a map sees the
 * first `tailLength` extents, so a longer map may share the array and push onto it, as long as nobody else has.
 */
export interface ExtentMap {
  /** Bytes. */
  readonly size: number;
  /** Bytes that are no hole. */
  readonly data: number;
  /** Closed blocks, none empty. */
  readonly blocks: readonly Block[];
  readonly tail: Extent[];
  readonly tailLength: number;
  /** The extent at the end, kept apart because it may still grow; `undefined` exactly when the file is empty. */
  readonly last: Extent | undefined;
}

/** Bytes `at … at + length` of a file. Never empty. */
export interface Extent {
  readonly at: number;
  readonly length: number;
  readonly source: ExtentSource;
}

/** Where an extent's bytes are: in the lower file, a blob or memory from byte `from` on, or nowhere. */
export type ExtentSource =
  | { readonly kind: 'lower'; readonly from: number }
  | { readonly kind: 'blob'; readonly digest: Version; readonly from: number }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array; readonly from: number }
  | { readonly kind: 'zeros' };

type Block = readonly Extent[];

/** Most extents of a block; a quarter of it is the least before it joins its neighbour. */
const BLOCK_EXTENTS = 256;

const EMPTY: ExtentMap = { size: 0, data: 0, blocks: [], tail: [], tailLength: 0, last: undefined };
const ZEROS: ExtentSource = { kind: 'zeros' };

/** A file of `size` zeros. */
export function emptyExtents(size: number): ExtentMap {
  return truncateTo(EMPTY, size);
}

/**
 * The map after `length` bytes of `source` were written at `at`; a gap between the old end and `at` is zeros. Writing
 * nothing changes nothing. Throws RangeError beyond 2^53 - 1.
 */
export function overwrite(map: ExtentMap, at: number, length: number, source: ExtentSource): ExtentMap {
  const end = at + length;
  checkOffset(at);
  checkOffset(end);
  if (length === 0) return map;
  const extent = { at, length, source };
  return end < map.size ? replace(map, extent) : append(truncateTo(map, at), extent);
}

/** The map cut off at `size`, or grown to it by zeros. Throws RangeError beyond 2^53 - 1. */
export function truncateTo(map: ExtentMap, size: number): ExtentMap {
  checkOffset(size);
  if (size === map.size) return map;
  if (size > map.size) return append(map, { at: map.size, length: size - map.size, source: ZEROS });
  return size === 0 ? EMPTY : cut(map, size);
}

/** What bytes `from … to` are made of, in order; nothing beyond the end of the file. */
export function slices(map: ExtentMap, from: number, to: number): Extent[] {
  const end = Math.min(to, map.size), found: Extent[] = [];
  if (from >= end) return found;
  for (let at = blockAt(map.blocks, from); at < map.blocks.length; at++) {
    const block = map.blocks[at] as Block;
    if (collect(found, block, block.length, from, end)) return found;
  }
  if (!collect(found, map.tail, map.tailLength, from, end)) found.push(part(map.last as Extent, from, end));
  return found;
}

/** Bytes of a file that are no hole: what its `blocks` in stat(2) count. */
export function dataBytes(map: ExtentMap): number {
  return map.data;
}

function dataOf(extent: Extent): number {
  return extent.source.kind === 'zeros' ? 0 : extent.length;
}

function dataIn(map: ExtentMap, from: number, to: number): number {
  let bytes = 0;
  for (const extent of slices(map, from, to)) bytes += dataOf(extent);
  return bytes;
}

/** Adds what lies in `from … end` of a list's first `length` extents; whether `end` was reached. */
function collect(found: Extent[], list: Block, length: number, from: number, end: number): boolean {
  for (let at = indexAt(list, length, from); at < length; at++) {
    const extent = list[at] as Extent, stop = extent.at + extent.length;
    if (stop > from) found.push(part(extent, from, end));
    if (stop >= end) return true;
  }
  return false;
}

function append(map: ExtentMap, extent: Extent): ExtentMap {
  const { blocks, last, tailLength } = map;
  const size = extent.at + extent.length, data = map.data + dataOf(extent);
  if (last === undefined) return { size, data, blocks: [], tail: [], tailLength: 0, last: extent };
  const joined = join(last, extent);
  if (joined !== undefined) return { size, data, blocks, tail: map.tail, tailLength, last: joined };
  if (tailLength === BLOCK_EXTENTS - 1) return { size, data, blocks: closed(map), tail: [], tailLength: 0, last: extent };
  const tail = map.tail.length === tailLength ? map.tail : map.tail.slice(0, tailLength);
  tail.push(last);
  return { size, data, blocks, tail, tailLength: tailLength + 1, last: extent };
}

/** `map` up to `size`, which lies within it and is not 0. */
function cut(map: ExtentMap, size: number): ExtentMap {
  const { blocks, last, tail, tailLength } = map;
  const data = map.data - dataIn(map, size, map.size);
  if (last !== undefined && last.at < size) return { size, data, blocks, tail, tailLength, last: part(last, 0, size) };
  if (tailLength > 0 && (tail[0] as Extent).at < size) return opened(size, data, blocks, upTo(tail, tailLength, size));
  const at = blockAt(blocks, size - 1), block = blocks[at] as Block;
  return opened(size, data, blocks.slice(0, at), upTo(block, block.length, size));
}

/** `map` with `extent`, which ends before it, in the place of what is there. */
function replace(map: ExtentMap, extent: Extent): ExtentMap {
  const open = map.tailLength > 0 ? map.tail[0] as Extent : map.last as Extent;
  const data = map.data - dataIn(map, extent.at, extent.at + extent.length) + dataOf(extent);
  if (extent.at + extent.length < open.at) return { ...map, data, blocks: replaceIn(map.blocks.slice(), extent) };
  const blocks = replaceIn(closed(map), extent), block = blocks.pop() as Block;
  return opened(map.size, data, blocks, block);
}

/** Puts `extent`, which ends before they do, into `blocks`: the list is changed, the blocks are not. */
function replaceIn(blocks: Block[], extent: Extent): Block[] {
  const end = extent.at + extent.length;
  // From the byte before it, so that it can join with the extent on its left; the one on its right begins at its end.
  let first = blockAt(blocks, Math.max(extent.at - 1, 0));
  const left = blocks[first] as Block, behind = blockAt(blocks, end), right = blocks[behind] as Block;
  let list = extent.at === 0 ? [] : upTo(left, left.length, extent.at);
  push(list, extent);
  const rest = indexAt(right, right.length, end);
  push(list, part(right[rest] as Extent, end, Number.MAX_SAFE_INTEGER));
  list = list.concat(right.slice(rest + 1));
  if (list.length < BLOCK_EXTENTS / 4 && first > 0) list = (blocks[--first] as Block).concat(list);
  if (first === behind && list.length <= BLOCK_EXTENTS) blocks[first] = list;
  else blocks.splice(first, behind - first + 1, ...chunks(list));
  return blocks;
}

/** All blocks of a map that is not empty, its open one closed. */
function closed({ blocks, tail, tailLength, last }: ExtentMap): Block[] {
  const block = tail.slice(0, tailLength), all = blocks.slice();
  block.push(last as Extent);
  all.push(block);
  return all;
}

/** A map of closed blocks and a last one that is open to more. */
function opened(size: number, data: number, blocks: readonly Block[], block: Block): ExtentMap {
  const tailLength = block.length - 1;
  return { size, data, blocks, tail: block.slice(0, tailLength), tailLength, last: block[tailLength] };
}

function chunks(list: Extent[]): Block[] {
  if (list.length <= BLOCK_EXTENTS) return [list];
  const count = Math.ceil(list.length / BLOCK_EXTENTS), length = Math.ceil(list.length / count);
  return Array.from({ length: count }, (_, at) => list.slice(at * length, (at + 1) * length));
}

/** The extents of a list that begin before `end`, the last of them cut there. */
function upTo(list: Block, length: number, end: number): Extent[] {
  const last = indexAt(list, length, end - 1), found = list.slice(0, last + 1);
  found[last] = part(found[last] as Extent, 0, end);
  return found;
}

function push(list: Extent[], extent: Extent): void {
  const last = list.at(-1), joined = last && join(last, extent);
  if (joined) list[list.length - 1] = joined;
  else list.push(extent);
}

/** The block that holds byte `offset`: the last one that begins at or before it; the first if none does. */
function blockAt(blocks: readonly Block[], offset: number): number {
  let low = 0, high = blocks.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if (((blocks[middle] as Block)[0] as Extent).at <= offset) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The same for an extent in the first `length` of a list. */
function indexAt(list: Block, length: number, offset: number): number {
  let low = 0, high = length - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if ((list[middle] as Extent).at <= offset) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The part of `extent` that lies in `from … to`; itself where that is all of it. */
function part(extent: Extent, from: number, to: number): Extent {
  const at = Math.max(extent.at, from), length = Math.min(extent.at + extent.length, to) - at;
  return length === extent.length ? extent : { at, length, source: shifted(extent.source, at - extent.at) };
}

function shifted(source: ExtentSource, by: number): ExtentSource {
  return by === 0 || source.kind === 'zeros' ? source : { ...source, from: source.from + by };
}

/** Two neighbours as one extent, where the source of the second goes on where the first one's ends. */
function join(a: Extent, b: Extent): Extent | undefined {
  return goesOn(a.source, a.length, b.source) ? { at: a.at, length: a.length + b.length, source: a.source } : undefined;
}

function goesOn(a: ExtentSource, length: number, b: ExtentSource): boolean {
  switch (a.kind) {
    case 'zeros': return b.kind === 'zeros';
    case 'lower': return b.kind === 'lower' && a.from + length === b.from;
    case 'blob': return b.kind === 'blob' && a.from + length === b.from && a.digest === b.digest;
    case 'bytes': return b.kind === 'bytes' && a.from + length === b.from && a.bytes === b.bytes;
    default: return unreachable(a);
  }
}

function checkOffset(offset: number): void {
  if (!Number.isSafeInteger(offset) || offset < 0) throw new RangeError(`${offset} is no offset in a file`);
}

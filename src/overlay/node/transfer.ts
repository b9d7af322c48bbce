import { Buffer } from 'node:buffer';
import { validateInteger, validateObject, validateInt32 } from './arguments.ts';
import { invalidType, invalidValue, outOfRange } from './errors.ts';

/**
 * What a read or write moves. Node takes the same facts in many orders, and not the same ones everywhere; each
 * order is turned into a `Transfer` once.
 */
export interface Transfer {
  readonly fd: number;
  readonly view: Uint8Array;
  readonly offset: number;
  readonly length: number;
  /** `null`: the descriptor's own position. */
  readonly position: number | null;
}

/** What read allocates for a caller who brings no buffer. */
export const READ_BUFFER_BYTES = 16384;

interface RangeOptions {
  readonly offset?: unknown;
  readonly length?: unknown;
  readonly position?: unknown;
}

function optionsOf(value: object | null | undefined): RangeOptions {
  return value ?? {};
}

/** The bytes of a view, not copied. */
export function bytesOf(view: NodeJS.ArrayBufferView): Uint8Array {
  return view instanceof Uint8Array ? view : new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

/** Whether a value is bytes of some kind. */
export function isView(value: unknown): value is NodeJS.ArrayBufferView {
  return ArrayBuffer.isView(value);
}

/** Throws ERR_INVALID_ARG_TYPE unless `buffers` is a list of views. */
export function validateViews(value: unknown): asserts value is NodeJS.ArrayBufferView[] {
  if (!Array.isArray(value) || !value.every(isView)) throw invalidType('buffers', 'ArrayBufferView[]', value);
}

/** `(buffer, offset, length, position)`, `(buffer, options)` or `(buffer)`. */
export function readRequest(fd: number, buffer: unknown, range: readonly unknown[]): Transfer {
  if (!isView(buffer)) throw invalidType('buffer', ['Buffer', 'TypedArray', 'DataView'], buffer);
  let [offset, length, position] = range;
  if (range.length <= 1 || typeof offset === 'object') {
    const options = offset;
    if (options !== undefined) validateObject(options, 'options', 'nullable');
    ({ offset = 0, length = buffer.byteLength - Number(offset), position = null } = optionsOf(options));
  }
  if (offset === undefined || offset === null) offset = 0;
  validateInteger(offset, 'offset', 0);
  const count = Number(length) | 0;
  if (count === 0) return { fd, view: bytesOf(buffer), offset: 0, length: 0, position: null };
  if (buffer.byteLength === 0) throw invalidValue('buffer', buffer, 'is empty and cannot be written');
  if (count < 0) throw outOfRange('length', '>= 0', count);
  if (offset + count > buffer.byteLength) throw outOfRange('length', `<= ${buffer.byteLength - offset}`, count);
  return { fd, view: bytesOf(buffer), offset, length: count, position: readPosition(position) };
}

const INT64_MAX = 2n ** 63n - 1n;

/** -1 and absent are the descriptor's own position. No file reaches what a number cannot hold. */
function readPosition(position: unknown): number | null {
  if (position === undefined || position === null) return null;
  if (typeof position === 'bigint') {
    if (position > INT64_MAX || position < -INT64_MAX - 1n) {
      throw outOfRange('position', `>= ${-INT64_MAX - 1n} && <= ${INT64_MAX}`, position);
    }
  } else if (typeof position === 'number') validateInteger(position, 'position', -1);
  else throw invalidType('position', ['integer', 'bigint'], position);
  return position < 0 ? null : Math.min(Number(position), Number.MAX_SAFE_INTEGER);
}

/** The buffer and the range of a call that may bring `(options)`, `(buffer, …)` or nothing. */
export function readArguments(given: readonly unknown[]): { buffer: unknown; range: readonly unknown[] } {
  const [first, ...rest] = given;
  if (isView(first) || given.length > 2) return { buffer: first, range: rest };
  if (given.length === 2) return { buffer: first, range: rest };
  if (first !== undefined) validateObject(first, 'options', 'nullable');
  const { buffer = Buffer.alloc(READ_BUFFER_BYTES) } = (first ?? {}) as { buffer?: unknown };
  return { buffer, range: [first ?? {}] };
}

/** `(view, offset, length, position)`, `(view, options)`, or `(string, position, encoding)`. */
export function writeRequest(fd: number, data: unknown, range: readonly unknown[]): Transfer {
  let [offset, length, position] = range;
  if (!isView(data)) {
    const view = textBytes(data, length);
    return { fd, view, offset: 0, length: view.length, position: writePosition(offset) };
  }
  if (typeof offset === 'object') {
    ({ offset = 0, length = data.byteLength - Number(offset), position = null } = optionsOf(offset));
  }
  if (offset === undefined || offset === null) offset = 0;
  validateInteger(offset, 'offset', 0);
  const count = typeof length === 'number' ? length : data.byteLength - offset;
  if (offset > data.byteLength) throw outOfRange('offset', `<= ${data.byteLength}`, offset);
  if (count > data.byteLength - offset) throw outOfRange('length', `<= ${data.byteLength - offset}`, count);
  if (count < 0) throw outOfRange('length', '>= 0', count);
  validateInt32(count, 'length', 0);
  return { fd, view: bytesOf(data), offset, length: count, position: writePosition(position) };
}

function writePosition(position: unknown): number | null {
  return Number.isSafeInteger(position) && (position as number) >= 0 ? position as number : null;
}

/** The bytes of a string; throws for anything else. An encoding that is none is utf8, as node takes it. */
function textBytes(data: unknown, encoding: unknown): Buffer {
  if (typeof data !== 'string') throw invalidType('buffer', ['string', 'Buffer', 'TypedArray', 'DataView'], data);
  if (typeof encoding !== 'string' || !Buffer.isEncoding(encoding)) return Buffer.from(data);
  if (encoding.toLowerCase() === 'hex' && data.length % 2 !== 0) {
    throw invalidValue('encoding', encoding, `is invalid for data of length ${data.length}`);
  }
  return Buffer.from(data, encoding);
}

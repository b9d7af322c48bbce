import { Buffer } from 'node:buffer';
import { constants } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { types } from 'node:util';
import { fromBytes, toBytes, type PathName } from '../../core/path.ts';
import { abortError, codedError, invalidType, invalidValue, outOfRange } from './errors.ts';

/**
 * Arguments of `node:fs` calls, checked and converted as node does it: what is refused, in which order, and with
 * which words is node's; a refused argument never reaches the `System`.
 */

export type PathArgument = string | Uint8Array | URL;

/** `buffer` is the encoding of results only. */
export type Encoding = BufferEncoding | 'buffer';

const NO_NUL = 'must be a string, Uint8Array, or URL without null bytes';

/** A path argument as the System takes it. Throws ERR_INVALID_ARG_TYPE, ERR_INVALID_ARG_VALUE or what a bad URL gets. */
export function pathName(value: unknown, name = 'path'): PathName {
  if (typeof value === 'string') {
    if (value.includes('\0')) throw invalidValue(name, value, NO_NUL);
    // A lone surrogate has no bytes; node writes U+FFFD. It must not be taken for an escaped byte.
    return (value.isWellFormed() ? value : value.toWellFormed()) as PathName;
  }
  if (types.isUint8Array(value)) {
    if (value.includes(0)) throw invalidValue(name, value, NO_NUL);
    return fromBytes(value) as PathName;
  }
  if (isUrl(value)) return pathName(fileURLToPath(value), name);
  throw invalidType(name, ['string', 'Buffer', 'URL'], value);
}

/** As node decides it: anything with href and protocol, of whatever realm, that is no legacy `url.parse` object. */
function isUrl(value: unknown): value is URL {
  if (typeof value !== 'object' || value === null) return false;
  const url = value as { href?: unknown; protocol?: unknown; auth?: unknown; path?: unknown };
  return Boolean(url.href && url.protocol && url.auth === undefined && url.path === undefined);
}

/** A name or path as a result: decoded as `encoding` asks, a Buffer for `'buffer'`. */
export function encoded(text: string, encoding: Encoding | null | undefined): string | Buffer {
  if (encoding === undefined || encoding === null || encoding === 'utf8' || encoding === 'utf-8') return text.toWellFormed();
  const bytes = toBytes(text);
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return encoding === 'buffer' ? buffer : buffer.toString(encoding);
}

export interface CommonOptions {
  readonly encoding?: Encoding | null | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Options of a call: an object, an encoding, or absent (also where the callback stands in its place). */
export function getOptions<T extends object>(options: unknown, defaults: T): T & CommonOptions {
  if (options === undefined || options === null || typeof options === 'function') return defaults;
  if (typeof options === 'string') {
    checkEncoding(options);
    return { ...defaults, encoding: options as Encoding };
  }
  if (typeof options !== 'object') throw invalidType('options', ['string', 'Object'], options);
  const given = options as T & CommonOptions;
  if (given.encoding !== undefined) checkEncoding(given.encoding);
  if (given.signal !== undefined) validateSignal(given.signal, 'options.signal');
  return given;
}

/** Throws ERR_INVALID_ARG_VALUE for what is neither absent nor an encoding. */
export function checkEncoding(encoding: unknown): void {
  if (!encoding || encoding === 'buffer' || encoding === 'utf8') return;
  if (typeof encoding !== 'string' || !Buffer.isEncoding(encoding)) {
    throw invalidValue('encoding', encoding, 'is invalid encoding');
  }
}

/** Throws ERR_INVALID_ARG_TYPE for what is no function. */
export function validateFunction(value: unknown, name = 'cb'): asserts value is (...results: unknown[]) => unknown {
  if (typeof value !== 'function') throw invalidType(name, 'Function', value);
}

/** Throws ERR_INVALID_ARG_TYPE for what is no boolean. */
export function validateBoolean(value: unknown, name: string): asserts value is boolean {
  if (typeof value !== 'boolean') throw invalidType(name, 'boolean', value);
}

/** Throws ERR_INVALID_ARG_TYPE for what is no string. */
export function validateString(value: unknown, name: string): asserts value is string {
  if (typeof value !== 'string') throw invalidType(name, 'string', value);
}

/** An integer from `min` to `max`, both included. */
export function validateInteger(
  value: unknown, name: string, min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER,
): asserts value is number {
  if (typeof value !== 'number') throw invalidType(name, 'number', value);
  if (!Number.isInteger(value)) throw outOfRange(name, 'an integer', value);
  if (value < min || value > max) throw outOfRange(name, `>= ${min} && <= ${max}`, value);
}

const INT32_MAX = 2 ** 31 - 1;
const UINT32_MAX = 2 ** 32 - 1;

/** Throws ERR_INVALID_ARG_TYPE or ERR_OUT_OF_RANGE for what is no signed 32-bit integer in the range. */
export function validateInt32(value: unknown, name: string, min = -(2 ** 31)): asserts value is number {
  validateInteger(value, name, min, INT32_MAX);
}

/** Throws ERR_INVALID_ARG_TYPE or ERR_OUT_OF_RANGE for what is no unsigned 32-bit integer. */
export function validateUint32(value: unknown, name: string): asserts value is number {
  validateInteger(value, name, 0, UINT32_MAX);
}

/** An object that is no array; `null` passes where `nullable`. */
export function validateObject(value: unknown, name: string, nullable: 'nullable' | 'required' = 'required'): asserts value is object {
  if (value === null && nullable === 'nullable') return;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalidType(name, 'Object', value);
}

/** Throws ERR_INVALID_ARG_TYPE for what is no AbortSignal. */
export function validateSignal(value: unknown, name: string): asserts value is AbortSignal {
  if (typeof value !== 'object' || value === null || !('aborted' in value)) throw invalidType(name, 'AbortSignal', value);
}

/** Throws AbortError where `signal` is aborted already. */
export function checkAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw abortError(signal);
}

/** A descriptor: a non-negative int32; -0 is 0. */
export function descriptor(value: unknown): number {
  if (typeof value === 'number' && (value | 0) === value && value >= 0) return value | 0;
  validateInt32(value, 'fd', 0);
  return value;
}

/** Whether an argument that may be a path or a descriptor is a descriptor. */
export function isDescriptor(value: unknown): value is number {
  return typeof value === 'number' && (value | 0) === value;
}

/** A mode as number or octal string. `fallback` stands for an absent one; without it, absent is refused. */
export function fileMode(value: unknown, name: string, fallback?: number): number {
  let mode = value ?? fallback;
  if (typeof mode === 'string') {
    if (!/^[0-7]+$/.test(mode)) throw invalidValue(name, value, 'must be a 32-bit unsigned integer or an octal string');
    mode = Number.parseInt(mode, 8);
  }
  validateUint32(mode, name);
  return mode;
}

const { O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_APPEND, O_EXCL, O_SYNC } = constants;
const OVERWRITE = O_TRUNC | O_CREAT | O_WRONLY, APPEND = O_APPEND | O_CREAT | O_WRONLY;
const OVERWRITE_READ = O_TRUNC | O_CREAT | O_RDWR, APPEND_READ = O_APPEND | O_CREAT | O_RDWR;

const FLAGS = new Map<unknown, number>([
  ['r', O_RDONLY], ['rs', O_RDONLY | O_SYNC], ['sr', O_RDONLY | O_SYNC],
  ['r+', O_RDWR], ['rs+', O_RDWR | O_SYNC], ['sr+', O_RDWR | O_SYNC],
  ['w', OVERWRITE], ['wx', OVERWRITE | O_EXCL], ['xw', OVERWRITE | O_EXCL],
  ['w+', OVERWRITE_READ], ['wx+', OVERWRITE_READ | O_EXCL], ['xw+', OVERWRITE_READ | O_EXCL],
  ['a', APPEND], ['ax', APPEND | O_EXCL], ['xa', APPEND | O_EXCL], ['as', APPEND | O_SYNC], ['sa', APPEND | O_SYNC],
  ['a+', APPEND_READ], ['ax+', APPEND_READ | O_EXCL], ['xa+', APPEND_READ | O_EXCL],
  ['as+', APPEND_READ | O_SYNC], ['sa+', APPEND_READ | O_SYNC],
]);

/** The open(2) flags of `'r+'` and its like, or of a number; absent is `'r'`. */
export function openFlags(value: unknown, name = 'flags'): number {
  if (value === 'r' || value === undefined || value === null) return O_RDONLY;
  if (typeof value === 'number') {
    validateInt32(value, name);
    return value;
  }
  const flags = FLAGS.get(value);
  if (flags === undefined) throw invalidValue('flags', value);
  return flags;
}

/** A time argument (seconds as number or numeric string, or a Date) in ns. Seconds below 0 stand for now, as node has it. */
export function timeNs(value: unknown, name = 'time', now: () => number = Date.now): bigint {
  return nanoseconds(unixSeconds(value, name, now));
}

/** Seconds since 1970 of a time argument. */
export function unixSeconds(value: unknown, name: string, now: () => number): number {
  if (typeof value === 'string' && Number.isFinite(Number(value))) return Number(value);
  if (typeof value === 'number' && Number.isFinite(value)) return value < 0 ? now() / 1000 : value;
  if (types.isDate(value)) return value.getTime() / 1000;
  throw invalidType(name, ['Date', 'Time in seconds'], value);
}

/** Seconds as the system keeps them: whole seconds and microseconds, the fraction cut, as libuv passes them on. */
export function nanoseconds(seconds: number): bigint {
  const whole = Math.trunc(seconds);
  return BigInt(whole) * 1_000_000_000n + BigInt(Math.trunc((seconds - whole) * 1e6)) * 1000n;
}

/** A user or group id; -1 leaves it as it is. */
export function validateId(value: unknown, name: string): asserts value is number {
  validateInteger(value, name, -1, UINT32_MAX);
}

/** ERR_INCOMPATIBLE_OPTION_PAIR. */
export function incompatibleOptions(first: string, second: string): Error {
  return codedError(TypeError, 'ERR_INCOMPATIBLE_OPTION_PAIR',
    `Option "${first}" cannot be used in combination with option "${second}"`);
}

/** The bits that cp knows; absent is 0. */
export function callMode(value: unknown, max: number): number {
  if (value === undefined || value === null) return 0;
  validateInteger(value, 'mode', 0, max);
  return value;
}

/** The bits that access and copyFile know; absent is 0. The words are other ones than of every other integer. */
export function bitMode(value: unknown, max: number): number {
  if (value === undefined || value === null) return 0;
  if (typeof value !== 'number') throw codedError(TypeError, 'ERR_INVALID_ARG_TYPE', 'mode must be int32 or null/undefined');
  if (Number.isNaN(value)) throw codedError(RangeError, 'ERR_OUT_OF_RANGE', 'mode is out of range');
  if (value < 0 || value > max) throw codedError(RangeError, 'ERR_OUT_OF_RANGE', `mode is out of range: >= 0 && <= ${max}`);
  return Math.trunc(value);
}

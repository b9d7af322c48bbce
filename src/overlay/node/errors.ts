import { constants } from 'node:os';
import { getSystemErrorMap, inspect } from 'node:util';
import { Refusal } from '../../core/refusal.ts';

/**
 * Errors as `node:fs` gives them: system errors made from a `Refusal`, and the ERR_ errors for arguments that no
 * file system is asked about. Messages follow node's, since tests and users match on them.
 */
export interface NodeError extends Error {
  code: string;
  errno?: number;
  syscall?: string;
  path?: string;
  dest?: string;
  /** FS_… code of a refused guard or rule. */
  fsCode?: string;
  /** Why, in words, where the errno alone does not say. */
  reason?: string;
}

interface Errno {
  readonly errno: number;
  readonly words: string;
}

/** libuv names no words for these. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  EDQUOT: 'disk quota exceeded', ENODATA: 'no data available', ENOTSUP: 'operation not supported',
};

const ERRNO = new Map<string, Errno>();
for (const [code, number] of Object.entries(constants.errno)) {
  ERRNO.set(code, { errno: -number, words: OTHER_WORDS[code] ?? 'unknown error' });
}
for (const [number, [code, words]] of getSystemErrorMap()) ERRNO.set(code, { errno: number, words });

const UNKNOWN: Errno = { errno: constants.errno.EIO * -1, words: 'unknown error' };

const TELLING = new Set(['EIO', 'EFBIG', 'ENXIO']);

/** The error for a refused call, as node would throw it; `path` and `dest` as the caller gave them. */
export function nodeError(refusal: Refusal, syscall: string, path?: string, dest?: string): NodeError {
  const { code } = refusal;
  const { errno, words } = ERRNO.get(code) ?? UNKNOWN;
  let message = `${code}: ${words}, ${syscall}`;
  if (path !== undefined) message += ` '${path = path.toWellFormed()}'`;
  if (dest !== undefined) message += ` -> '${dest = dest.toWellFormed()}'`;
  // Node has no words for what only an overlay can tell: which blob is gone, which lower file changed, which limit it is.
  if (refusal.reason !== undefined && TELLING.has(code)) message += ` (${refusal.reason})`;
  const error = new Error(message) as NodeError;
  error.errno = errno;
  error.code = code;
  error.syscall = syscall;
  if (path !== undefined) error.path = path;
  if (dest !== undefined) error.dest = dest;
  if (refusal.fsCode !== undefined) error.fsCode = refusal.fsCode;
  if (refusal.reason !== undefined) error.reason = refusal.reason;
  if (refusal.unrecorded) {
    error.name = 'NotRecordedError';
    error.code = 'ERR_NOT_RECORDED';
    error.message = `ERR_NOT_RECORDED: ${refusal.reason}, ${syscall}${path === undefined ? '' : ` '${path}'`}`;
    Object.defineProperty(error, 'cause', { value: refusal, writable: true, configurable: true });
  } else if (refusal.cause !== undefined) {
    Object.defineProperty(error, 'cause', { value: refusal.cause, writable: true, configurable: true });
  }
  return error;
}

/** The error to throw for what a System call threw: a refusal in node's form; anything else is a bug and thrown on. */
export function failure(error: unknown, syscall: string, path?: string, dest?: string): NodeError {
  if (!(error instanceof Refusal)) throw error;
  return nodeError(error, syscall, path, dest);
}

type ErrorClass = new (message: string) => Error;

/** An error of class `Class` with an ERR_ code, whose stack names the code as node's do. */
export function codedError(Class: ErrorClass, code: string, message: string): NodeError {
  const error = new Class(message) as NodeError;
  const { name } = error;
  // The stack's first line is written when the trace is taken, from the name at that moment.
  Object.defineProperty(error, 'name', { value: `${name} [${code}]`, configurable: true });
  Error.captureStackTrace(error, codedError);
  delete (error as { name?: string }).name;
  error.code = code;
  Object.defineProperty(error, 'toString', { value: toString, writable: true, configurable: true });
  return error;
}

function toString(this: NodeError): string {
  return `${this.name} [${this.code}]: ${this.message}`;
}

const PRIMITIVES = new Set(['string', 'function', 'number', 'object', 'Function', 'Object', 'boolean', 'bigint', 'symbol']);

function listed(words: readonly string[]): string {
  if (words.length < 3) return words.join(' or ');
  return `${words.slice(0, -1).join(', ')}, or ${words[words.length - 1]}`;
}

/** `argument "path"` or, where the name has a dot, `property "options.mode"`, as node words it. */
function kindOf(name: string): 'property' | 'argument' {
  return name.includes('.') ? 'property' : 'argument';
}

function received(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  switch (typeof value) {
    case 'function':
      return `function ${value.name}`;
    case 'object': {
      const constructor = (value as { constructor?: { name?: string } }).constructor;
      if (constructor && 'name' in constructor) return `an instance of ${constructor.name}`;
      return inspect(value, { depth: -1 });
    }
    case 'string': {
      const text = value.length > 28 ? `${value.slice(0, 25)}...` : value;
      return `type string (${text.includes("'") ? JSON.stringify(text) : `'${text}'`})`;
    }
    case 'bigint':
      return `type bigint (${value}n)`;
    case 'number':
      return `type number (${Object.is(value, -0) ? '-0' : value})`;
    default:
      return `type ${typeof value} (${(value as boolean | symbol).toString()})`;
  }
}

/** ERR_INVALID_ARG_TYPE. `expected`: names of primitive types and classes, or phrases. */
export function invalidType(name: string, expected: string | readonly string[], value: unknown): NodeError {
  const types: string[] = [], classes: string[] = [], phrases: string[] = [];
  for (const word of typeof expected === 'string' ? [expected] : expected) {
    if (PRIMITIVES.has(word)) types.push(word.toLowerCase());
    else if (/^([A-Z][a-z0-9]*)+$/.test(word)) classes.push(word);
    else phrases.push(word);
  }
  const object = types.indexOf('object');
  if (classes.length > 0 && object >= 0) {
    types.splice(object, 1);
    classes.push('Object');
  }
  const parts: string[] = [];
  if (types.length > 0) parts.push(`${types.length > 1 ? 'one of type' : 'of type'} ${listed(types)}`);
  if (classes.length > 0) parts.push(`an instance of ${listed(classes)}`);
  if (phrases.length > 1) parts.push(`one of ${listed(phrases)}`);
  else if (phrases[0] !== undefined) parts.push(phrases[0].toLowerCase() === phrases[0] ? phrases[0] : `an ${phrases[0]}`);
  const subject = name.endsWith(' argument') ? name : `"${name}" ${kindOf(name)}`;
  return codedError(TypeError, 'ERR_INVALID_ARG_TYPE',
    `The ${subject} must be ${parts.join(' or ')}. Received ${received(value)}`);
}

/** ERR_INVALID_ARG_VALUE. */
export function invalidValue(name: string, value: unknown, reason = 'is invalid'): NodeError {
  let shown = inspect(value);
  if (shown.length > 128) shown = `${shown.slice(0, 128)}...`;
  return codedError(TypeError, 'ERR_INVALID_ARG_VALUE', `The ${kindOf(name)} '${name}' ${reason}. Received ${shown}`);
}

/** ERR_OUT_OF_RANGE; `range` in words, like `>= 0 && <= 7`. */
export function outOfRange(name: string, range: string, value: unknown): NodeError {
  let shown: string;
  if (typeof value === 'bigint') {
    shown = (value > 2n ** 32n || value < -(2n ** 32n) ? grouped(String(value)) : String(value)) + 'n';
  } else if (Number.isInteger(value) && Math.abs(value as number) > 2 ** 32) shown = grouped(String(value));
  else shown = inspect(value);
  return codedError(RangeError, 'ERR_OUT_OF_RANGE',
    `The value of "${name}" is out of range. It must be ${range}. Received ${shown}`);
}

/** Digits in groups of three from the right: `4_294_967_296`. */
function grouped(digits: string): string {
  return digits.replace(/\B(?=(\d{3})+$)/g, '_');
}

/** What a call whose signal was aborted rejects with. */
export function abortError(signal?: { readonly reason?: unknown }): NodeError {
  const error = (signal === undefined
    ? new Error('The operation was aborted')
    : new Error('The operation was aborted', { cause: signal.reason })) as NodeError;
  Object.defineProperty(error, 'name', { value: 'AbortError', writable: true, configurable: true, enumerable: true });
  Error.captureStackTrace(error, abortError);
  error.code = 'ABORT_ERR';
  return error;
}

/** ERR_FS_FILE_TOO_LARGE: a Buffer cannot hold so many bytes in one read. */
export function tooLarge(size: number | bigint): NodeError {
  return codedError(RangeError, 'ERR_FS_FILE_TOO_LARGE', `File size (${size}) is greater than 2 GiB`);
}

const ARGUMENT_CODES = new Set([
  'ERR_INVALID_ARG_TYPE', 'ERR_INVALID_ARG_VALUE', 'ERR_OUT_OF_RANGE', 'ERR_INCOMPATIBLE_OPTION_PAIR',
  'ERR_FS_INVALID_SYMLINK_TYPE', 'ERR_INVALID_URL_SCHEME', 'ERR_INVALID_FILE_URL_HOST', 'ERR_INVALID_FILE_URL_PATH',
]);

/**
 * Whether a failed call failed in doing its work, so that a callback gets the error; what is not a fault is a refused
 * argument (or a bug), and is thrown at the caller.
 */
export function isFault(error: unknown): error is NodeError {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && !ARGUMENT_CODES.has(code);
}

/** One error for two: the second beneath the first where both happened. */
export function bothErrors(first: unknown, second: unknown): unknown {
  if (first === second || !first || !second) return first ?? second;
  const error = new AggregateError([second, first], (second as Error).message) as AggregateError & { code?: unknown };
  error.code = (second as NodeError).code;
  return error;
}

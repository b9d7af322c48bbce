import { fromBytes, toBytes } from './path.ts';
import type { TreePath } from './path.ts';
import { isVersion } from './version.ts';
import type { Version } from './version.ts';
import type { NodeType } from './attr.ts';
import type { Inode, Nanoseconds } from './event.ts';

/**
 * What a value of a log line may be: one description that writes it, reads it back strictly and says it in JSON
 * Schema, so that the three cannot drift.
 */
export interface Kind<T> {
  /** JSON text of a value. */
  write(value: T): string;
  /** The value of parsed JSON. Throws `CorruptEventError` for anything else, naming the field: `context`, then `name`. */
  read(json: unknown, context: string, name: string): T;
  readonly schema: Schema;
  /** Of names alone: their form as base64, which `<field>64` holds where a name is no UTF-8. */
  readonly base64?: Kind<T>;
  /** Of names alone: whether JSON text in UTF-8 can hold the value. */
  isText?(value: T): boolean;
}

export type Schema = { readonly [keyword: string]: unknown };

/** A log line that cannot be what it says it is. `reason` names the field; the store knows the line. */
export class CorruptEventError extends Error {
  override readonly name = 'CorruptEventError';
  readonly reason: string;

  constructor(reason: string, cause?: unknown) {
    super(reason, cause === undefined ? undefined : { cause });
    this.reason = reason;
  }
}

/** Everything but `"`, `\`, controls and surrogates stands for itself in JSON. */
const needsEscape = /[^ !#-[\]-\ud7ff\ue000-\uffff]/;

/** Whether `text` stands in JSON as it is: nearly every name does. */
export function isPlain(text: string): boolean {
  return !needsEscape.test(text);
}

/** JSON text of any string. Much faster than JSON.stringify for plain ones. */
export function quote(text: string): string {
  return isPlain(text) ? '"' + text + '"' : JSON.stringify(text);
}

/** JSON text of a count of anything. Throws RangeError for what a reader would refuse: a line must never be written wrong. */
export function digits(value: number): string {
  if (!Number.isSafeInteger(value)) throw new RangeError(`${value} cannot stand in the log: no exact integer`);
  return '' + value;
}

/** JSON text of an inode or device number. */
export function inodeText(value: Inode): string {
  return typeof value === 'number' ? digits(value) : '"' + value + '"';
}

function kind<T>(words: string, is: (json: unknown) => boolean, schema: Schema, write: (value: T) => string): Kind<T> {
  return {
    write,
    schema,
    read(json, context, name) {
      if (!is(json)) throw new CorruptEventError(`field "${context}${name}" is not ${words}`);
      return json as T;
    },
  };
}

const ns = /^-?(?:0|[1-9][0-9]*)$/;
const decimal = /^(?:0|[1-9][0-9]*)$/;
const moment = /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$/;
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
/** A component that no resolved path has: empty, `.` or `..`. */
const unresolved = /(?:^|\/)\.{0,2}(?:\/|$)/;

const isString = (json: unknown): json is string => typeof json === 'string';
const isCount = (json: unknown): json is number => Number.isSafeInteger(json) && (json as number) >= 0;
const isName = (json: unknown): json is string => isString(json) && !json.includes('\0');
const isPath = (json: unknown): boolean => json === '' || (isName(json) && !unresolved.test(json));
const plain = (value: string): string => '"' + value + '"';
const integerSchema = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER };

export const STRING: Kind<string> = kind('a string', isString, { type: 'string' }, quote);
export const COUNT: Kind<number> = kind('a whole number', isCount, integerSchema, digits);
export const SEQ: Kind<number> =
  kind('a whole number from 1', (json) => isCount(json) && json > 0, { ...integerSchema, minimum: 1 }, digits);
export const BOOLEAN: Kind<boolean> =
  kind('true or false', (json) => typeof json === 'boolean', { type: 'boolean' }, String);
export const TRUE: Kind<true> = kind('true', (json) => json === true, { const: true }, () => 'true');
export const STATUS: Kind<number | null> = kind(
  'an exit status or null', (json) => json === null || Number.isSafeInteger(json), { type: ['integer', 'null'] },
  (value) => value === null ? 'null' : digits(value));
export const JSON_VALUE: Kind<unknown> = kind('JSON', () => true, {}, (value) => JSON.stringify(value) ?? 'null');
export const STRINGS: Kind<readonly string[]> = kind(
  'a list of strings', (json) => Array.isArray(json) && json.every(isString),
  { type: 'array', items: { type: 'string' } }, (value) => JSON.stringify(value));
export const SEQS: Kind<readonly number[]> = kind(
  'a list of event numbers', (json) => Array.isArray(json) && json.every((seq) => isCount(seq) && seq > 0),
  { type: 'array', items: { ...integerSchema, minimum: 1 } }, (value) => '[' + value.map(digits).join() + ']');
export const MOMENT: Kind<string> = kind(
  'an ISO 8601 time in ms, UTC', (json) => isString(json) && moment.test(json),
  { type: 'string', pattern: moment.source }, quote);
export const NANOSECONDS: Kind<Nanoseconds> = kind(
  'a time in ns as a decimal string', (json) => isString(json) && ns.test(json),
  { type: 'string', pattern: ns.source }, quote);
export const VERSION: Kind<Version> = kind<Version>(
  'a version (sha256:…)', isVersion, { type: 'string', pattern: '^sha256:[0-9a-f]{64}$' }, plain);
export const BASE64: Kind<string> = kind(
  'base64', (json) => isString(json) && base64.test(json), { type: 'string', contentEncoding: 'base64' }, quote);
export const INODE: Kind<Inode> = kind(
  'an inode or device number', (json) => isCount(json) || (isString(json) && decimal.test(json)),
  { anyOf: [integerSchema, { type: 'string', pattern: decimal.source }] }, inodeText);

const NODE_TYPES: readonly NodeType[] = ['file', 'directory', 'symlink', 'fifo', 'socket', 'block', 'character'];
export const NODE_TYPE: Kind<NodeType> = kind<NodeType>(
  'a file type', (json) => NODE_TYPES.some((type) => type === json), { enum: NODE_TYPES }, plain);

/** Pairs [start, end) in bytes, start before end. */
export const RANGES: Kind<readonly (readonly [number, number])[]> = kind(
  'a list of byte ranges [start, end)',
  (json) => Array.isArray(json) && json.every((range: unknown) => Array.isArray(range) && range.length === 2 &&
    isCount(range[0]) && isCount(range[1]) && range[0] <= range[1]),
  { type: 'array', items: { type: 'array', prefixItems: [integerSchema, integerSchema], items: false, minItems: 2 } },
  (value) => '[' + value.map(([start, end]) => '[' + digits(start) + ',' + digits(end) + ']').join() + ']');

/** Triples [at, removed, added] in bytes. */
export const SPLICES: Kind<readonly (readonly [number, number, number])[]> = kind(
  'a list of splices [at, removed, added]',
  (json) => Array.isArray(json) && json.every((splice: unknown) => Array.isArray(splice) && splice.length === 3 && splice.every(isCount)),
  { type: 'array', items: { type: 'array', prefixItems: [integerSchema, integerSchema, integerSchema], items: false, minItems: 3 } },
  (value) => '[' + value.map((splice) => '[' + splice.map(digits).join() + ']').join() + ']');

/** Base64 of a name's bytes. */
export function toBase64(name: string): string {
  return btoa(String.fromCharCode(...toBytes(name)));
}

function fromBase64(text: string): string {
  return fromBytes(Uint8Array.from(atob(text), (char) => char.charCodeAt(0)));
}

function nameKind<T extends string>(words: string, is: (json: unknown) => boolean, schema: Schema): Kind<T> {
  return {
    ...kind<T>(words, is, schema, quote),
    isText: (value) => isPlain(value) || value.isWellFormed(),
    base64: {
      schema: BASE64.schema,
      write: (value) => plain(toBase64(value)),
      read(json, context, name) {
        const text = fromBase64(BASE64.read(json, context, name));
        if (!is(text)) throw new CorruptEventError(`field "${context}${name}" is not ${words}`);
        return text as T;
      },
    },
  };
}

/** A resolved path. `..` and its like are refused here: what a log names must lie below the root. */
export const PATH: Kind<TreePath> = nameKind(
  'a resolved path', isPath, { type: 'string', not: { pattern: '(?:^|/)\\.{1,2}(?:/|$)|//|^/|/$|\\u0000' } });
/** A name as somebody gave it: a symlink's target, a path as asked. */
export const NAME: Kind<string> = nameKind('a name', isName, { type: 'string', not: { pattern: '\\u0000' } });

function listOf<T>(item: Kind<T>): Kind<readonly T[]> {
  return {
    schema: { type: 'array', items: item.schema },
    write: (value) => '[' + value.map((entry) => item.write(entry)).join() + ']',
    read(json, context, name) {
      if (!Array.isArray(json)) throw new CorruptEventError(`field "${context}${name}" is not a list`);
      return json.map((entry, index) => item.read(entry, context, `${name}[${index}]`));
    },
  };
}

/** Several paths; where one of them is no UTF-8, all are base64 in `paths64`. */
export const PATHS: Kind<readonly TreePath[]> = {
  ...listOf(PATH),
  isText: (value) => value.every((path) => path.isWellFormed()),
  base64: listOf(PATH.base64 as Kind<TreePath>),
};

/** A list of records of one kind. */
export function records<T>(item: Kind<T>): Kind<readonly T[]> {
  return listOf(item);
}

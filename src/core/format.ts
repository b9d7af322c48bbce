import type { EventBody, ExtentRecord, FingerprintRecord, KeptRecord, LowerBase, Op, PathVersion, ProcessInfo, RuleRecord, WriteBody } from './event.ts';
import {
  BASE64, BOOLEAN, CorruptEventError, COUNT, INODE, JSON_VALUE, MOMENT, NAME, NANOSECONDS, NODE_TYPE, PATH, PATHS, RANGES,
  SEQ, SEQS, SPLICES, STATUS, STRING, STRINGS, TRUE, VERSION, records,
} from './kind.ts';
import type { Kind, Schema } from './kind.ts';

/**
 * The format of a log line, field by field, in the order in which the fields are written. The types force this table to
 * name every field of every event; encoding, decoding and the schema are all read off it.
 *
 * A line is refused when a field is missing, unknown or of another kind. Three things that older writers left out
 * are supplied instead: `mtime` is then the event's own time, `uid` and `gid` are 0.
 */

/** The version of this format: in the header of every log, and in the schema. */
export const FORMAT_VERSION = 1;

type JsonObject = { [key: string]: unknown };

interface Field<T, Presence extends 'required' | 'optional'> {
  readonly kind: Kind<T>;
  readonly presence: Presence;
  /** What stands in for a field that is not there. */
  readonly supply?: (record: JsonObject) => T;
}

type AnyField = Field<unknown, 'required' | 'optional'>;

/** A field for every key of `B`, required or optional as it is there. */
type FieldsOf<B> = {
  readonly [K in Exclude<keyof B, 'op'>]-?:
    Field<Exclude<B[K], undefined>, object extends Pick<B, K> ? 'optional' : 'required'>;
};

const required = <T>(kind: Kind<T>): Field<T, 'required'> => ({ kind, presence: 'required' });
const optional = <T>(kind: Kind<T>): Field<T, 'optional'> => ({ kind, presence: 'optional' });
const supplied = <T>(kind: Kind<T>, supply: (record: JsonObject) => T): Field<T, 'required'> =>
  ({ kind, presence: 'required', supply });

/** One field of a compiled table. `key` is its name in memory; `name` the one on the line, which may end in `64`. */
interface Slot {
  readonly key: string;
  readonly name: string;
  readonly kind: Kind<unknown>;
  readonly isRequired: boolean;
}

/** What a record's fields are, ready for writing, reading and describing it. */
export class Table {
  readonly fields: ReadonlyMap<string, AnyField>;
  private readonly slots = new Map<string, Slot>();
  private readonly required: string[] = [];

  constructor(fields: { readonly [key: string]: AnyField }) {
    this.fields = new Map(Object.entries(fields));
    for (const [key, { kind, presence }] of this.fields) {
      const isRequired = presence === 'required';
      this.slots.set(key, { key, name: key, kind, isRequired });
      if (kind.base64) this.slots.set(key + '64', { key, name: key + '64', kind: kind.base64, isRequired });
      if (isRequired) this.required.push(key);
    }
  }

  /** `,"a":1,"b":2` of a record's fields, in the table's order. */
  write(record: object): string {
    let text = '';
    for (const [key, { kind }] of this.fields) {
      const value = (record as JsonObject)[key];
      if (value === undefined) continue;
      text += kind.base64 && !kind.isText?.(value)
        ? `,"${key}64":${kind.base64.write(value)}`
        : `,"${key}":${kind.write(value)}`;
    }
    return text;
  }

  /** Turns a parsed JSON object into the record it stands for, in place: it belongs to the caller, just parsed. */
  read(record: JsonObject, context: string): void {
    let missing = this.required.length;
    for (const name in record) {
      const slot = this.slots.get(name);
      if (slot === undefined) throw new CorruptEventError(`unknown field "${context}${name}"`);
      const json = record[name], value = slot.kind.read(json, context, name);
      if (slot.key !== name) {
        if (slot.key in record) throw new CorruptEventError(`both "${context}${slot.key}" and "${context}${name}"`);
        delete record[name];
        record[slot.key] = value;
      } else if (value !== json) record[name] = value;
      if (slot.isRequired) missing--;
    }
    if (missing !== 0) this.supply(record, context);
  }

  private supply(record: JsonObject, context: string): void {
    for (const key of this.required) {
      if (Object.hasOwn(record, key)) continue;
      const field = this.fields.get(key);
      if (field?.supply === undefined) throw new CorruptEventError(`field "${context}${key}" is missing`);
      record[key] = field.supply(record);
    }
  }

  /** JSON Schema of a record: its properties, and which of them must be there. */
  schema(): Schema {
    const properties: { [name: string]: Schema } = {};
    for (const { name, kind } of this.slots.values()) properties[name] = kind.schema;
    const must: string[] = [], oneOf: Schema[] = [];
    for (const [key, { kind, presence, supply }] of this.fields) {
      const either = [{ required: [key] }, { required: [key + '64'] }];
      if (presence === 'required' && !supply) {
        if (kind.base64) oneOf.push({ oneOf: either });
        else must.push(key);
      } else if (kind.base64) oneOf.push({ not: { required: [key, key + '64'] } });
    }
    return {
      type: 'object', properties, required: must, additionalProperties: false,
      ...(oneOf.length === 0 ? {} : { allOf: oneOf }),
    };
  }
}

/** A record inside a record. */
function record<T extends object>(fields: FieldsOf<T>): Kind<T> {
  const table = new Table(fields);
  return {
    schema: table.schema(),
    write: (value) => '{' + table.write(value).slice(1) + '}',
    read(json, context, name) {
      if (!isObject(json)) throw new CorruptEventError(`field "${context}${name}" is not an object`);
      table.read(json, context + name + '.');
      return json as T;
    },
  };
}

/** Whether parsed JSON is an object: no list, not null. */
export function isObject(json: unknown): json is JsonObject {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}

const FINGERPRINT = record<FingerprintRecord>({
  dev: required(INODE), ino: required(INODE), size: required(COUNT), mtime: required(NANOSECONDS), ctime: required(NANOSECONDS),
});
const LOWER_BASE = record<LowerBase>({
  type: required(NODE_TYPE), mode: required(COUNT), uid: required(COUNT), gid: required(COUNT), size: required(COUNT),
  nlink: required(COUNT), dev: required(INODE), ino: required(INODE), rdev: optional(COUNT), mtime: required(NANOSECONDS),
  ctime: required(NANOSECONDS), atime: optional(NANOSECONDS), birthtime: optional(NANOSECONDS), version: optional(VERSION),
  target: optional(NAME),
});
const EXTENT = record<ExtentRecord>({
  at: required(COUNT), length: required(COUNT), blob: optional(VERSION), from: optional(COUNT), lower: optional(COUNT),
});
const CREATED = record<NonNullable<WriteBody['created']>>({ uid: required(COUNT), gid: required(COUNT), at: optional(NANOSECONDS) });
const RULE = record<RuleRecord>({ match: required(STRING), effect: required(STRING), on: optional(STRINGS) });
const PATH_VERSION = record<PathVersion>({ path: required(PATH), version: required(VERSION) });
const PROCESS = record<ProcessInfo>({
  pid: required(COUNT), name: required(STRING), parent: optional(COUNT), inferred: optional(BOOLEAN),
});

const KEPT = record<KeptRecord>({ path: required(PATH), base: optional(LOWER_BASE), blob: optional(VERSION), extents: optional(records(EXTENT)) });

const place = { path: required(PATH), via: optional(NAME) };
const mtime = supplied(NANOSECONDS, (event) => `${Date.parse(event['time'] as string)}000000`);
const owner = { uid: supplied(COUNT, () => 0), gid: supplied(COUNT, () => 0) };
const mutation = { mtime, lower: optional(LOWER_BASE), unlinked: optional(TRUE), dev: optional(INODE) };

const BODIES: { readonly [O in Op]: FieldsOf<Extract<EventBody, { op: O }>> } = {
  read: {
    ...place, version: optional(VERSION), fingerprint: optional(FINGERPRINT), size: required(COUNT), ranges: optional(RANGES),
    search: optional(TRUE), blob: optional(VERSION),
  },
  list: { ...place, version: required(VERSION), count: required(COUNT), lower: optional(VERSION), blob: optional(VERSION) },
  stat: {
    ...place, exists: required(NODE_TYPE), mode: required(COUNT), uid: required(COUNT), gid: required(COUNT),
    size: required(COUNT), nlink: required(COUNT), ino: required(INODE), rdev: required(COUNT), mtime: required(NANOSECONDS),
    ctime: required(NANOSECONDS),
  },
  readlink: { ...place, target: required(NAME) },
  miss: { ...place, call: required(STRING) },

  write: {
    ...place, version: optional(VERSION), size: required(COUNT), mode: required(COUNT), ino: required(INODE),
    created: optional(CREATED), blob: optional(VERSION), extents: optional(records(EXTENT)), before: optional(VERSION),
    splices: optional(SPLICES), ...mutation,
  },
  truncate: { ...place, size: required(COUNT), ino: required(INODE), version: optional(VERSION), ...mutation },
  mkdir: { ...place, mode: required(COUNT), ino: required(INODE), ...owner, ...mutation },
  mknod: {
    ...place, type: required(NODE_TYPE), mode: required(COUNT), rdev: required(COUNT), ino: required(INODE), ...owner,
    ...mutation,
  },
  symlink: { ...place, target: required(NAME), ino: required(INODE), ...owner, ...mutation },
  link: { ...place, to: required(PATH), ino: required(INODE), ...mutation },
  rename: {
    ...place, to: required(PATH), exchange: optional(TRUE), onto: optional(LOWER_BASE), whiteout: optional(TRUE), ...mutation,
  },
  delete: { ...place, whiteout: optional(TRUE), ...mutation },
  chmod: { ...place, ino: optional(INODE), mode: required(COUNT), ...mutation },
  chown: {
    ...place, ino: optional(INODE), uid: required(COUNT), gid: required(COUNT), mode: required(COUNT), ...mutation,
  },
  utimes: { ...place, ino: optional(INODE), atime: required(NANOSECONDS), ctime: required(NANOSECONDS), ...mutation },
  setxattr: { ...place, ino: optional(INODE), name: required(NAME), value: required(BASE64), ...mutation },
  removexattr: { ...place, ino: optional(INODE), name: required(NAME), ...mutation },
  discard: { paths: optional(PATHS) },
  undo: { events: required(SEQS) },

  run: { argv: required(STRINGS), cwd: required(STRING) },
  exit: { status: required(STATUS), signal: optional(STRING) },
  mark: { label: required(STRING), data: optional(JSON_VALUE) },
  refuse: {
    path: optional(PATH), via: optional(NAME), outside: optional(NAME), call: required(STRING), code: required(STRING),
    rule: optional(STRING),
  },
  rules: { rules: required(records(RULE)) },
  flag: { ...place, rule: required(STRING), call: required(STRING) },
  fork: { name: required(STRING), session: optional(STRING) },
  merge: { session: required(STRING), seq: required(COUNT) },
  commit: {
    id: required(STRING), changes: required(COUNT), guard: required(STRING), durability: required(STRING), paths: optional(PATHS),
    moves: optional(PATHS), versions: optional(records(PATH_VERSION)), record: optional(STRINGS),
  },
  revert: { id: required(STRING), moves: optional(PATHS) },
  seal: { hash: required(VERSION) },
};

const STAMP = { seq: required(SEQ), time: required(MOMENT), actor: required(STRING) };

/** By op, what stands on its line between `op` and `crc`. */
export const BODY_TABLES: ReadonlyMap<string, Table> = new Map(Object.entries(BODIES).map(([op, fields]) =>
  [op, new Table({ ...fields, process: optional(PROCESS), kept: optional(records(KEPT)) })]));

/** By op, all of its line but `crc`, which is the store's. */
export const LINE_TABLES: ReadonlyMap<string, Table> = new Map(Object.entries(BODIES).map(([op, fields]) =>
  [op, new Table({
    ...STAMP, op: required({ ...STRING, schema: { const: op } }), ...fields, process: optional(PROCESS), kept: optional(records(KEPT)),
  })]));

/** A lower under its name. */
export interface NamedRoot {
  readonly name: string;
  readonly path: string;
}

/** The first line of a log. */
export interface Header {
  readonly palimpsest: 1;
  readonly session: string;
  /** The lower's real path. */
  readonly root: string;
  /** Of several lowers side by side: the name and the real path of each. */
  readonly roots?: readonly NamedRoot[];
  /** Of several lowers stacked: the real path of each, the first one wins. `root` is then all of them, joined by colons. */
  readonly layers?: readonly string[];
  /** ISO 8601 with ms. */
  readonly created: string;
  /** Of a forked session: whose history it goes on, and from where. */
  readonly parent?: { readonly session: string; readonly seq: number; readonly seal: string };
}

export const HEADER_TABLE = new Table({
  palimpsest: required({ ...COUNT, schema: { const: FORMAT_VERSION } }), session: required(STRING), root: required(STRING),
  roots: optional(records(record<NamedRoot>({ name: required(NAME), path: required(STRING) }))),
  layers: optional(STRINGS), created: required(MOMENT),
  parent: optional(record<NonNullable<Header['parent']>>({
    session: required(STRING), seq: required(COUNT), seal: required(STRING),
  })),
});

import type { NodeType } from './attr.ts';
import { LOWER_CONTENT, type Content } from './content.ts';
import type { LowerBase } from './event.ts';
import { emptyExtents, overwrite, slices, truncateTo, type ExtentSource } from './extents.ts';
import { Names } from './names.ts';
import { observationsFromJson, observationsToJson } from './recollection.ts';
import { Owner } from './owner.ts';
import type { TreePath } from './path.ts';
import type { State } from './state.ts';
import { Node, Shared, WHITEOUT, type Entry } from './tree.ts';
import { unreachable } from './unreachable.ts';
import type { Version } from './version.ts';

/**
 * A folded state as JSON text, so that opening a session need not fold its whole log. Only a cache: a text that does
 * not decode, or of another `CHECKPOINT_VERSION`, is thrown away and the log folded instead.
 *
 * Paths may hold lone surrogates (bytes that are no UTF-8); JSON escapes those, so they survive the way to bytes and back.
 */
const CHECKPOINT_VERSION = 1;


interface NodeJson {
  type: NodeType; ino?: string; dev?: string; origin?: string; base?: LowerBase; mode?: number; uid?: number; gid?: number;
  rdev?: number; atime?: string; mtime?: string; ctime?: string; birthtime?: string; timesSet?: true; nlink: number;
  subdirectories?: number; content?: ContentJson; version?: Version; contentSeq?: number; target?: string; opaque?: true;
  names?: [string, EntryJson][]; xattrs?: [string, string | null][];
}

type EntryJson = NodeJson | 0 | { key: string };

type ContentJson = { digest: Version; size: number } | { size: number; extents: [number, number, SourceJson][] };

/** Zeros, the lower from a byte on, a blob from a byte on. */
type SourceJson = 0 | number[] | [Version, number];

interface StateJson {
  checkpoint: number; seq: number; nextIno: number; root: NodeJson; links: [string, NodeJson][]; bases: [string, LowerBase][];
  marks: [string, number][]; observations?: unknown;
}

/** The JSON text of a state without unpublished writes. */
export function encodeState(state: State): string {
  const links: StateJson['links'] = [], bases: StateJson['bases'] = [];
  state.links.forEach((node, key) => links.push([key, nodeJson(node)]));
  state.bases.forEach((base, path) => bases.push([path, base]));
  const json: StateJson = {
    checkpoint: CHECKPOINT_VERSION, seq: state.seq, nextIno: state.nextIno, root: nodeJson(state.root), links, bases,
    marks: [...state.marks],
  };
  return `${JSON.stringify(json).slice(0, -1)},"observations":${observationsToJson(state.observations)}}`;
}

/** The state of a text made by `encodeState`; `undefined` where it is of another version. Throws on damage. */
export function decodeState(text: string): State | undefined {
  const json = JSON.parse(text) as StateJson;
  if (json.checkpoint !== CHECKPOINT_VERSION) return undefined;
  const owner = new Owner();
  return {
    owner, seq: json.seq, nextIno: json.nextIno, root: nodeOf(owner, json.root),
    links: namesOf(owner, json.links, (node) => nodeOf(owner, node)),
    bases: namesOf(owner, json.bases, (base) => base),
    marks: new Map(json.marks), observations: observationsFromJson(json.observations),
  };
}

function nodeJson(node: Node): NodeJson {
  const json: NodeJson = { type: node.type, nlink: node.nlink };
  for (const key of ['ino', 'dev', 'atime', 'mtime', 'ctime', 'birthtime'] as const) {
    const value = node[key];
    if (value !== undefined) json[key] = String(value);
  }
  for (const key of ['origin', 'base', 'mode', 'uid', 'gid', 'version', 'target'] as const) {
    if (node[key] !== undefined) Object.assign(json, { [key]: node[key] });
  }
  for (const key of ['rdev', 'subdirectories', 'contentSeq'] as const) if (node[key] !== 0) json[key] = node[key];
  if (node.timesSet) json.timesSet = true;
  if (node.opaque) json.opaque = true;
  if (node.content.kind !== 'lower') json.content = contentJson(node.content);
  if (node.xattrs !== undefined) json.xattrs = [...node.xattrs].map(([name, value]) => [name, value ?? null]);
  if (node.names !== undefined) {
    json.names = [];
    node.names.forEach((entry, name) => json.names?.push([name, entryJson(entry)]));
  }
  return json;
}

function nodeOf(owner: Owner, json: NodeJson): Node {
  const node = new Node(owner, {
    type: json.type, ino: json.ino === undefined ? undefined : BigInt(json.ino),
    dev: json.dev === undefined ? undefined : BigInt(json.dev), origin: json.origin as TreePath | undefined, base: json.base,
  });
  for (const key of ['atime', 'mtime', 'ctime', 'birthtime'] as const) {
    const value = json[key];
    if (value !== undefined) node[key] = BigInt(value);
  }
  node.mode = json.mode;
  node.uid = json.uid;
  node.gid = json.gid;
  node.version = json.version;
  node.target = json.target;
  node.nlink = json.nlink;
  node.rdev = json.rdev ?? 0;
  node.subdirectories = json.subdirectories ?? 0;
  node.contentSeq = json.contentSeq ?? 0;
  node.timesSet = json.timesSet === true;
  node.opaque = json.opaque === true;
  node.content = json.content === undefined ? LOWER_CONTENT : contentOf(json.content);
  if (json.xattrs !== undefined) node.xattrs = new Map(json.xattrs.map(([name, value]) => [name, value ?? undefined]));
  if (json.names !== undefined) node.names = namesOf(owner, json.names, (entry) => entryOf(owner, entry));
  return node;
}

function namesOf<J, V>(owner: Owner, json: readonly (readonly [string, J])[], valueOf: (json: J) => V): Names<V> {
  const names = new Names<V>(owner);
  for (const [name, value] of json) names.set(name, valueOf(value));
  return names;
}

function entryJson(entry: Entry): EntryJson {
  if (entry === WHITEOUT) return 0;
  return entry instanceof Shared ? { key: entry.key } : nodeJson(entry);
}

function entryOf(owner: Owner, json: EntryJson): Entry {
  if (json === 0) return WHITEOUT;
  return 'key' in json ? new Shared(json.key) : nodeOf(owner, json);
}

function contentJson(content: Exclude<Content, { kind: 'lower' }>): ContentJson {
  switch (content.kind) {
    case 'blob': return { digest: content.digest, size: content.size };
    case 'draft': throw new Error('a checkpoint cannot hold bytes that are not stored');
    case 'extents': {
      const extents = slices(content.map, 0, content.map.size)
        .map(({ at, length, source }): [number, number, SourceJson] => [at, length, sourceJson(source)]);
      return { size: content.map.size, extents };
    }
    default: return unreachable(content);
  }
}

function contentOf(json: ContentJson): Content {
  if ('digest' in json) return { kind: 'blob', digest: json.digest, size: json.size };
  let map = emptyExtents(0);
  for (const [at, length, source] of json.extents) map = overwrite(map, at, length, sourceOf(source));
  return { kind: 'extents', map: truncateTo(map, json.size) };
}

function sourceJson(source: ExtentSource): SourceJson {
  switch (source.kind) {
    case 'zeros': return 0;
    case 'lower': return [source.from];
    case 'blob': return [source.digest, source.from];
    case 'bytes': throw new Error('a checkpoint cannot hold bytes that are not stored');
    default: return unreachable(source);
  }
}

function sourceOf(json: SourceJson): ExtentSource {
  if (json === 0) return { kind: 'zeros' };
  const [first, from] = json;
  return typeof first === 'string' ? { kind: 'blob', digest: first, from: from as number } : { kind: 'lower', from: first as number };
}


import type { NodeType } from './attr.ts';
import type { Base } from './base.ts';
import type { Content } from './content.ts';
import type { LowerBase, Op, RuleRecord } from './event.ts';
import { incidentKey, type Incident } from './incident.ts';
import { emptyExtents, overwrite, slices, truncateTo, type ExtentSource } from './extents.ts';
import { Names } from './names.ts';
import { observationsFromJson, observationsToJson } from './recollection.ts';
import { Owner } from './owner.ts';
import type { TreePath } from './path.ts';
import type { State } from './state.ts';
import type { Counts, Totals } from './statistics.ts';
import { Node, Shared, WHITEOUT, type Entry } from './tree.ts';
import { unreachable } from './unreachable.ts';
import type { Version } from './version.ts';

/**
 * A folded state as JSON text, so that opening a session need not fold its whole log. Only a cache: a text that does
 * not decode, or of another `CHECKPOINT_VERSION`, is thrown away and the log folded instead.
 *
 * Paths may hold lone surrogates (bytes that are no UTF-8); JSON escapes those, so they survive the way to bytes and back.
 */
const CHECKPOINT_VERSION = 5;

/** A list and no object: a session has a node for each file it changed, and their keys would be half of the text. */
type NodeJson = [
  type: NodeType, nlink: number, origin: string | null, ino: IntegerJson, dev: IntegerJson,
  mode: number | null, uid: number | null, gid: number | null, times: TimesJson,
  /** 1: that of the content's blob. */
  version: Version | 1 | null, contentSeq: number, content: ContentJson | null,
  /** Name, entry, name, entry, … */
  names: (string | EntryJson)[] | null,
  rest?: RestJson,
];

/** What few nodes have. */
interface RestJson {
  base?: LowerBase; rdev?: number; timesSet?: true; subdirectories?: number; target?: string; opaque?: true;
  xattrs?: [string, string | null][];
}

/** A number where it is exact as one. */
type IntegerJson = number | string | null;

/** atime, mtime, ctime and birthtime; one where all four are the same. */
type TimesJson = string | (string | null)[];

/** A whiteout, the key of a node with several names, a node. */
type EntryJson = 0 | string | NodeJson;

type ContentJson = [Version, number] | [number, ...[number, number, SourceJson][]];

/** Zeros, the lower from a byte on, a blob from a byte on. */
type SourceJson = 0 | number[] | [Version, number];

interface StateJson {
  checkpoint: number; seq: number; nextIno: number; root: NodeJson; links: [string, NodeJson][]; bases: [string, Base][];
  marks: [string, number][]; rules: readonly RuleRecord[]; totals: TotalsJson; incidents: Incident[]; observations?: unknown;
}

type TotalsJson = Omit<Totals, 'ops' | 'actors'> & { ops: [Op, number][]; actors: [string, Counts][] };

function totalsJson(totals: Totals): TotalsJson {
  return { ...totals, ops: [...totals.ops], actors: [...totals.actors] };
}

/** The JSON text of a state without unpublished writes. */
export function encodeState(state: State): string {
  const links: StateJson['links'] = [], bases: StateJson['bases'] = [];
  state.links.forEach((node, key) => links.push([key, nodeJson(node)]));
  state.bases.forEach((base, path) => bases.push([path, base]));
  const json: StateJson = {
    checkpoint: CHECKPOINT_VERSION, seq: state.seq, nextIno: state.nextIno, root: nodeJson(state.root), links, bases,
    marks: [...state.marks], rules: state.rules, totals: totalsJson(state.totals), incidents: [...state.incidents.values()],
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
    marks: new Map(json.marks), rules: json.rules,
    totals: { ...json.totals, first: json.totals.first, last: json.totals.last, ops: new Map(json.totals.ops), actors: new Map(json.totals.actors) },
    incidents: new Map(json.incidents.map((incident) => [incidentKey(incident), incident])),
    observations: observationsFromJson(json.observations),
  };
}

function nodeJson(node: Node): NodeJson {
  const { type, nlink, mode, uid, gid, version, contentSeq, content } = node;
  const isOfBlob = content.kind === 'blob' && version === content.digest;
  const json: NodeJson = [
    type, nlink, node.origin ?? null, integerJson(node.ino), integerJson(node.dev), mode ?? null, uid ?? null, gid ?? null,
    timesJson(node), isOfBlob ? 1 : version ?? null, contentSeq, content.kind === 'lower' ? null : contentJson(content),
    node.names === undefined ? null : namesJson(node.names),
  ];
  const rest = restJson(node);
  if (rest !== undefined) json.push(rest);
  return json;
}

function namesJson(names: Names<Entry>): (string | EntryJson)[] {
  const json: (string | EntryJson)[] = [];
  names.forEach((entry, name) => json.push(name, entryJson(entry)));
  return json;
}

function restJson({ base, rdev, timesSet, subdirectories, target, opaque, xattrs }: Node): RestJson | undefined {
  if (base === undefined && rdev === 0 && !timesSet && subdirectories === 0 && target === undefined && !opaque && xattrs === undefined) {
    return undefined;
  }
  return {
    ...(base && { base }), ...(rdev !== 0 && { rdev }), ...(timesSet && { timesSet }), ...(subdirectories !== 0 && { subdirectories }),
    ...(target !== undefined && { target }), ...(opaque && { opaque }),
    ...(xattrs && { xattrs: Array.from(xattrs, ([name, value]): [string, string | null] => [name, value ?? null]) }),
  };
}

function nodeOf(owner: Owner, json: NodeJson): Node {
  // By index: at opening this code is cold, and taking a list apart by a pattern then costs twice as much.
  const times = json[8], version = json[9], content = json[11], names = json[12], rest = json[13];
  const node = new Node(owner, {
    type: json[0], ino: integerOf(json[3]), dev: integerOf(json[4]), origin: (json[2] ?? undefined) as TreePath | undefined,
    base: rest?.base,
  });
  if (typeof times === 'string') node.atime = node.mtime = node.ctime = node.birthtime = BigInt(times);
  else {
    const [atime, mtime, ctime, birthtime] = times;
    node.atime = timeOf(atime);
    node.mtime = timeOf(mtime);
    node.ctime = timeOf(ctime);
    node.birthtime = timeOf(birthtime);
  }
  node.nlink = json[1];
  node.mode = json[5] ?? undefined;
  node.uid = json[6] ?? undefined;
  node.gid = json[7] ?? undefined;
  node.contentSeq = json[10];
  if (content !== null) node.content = contentOf(content);
  node.version = version === 1 ? (content as [Version, number])[0] : version ?? undefined;
  if (names !== null) node.names = entriesOf(owner, names);
  if (rest === undefined) return node;
  node.rdev = rest.rdev ?? 0;
  node.timesSet = rest.timesSet === true;
  node.subdirectories = rest.subdirectories ?? 0;
  node.target = rest.target;
  node.opaque = rest.opaque === true;
  if (rest.xattrs !== undefined) node.xattrs = new Map(rest.xattrs.map(([name, value]) => [name, value ?? undefined]));
  return node;
}

function timesJson({ atime, mtime, ctime, birthtime }: Node): TimesJson {
  if (atime !== undefined && atime === mtime && atime === ctime && atime === birthtime) return String(atime);
  return [atime, mtime, ctime, birthtime].map((time) => time === undefined ? null : String(time));
}

function timeOf(json: string | null | undefined): bigint | undefined {
  return json === null || json === undefined ? undefined : BigInt(json);
}

function integerJson(value: bigint | undefined): IntegerJson {
  if (value === undefined) return null;
  return value <= Number.MAX_SAFE_INTEGER ? Number(value) : String(value);
}

function integerOf(json: IntegerJson): bigint | undefined {
  return json === null ? undefined : BigInt(json);
}

function entriesOf(owner: Owner, json: readonly (string | EntryJson)[]): Names<Entry> {
  const names = new Names<Entry>(owner);
  for (let at = 0; at < json.length; at += 2) names.set(json[at] as string, entryOf(owner, json[at + 1] as EntryJson));
  return names;
}

function namesOf<J, V>(owner: Owner, json: readonly (readonly [string, J])[], valueOf: (json: J) => V): Names<V> {
  const names = new Names<V>(owner);
  for (const [name, value] of json) names.set(name, valueOf(value));
  return names;
}

function entryJson(entry: Entry): EntryJson {
  if (entry === WHITEOUT) return 0;
  return entry instanceof Shared ? entry.key : nodeJson(entry);
}

function entryOf(owner: Owner, json: EntryJson): Entry {
  if (json === 0) return WHITEOUT;
  return typeof json === 'string' ? new Shared(json) : nodeOf(owner, json);
}

function contentJson(content: Exclude<Content, { kind: 'lower' }>): ContentJson {
  switch (content.kind) {
    case 'blob': return [content.digest, content.size];
    case 'draft': throw new Error('a checkpoint cannot hold bytes that are not stored');
    case 'extents': {
      const extents = slices(content.map, 0, content.map.size)
        .map(({ at, length, source }): [number, number, SourceJson] => [at, length, sourceJson(source)]);
      return [content.map.size, ...extents];
    }
    default: return unreachable(content);
  }
}

function contentOf(json: ContentJson): Content {
  if (isBlob(json)) return { kind: 'blob', digest: json[0], size: json[1] };
  const [size, ...extents] = json;
  let map = emptyExtents(0);
  for (const [at, length, source] of extents) map = overwrite(map, at, length, sourceOf(source));
  return { kind: 'extents', map: truncateTo(map, size) };
}

function isBlob(json: ContentJson): json is [Version, number] {
  return typeof json[0] === 'string';
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

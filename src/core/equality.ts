import type { Observations, Trace } from './observation.ts';
import { slices } from './extents.ts';
import type { Names } from './names.ts';
import type { State } from './state.ts';
import { Node, Shared, type Entry } from './tree.ts';

/**
 * Where two states differ, in words; `undefined` where they know the same. Owners do not count, nor the order of names, nor a version that only one
 * of them has worked out yet.
 */
export function differenceOf(a: State, b: State): string | undefined {
  if (a.seq !== b.seq) return `they are after events ${a.seq} and ${b.seq}`;
  if (a.nextIno !== b.nextIno) return 'the next inode number';
  return nodes(a.root, b.root, '')
    ?? entries(a.links, b.links, (x, y, key) => nodes(x, y, `the file with several names ${key}`))
    ?? entries(a.bases, b.bases, (x, y, path) => JSON.stringify(x, plain) === JSON.stringify(y, plain) ? undefined : `the base of "${path}"`)
    ?? texts('marks', [...a.marks], [...b.marks]) ?? texts('rules', a.rules, b.rules)
    ?? texts('totals', totals(a), totals(b)) ?? texts('flags and refusals', [...a.incidents], [...b.incidents])
    ?? observations(a.observations, b.observations);
}

function nodes(a: Node, b: Node, path: string): string | undefined {
  if (fields(a) !== fields(b) || (a.version !== b.version && a.version !== undefined && b.version !== undefined)) return `"${path}"`;
  if (a.names === undefined || b.names === undefined) return a.names === b.names ? undefined : `"${path}"`;
  return entries(a.names, b.names, (x, y, name) => entry(x, y, path === '' ? name : `${path}/${name}`));
}

function entry(a: Entry, b: Entry, path: string): string | undefined {
  if (a instanceof Node && b instanceof Node) return nodes(a, b, path);
  if (a instanceof Shared && b instanceof Shared) return a.key === b.key ? undefined : `"${path}"`;
  return a === b ? undefined : `"${path}"`;
}

function entries<V>(a: Names<V>, b: Names<V>, compare: (a: V, b: V, name: string) => string | undefined): string | undefined {
  let found: string | undefined;
  a.forEach((value, name) => {
    const other = found === undefined ? b.get(name) : undefined;
    if (found === undefined) found = other === undefined ? `"${name}"` : compare(value, other, name);
  });
  return found ?? (a.size === b.size ? undefined : `"${b.names().find((name) => a.get(name) === undefined)}"`);
}

/** All of a node but its owner, its names and its version. */
function fields(node: Node): string {
  const { owner: _owner, names: _names, version: _version, content, xattrs, ...rest } = node;
  const held = content.kind === 'extents' ? slices(content.map, 0, content.map.size) : content;
  return JSON.stringify([rest, held, xattrs && [...xattrs].sort(([x], [y]) => x < y ? -1 : 1)], plain);
}

/** For JSON.stringify: the same text whatever the order of keys. */
function plain(_: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([x], [y]) => x < y ? -1 : 1));
}

function totals({ totals: { ops, actors, ...rest } }: State): unknown {
  return [rest, [...ops], [...actors]];
}

function texts(what: string, a: unknown, b: unknown): string | undefined {
  return JSON.stringify(a, plain) === JSON.stringify(b, plain) ? undefined : `the ${what}`;
}

function observations(a: Observations, b: Observations): string | undefined {
  for (const [actor, trace] of a.actors) {
    const other = b.actors.get(actor), found = other === undefined ? '' : traces(trace, other, '');
    if (found !== undefined) return `what ${actor} has seen of "${found}"`;
  }
  if (a.actors.size !== b.actors.size) return 'who has seen anything';
  return texts('last change', [a.change.actor ?? null, a.change.seq, a.change.other], [b.change.actor ?? null, b.change.seq, b.change.other]);
}

function traces(a: Trace, b: Trace, path: string): string | undefined {
  if (looks(a) !== looks(b)) return path;
  for (const [name, trace] of a.children ?? []) {
    const other = b.children?.get(name), here = path === '' ? name : `${path}/${name}`, found = other === undefined ? here : traces(trace, other, here);
    if (found !== undefined) return found;
  }
  return (a.children?.size ?? 0) === (b.children?.size ?? 0) ? undefined : path;
}

function looks({ seen, stat, link, emptied }: Trace): string {
  return JSON.stringify([seen?.kind === 'present' ? [seen.seq, seen.contentSeq, seen.version, seen.fingerprint, seen.shown] : seen,
    stat && [stat.seq, stat.exists, stat.ino, stat.size, stat.mtime, stat.ctime], link && [link.seq, link.target], emptied]);
}

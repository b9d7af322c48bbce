import type { Base } from './base.ts';
import type { RuleRecord } from './event.ts';
import type { Incident } from './incident.ts';
import { Names } from './names.ts';
import { initialObservations, type Observations } from './observation.ts';
import { Owner } from './owner.ts';
import { ROOT, type TreePath } from './path.ts';
import { initialTotals, type Totals } from './statistics.ts';
import { passThrough, Shared, WHITEOUT, type Entry, type Node } from './tree.ts';

/** Inode numbers from here on are the overlay's own; no usual file system counts that far. */
export const FIRST_INO = 2 ** 48 + 1;

/** All that a session knows, derived from its events alone by `evolve`. */
export interface State {
  /** May change this state's nodes in place. */
  owner: Owner;
  /** The last event folded in. */
  seq: number;
  root: Node;
  /** Nodes with several names, by `linkKey`. */
  links: Names<Node>;
  /** What the changes are based on, by lower path. */
  bases: Names<Base>;
  nextIno: number;
  observations: Observations;
  marks: Map<string, number>;
  /** The path rules that hold. */
  rules: readonly RuleRecord[];
  totals: Totals;
  /** Flags and refusals, by `incidentKey`. */
  incidents: Map<string, Incident>;
}

/** Nothing has happened yet: all is as the lower has it. */
export function initialState(): State {
  const owner = new Owner();
  return {
    owner, seq: 0, root: passThrough(owner, ROOT), links: new Names(owner), bases: new Names(owner),
    nextIno: FIRST_INO, observations: initialObservations(), marks: new Map(), rules: [],
    totals: initialTotals(), incidents: new Map(),
  };
}

/** What the overlay itself has under a path: a node, a whiteout, or `{ lower }` where only the lower can tell. */
export type Found = Node | typeof WHITEOUT | { readonly lower: TreePath } | undefined;

/** The node that a directory entry leads to. */
export function nodeOf(state: State, entry: Entry): Node | typeof WHITEOUT {
  if (!(entry instanceof Shared)) return entry;
  const node = state.links.get(entry.key);
  if (node === undefined) throw new Error(`no node with several names has key ${entry.key}`);
  return node;
}

/**
 * What the overlay itself knows of `path`, symlinks not followed. `undefined`: nothing is there and the lower need not
 * be asked (a parent is opaque, hidden or no directory).
 */
export function find(state: State, path: TreePath): Found {
  let node = state.root;
  for (let start = 0; start < path.length;) {
    const slash = path.indexOf('/', start), end = slash < 0 ? path.length : slash;
    const name = path.slice(start, end);
    const entry = node.names?.get(name);
    if (entry === undefined) {
      const lower = node.names === undefined ? undefined : node.below(name);
      return lower === undefined ? undefined : { lower: (lower + path.slice(end)) as TreePath };
    }
    const next = nodeOf(state, entry);
    if (next === WHITEOUT) return end === path.length ? WHITEOUT : undefined;
    node = next;
    start = end + 1;
  }
  return node;
}

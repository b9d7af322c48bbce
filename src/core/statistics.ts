import type { Event, Op } from './event.ts';
import type { TreePath } from './path.ts';
import { unreachable } from './unreachable.ts';

/** How much of what happened: in all, by op and by actor. */
export interface Totals {
  /** Events of any op. */
  events: number;
  /** ISO 8601; `undefined` while there is no event. */
  first: string | undefined;
  last: string | undefined;
  total: Counts;
  ops: Map<Op, number>;
  actors: Map<string, Counts>;
}

/** The same, and by path. A projection like any other. */
export interface Statistics extends Totals {
  /** A rename or link counts at both of its names. */
  paths: Map<TreePath, Counts>;
}

/** `looks` are stats and readlinks. Runs, marks, commits and seals are none of these. */
export interface Counts {
  reads: number;
  lists: number;
  looks: number;
  misses: number;
  mutations: number;
  refusals: number;
  flags: number;
}

/** Nothing has happened. */
export function initialStatistics(): Statistics {
  return { ...initialTotals(), paths: new Map() };
}

/** As `initialStatistics`. */
export function initialTotals(): Totals {
  return { events: 0, first: undefined, last: undefined, total: noCounts(), ops: new Map(), actors: new Map() };
}

/** Counts `event`; a `Reducer`. */
export function count(statistics: Statistics, event: Event): void {
  const column = countTotal(statistics, event);
  if (column === undefined) return;
  for (const path of pathsOf(event)) countsOf(statistics.paths, path)[column]++;
}

/** As `count`; gives as what the event counts. */
export function countTotal(totals: Totals, event: Event): keyof Counts | undefined {
  totals.events++;
  totals.first ??= event.time;
  totals.last = event.time;
  totals.ops.set(event.op, (totals.ops.get(event.op) ?? 0) + 1);
  const column = columnOf(event);
  if (column === undefined) return undefined;
  totals.total[column]++;
  countsOf(totals.actors, event.actor)[column]++;
  return column;
}

/** Nothing counted. */
export function noCounts(): Counts {
  return { reads: 0, lists: 0, looks: 0, misses: 0, mutations: 0, refusals: 0, flags: 0 };
}

function countsOf<K>(table: Map<K, Counts>, key: K): Counts {
  let counts = table.get(key);
  if (counts === undefined) {
    table.set(key, noCounts());
    // Asked for again, since under immer what a Map gives is a draft of what was put in.
    counts = table.get(key) as Counts;
  }
  return counts;
}

/** As what an event counts; `undefined`: as none of these. */
export function columnOf(event: Event): keyof Counts | undefined {
  switch (event.op) {
    case 'read': return 'reads';
    case 'list': return 'lists';
    case 'stat': case 'readlink': return 'looks';
    case 'miss': return 'misses';
    case 'refuse': return 'refusals';
    case 'flag': return 'flags';
    case 'write': case 'truncate': case 'mkdir': case 'mknod': case 'symlink': case 'link': case 'rename': case 'delete':
    case 'chmod': case 'chown': case 'utimes': case 'setxattr': case 'removexattr': case 'discard': case 'undo':
      return 'mutations';
    case 'run': case 'exit': case 'mark': case 'rules': case 'fork': case 'merge': case 'commit': case 'revert': case 'seal':
      return undefined;
    default: return unreachable(event);
  }
}

function pathsOf(event: Event): readonly TreePath[] {
  if (event.op === 'discard') return event.paths ?? [];
  if (event.op === 'rename' || event.op === 'link') return [event.path, event.to];
  return 'path' in event && event.path !== undefined ? [event.path] : [];
}

import { compileGlob } from '../policy/glob.ts';
import type { Event, Op } from '../core/event.ts';

/** Which events to give; several conditions are all to hold. */
export interface EventFilter<O extends Op = Op> {
  /** First and last sequence number, inclusive. */
  readonly from?: number;
  readonly to?: number;
  readonly actor?: string;
  readonly op?: O | readonly O[];
  /** Glob over the path, or over either path of a rename or link. */
  readonly path?: string;
}

/** Whether an event is one that `filter` asks for. Throws TypeError for a filter that has what means nothing. */
export function eventMatcher(filter: EventFilter): (event: Event) => boolean {
  checkKeys('events', filter, ['from', 'to', 'actor', 'op', 'path']);
  for (const bound of [filter.from, filter.to]) {
    if (bound !== undefined && typeof bound !== 'number') throw new TypeError('events: from and to have to be numbers');
  }
  const { actor, from = 0, to = Infinity } = filter;
  const ops = filter.op === undefined ? undefined : new Set<string>(typeof filter.op === 'string' ? [filter.op] : filter.op);
  const matches = filter.path === undefined ? undefined : compileGlob(filter.path).matches;
  return (event) => event.seq >= from && event.seq <= to && (actor === undefined || event.actor === actor) &&
    (ops === undefined || ops.has(event.op)) && (matches === undefined || pathsOf(event).some((path) => matches(path)));
}

/** Throws TypeError for what is no object, or has a key that means nothing: a misspelt filter must not mean "all". */
export function checkKeys(method: string, options: object, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null) throw new TypeError(`${method}: options have to be an object`);
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown !== undefined) throw Object.assign(new TypeError(`${method}: unknown option "${unknown}"`), { code: 'ERR_UNKNOWN_OPTION' });
}

function pathsOf(event: Event): string[] {
  const paths: string[] = [];
  if ('path' in event && event.path !== undefined) paths.push(event.path);
  if ('to' in event) paths.push(event.to);
  if ('paths' in event && event.paths !== undefined) paths.push(...event.paths);
  return paths;
}

import { dirname } from 'node:path';
import type { Event } from '../../src/index.ts';
import type { Deeds } from './witness.ts';

/** One kind of deed: what was done and is not in the log, and what the log has beyond what was done. */
export interface Balance {
  readonly kind: 'read' | 'list' | 'miss' | 'change';
  readonly done: number;
  readonly lost: readonly string[];
  readonly extra: readonly string[];
}

/**
 * Holds a log against what a witness saw of the same work. `chance`: parts of names that are others each time. A miss is
 * in the log too where one of its directories is: a kernel asks for the first name of a path that is not there. The log
 * may have misses of names that were then made, reads of files that were opened for more than reading, and changes of files that were
 * opened for writing. What any call changed is to be told, though it was changed back later.
 */
export function balance(deeds: Deeds, events: readonly Event[], chance: RegExp): Balance[] {
  const plain = (path: string): string => path.replaceAll(chance, '*');
  const all = (paths: Iterable<string>): Set<string> => new Set([...paths].map(plain));
  const told = (...ops: readonly Event['op'][]): Set<string> =>
    all(events.filter(({ op }) => ops.includes(op)).map((event) => ('path' in event ? event.path : '')));
  const reads = told('read'), lists = told('list'), misses = told('miss');
  const changes = told('write', 'truncate', 'mkdir', 'mknod', 'symlink', 'link', 'rename', 'delete', 'chmod', 'chown', 'utimes', 'setxattr', 'removexattr');
  // Whatever lies below either name of a renamed directory went with it, and a link is told under its first name.
  const moved = all(events.flatMap((event) => ('to' in event ? [event.to, event.path] : [])));
  const read = all(deeds.read), rewritten = all(deeds.rewritten), made = all(deeds.made), missed = all(deeds.missed), listed = all(deeds.listed);
  const altered = all(deeds.altered), touched = all(deeds.touched);
  const above = new Set([...missed].flatMap(ancestors));
  const lack = (wanted: Iterable<string>, has: (path: string) => boolean): string[] => [...wanted].filter((path) => !has(path)).sort();
  return [
    {
      kind: 'read', done: read.size + rewritten.size,
      lost: [...lack(read, (path) => reads.has(path)), ...lack(rewritten, (path) => reads.has(path) || changes.has(path))],
      extra: lack(reads, (path) => read.has(path) || rewritten.has(path) || made.has(path)),
    },
    { kind: 'list', done: listed.size, lost: lack(listed, (path) => lists.has(path)), extra: lack(lists, (path) => listed.has(path)) },
    {
      kind: 'miss', done: missed.size,
      lost: lack(missed, (path) => misses.has(path) || ancestors(path).some((each) => misses.has(each))),
      extra: lack(misses, (path) => missed.has(path) || above.has(path) || made.has(path)),
    },
    {
      kind: 'change', done: altered.size,
      lost: [...new Set([
        ...lack(all(deeds.changed), (path) => changes.has(path) || moved.has(path) || ancestors(path).some((each) => moved.has(each))),
        ...lack(altered, (path) => changes.has(path) || moved.has(path)),
      ])],
      extra: lack(new Set([...changes, ...moved]), (path) => altered.has(path) || touched.has(path)),
    },
  ];
}

function ancestors(path: string): string[] {
  const found: string[] = [];
  for (let at = dirname(path); at !== '.' && at !== '/'; at = dirname(at)) found.push(at);
  return found;
}

import type { Event } from '../core/event.ts';
import { isWithin, rebase, type TreePath } from '../core/path.ts';

/** Looks of a writer that are told, the latest. */
const SEEN_BEFORE = 10;

/** An event that made a file what it is, and what its actor had seen right before. */
interface Cause {
  readonly event: Event;
  /** Of a change of content: the last reads, listings and misses of the same actor since its last change before, a path once, in order. */
  readonly seen: readonly Event[];
  /** Of a change of content that is what the actor had read somewhere before: that read. */
  readonly copied: Event | undefined;
}

type Change = Extract<Event, { path: TreePath; mtime: string }>;

/**
 * The events that made what is at `path` now what it is, in order: across renames of it and of directories above it, links, and other names of the same file. Nothing
 * where it is what the lower has. `events` gives all events in order, each time it is called.
 */
export function causesOf(events: () => Iterable<Event>, path: TreePath): readonly Cause[] {
  const changes: Event[] = [];
  for (const event of events()) if (event.op === 'discard' || event.op === 'undo' || isChange(event)) changes.push(event);
  const chain = chainOf(changes, path), inodes = new Set<string>();
  for (const event of chain) if (isChange(event) && 'ino' in event && event.ino !== undefined) inodes.add(String(event.ino));
  const seqs = new Set(chain.map(({ seq }) => seq));
  for (const event of changes) if (isChange(event) && 'ino' in event && event.op !== 'link' && inodes.has(String(event.ino))) seqs.add(event.seq);
  return withSights(events(), seqs);
}

function isChange(event: Event): event is Change {
  return 'mtime' in event && event.op !== 'stat' && event.unlinked !== true;
}

/** Walks back by names. */
function chainOf(changes: readonly Event[], path: TreePath): readonly Event[] {
  const names = new Set<TreePath>([path]), chain: Event[] = [];
  for (const event of changes.toReversed()) {
    if (names.size === 0) break;
    if (event.op === 'undo') continue;
    for (const name of [...names]) {
      const before = event.op === 'discard'
        ? event.paths === undefined || event.paths.some((each) => isWithin(name, each)) ? [] : undefined
        : namesBefore(event as Change, name);
      if (before === undefined) continue;
      if (chain.at(-1) !== event) chain.push(event);
      names.delete(name);
      for (const each of before) names.add(each);
    }
  }
  return chain;
}

/** The names that what is at `name` after a change had before it; none where it came to be by it; `undefined` where it was not touched. */
function namesBefore(event: Change, name: TreePath): readonly TreePath[] | undefined {
  switch (event.op) {
    case 'rename':
      if (isWithin(name, event.to)) return [rebase(name, event.to, event.path)];
      if (event.exchange === true && isWithin(name, event.path)) return [rebase(name, event.path, event.to)];
      return isWithin(name, event.path) ? [] : undefined;
    case 'link': return name === event.to ? [event.path] : undefined;
    case 'delete': return isWithin(name, event.path) ? [] : undefined;
    case 'mkdir': case 'mknod': case 'symlink': return name === event.path ? [] : undefined;
    case 'write': return name !== event.path ? undefined : event.created === undefined ? [name] : [];
    default: return name === event.path ? [name] : undefined;
  }
}

/** The events of `seqs`, and what their actors had seen. */
function withSights(events: Iterable<Event>, seqs: ReadonlySet<number>): readonly Cause[] {
  const causes: Cause[] = [], sights = new Map<string, Event[]>(), reads = new Map<string, Event>();
  for (const event of events) {
    const { actor } = event, looks = sights.get(actor) ?? [];
    if (seqs.has(event.seq)) {
      const isContent = event.op === 'write' || event.op === 'truncate', version = event.op === 'write' ? event.version : undefined;
      const copied = version === undefined ? undefined : reads.get(`${actor} ${version}`);
      causes.push({ event, seen: isContent ? looks.slice(-SEEN_BEFORE) : [], copied });
    }
    if (event.op === 'read' || event.op === 'list' || event.op === 'miss') {
      sights.set(actor, [...looks.filter(({ op, ...other }) => op !== event.op || !('path' in other) || other.path !== event.path), event].slice(-SEEN_BEFORE));
      if (event.op === 'read' && event.version !== undefined) reads.set(`${actor} ${event.version}`, event);
    } else if (isChange(event)) sights.delete(actor);
  }
  return causes;
}

import type { Event, FingerprintRecord, LinkBody, LowerBase, ReadBody, RenameBody, StatBody, TruncateBody, WriteBody } from './event.ts';
import { Owner } from './owner.ts';
import { childOf, parentOf, ROOT } from './path.ts';
import type { TreePath } from './path.ts';
import { NOTHING_SHOWN, showing, splicedShown } from './shown.ts';
import type { Shown } from './shown.ts';
import { unreachable } from './unreachable.ts';
import type { Version } from './version.ts';

/**
 * Who has seen what: per actor and path unseen, absent, or present at a version; a fold of the log.
 *
 * An actor's observations hang in a tree of names, so a renamed subtree is one move, whatever it holds, and nothing
 * of it has to be remembered. A list of renames that every question walks backwards would do the same, but grows, and its flat map
 * of paths would be copied whole by every batch under immer, where here only the directories a batch touches are.
 */
export interface Observations {
  /** Nodes that carry another owner are shared with a fork and copied before they change. */
  owner: Owner;
  readonly actors: Map<string, Trace>;
  /** Whose content mutation came last, at which event, and the last one before it by anybody else. */
  change: { actor: string | undefined; seq: number; other: number };
  /** What the last observing event found in its place: while it is unpublished it may come again, grown. */
  last: { seq: number; seen: Seen | undefined; stat: StatLook | undefined; link: LinkLook | undefined };
}

export type Observation = { readonly kind: 'unseen' } | Seen;

type Seen = Absent | Present;

/** The actor looked and found nothing, or took it away. */
export interface Absent {
  readonly kind: 'absent';
  readonly seq: number;
}

/**
 * The actor read, listed, wrote or otherwise changed it. Whether that is still what is there: by `version` where it is known; else
 * by `fingerprint` for a lower file; else it is if no content came in after `contentSeq`.
 */
export interface Present {
  readonly kind: 'present';
  /** The last event of this actor about it. */
  readonly seq: number;
  /** The last event that told the actor its content; `undefined` where it only changed its mode, name or the like. */
  readonly contentSeq: number | undefined;
  readonly version: Version | undefined;
  readonly fingerprint: FingerprintRecord | undefined;
  readonly shown: Shown;
}

/** What a stat showed last. No seeing, but in the read set. */
export interface StatLook extends Pick<StatBody, 'exists' | 'ino' | 'size' | 'mtime' | 'ctime'> {
  readonly seq: number;
}

/** What a readlink showed last. */
export interface LinkLook {
  readonly seq: number;
  readonly target: string;
}

/** What one actor knows of one name, and of the names below it. */
export interface Trace {
  readonly owner: Owner;
  seen: Seen | undefined;
  stat: StatLook | undefined;
  link: LinkLook | undefined;
  /**
   * The actor renamed away what was here at this event: names below that it has not seen since are absent. `NEVER` once it
   * has listed what came in its place; `undefined` leaves it to the directories above.
   */
  emptied: number | undefined;
  children: Map<string, Trace> | undefined;
}

/** One row of the read set. */
export interface ReadSetRow {
  readonly actor: string;
  readonly path: TreePath;
  readonly observation: Observation;
  readonly stat: StatLook | undefined;
  readonly link: LinkLook | undefined;
}

const NEVER = 0;
const UNSEEN: Observation = Object.freeze({ kind: 'unseen' });
/** The actor of changes that are nobody's own: what a discard or an undo brings back, its caller has not seen. */
const NOBODY = undefined;

/** Nobody has seen anything. */
export function initialObservations(): Observations {
  return {
    owner: new Owner(), actors: new Map(), change: { actor: NOBODY, seq: 0, other: 0 },
    last: { seq: 0, seen: undefined, stat: undefined, link: undefined },
  };
}

/** A copy that goes its own way; O(actors), as what is there stays shared until one of the two changes it. */
export function forkObservations(state: Observations): Observations {
  state.owner = new Owner();
  return { owner: new Owner(), actors: new Map(state.actors), change: { ...state.change }, last: { ...state.last } };
}

/**
 * Folds `event` in, changing `state` in place; under immer's `produce` (with `enableMapSet`) it changes the draft. The last
 * event may come again with more in it: the result is as if only the last form had come.
 */
export function observe(state: Observations, event: Event): void {
  switch (event.op) {
    case 'read': return read(state, event);
    case 'list': {
      const trace = place(state, event);
      trace.seen = present(event.seq, event.version, undefined, 'whole');
      trace.emptied = NEVER;
      return;
    }
    case 'stat': {
      const { seq, exists, ino, size, mtime, ctime } = event;
      place(state, event).stat = { seq, exists, ino, size, mtime, ctime };
      return;
    }
    case 'readlink':
      place(state, event).link = { seq: event.seq, target: event.target };
      return;
    case 'miss': return see(state, event, absent(event.seq));
    case 'discard': case 'undo': return changed(state, NOBODY, event.seq);
    case 'run': case 'exit': case 'mark': case 'refuse': case 'flag': case 'rules': case 'fork': case 'merge': case 'commit':
    case 'revert': case 'seal':
      return;
    default:
      if (event.unlinked !== true) mutate(state, event);
  }
}

/** What `actor` has seen of `path`. */
export function observationOf(state: Observations, actor: string, path: TreePath): Observation {
  let trace = state.actors.get(actor), emptied: number | undefined;
  for (let start = 0; trace !== undefined && start < path.length;) {
    const slash = path.indexOf('/', start), end = slash < 0 ? path.length : slash;
    emptied = trace.emptied ?? emptied;
    trace = trace.children?.get(path.slice(start, end));
    start = end + 1;
  }
  return trace?.seen ?? (emptied === undefined || emptied === NEVER ? UNSEEN : absent(emptied));
}

/** Whoever knows the content of `path` that came in with event `since` knows its version from now on. */
export function learn(state: Observations, path: TreePath, version: Version, since: number): void {
  for (const actor of state.actors.keys()) {
    const seen = observationOf(state, actor, path);
    if (seen.kind !== 'present' || seen.version !== undefined || seen.fingerprint !== undefined) continue;
    if (seen.contentSeq !== undefined && seen.contentSeq >= since) traceAt(state, actor, path).seen = { ...seen, version };
  }
}

/** All that any actor has seen, stat'ed or followed, by actor and in the order in which names came up. */
export function* readSet(state: Observations): Generator<ReadSetRow> {
  for (const [actor, root] of state.actors) yield* rows(actor, ROOT, root);
}

function* rows(actor: string, path: TreePath, { seen, stat, link, children }: Trace): Generator<ReadSetRow> {
  if (seen ?? stat ?? link) yield { actor, path, observation: seen ?? UNSEEN, stat, link };
  for (const [name, trace] of children ?? []) yield* rows(actor, childOf(path, name), trace);
}

/** Where the symlink at `path` led when `actor` followed it with a look of its own. */
export function linkLookOf(state: Observations, actor: string, path: TreePath): LinkLook | undefined {
  let trace = state.actors.get(actor);
  for (const name of path === ROOT ? [] : path.split('/')) trace = trace?.children?.get(name);
  return trace?.link;
}

/** Whether nobody but `actor` has changed any content or name after event `seq`. */
export function isUndisturbed(state: Observations, actor: string, seq: number): boolean {
  const { change } = state;
  return seq > (change.actor === actor ? change.other : change.seq);
}

type Of<B> = B & { readonly seq: number; readonly actor: string };
type Mutation = Exclude<Extract<Event, { mtime: string }>, { op: 'stat' }>;

function read(state: Observations, event: Of<ReadBody> & { readonly process?: unknown }): void {
  const trace = place(state, event), before = trace.seen;
  const wasPresent = before?.kind === 'present', goesOn = isSame(state, event.actor, before, event.version, event.fingerprint);
  const version = event.version ?? (goesOn && before.fingerprint !== undefined ? before.version : undefined);
  let shown = goesOn ? before.shown : NOTHING_SHOWN;
  // A process behind the mount has asked for ranges that nobody saw.
  if (event.process === undefined) shown = event.ranges === undefined ? 'whole' : showing(shown, event.ranges, event.size);
  if (event.search === true && event.ranges?.length === 0 && event.size > 0) {
    // Looked through, and nothing of it was shown: its content is as known or unknown as before.
    const contentSeq = goesOn ? before.contentSeq : undefined;
    if (goesOn || !wasPresent) trace.seen = { ...present(event.seq, version, event.fingerprint, shown), contentSeq };
    return;
  }
  trace.seen = present(event.seq, version, event.fingerprint, shown);
}

function mutate(state: Observations, event: Mutation): void {
  switch (event.op) {
    case 'chmod': case 'chown': case 'utimes': case 'setxattr': case 'removexattr': return touch(place(state, event), event.seq);
    case 'write': case 'truncate': write(state, event); break;
    case 'mkdir': case 'mknod': case 'symlink': see(state, event, present(event.seq, undefined, undefined, 'whole')); break;
    case 'delete': see(state, event, absent(event.seq)); break;
    case 'link': link(state, event); break;
    case 'rename': rename(state, event); break;
    default: return unreachable(event);
  }
  for (const path of namesOf(event)) named(state, event, parentOf(path));
  changed(state, event.actor, event.seq);
}

/** The names that a change of names makes or takes away. */
function namesOf(event: Mutation): readonly TreePath[] {
  switch (event.op) {
    case 'write': return event.created === undefined ? [] : [event.path];
    case 'link': return [event.to];
    case 'rename': return [event.path, event.to];
    case 'mkdir': case 'mknod': case 'symlink': case 'delete': return [event.path];
    default: return [];
  }
}

/**
 * The actor has changed what a directory holds that it had seen: it knows what is there now, unless somebody else came between. There
 * is no version to go by then, since the fold knows of no list; that nobody else changes anything stands in.
 */
function named(state: Observations, { actor, seq }: Mutation, directory: TreePath): void {
  const before = observationOf(state, actor, directory);
  if (before.kind !== 'present' || before.contentSeq === undefined || !isUndisturbed(state, actor, before.contentSeq)) return;
  traceAt(state, actor, directory).seen = present(seq, undefined, undefined, 'whole');
}

/** Own bytes are known bytes; those around them are known as far as they were before. */
function write(state: Observations, event: Of<WriteBody | TruncateBody>): void {
  const trace = place(state, event), before = trace.seen, { lower, size } = event;
  const replaced = event.op === 'write' ? event.before ?? lower?.version : lower?.version;
  const kept = isSame(state, event.actor, before, replaced, lower) ? before.shown : NOTHING_SHOWN;
  const isAllOwn = event.op === 'write' && (event.blob !== undefined || event.created !== undefined);
  if (event.op === 'write' && event.splices !== undefined) {
    trace.seen = present(event.seq, event.version, undefined, splicedShown(kept, event.splices, size));
    return;
  }
  const written = event.op === 'write' ? event.extents?.map(({ at, length }) => [at, at + length] as const) : undefined;
  trace.seen = present(event.seq, event.version, undefined, isAllOwn ? 'whole' : showing(kept, written ?? [], size));
}

/** The further name shows the same file. */
function link(state: Observations, event: Of<LinkBody>): void {
  const from = place(state, event);
  touch(from, event.seq);
  traceAt(state, event.actor, event.to).seen = from.seen;
}

/** Moves what its actor has seen, all that lies below included. Other actors have not seen it move. */
function rename(state: Observations, event: Of<RenameBody>): void {
  const { actor, seq, path, to } = event;
  const moved = detach(state, actor, path);
  if (event.exchange === true) {
    attach(state, actor, path, detach(state, actor, to), seq);
  } else {
    const source = place(state, event);
    source.seen = absent(seq);
    source.emptied = seq;
  }
  attach(state, actor, to, moved, seq);
}

function detach(state: Observations, actor: string, path: TreePath): Trace {
  const { holder, name } = holderOf(state, actor, path);
  const trace = holder.get(name);
  holder.delete(name);
  return trace === undefined ? newTrace(state.owner) : owned(state.owner, trace);
}

function attach(state: Observations, actor: string, path: TreePath, trace: Trace, seq: number): void {
  const { holder, name } = holderOf(state, actor, path);
  touch(trace, seq);
  holder.set(name, trace);
}

function holderOf(state: Observations, actor: string, path: TreePath): { holder: Map<string, Trace>; name: string } {
  const slash = path.lastIndexOf('/');
  const parent = traceAt(state, actor, slash < 0 ? ROOT : path.slice(0, slash) as TreePath);
  return { holder: parent.children ??= new Map(), name: path.slice(slash + 1) };
}

/** The actor has dealt with it, but its content is as known or unknown as before. */
function touch(trace: Trace, seq: number): void {
  const { seen } = trace;
  trace.seen = seen?.kind === 'present' ? { ...seen, seq }
    : { kind: 'present', seq, contentSeq: undefined, version: undefined, fingerprint: undefined, shown: NOTHING_SHOWN };
}

function see(state: Observations, event: { seq: number; actor: string; path: TreePath }, seen: Seen): void {
  const trace = place(state, event);
  trace.seen = seen;
  if (seen.kind === 'absent') trace.stat = trace.link = undefined;
}

function present(seq: number, version: Version | undefined, fingerprint: FingerprintRecord | undefined, shown: Shown): Present {
  return { kind: 'present', seq, contentSeq: seq, version, fingerprint, shown };
}

function absent(seq: number): Absent {
  return { kind: 'absent', seq };
}

/** Whether the content now met is what `before` speaks of; in doubt it is not. */
function isSame(
  state: Observations, actor: string, before: Seen | undefined, version: Version | undefined,
  print: FingerprintRecord | LowerBase | undefined,
): before is Present {
  if (before?.kind !== 'present' || before.contentSeq === undefined) return false;
  if (before.version !== undefined && version !== undefined) return before.version === version;
  if (before.fingerprint !== undefined && print !== undefined) return isSamePrint(before.fingerprint, print);
  if (before.fingerprint !== undefined || print !== undefined) return false;
  return isUndisturbed(state, actor, before.contentSeq);
}

function isSamePrint(a: FingerprintRecord, b: FingerprintRecord | LowerBase): boolean {
  return a.ctime === b.ctime && a.mtime === b.mtime && a.size === b.size && a.ino === b.ino && a.dev === b.dev;
}

function changed(state: Observations, actor: string | undefined, seq: number): void {
  const { change } = state;
  if (change.actor !== actor) {
    change.other = change.seq;
    change.actor = actor;
  }
  change.seq = seq;
}

/** The trace that `event` is about, as it was before the event in case that has come before, less grown. */
function place(state: Observations, event: { seq: number; actor: string; path: TreePath }): Trace {
  const trace = traceAt(state, event.actor, event.path), { last } = state;
  if (last.seq === event.seq) {
    trace.seen = last.seen;
    trace.stat = last.stat;
    trace.link = last.link;
  } else {
    last.seq = event.seq;
    last.seen = trace.seen;
    last.stat = trace.stat;
    last.link = trace.link;
  }
  return trace;
}

/** The actor's trace at `path`, owned; made where there is none. */
function traceAt(state: Observations, actor: string, path: TreePath): Trace {
  const { owner } = state;
  let trace = state.actors.get(actor);
  if (trace?.owner !== owner) {
    trace = trace === undefined ? newTrace(owner) : copied(owner, trace);
    state.actors.set(actor, trace);
  }
  for (let start = 0; start < path.length;) {
    const slash = path.indexOf('/', start), end = slash < 0 ? path.length : slash;
    const name = path.slice(start, end), children: Map<string, Trace> = trace.children ??= new Map();
    let next = children.get(name);
    if (next?.owner !== owner) {
      next = next === undefined ? newTrace(owner) : copied(owner, next);
      children.set(name, next);
    }
    trace = next;
    start = end + 1;
  }
  return trace;
}

function owned(owner: Owner, trace: Trace): Trace {
  return trace.owner === owner ? trace : copied(owner, trace);
}

function copied(owner: Owner, trace: Trace): Trace {
  return { ...trace, owner, children: trace.children && new Map(trace.children) };
}

function newTrace(owner: Owner): Trace {
  return { owner, seen: undefined, stat: undefined, link: undefined, emptied: undefined, children: undefined };
}

import type { Base, Sight } from './base.ts';
import type { Event, LowerBase } from './event.ts';
import { observationOf, type Observation } from './observation.ts';
import type { TreePath } from './path.ts';
import { find, type State } from './state.ts';
import { Node, WHITEOUT } from './tree.ts';

/** A lower file younger than this at the look could change again without its fingerprint telling: see `overlay/versions.ts`. */
export const RACY_NS = 20_000_000n;

/** A base that an event brings about. */
export interface Cover {
  readonly origin: TreePath;
  readonly base: Base;
}

/** The bases that `event` brings about; asked before it is folded in, since it changes what its actor has seen. */
export function coversOf(state: State, event: Event): readonly Cover[] {
  switch (event.op) {
    case 'write': case 'truncate': case 'mkdir': case 'mknod': case 'symlink': case 'link': case 'rename': case 'delete':
    case 'chmod': case 'chown': case 'utimes': case 'setxattr': case 'removexattr': break;
    default: return NONE;
  }
  if (event.unlinked === true) return NONE;
  const covers: Cover[] = [];
  if (event.lower !== undefined) add(covers, state, event, event.path, event.lower);
  else if (isBirth(event)) add(covers, state, event, event.path, undefined);
  if (event.op === 'rename' || event.op === 'link') add(covers, state, event, event.to, event.op === 'rename' ? event.onto : undefined);
  return covers;
}

/** Puts bases where there are none yet. */
export function cover(state: State, covers: readonly Cover[]): void {
  for (const { origin, base } of covers) {
    if (state.bases.get(origin) !== undefined) continue;
    state.bases = state.bases.ownedBy(state.owner);
    state.bases.set(origin, base);
  }
}

const NONE: readonly Cover[] = [];

type Mutation = Extract<Event, { unlinked?: true }>;

function isBirth(event: Mutation): boolean {
  return (event.op === 'write' && event.created !== undefined) || event.op === 'mkdir' || event.op === 'mknod' || event.op === 'symlink';
}

function add(covers: Cover[], state: State, event: Mutation, path: TreePath, found: LowerBase | undefined): void {
  const { actor, seq, time } = event;
  let origin: TreePath | undefined;
  if (found === undefined) {
    // Where nothing was, only somebody who had seen something there has a base that says more than that.
    const seen = observationOf(state.observations, actor, path);
    if (seen.kind !== 'present' || seen.fingerprint === undefined) return;
    origin = originOf(state, path);
    if (origin !== path || state.bases.get(origin) !== undefined) return;
    covers.push({ origin, base: { found, actor, time, seq, seen: sight(seen) as Sight } });
    return;
  }
  origin = originOf(state, path);
  if (origin === undefined || state.bases.get(origin) !== undefined) return;
  const seen = otherSight(observationOf(state.observations, actor, path), found, path === origin);
  covers.push({
    origin, base: { found, actor, time, seq, ...(isRacy(found, time) && { racy: true }), ...(seen !== undefined && { seen }) },
  });
}

/** The lower path that shows at `path` as far as the overlay's own tree tells. */
function originOf(state: State, path: TreePath): TreePath | undefined {
  const found = find(state, path);
  if (found instanceof Node) return found.origin;
  return found === undefined || found === WHITEOUT ? undefined : found.lower;
}

function sight(seen: Observation): Sight | undefined {
  if (seen.kind === 'absent') return { kind: 'absent', seq: seen.seq };
  if (seen.kind === 'unseen' || seen.fingerprint === undefined) return undefined;
  return { kind: 'present', seq: seen.seq, fingerprint: seen.fingerprint, ...(seen.version !== undefined && { version: seen.version }) };
}

/**
 * What an actor had seen, where it is something else than what was found. `isNatural`: the name has always led to this part of the
 * lower; else a look may have been at something that lay there before, and only one at this very file counts.
 */
function otherSight(observation: Observation, found: LowerBase, isNatural: boolean): Sight | undefined {
  const seen = sight(observation);
  if (seen === undefined) return undefined;
  if (seen.kind === 'absent') return isNatural ? seen : undefined;
  const { fingerprint, version } = seen;
  if (!isNatural && (fingerprint.ino !== found.ino || fingerprint.dev !== found.dev)) return undefined;
  if (version !== undefined && found.version !== undefined) return version === found.version ? undefined : seen;
  const isSame = fingerprint.ino === found.ino && fingerprint.dev === found.dev && fingerprint.size === found.size &&
    fingerprint.mtime === found.mtime && fingerprint.ctime === found.ctime;
  return isSame ? undefined : seen;
}

function isRacy(found: LowerBase, time: string): boolean {
  const settled = BigInt(Date.parse(time)) * 1_000_000n - RACY_NS;
  return BigInt(found.ctime) >= settled || BigInt(found.mtime) >= settled;
}

import { PERMISSION_BITS, typeOf } from '../core/attr.ts';
import { readSet } from '../core/observation.ts';
import { childOf, compareNames, type TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { find, type State } from '../core/state.ts';
import { WHITEOUT } from '../core/tree.ts';
import type { Version } from '../core/version.ts';
import type { Lower } from '../lower/lower.ts';
import { versionOfFile } from '../overlay/hash.ts';
import type { Knowledge, Known } from './knowledge.ts';

/** How a path of the lower differs from what was recorded of it. */
export interface Drift {
  readonly path: TreePath;
  readonly words: string;
}

/**
 * Where `lower` is not any more what a session has recorded of it, sorted by path: what is there and what is not, types, permissions, targets, names in directories,
 * contents. Of a session that kept digests only, contents that were read and names that were looked for in vain. Times and owners are no drift: another
 * machine has its own.
 */
export function driftOf(lower: Lower, knowledge: Knowledge, state: State): readonly Drift[] {
  const found = new Map<TreePath, string>();
  for (const path of knowledge.paths()) {
    const words = readable(() => differs(lower, path, knowledge.at(path) as Known));
    if (words !== undefined) found.set(path, words);
    for (const name of knowledge.list(path) === undefined ? [] : added(lower, knowledge, path)) found.set(childOf(path, name), 'was not there; is now');
  }
  for (const { path, observation } of readSet(state.observations)) {
    const place = find(state, path);
    if (place === undefined || place === WHITEOUT || !('lower' in place) || found.has(place.lower)) continue;
    const { lower: origin } = place;
    if (observation.kind === 'absent' && typeof lower.lstat(origin) !== 'string') found.set(origin, 'was not there; is now');
    if (observation.kind !== 'present' || observation.fingerprint === undefined || observation.version === undefined) continue;
    const { version } = observation, words = readable(() => otherContent(lower, origin, version));
    if (words !== undefined) found.set(origin, words);
  }
  return Array.from(found, ([path, words]) => ({ path, words })).sort((a, b) => compareNames(a.path, b.path));
}

function differs(lower: Lower, path: TreePath, { base, blob }: Known): string | undefined {
  const now = lower.lstat(path);
  if (base === undefined) return typeof now === 'string' ? undefined : `was not there; is a ${typeOf(now.mode)} now`;
  if (typeof now === 'string') return `was a ${base.type}; is gone`;
  const type = typeOf(now.mode);
  if (type !== base.type) return `was a ${base.type}; is a ${type} now`;
  if (type === 'symlink') {
    const target = lower.readlink(path);
    return base.target === undefined || target === base.target ? undefined : `led to ${JSON.stringify(base.target)}; leads to ${JSON.stringify(target)} now`;
  }
  if (type === 'file' && now.size !== base.size) return `had ${base.size} bytes; has ${now.size} now`;
  if (type === 'file' && blob !== undefined) {
    const words = otherContent(lower, path, blob);
    if (words !== undefined) return words;
  }
  const [was, is] = [base.mode & PERMISSION_BITS, now.mode & PERMISSION_BITS];
  return was === is ? undefined : `had mode ${was.toString(8)}; has ${is.toString(8)} now`;
}

function otherContent(lower: Lower, path: TreePath, version: Version): string | undefined {
  const file = lower.open(path);
  if (typeof file === 'string') return 'was a file; is gone';
  if (!('kind' in file)) return `was a file; is a ${typeOf(file.mode)} now`;
  try {
    const now = versionOfFile(file);
    return now === version ? undefined : `had the content ${version}; has ${now} now`;
  } finally {
    file.close();
  }
}

function added(lower: Lower, knowledge: Knowledge, path: TreePath): string[] {
  const names = knowledge.list(path), now = lower.lstat(path);
  if (typeof now === 'string' || typeOf(now.mode) !== 'directory') return [];
  return lower.list(path).map(({ name }) => name).filter((name) => names?.has(name) === false);
}

/** What may not be read is a difference, too: nobody can say that it is none. */
function readable(look: () => string | undefined): string | undefined {
  try {
    return look();
  } catch (error) {
    if (error instanceof Refusal) return `cannot be read (${error.code})`;
    throw error;
  }
}

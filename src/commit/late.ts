import { fstatSync, openSync, closeSync, readSync, constants } from 'node:fs';
import { typeOf, type Attr } from '../core/attr.ts';
import { childOf, rebase, ROOT, type TreePath } from '../core/path.ts';
import { RunningVersion } from '../overlay/hash.ts';
import { EXACT } from '../lower/stats.ts';
import type { RemoveEntry } from './entry.ts';
import { walk } from './examiner.ts';
import type { Ground } from './ground.ts';
import type { Journal } from './journal.ts';
import { isUntouched, type Known } from './known.ts';
import type { Rescue, Rescuer } from './rescue.ts';
import type { Volume } from './volume.ts';

const STEP_BYTES = 1 << 20;
let buffer: Buffer | undefined;

/**
 * Looks once more at all that a finished commit has displaced: somebody may have had it open, or written to it in the very moment in which
 * it was displaced. What is not as it was when it was verified is saved. Of what was in a removed directory, only what looks
 * changed is told; what was added there as well.
 */
export function lateWrites(ground: Ground, journal: Journal, volumes: ReadonlyMap<number, Volume>, rescuer: Rescuer): Rescue[] {
  const rescues: Rescue[] = [];
  let removed: { readonly entry: RemoveEntry; readonly below: Map<TreePath, Known> } | undefined;
  const settle = (): void => {
    if (removed !== undefined) rescues.push(...belowOf(ground, volumes, removed.entry, removed.below, rescuer));
    removed = undefined;
  };
  for (const entry of journal.entries()) {
    if (entry.act === 'below') {
      removed?.below.set(entry.path, entry.known);
      continue;
    }
    settle();
    if (entry.act !== 'swap' && entry.act !== 'remove') continue;
    const volume = volumes.get(entry.volume);
    if (volume === undefined || (entry.act === 'remove' && entry.parked !== undefined)) continue;
    if (entry.before.type === 'directory' && entry.act === 'remove') removed = { entry, below: new Map() };
    else if (isWritten(volume, entry.displaced, entry.before)) {
      const saved = rescuer.save(volume, entry.displaced, `${entry.n}-before`, entry.path);
      if (saved !== undefined) rescues.push({ path: entry.path, saved });
    }
  }
  settle();
  return rescues;
}

function belowOf(ground: Ground, volumes: ReadonlyMap<number, Volume>, entry: RemoveEntry, below: ReadonlyMap<TreePath, Known>, rescuer: Rescuer): Rescue[] {
  const volume = volumes.get(entry.volume), rescues: Rescue[] = [];
  if (volume?.find(entry.displaced) === undefined) return [];
  for (const { relative, name } of [...changedBelow(ground, volume, entry, below)]) {
    const path = childOf(entry.path, relative), saved = rescuer.save(volume, name, `${entry.n}-before-${rescues.length}`, path);
    if (saved !== undefined) rescues.push({ path, saved });
  }
  return rescues;
}

/**
 * What is in a removed directory, which is in staging now, and is not as it was written down: others have written to it, or added it. `name`
 * is its name in staging.
 */
export function* changedBelow(
  ground: Ground, volume: Volume, entry: RemoveEntry, below: ReadonlyMap<TreePath, Known>,
): Generator<{ relative: TreePath; name: string; attr: Attr }> {
  const top = volume.pathOf(entry.displaced);
  for (const { path, attr } of walk(ground, top)) {
    const relative = rebase(path, top, ROOT), known = below.get(relative), name = path.slice(volume.path.length + 1);
    if (known !== undefined && isUntouched(known, attr)) continue;
    if (known === undefined ? typeOf(attr.mode) === 'directory' : known.type === 'directory' && typeOf(attr.mode) === 'directory') continue;
    if (known?.version !== undefined && versionIn(volume, name, attr) === known.version) continue;
    yield { relative, name, attr };
  }
}

function isWritten(volume: Volume, name: string, before: Known): boolean {
  const attr = volume.find(name);
  if (attr === undefined) return false;
  if (before.type !== 'file' || before.version === undefined) return false;
  return attr.size !== before.size || versionIn(volume, name, attr) !== before.version;
}

/** The version of a file in staging; undefined where it is none. */
function versionIn(volume: Volume, name: string, attr: Attr): string | undefined {
  if (typeOf(attr.mode) !== 'file') return undefined;
  const fd = openSync(volume.name(name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    if (!fstatSync(fd, EXACT).isFile()) return undefined;
    buffer ??= Buffer.allocUnsafeSlow(STEP_BYTES);
    const version = new RunningVersion();
    for (let at = 0; ;) {
      const count = readSync(fd, buffer, 0, STEP_BYTES, at);
      if (count === 0) return version.finish();
      version.add(buffer.subarray(0, count));
      at += count;
    }
  } finally {
    closeSync(fd);
  }
}

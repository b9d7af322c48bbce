import { fstatSync, openSync, closeSync, readSync, constants } from 'node:fs';
import { typeOf, type Attr } from '../core/attr.ts';
import { childOf, rebase, ROOT, type TreePath } from '../core/path.ts';
import type { Version } from '../core/version.ts';
import { codeOf, isGone } from '../lower/fault.ts';
import { RunningVersion, versionOf } from '../overlay/hash.ts';
import { readFully } from '../store/file.ts';
import type { Entry, RemoveEntry } from './entry.ts';
import { walk } from './examiner.ts';
import type { Ground } from './ground.ts';
import { isUntouched, type Known } from './known.ts';
import type { Rescue, Rescuer } from './rescue.ts';
import type { Volume } from './volume.ts';

const STEP_BYTES = 1 << 20;
/** O_NONBLOCK for the moment in which it may have become a FIFO. */
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
let buffer: Buffer | undefined;

/**
 * Looks once more at all that a finished commit has displaced: somebody may have had it open, or written to it in the very moment in which
 * it was displaced. What is not as it was when it was verified is saved. Of what was in a removed directory, only what looks
 * changed is told; what was added there as well.
 */
export function lateWrites(ground: Ground, entries: Iterable<Entry>, volumes: ReadonlyMap<number, Volume>, rescuer: Rescuer): Rescue[] {
  const rescues: Rescue[] = [];
  let removed: { readonly entry: RemoveEntry; readonly below: Map<TreePath, Known> } | undefined;
  const settle = (): void => {
    if (removed !== undefined) rescues.push(...belowOf(ground, volumes, removed.entry, removed.below, rescuer));
    removed = undefined;
  };
  for (const entry of entries) {
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
    if (known?.version !== undefined && versionIn(volume, name, known.size) === known.version) continue;
    yield { relative, name, attr };
  }
}

function isWritten(volume: Volume, name: string, before: Known): boolean {
  if (before.type !== 'file' || before.version === undefined) return false;
  const version = versionIn(volume, name, before.size);
  return version !== 'none' && version !== before.version;
}

/** The version of a file in staging, which is expected to be so large; `none` where nothing is, `other` where it is another in any case. */
function versionIn(volume: Volume, name: string, size: number): Version | 'other' | 'none' {
  let fd: number;
  try {
    fd = openSync(volume.name(name), FLAGS);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return 'none';
    if (isGone(error) || codeOf(error) === 'ENXIO') return 'other';
    throw error;
  }
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile() || stats.size !== size) return 'other';
    buffer ??= Buffer.allocUnsafeSlow(STEP_BYTES);
    if (size < STEP_BYTES) return versionOf(buffer.subarray(0, readFully(fd, buffer, 0, size, 0)));
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

import { chmodSync, lstatSync, readdirSync, rmdirSync, unlinkSync } from 'node:fs';
import { codeOf } from '../lower/fault.ts';
import { join } from '../lower/listing.ts';
import type { SystemName } from './ground.ts';

/**
 * Removes what has this name, a directory with all it holds; no symlink is followed and nothing else's file system
 * entered. Nothing being there is fine.
 */
export function sweep(name: SystemName): void {
  const stats = lstatSync(name, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (stats.isDirectory()) sweepDirectory(name, stats.dev);
  else unlinkSync(name);
}

function sweepDirectory(name: SystemName, dev: number): void {
  const below = join(name, '/');
  for (const entry of readable(name)) {
    const child = Buffer.concat([Buffer.from(below), entry]);
    const stats = lstatSync(child, { throwIfNoEntry: false });
    if (stats === undefined) continue;
    if (!stats.isDirectory()) unlinkForced(child, name);
    else if (stats.dev === dev) sweepDirectory(child, dev);
    else throw Object.assign(new Error('something is mounted in there'), { code: 'EBUSY' });
  }
  rmdirSync(name);
}

/** Names in a directory that its owner may have locked up before it was removed. */
function readable(name: SystemName): Buffer[] {
  try {
    return readdirSync(name, { encoding: 'buffer' });
  } catch (error) {
    if (codeOf(error) !== 'EACCES') throw error;
    chmodSync(name, 0o700);
    return readdirSync(name, { encoding: 'buffer' });
  }
}

function unlinkForced(child: SystemName, directory: SystemName): void {
  try {
    unlinkSync(child);
  } catch (error) {
    if (codeOf(error) !== 'EACCES') throw error;
    chmodSync(directory, 0o700);
    unlinkSync(child);
  }
}

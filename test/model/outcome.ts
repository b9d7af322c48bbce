import type { BigIntStats, Dirent, Stats } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { fromBytes } from '../../src/core/path.ts';
import type { Step } from './program.ts';

/**
 * What a step gave, in a form in which two worlds can be compared. All legitimate differences between a real
 * directory and an overlay are named here and nowhere else:
 *
 * - the root's own path: written `<root>` in results, messages and link targets;
 * - `fsCode` of errors: ours alone;
 * - descriptor numbers: an open file is `opened`;
 * - `ino`, `dev`: compared as a relation among live files, in the census, not by value;
 * - `size` and `blocks` of directories, `blocks` and `blksize` of files: a matter of the real file system's layout;
 * - `atime`, except right after a step that set it: reads move it as the mount's options say;
 * - `ctime` and `birthtime`: always of the moment, on both sides;
 * - `mtime` that is younger than the run: written `now`; only times set on purpose (all in the past) are exact;
 * - the order of names in a listing;
 * - the path in an error of opendir: node 20 leaves it out of the synchronous one alone;
 * - which error a recursive mkdir through a dangling link ends with: node's own faces differ, ours are all as its
 *   synchronous one (`isSame`).
 */
export type Outcome =
  | { readonly value: unknown }
  | { readonly error: Record<string, unknown> };

export interface Told {
  readonly root: string;
  /** Times from this moment on (ms since 1970) are `now`. */
  readonly since: number;
}

export function valueOf(value: unknown, told: Told): Outcome {
  return { value: tell(value, told) };
}

/** Everything of an error that a program could depend on. */
export function errorOf(error: unknown, told: Told): Outcome {
  if (!(error instanceof Error)) return { error: { thrown: String(error) } };
  const fields = error as Error & Record<string, unknown>;
  const known: Record<string, unknown> = { name: error.name, message: rootless(error.message, told) };
  for (const key of ['code', 'errno', 'syscall', 'path', 'dest']) {
    if (fields[key] !== undefined) known[key] = tell(fields[key], told);
  }
  if (known['syscall'] === 'opendir') {
    known['message'] = String(known['message']).replace(/, opendir.*$/s, ', opendir');
    delete known['path'];
  }
  return { error: known };
}

/** Whether two worlds gave the same for a step. */
export function isSame(step: Step, got: Outcome, expected: Outcome): boolean {
  if (isDeepStrictEqual(got, expected)) return true;
  return step.op === 'mkdir' && step.recursive === true && (step.style ?? 'sync') !== 'sync' && 'error' in got && 'error' in expected;
}

function tell(value: unknown, told: Told): unknown {
  if (typeof value === 'string') return rootless(value, told);
  if (typeof value === 'bigint') return `${value}n`;
  if (Buffer.isBuffer(value)) return rootless(fromBytes(value), told);
  if (Array.isArray(value)) return value.map((each) => tell(each, told));
  return value;
}

export function rootless(text: string, told: Told): string {
  return text.replaceAll(told.root, '<root>');
}

export type AnyStats = Stats | BigIntStats;

/** `stat` as far as it is comparable; see above. `withAccess` right after the access time was set. */
export function statsOf(stats: AnyStats, told: Told, withAccess = false): Record<string, unknown> {
  const type = ['isFile', 'isDirectory', 'isSymbolicLink', 'isFIFO', 'isSocket', 'isBlockDevice', 'isCharacterDevice'] as const;
  return {
    type: type.filter((is) => stats[is]()).join('+'),
    mode: Number(stats.mode).toString(8),
    nlink: Number(stats.nlink),
    uid: Number(stats.uid),
    gid: Number(stats.gid),
    rdev: Number(stats.rdev),
    size: stats.isDirectory() ? '-' : Number(stats.size),
    mtime: timeOf(stats, 'mtime', told),
    ...(withAccess ? { atime: timeOf(stats, 'atime', told) } : {}),
    number: typeof stats.size,
  };
}

function timeOf(stats: AnyStats, which: 'mtime' | 'atime', told: Told): string {
  if (Number(stats[`${which}Ms`]) >= told.since) return 'now';
  const exact = 'mtimeNs' in stats ? String(stats[`${which}Ns`]) : `${stats[`${which}Ms`]} ms`;
  return `${exact} ${stats[which].toISOString()}`;
}

/** A listing: sorted by bytes, with types where the entries have them. */
export function namesOf(entries: readonly (string | Buffer | Dirent)[], told: Told): string[] {
  return entries.map((entry) => {
    if (typeof entry === 'string') return rootless(entry, told);
    if (Buffer.isBuffer(entry)) return `bytes ${entry.toString('latin1')}`;
    const name = Buffer.isBuffer(entry.name) ? (entry.name as Buffer).toString('latin1') : entry.name;
    const type = entry.isDirectory() ? 'directory' : entry.isFile() ? 'file' : entry.isSymbolicLink() ? 'symlink' : 'other';
    return `${type} ${name} in ${rootless(entry.parentPath, told)}`;
  }).sort();
}

/** Bytes as text where that is short, else their number and digest-like sum. */
export function contentOf(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (buffer.length <= 200) return buffer.toString('latin1');
  let sum = 0;
  for (const byte of buffer) sum = (Math.imul(sum, 31) + byte) | 0;
  return `${buffer.length} bytes, sum ${sum}, ${buffer.toString('latin1', 0, 40)}…`;
}

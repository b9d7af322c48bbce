import { lstatSync, readdirSync } from 'node:fs';
import type { Dirent } from 'node:fs';
import type { NodeType } from '../core/attr.ts';
import { typeOf } from '../core/attr.ts';
import { compareNames, fromBytes, toBytes } from '../core/path.ts';
import { STAGING_NAME } from '../core/plan.ts';
import type { LowerEntry } from './lower.ts';
import { codeOf } from './fault.ts';
import { LOOK } from './stats.ts';

/**
 * Names of one directory as they were at a moment, by their bytes; `ctime` (ms) of the directory tells whether they still
 * are.
 */
export class Listing {
  readonly entries: readonly LowerEntry[];
  readonly ctime: number;
  private types: Map<string, NodeType> | undefined;
  private folding: boolean | undefined;

  constructor(entries: readonly LowerEntry[], ctime: number) {
    this.entries = entries;
    this.ctime = ctime;
  }

  typeOf(name: string): NodeType | 'absent' {
    let types = this.types;
    if (types === undefined) {
      types = new Map();
      for (const entry of this.entries) types.set(entry.name, entry.type);
      this.types = types;
    }
    return types.get(name) ?? 'absent';
  }

  /**
   * Whether the directory, which is known as `directory`, finds names by other spellings than those it lists (ext4 and tmpfs
   * fold case where a directory says so): then a name that is not listed may be there all the same.
   */
  folds(directory: string): boolean {
    return this.folding ??= this.findsOther(directory);
  }

  private findsOther(directory: string): boolean {
    for (const { name } of this.entries) {
      const upper = name.toUpperCase();
      const other = upper === name ? name.toLowerCase() : upper;
      if (this.typeOf(other) === 'absent') return lstatSync(join(directory, other), LOOK) !== undefined;
    }
    return false;
  }
}

/** Sorts entries by the bytes of their names, in place. UTF-16 order is byte order until surrogates come in. */
export function sortEntries(entries: LowerEntry[]): LowerEntry[] {
  const plain = !entries.some((entry) => SURROGATE.test(entry.name));
  return entries.sort(plain ? (a, b) => (a.name < b.name ? -1 : 1) : (a, b) => compareNames(a.name, b.name));
}

const SURROGATE = /[\ud800-\udfff]/;

/** Whether a name is of a directory in which a commit keeps things for a while: none of the tree's. */
export function isStaging(name: string): boolean {
  return name.startsWith(STAGING_NAME);
}

/** All names and types in the directory that the system knows as `directory` (with a final slash), in no order. */
export function readEntries(directory: string | Buffer): LowerEntry[] {
  let dirents: Dirent[];
  try {
    // Not of its `.`, which only one who may search the directory may look up.
    dirents = readdirSync(directory, { withFileTypes: true });
  } catch (error) {
    // Where the file system tells no types node looks at each name, and fails when one goes away meanwhile.
    if (codeOf(error) !== 'ENOENT') throw error;
    return readByLooks(directory);
  }
  const entries: LowerEntry[] = [];
  for (const dirent of dirents) {
    if (dirent.name.includes('\uFFFD')) return readByLooks(directory);
    if (isStaging(dirent.name)) continue;
    entries.push({ name: dirent.name, type: typeOfDirent(dirent) });
  }
  return entries;
}

/** A name below `directory`, which ends with a slash. Names that are not UTF-8 make it bytes. */
export function join(directory: string | Buffer, name: string): string | Buffer {
  if (typeof directory === 'string' && name.isWellFormed()) return directory + name;
  return Buffer.concat([typeof directory === 'string' ? Buffer.from(directory) : directory, toBytes(name)]);
}

/** The slow way, one look a name: for names that are not UTF-8, and where types are not told. */
function readByLooks(directory: string | Buffer): LowerEntry[] {
  const names = readdirSync(join(directory, '.'), 'buffer').map(fromBytes);
  return names.flatMap((name) => (isStaging(name) ? [] : looked(directory, name)));
}

/** The entry of one name by a look at it; none if it went away meanwhile. */
function looked(directory: string | Buffer, name: string): LowerEntry[] {
  const stats = lstatSync(join(directory, name), LOOK);
  return stats === undefined ? [] : [{ name, type: typeOf(Number(stats.mode)) }];
}

/** The type that a directory entry tells. Throws TypeError where it tells none. */
export function typeOfDirent(dirent: Dirent): NodeType {
  if (dirent.isFile()) return 'file';
  if (dirent.isDirectory()) return 'directory';
  if (dirent.isSymbolicLink()) return 'symlink';
  if (dirent.isFIFO()) return 'fifo';
  if (dirent.isSocket()) return 'socket';
  if (dirent.isBlockDevice()) return 'block';
  if (dirent.isCharacterDevice()) return 'character';
  throw new TypeError(`directory entry ${JSON.stringify(dirent.name)} has no type`);
}

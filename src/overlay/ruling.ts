import { constants } from 'node:fs';
import type { TreePath } from '../core/path.ts';
import { O_ACCMODE } from './system.ts';

/**
 * What a call does to a path, as rules name it:
 *
 * - `read`: content, by a descriptor opened for reading or at once; a symlink's target, and following it
 * - `list`: the names in a directory; opening it
 * - `stat`: attributes, whether it exists, its real path; watching it
 * - `write`: content, of what is there or is made
 * - `attributes`: mode, owner, times, extended attributes
 * - `create`: a name that was not there, by whatever call
 * - `delete`: a name, by removing or replacing it
 * - `rename`: the name that is taken away, and both of an exchange
 * - `link`: the name that gets a further one
 */
export const OPERATIONS = ['read', 'list', 'stat', 'write', 'attributes', 'create', 'delete', 'rename', 'link'] as const;

export type Operation = (typeof OPERATIONS)[number];

/** What calls do, for the calls that do the same. */
export const READS: readonly Operation[] = ['read'];
export const LISTS: readonly Operation[] = ['list'];
export const STATS: readonly Operation[] = ['stat'];
export const WRITES: readonly Operation[] = ['write'];
export const ALTERS: readonly Operation[] = ['attributes'];
/** A new directory. */
export const CREATES: readonly Operation[] = ['create'];
/** Anything else that is new: its name has content from then on. */
export const MAKES: readonly Operation[] = ['create', 'write'];
export const DELETES: readonly Operation[] = ['delete'];
export const RENAMES: readonly Operation[] = ['rename'];
/** What something else is renamed onto. */
export const REPLACES: readonly Operation[] = ['delete', 'write'];
export const LINKS: readonly Operation[] = ['link'];

const READS_AND_WRITES: readonly Operation[] = ['read', 'write'];
const { O_RDONLY, O_TRUNC, O_WRONLY } = constants;

/** What an open with these flags does to a file that is there. */
export function operationsOf(flags: number): readonly Operation[] {
  const access = flags & O_ACCMODE, writes = access !== O_RDONLY || (flags & O_TRUNC) !== 0;
  if (!writes) return READS;
  return access === O_WRONLY ? WRITES : READS_AND_WRITES;
}

/** What rules say of one path. Each rule goes by its glob. */
export interface Ruling {
  /** By which rule it is hidden. */
  readonly hides: string | undefined;
  readonly denies: ReadonlyMap<Operation, string>;
  readonly flags: ReadonlyMap<Operation, readonly string[]>;
}

/** Rules over paths, as the overlay asks for them. They know nothing of files: the same path has the same ruling always. */
export interface PathRules {
  /** Whether any of them hides. */
  readonly hide: boolean;
  /** What holds of `path`, by its name or one above it; `undefined` where nothing does. */
  at(path: TreePath): Ruling | undefined;
  /** Whether something below `directory` may have another ruling than `directory` has. */
  reach(directory: TreePath): boolean;
}

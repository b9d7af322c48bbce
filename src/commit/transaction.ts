import type { Attr } from '../core/attr.ts';
import type { Conflict, Reliance, Step } from '../core/plan.ts';
import type { TreePath } from '../core/path.ts';
import type { Version } from '../core/version.ts';
import type { Durability } from '../store/store.ts';
import { ConflictError } from './fault.ts';

/** A commit as the disk sees it: steps, all of them or none, under the root. */
export interface Transaction {
  /** Of the commit: letters, digits, `_` and `-`. */
  readonly id: string;
  /** Real path of the lower's root. */
  readonly root: string;
  /** Gone through several times, and the same each time. */
  readonly steps: Iterable<Step>;
  /** For progress. */
  readonly count: number;
  readonly reliances: Iterable<Reliance>;
  /** `'none'`: what is there is replaced and removed whatever it is; expectations only say how to take it back. */
  readonly guard: 'expectations' | 'none';
  readonly durability: Durability;
  /** Most ms to wait for another committer on this root; default 10,000. */
  readonly patience?: number;
  /**
   * For each file that goes away, its bytes as they were verified, before anything changes: what a revert needs. `path` is its
   * name in the lower before the commit.
   */
  keep?(path: TreePath, size: number): Keeper;
  /** After a step is done: what is at its path now. All of it counts only once `transact` is done. */
  published?(index: number, now: Attr): void;
  progress?(done: number, all: number): void;
}

/** Takes the bytes of one file, in order; pieces are good only during the call. `end`: they are whole and had this version. */
export interface Keeper {
  add(bytes: Uint8Array): void;
  end(version: Version): void;
}

/** What would happen, and what can be said against it. */
export interface Forecast {
  /** All, in the order of the steps. Where there are any, nothing happens. */
  readonly conflicts: readonly Conflict[];
  readonly losses: readonly Loss[];
}

/** Something that a commit cannot keep, and tells of beforehand: other names of a replaced file, attributes, an owner. */
export interface Loss {
  readonly path: TreePath;
  readonly what: 'links' | 'xattrs' | 'owner';
  readonly words: string;
}

/** Bytes that an outsider wrote into what the commit replaced or removed, and where they are now (a path below the root). */
export interface Rescue {
  readonly path: TreePath;
  readonly saved: TreePath;
}

export interface Done {
  readonly durationNs: bigint;
  readonly losses: readonly Loss[];
  /** Conflicts that were noticed when all was done already: each is to be reported. */
  readonly late: readonly Rescue[];
}

/** What `transact` would find, without writing anything. */
export function forecast(transaction: Transaction): Forecast {
  const conflicts: Conflict[] = [], losses: Loss[] = [];
  let steps = 0;
  for (const { act } of transaction.steps) if (act !== 'unpark') steps++;
  transaction.progress?.(0, steps);
  return { conflicts, losses };
}

/**
 * Does all steps, or none. Throws `ConflictError` with all conflicts, `LockedRootError` where another committer is at
 * it for longer than patience lasts, `CommitError` for whatever the system refuses: then the disk is as before.
 */
export async function transact(transaction: Transaction): Promise<Done> {
  const { conflicts, losses } = forecast(transaction);
  if (conflicts.length > 0) throw new ConflictError(transaction.root, conflicts);
  return Promise.resolve({ durationNs: 0n, losses, late: [] });
}

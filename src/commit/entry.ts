import type { TreePath } from '../core/path.ts';
import type { Known } from './known.ts';

/**
 * What a journal has of a plan: what is done at one name, in calls of the system of which each leaves a state that can be
 * told from all others. `n` is the number of the step it belongs to. `path` is the name at that point; `disk`, where it
 * is given, the name of the same thing before the commit began.
 *
 * Names in a staging directory: `n0` is what step 0 makes, `d0` what it replaced or took away, `p0` what is parked in slot 0,
 * `u0` what was made and is taken back.
 */
export type Entry = MakeEntry | LinkEntry | SwapEntry | RemoveEntry | MoveEntry | AdjustEntry | BelowEntry;

interface At {
  readonly n: number;
  readonly path: TreePath;
}

/** Out of staging into its place, where nothing is: `link`, or for a directory `mkdir` and a rename over that. */
export interface MakeEntry extends At {
  readonly act: 'make';
  readonly volume: number;
  readonly staged: string;
  readonly after: Known;
  /** Something of the tree that was parked: whatever becomes of it, it is not ours to throw away. */
  readonly parked?: true;
}

/** One more name of what is at `of`. */
export interface LinkEntry extends At {
  readonly act: 'link';
  readonly of: TreePath;
  readonly after: Known;
}

/** One thing that is no directory by another: `link` of what is there into staging, then a rename over it. */
export interface SwapEntry extends At {
  readonly act: 'swap';
  readonly disk: TreePath;
  readonly volume: number;
  readonly staged: string;
  readonly displaced: string;
  readonly before: Known;
  readonly after: Known;
}

/** A rename into staging; what it held follows as `below`. */
export interface RemoveEntry extends At {
  readonly act: 'remove';
  readonly disk: TreePath;
  readonly volume: number;
  readonly displaced: string;
  readonly before: Known;
  readonly parked?: true;
}

/** A directory by a rename; anything else by `link` to the new name, then a rename of the old one into staging. */
export interface MoveEntry extends At {
  readonly act: 'move';
  readonly to: TreePath;
  readonly disk: TreePath;
  readonly volume: number;
  readonly displaced: string;
  readonly before: Known;
}

/** Other metadata on what stays. Times in ns as decimal strings; attributes in base64, `null` where there is none. */
export interface AdjustEntry extends At {
  readonly act: 'adjust';
  /** Absent where the commit itself makes it. */
  readonly disk?: TreePath;
  readonly before: Known;
  readonly from: Metadata;
  readonly to: Metadata;
}

export interface Metadata {
  readonly mode?: number;
  readonly uid?: number;
  readonly gid?: number;
  readonly atime?: string;
  readonly mtime?: string;
  readonly xattrs?: Readonly<Record<string, string | null>>;
}

/** Something in a directory that the last `remove` took away; `path` begins behind that. */
export interface BelowEntry extends At {
  readonly act: 'below';
  readonly known: Known;
}

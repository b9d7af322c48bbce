import type { Attr, NodeType } from '../core/attr.ts';
import { parentOf, type TreePath } from '../core/path.ts';

/**
 * A read-only world beneath the overlay. A lower never follows a symlink, never leaves its root, never opens
 * anything but regular files, and has no method that writes. All calls are synchronous; faults (EACCES, EIO, …) are
 * thrown as `Refusal`; nothing being there is a value, not a fault.
 *
 * What is not promised: that two calls see the same world. Outsiders may change it between any two.
 */
export interface Lower {
  /** What the session's header calls this lower: the real path of a directory, several joined by `:`, or `''`. */
  readonly root: string;

  /** The entry itself, a final symlink not followed. */
  lstat(path: TreePath): Attr | Absence;

  /** `lstat` for a call that may make the name: of an absent one it tells the directory that would hold it, as the look found it. */
  vacancy(path: TreePath): Attr | Vacancy | 'unwalkable';

  /** The target of a symlink, escaped as names are. Throws EINVAL when it is none by now. */
  readlink(path: TreePath): string;

  /**
   * Names and types in a directory, each once, sorted by the bytes of the names; throws ENOTDIR or ENOENT when it is
   * none. The list is shared: while the directory is known not to have changed, it is the same object.
   */
  list(path: TreePath): readonly LowerEntry[];

  /** Opens a regular file for reading; of anything else gives the `Attr` and leaves it unopened. */
  open(path: TreePath): LowerFile | Attr | Absence;

  /** The whole of a regular file of at most `limit` bytes in one go; a larger one is opened instead. */
  slurp(path: TreePath, limit: number): WholeFile | LowerFile | Attr | Absence;

  /**
   * Extended attributes of the file at `path`, which looks as `attr` says; a symlink's own. Only those in `user.` and, for
   * root, in `trusted.`; `undefined` where this machine cannot tell.
   */
  xattrs(path: TreePath, attr: Attr): Xattrs | undefined;

  /** Figures of the file system that holds the root, as `fs.statfsSync(…, { bigint: true })`. */
  statfs(): LowerStatFs;

  /**
   * Calls back after a change at or below `path` by outsiders, until closed. `name` is relative to the directory
   * watched; of a file watched, and of the directory itself, the last component. `failed` where it cannot go on
   * watching all of it; without that such a fault is thrown out of the event loop. Does not keep the process alive.
   */
  watch(
    path: TreePath, options: { recursive: boolean }, changed: (event: 'rename' | 'change', name: string) => void,
    failed?: (fault: unknown) => void,
  ): { close(): void };

  /** Gives back every descriptor. Open `LowerFile`s stay usable. */
  close(): void;
}

/**
 * `absent`: the directory that would hold the name is there, the name is not. `unwalkable`: some component above the
 * name is no directory (a symlink, a file, nothing), so the caller has to walk component by component to learn which.
 */
export type Absence = 'absent' | 'unwalkable';

/** Extended attributes by name; the values in base64. */
export type Xattrs = ReadonlyMap<string, string>;

/** The name is absent. `kind` tells it from an `Attr`. */
export interface Vacancy {
  readonly kind: 'vacant';
  readonly directory: Attr;
}

/** `vacancy` by two looks, where one cannot tell both. */
export function vacancyByLooks(looking: Pick<Lower, 'lstat'>, path: TreePath): Attr | Vacancy | 'unwalkable' {
  const attr = looking.lstat(path);
  if (attr !== 'absent') return attr;
  const directory = looking.lstat(parentOf(path));
  return typeof directory === 'string' ? 'unwalkable' : { kind: 'vacant', directory };
}

export interface LowerEntry {
  readonly name: string;
  readonly type: NodeType;
}

export interface LowerStatFs {
  readonly type: bigint;
  readonly bsize: bigint;
  readonly blocks: bigint;
  readonly bfree: bigint;
  readonly bavail: bigint;
  readonly files: bigint;
  readonly ffree: bigint;
}

/** A regular lower file held open. `kind` tells it from an `Attr`. */
export interface LowerFile {
  readonly kind: 'open';
  /** As it was when opened. */
  readonly attr: Attr;
  /** As it is now: a change since the opening shows here. */
  restat(): Attr;
  /** pread(2): bytes read, 0 at the end. `position` in bytes, may exceed 4 GiB. */
  read(into: Uint8Array, offset: number, length: number, position: number): number;
  /** The same without blocking the thread, for bulk reads. */
  readLater(into: Uint8Array, offset: number, length: number, position: number): Promise<number>;
  close(): void;
}

/** `attr` was taken from the descriptor the bytes were read from. */
export interface WholeFile {
  readonly kind: 'whole';
  readonly attr: Attr;
  readonly bytes: Uint8Array;
}

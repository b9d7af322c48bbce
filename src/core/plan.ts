import type { Fingerprint, NodeType } from './attr.ts';
import type { TreePath } from './path.ts';
import type { Version } from './version.ts';

/**
 * A plan: what a commit does to the lower, in an order in which it could be done one step after the other on a quiet
 * disk. `path` is always the name that the thing has at that point of the list.
 */
export type Step = CreateStep | ReplaceStep | RemoveStep | MoveStep | ParkStep | UnparkStep | AdjustStep;

/** Something new; nothing may be there. A directory is made empty: what it holds are steps of their own. */
export interface CreateStep {
  readonly act: 'create';
  readonly path: TreePath;
  readonly node: NewNode;
}

/** Another thing in its place, of whatever type; what is there goes away whole, a directory with all it holds (`below`). */
export interface ReplaceStep {
  readonly act: 'replace';
  readonly path: TreePath;
  readonly before: Expectation;
  readonly below?: Iterable<Below>;
  readonly node: NewNode;
  /**
   * `'kept'`: an edit, so mode, owner and extended attributes (access lists too) that `node` does not name are those of what was
   * there, its type being the same. `'own'`: another file that took the name; it has what `node` says.
   */
  readonly attributes: 'kept' | 'own';
}

/** What is there goes away, a directory with all it holds (`below`). */
export interface RemoveStep {
  readonly act: 'remove';
  readonly path: TreePath;
  readonly before: Expectation;
  readonly below?: Iterable<Below>;
}

/** A rename of whatever is there, a directory with all it holds. `to` is free at this point of the list. */
export interface MoveStep {
  readonly act: 'move';
  readonly from: TreePath;
  readonly to: TreePath;
  readonly before: Expectation;
}

/** Takes what is there out of the way, to be put down by a later `unpark` of the same slot: so names are swapped. */
export interface ParkStep {
  readonly act: 'park';
  readonly path: TreePath;
  readonly before: Expectation;
  readonly slot: number;
}

/** `path` is free at this point of the list. */
export interface UnparkStep {
  readonly act: 'unpark';
  readonly slot: number;
  readonly path: TreePath;
}

/**
 * Other metadata on what stays in its place. Times of directories count after all steps of the list, whatever these put
 * into them.
 */
export interface AdjustStep {
  readonly act: 'adjust';
  readonly path: TreePath;
  readonly before: Expectation;
  readonly set: Attributes;
}

/**
 * What every directory is called, or begins to be called, in which a commit keeps things before and after they have their
 * place in the tree. Such names are no part of it.
 */
export const STAGING_NAME = '.palimpsest-commit';

/** What was expected of something below a directory that goes away; whatever else is found there is a conflict. */
export interface Below {
  readonly path: TreePath;
  readonly expected: Expectation;
}

/** What a commit expects at a path of the lower. */
export interface Expectation {
  readonly state: HostState;
  /**
   * What has to be as `state` says: `type`; `content`, which is the type with the bytes of a file, the target of a symlink, the
   * number of a device; `metadata`, which is the type with mode and owner; or `all` of it.
   */
  readonly aspects: 'type' | 'content' | 'metadata' | 'all';
}

/** What is, or has to be, at a path of the lower. `mode`: permission bits. */
export type HostState = AbsentState | FileState | DirectoryState | SymlinkState | SpecialState;

export interface AbsentState {
  readonly type: 'absent';
}

/**
 * A file is at this content when it has this fingerprint, or else when its bytes have this version. So a fingerprint
 * goes in here only where it is certain that no other bytes can have it (not one as young as the look at it). With neither, any
 * content of that size will do.
 */
export interface FileState extends Ownership {
  readonly type: 'file';
  readonly size: number;
  readonly version?: Version | undefined;
  readonly fingerprint?: Fingerprint | undefined;
}

export interface DirectoryState extends Ownership {
  readonly type: 'directory';
}

export interface SymlinkState extends Ownership {
  readonly type: 'symlink';
  readonly target: string;
}

export interface SpecialState extends Ownership {
  readonly type: Exclude<NodeType, 'file' | 'directory' | 'symlink'>;
  readonly rdev: number;
}

/** `mode` in permission bits. */
export interface Ownership {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

/** Metadata to be set; what is absent stays as it is, or as the system makes it. Times in ns since 1970. */
export interface Attributes {
  /** Permission bits. */
  readonly mode?: number | undefined;
  readonly uid?: number | undefined;
  readonly gid?: number | undefined;
  readonly atime?: bigint | undefined;
  readonly mtime?: bigint | undefined;
  /** By full name; the value in base64, `null` where the attribute goes away. */
  readonly xattrs?: ReadonlyMap<string, string | null> | undefined;
}

/** What a step makes. */
export type NewNode =
  | ({ readonly type: 'file'; readonly content: Source } & Attributes)
  | ({ readonly type: 'directory' } & Attributes)
  | ({ readonly type: 'symlink'; readonly target: string } & Attributes)
  | ({ readonly type: 'fifo' | 'character' | 'block'; readonly rdev?: number } & Attributes)
  /** One more name of the file that is at `of` by then. */
  | { readonly type: 'link'; readonly of: TreePath };

/** Bytes of a new file. */
export interface Source {
  readonly size: number;
  /** Checked against what was written. */
  readonly version: Version | undefined;
  /** In order, at most 1 MiB each; what none covers is a hole. Pulled once a staging, and good only until the next is pulled. */
  pieces(): Iterable<{ readonly at: number; readonly bytes: Uint8Array }>;
}

/** What a commit relied on without changing it, and who did: guard `reads`. */
export interface Reliance {
  readonly path: TreePath;
  /** A state, or of a directory the version of its names and types. */
  readonly expected: Expectation | { readonly listing: Version };
  readonly actor: string;
  readonly seq: number;
  readonly time?: string;
}

/** An expectation that does not hold. `expected` and `actual` are words for a human; the rest says whose expectation it was. */
export interface Conflict {
  readonly path: TreePath;
  readonly expected: string;
  readonly actual: string;
  readonly actor?: string;
  readonly seq?: number;
  readonly time?: string;
}

import type { NodeType } from './attr.ts';
import type { TreePath } from './path.ts';
import type { Version } from './version.ts';

/**
 * What happened, complete and in the past. An event holds all that folding needs: replaying a log asks no lower and
 * no clock. In memory an event is its JSON object, with two differences that the codec (`encode.ts`) bridges: paths are
 * strings here (`path64` and its like are decoded), and `crc` is gone.
 *
 * `mtime` of a mutation is the time it gave to what it changed (and to the directory whose names it changed): ns since
 * 1970 as a decimal string, since JSON numbers cannot hold it.
 */
export type Event = Stamp & EventBody;

/** An event before it is appended: the session gives it its place. */
export type EventBody = ObservationBody | MutationBody | ControlBody;

export interface Stamp {
  /** From 1, without gaps. */
  readonly seq: number;
  /** ISO 8601 with ms. */
  readonly time: string;
  readonly actor: string;
  /** On a mount: who asked. */
  readonly process?: ProcessInfo;
  /** Where the session keeps what is seen (`record: 'content'`): what this event showed of the lower that was not kept before. */
  readonly kept?: readonly KeptRecord[];
}

/** What the lower has at a path, kept. */
export interface KeptRecord {
  /** In the lower. */
  readonly path: TreePath;
  /** Absent: nothing is there. */
  readonly base?: LowerBase;
  /** Of a file, all it holds; of a directory, its list, as JSON: `[[name, base], …]`. */
  readonly blob?: Version;
  /** Of a large file, what was read. */
  readonly extents?: readonly ExtentRecord[];
}

export interface ProcessInfo {
  readonly pid: number;
  readonly name: string;
  readonly parent?: number;
  readonly inferred?: boolean;
}

interface Place {
  readonly path: TreePath;
  /** The name as asked, where a symlink made it another. */
  readonly via?: string;
}

/** Decimal ns since 1970. */
export type Nanoseconds = string;

/** An inode or device number: a JSON number where that is exact, else a decimal string. */
export type Inode = number | string;

/** A lower file as it was when its first mutation took it over: its base, and what folding needs of it. */
export interface LowerBase {
  readonly type: NodeType;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly size: number;
  readonly nlink: number;
  readonly dev: Inode;
  readonly ino: Inode;
  readonly rdev?: number;
  readonly mtime: Nanoseconds;
  readonly ctime: Nanoseconds;
  readonly atime?: Nanoseconds;
  readonly birthtime?: Nanoseconds;
  /** Known where the bytes were hashed. */
  readonly version?: Version;
  readonly target?: string;
}

export interface FingerprintRecord {
  readonly dev: Inode;
  readonly ino: Inode;
  readonly size: number;
  readonly mtime: Nanoseconds;
  readonly ctime: Nanoseconds;
}

/** Bytes `at … at + length` of a file: of a blob from byte `from` on, of the lower file from byte `lower` on, or zeros. */
export interface ExtentRecord {
  readonly at: number;
  readonly length: number;
  readonly blob?: Version;
  readonly from?: number;
  readonly lower?: number;
}

// Observations

export type ObservationBody = ReadBody | ListBody | StatBody | ReadlinkBody | MissBody;

export interface ReadBody extends Place {
  readonly op: 'read';
  readonly version?: Version;
  readonly fingerprint?: FingerprintRecord;
  readonly size: number;
  /** [start, end) in bytes of what was shown; absent: the whole file. */
  readonly ranges?: readonly (readonly [number, number])[];
  /** A search went through it: its actor has been shown `ranges` and nothing else, and none where there are none. */
  readonly search?: true;
  readonly blob?: Version;
}

export interface ListBody extends Place {
  readonly op: 'list';
  readonly version: Version;
  readonly count: number;
  /** Version of the lower directory's own list, where it is another. */
  readonly lower?: Version;
  readonly blob?: Version;
}

export interface StatBody extends Place {
  readonly op: 'stat';
  readonly exists: NodeType;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly size: number;
  readonly nlink: number;
  readonly ino: Inode;
  readonly rdev: number;
  readonly mtime: Nanoseconds;
  readonly ctime: Nanoseconds;
}

export interface ReadlinkBody extends Place {
  readonly op: 'readlink';
  readonly target: string;
}

/** Absence only: ENOENT because nothing is there, or because a whiteout hides it. */
export interface MissBody extends Place {
  readonly op: 'miss';
  /** The call that looked: `open`, `stat`, `access`, … */
  readonly call: string;
}

// Mutations

export type MutationBody =
  | WriteBody | TruncateBody | MkdirBody | MknodBody | SymlinkBody | LinkBody | RenameBody | DeleteBody
  | ChmodBody | ChownBody | UtimesBody | SetxattrBody | RemovexattrBody | DiscardBody | UndoBody;

interface Mutation extends Place {
  readonly mtime: Nanoseconds;
  /** Present exactly when this event takes a lower file over. */
  readonly lower?: LowerBase;
  /** The file has no name (open, unlinked, or not named yet): told for completeness, no part of the tree. */
  readonly unlinked?: true;
  /** Device of a file born in the lower, where `path` may be a name it has lost and `ino` has to find it. */
  readonly dev?: Inode;
}

/** New content: `blob` is the whole of it; `extents` are the ranges written, the rest stays as it was. */
export interface WriteBody extends Mutation {
  readonly op: 'write';
  readonly version?: Version;
  readonly size: number;
  readonly mode: number;
  readonly ino: Inode;
  /** Only where the write created the file; `at`: when, if its bytes came later. */
  readonly created?: { readonly uid: number; readonly gid: number; readonly at?: Nanoseconds };
  readonly blob?: Version;
  readonly extents?: readonly ExtentRecord[];
  /** Version of the content replaced, where known. */
  readonly before?: Version;
  /** An edit: what was replaced, one after the other, each counted in what the one before left. All else is as it was. */
  readonly splices?: readonly Splice[];
}

/** At byte `at`, `removed` bytes made way for `added` ones. */
export type Splice = readonly [at: number, removed: number, added: number];

export interface TruncateBody extends Mutation {
  readonly op: 'truncate';
  readonly size: number;
  readonly ino: Inode;
  readonly version?: Version;
}

export interface MkdirBody extends Mutation {
  readonly op: 'mkdir';
  readonly mode: number;
  readonly ino: Inode;
  readonly uid: number;
  readonly gid: number;
}

export interface MknodBody extends Mutation {
  readonly op: 'mknod';
  readonly type: NodeType;
  readonly mode: number;
  readonly rdev: number;
  readonly ino: Inode;
  readonly uid: number;
  readonly gid: number;
}

export interface SymlinkBody extends Mutation {
  readonly op: 'symlink';
  readonly target: string;
  readonly ino: Inode;
  readonly uid: number;
  readonly gid: number;
}

/** `path` gets the further name `to`. */
export interface LinkBody extends Mutation {
  readonly op: 'link';
  readonly to: TreePath;
  readonly ino: Inode;
}

export interface RenameBody extends Mutation {
  readonly op: 'rename';
  readonly to: TreePath;
  readonly exchange?: true;
  /** Base of the lower file that the target's name showed so far. */
  readonly onto?: LowerBase;
  /** The lower has something under the old name, which must stay hidden. */
  readonly whiteout?: true;
}

export interface DeleteBody extends Mutation {
  readonly op: 'delete';
  /** The lower has something under the name, which must stay hidden. */
  readonly whiteout?: true;
}

export interface ChmodBody extends Mutation {
  readonly op: 'chmod';
  readonly ino?: Inode;
  /** With type bits. */
  readonly mode: number;
}

export interface ChownBody extends Mutation {
  readonly op: 'chown';
  readonly ino?: Inode;
  readonly uid: number;
  readonly gid: number;
  /** With type bits: chown(2) may clear setuid and setgid. */
  readonly mode: number;
}

/** `mtime` is the time set; `ctime` when that happened. */
export interface UtimesBody extends Mutation {
  readonly op: 'utimes';
  readonly ino?: Inode;
  readonly atime: Nanoseconds;
  readonly ctime: Nanoseconds;
}

export interface SetxattrBody extends Mutation {
  readonly op: 'setxattr';
  readonly ino?: Inode;
  readonly name: string;
  /** base64 */
  readonly value: string;
}

export interface RemovexattrBody extends Mutation {
  readonly op: 'removexattr';
  readonly ino?: Inode;
  readonly name: string;
}

/** The overlay's changes at and below these paths are gone; all of them where `paths` is absent. */
export interface DiscardBody {
  readonly op: 'discard';
  readonly paths?: readonly TreePath[];
}

/** Changes taken back: the events whose effect it undoes, and the mutations that do so. */
export interface UndoBody {
  readonly op: 'undo';
  readonly events: readonly number[];
}

// Control

export type ControlBody =
  | { readonly op: 'run'; readonly argv: readonly string[]; readonly cwd: string }
  | { readonly op: 'exit'; readonly status: number | null; readonly signal?: string }
  | { readonly op: 'mark'; readonly label: string; readonly data?: unknown }
  | RefuseBody
  /** Path rules that hold from here on, in place of those before. */
  | { readonly op: 'rules'; readonly rules: readonly RuleRecord[] }
  | { readonly op: 'flag'; readonly path: TreePath; readonly via?: string; readonly rule: string; readonly call: string }
  | { readonly op: 'fork'; readonly name: string; readonly session?: string }
  | { readonly op: 'merge'; readonly session: string; readonly seq: number }
  | CommitBody
  | RevertBody
  | { readonly op: 'seal'; readonly hash: Version };

/** Changes were published: from here on the lower has them, and what is not among them lies over what the lower is now. */
export interface CommitBody {
  readonly op: 'commit';
  readonly id: string;
  /** How many. */
  readonly changes: number;
  readonly guard: string;
  readonly durability: string;
  /** Names in the tree whose changes were published, all that these needed included; absent: all there were. */
  readonly paths?: readonly TreePath[];
  /** Where only some were published, the lower directories that moved: each path before, then its path now. */
  readonly moves?: readonly TreePath[];
  /** Versions of published content that nobody had hashed before. */
  readonly versions?: readonly PathVersion[];
  /** Blobs that hold what was done and what was there before, in order: see `commit/record.ts`. */
  readonly record?: readonly string[];
}

export interface PathVersion {
  readonly path: TreePath;
  readonly version: Version;
}

/** What a commit had published was taken back. */
export interface RevertBody {
  readonly op: 'revert';
  readonly id: string;
  /** The lower directories that moved back: each path before, then its path now. */
  readonly moves?: readonly TreePath[];
}

/** A path rule as it was given: see `policy/rules.ts`. */
export interface RuleRecord {
  readonly match: string;
  readonly effect: string;
  readonly on?: readonly string[];
}

/** A call that was told no: of something in the tree, by `rule` where a rule said so, or of a path outside of it. */
export interface RefuseBody {
  readonly op: 'refuse';
  readonly path?: TreePath;
  readonly via?: string;
  /** The absolute path outside the tree, as the call named it; then there is no `path`. */
  readonly outside?: string;
  readonly call: string;
  readonly code: string;
  readonly rule?: string;
}

export type Op = EventBody['op'];

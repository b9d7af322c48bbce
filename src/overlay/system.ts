import type { Attr, NodeType } from '../core/attr.ts';
import type { PathName } from '../core/path.ts';
import type { LowerStatFs } from '../lower/lower.ts';

/**
 * The system-call table of the overlay, for one actor: what a kernel would offer to a process. Every face (node:fs,
 * mount, tools) is built on it and on nothing deeper. Calls are synchronous, do one thing, log it, and throw
 * `Refusal` with the errno that Linux would give. Arguments are already checked and converted by the face.
 *
 * Flags are those of `fs.constants`; times are ns since 1970; modes are permission bits unless said otherwise.
 */
export interface System {
  /** open(2), umask applied. Gives a descriptor that no real descriptor of this process shares (≥ FIRST_DESCRIPTOR). */
  open(path: PathName, flags: number, mode: number): number;
  /** open(2) of `/proc/self/fd/N`: another descriptor of an open file, which may have no name any more. */
  reopen(fd: number, flags: number): number;
  close(fd: number): void;
  /** pread(2) with a position, read(2) with `null` (uses and moves the descriptor's own position). */
  read(fd: number, into: Uint8Array, offset: number, length: number, position: number | null): number;
  /** The same, for bulk reads that should not block the thread; the event is recorded when the call is made. */
  readLater(fd: number, into: Uint8Array, offset: number, length: number, position: number | null): Promise<number>;
  /** pwrite(2)/write(2); O_APPEND writes at the end, whatever the position. */
  write(fd: number, from: Uint8Array, offset: number, length: number, position: number | null): number;
  ftruncate(fd: number, size: number): void;
  /** Makes the events so far durable; `data` alone makes no difference to a log. */
  fsync(fd: number): void;
  fstat(fd: number): Attr;
  fchmod(fd: number, mode: number): void;
  fchown(fd: number, uid: number, gid: number): void;
  futimes(fd: number, atime: SystemTime, mtime: SystemTime): void;
  /** fallocate(2), `mode` of FALLOC_KEEP_SIZE and its like; no room is set aside. */
  fallocate(fd: number, mode: number, offset: number, length: number): void;
  /** lseek(2) with SEEK_DATA or SEEK_HOLE: the offset found; the descriptor's own position stays. */
  seek(fd: number, offset: number, wanted: 'data' | 'hole'): number;
  /** copy_file_range(2): how many bytes were copied, at most `length`. `null`: at the descriptor's own position. */
  copyRange(from: number, fromAt: number | null, to: number, toAt: number | null, length: number): number;
  /** open(2) with O_TMPFILE: a file without a name in a directory. */
  tmpfile(path: PathName, flags: number, mode: number): number;
  /** linkat(2) of `/proc/self/fd/N`: a further name for an open file, or the first for one of `tmpfile`. */
  linkOpen(fd: number, to: PathName): void;

  /** The whole file in one go, as open, read to the end and close would give it; the caller owns the bytes. */
  readFile(path: PathName, flags: number): Uint8Array;
  /** The same, but a file of more than `limit` bytes is left open, to be read in parts: gives its descriptor. */
  readFile(path: PathName, flags: number, limit: number): Uint8Array | number;
  /** open with `flags`, write all of `bytes`, close. The bytes are copied. */
  writeFile(path: PathName, bytes: Uint8Array, flags: number, mode: number): void;
  /** Copies content and permission bits. `exclusive`: EEXIST where the target exists. */
  copyFile(from: PathName, to: PathName, options: { exclusive: boolean }): void;

  /** `undefined` where nothing is there (ENOENT). Throws ENOTDIR, ELOOP and the like. */
  stat(path: PathName): Attr | undefined;
  lstat(path: PathName): Attr | undefined;
  /**
   * As `stat`, but throws ENOENT, ENOTDIR … where nothing is there. `repeated`: one of many looks on a timer, which is
   * no news where it shows what the one before showed, and need not be recorded then.
   */
  mustStat(path: PathName, options: { follow: boolean; repeated?: boolean }): Attr;
  exists(path: PathName): boolean;
  /** access(2); `mode` of `fs.constants.R_OK` and its like. */
  access(path: PathName, mode: number): void;
  /** Without `.` and `..`, each name once, sorted by their bytes. */
  readdir(path: PathName): readonly SystemEntry[];
  readlink(path: PathName): string;
  /** An absolute path below the mount point (or outside, where that is allowed), all symlinks resolved. */
  realpath(path: PathName): string;
  statfs(path: PathName): LowerStatFs;

  mkdir(path: PathName, mode: number): void;
  mknod(path: PathName, mode: number, rdev: number): void;
  symlink(target: string, path: PathName): void;
  link(from: PathName, to: PathName): void;
  rename(from: PathName, to: PathName, options?: { exchange?: boolean; noReplace?: boolean }): void;
  unlink(path: PathName): void;
  rmdir(path: PathName): void;
  truncate(path: PathName, size: number): void;
  chmod(path: PathName, mode: number, options: { follow: boolean }): void;
  chown(path: PathName, uid: number, gid: number, options: { follow: boolean }): void;
  utimes(path: PathName, atime: SystemTime, mtime: SystemTime, options: { follow: boolean }): void;

  /** Extended attributes. */
  readonly xattrs: SystemXattrs;

  /**
   * Changes at `path` (or in it, when a directory; at any depth when recursive), by the overlay and by outsiders. `name`
   * is relative to the directory watched; of a file watched, its last component. `failed` where the watch ends by a fault.
   */
  watch(
    path: PathName, options: { recursive: boolean }, changed: WatchListener, failed?: (fault: unknown) => void,
  ): { close(): void };
  /** The working directory that relative paths start from. */
  cwd(): string;
}

/** Extended attributes of what a path or a descriptor leads to. Names are escaped as paths are. Throws as the calls of Linux do. */
export interface SystemXattrs {
  /** getxattr(2), the whole value. */
  get(target: PathName | number, name: string, options: { follow: boolean }): Uint8Array;
  /** setxattr(2); `only`: XATTR_CREATE or XATTR_REPLACE. */
  set(target: PathName | number, name: string, value: Uint8Array, options: { follow: boolean; only?: 'create' | 'replace' }): void;
  /** listxattr(2): the names. */
  list(target: PathName | number, options: { follow: boolean }): readonly string[];
  remove(target: PathName | number, name: string, options: { follow: boolean }): void;
}

/** A time to set: ns since 1970, the moment (UTIME_NOW), or as it is (UTIME_OMIT). */
export type SystemTime = bigint | 'now' | 'omit';

export type WatchListener = (event: 'rename' | 'change', name: string) => void;

export interface SystemEntry {
  readonly name: string;
  readonly type: NodeType;
}

/** The bits of open(2)'s flags that say for reading, writing or both; node has no name for them. */
export const O_ACCMODE = 3;

/** Modes of fallocate(2). */
export const FALLOC_KEEP_SIZE = 1;
export const FALLOC_PUNCH_HOLE = 2;
export const FALLOC_ZERO_RANGE = 16;

/** Overlay descriptors start here; smaller ones are real descriptors (0, 1, 2, and files outside the tree). */
export const FIRST_DESCRIPTOR = 1 << 20;

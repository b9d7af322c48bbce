import { closeSync, constants, fstatSync, fsyncSync, openSync } from 'node:fs';
import type { Attr } from '../core/attr.ts';
import { fromBytes, nameOf, parentOf, type TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { DIRECTORY_FLAGS } from '../lower/descend.ts';
import { openWalker } from '../lower/directory.ts';
import { DescriptorFile } from '../lower/file.ts';
import { join } from '../lower/listing.ts';
import type { Absence, LowerEntry, LowerFile } from '../lower/lower.ts';
import { attrOf, EXACT } from '../lower/stats.ts';
import type { Walker } from '../lower/walker.ts';

const SYNC_FLAGS = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** What a name is called for the system while a call runs. */
export type SystemName = string | Buffer;

/**
 * The real tree below a root, to be looked at and changed without ever leaving it: every name is used through its
 * directory, held by a descriptor and found with no symlink followed. Faults are thrown as the system gives them, or as `Refusal`.
 */
export class Ground {
  readonly root: string;
  private readonly real: SystemName;
  private readonly walker: Walker;

  /** Throws an error with `code` ENOENT or ENOTDIR that names `root` where it is no directory. */
  constructor(root: string) {
    const { root: real, walker } = openWalker(root);
    this.real = real;
    this.root = typeof real === 'string' ? real : fromBytes(real);
    this.walker = walker;
  }

  lstat(path: TreePath): Attr | Absence {
    return this.walker.lstat(path);
  }

  /** What is at `path`; undefined where nothing is, or nothing can be. */
  find(path: TreePath): Attr | undefined {
    const found = this.walker.lstat(path);
    return typeof found === 'string' ? undefined : found;
  }

  readlink(path: TreePath): string {
    return this.walker.readlink(path);
  }

  list(path: TreePath): readonly LowerEntry[] {
    return this.walker.list(path);
  }

  /** A regular file, open for reading; undefined where none is. */
  open(path: TreePath): LowerFile | undefined {
    const found = this.walker.open(path);
    return typeof found === 'object' && 'fd' in found ? new DescriptorFile(found) : undefined;
  }

  /** Calls `use` once with the name of `path`, whose directory is there during that call. Throws ENOENT where it is not. */
  at<T>(path: TreePath, use: (name: SystemName) => T): T {
    return this.inside(parentOf(path), (directory) => use(join(directory, nameOf(path))));
  }

  /** The same with the directory `path` itself: a name that ends with a slash. */
  inside<T>(path: TreePath, use: (directory: SystemName) => T): T {
    let used = false;
    const outcome = this.walker.withDirectory(path, (place) => {
      // Where the walker cannot hold directories it looks again afterwards, and would do the same once more.
      if (used) throw new Refusal('EIO', { reason: 'a directory above it was moved while it was changed' });
      used = true;
      return { value: use(join(place, '/')) };
    });
    if (typeof outcome === 'object') return outcome.value;
    throw new Refusal(outcome === 'absent' ? 'ENOENT' : 'ENOTDIR');
  }

  /**
   * Calls `use` with the names of two paths. The directory of the first is held by a descriptor of its own: the walker may
   * close one that it has handed out before when it is asked for another.
   */
  between<T>(from: TreePath, to: TreePath, use: (from: SystemName, to: SystemName) => T): T {
    const directory = this.hold(parentOf(from));
    try {
      return this.at(to, (target) => use(join(directory.prefix, nameOf(from)), target));
    } finally {
      directory.close();
    }
  }

  /** A descriptor of the directory `path`, the caller's to close. */
  hold(path: TreePath): HeldPlace {
    return this.inside(path, (name) => new HeldPlace(name));
  }

  /** The plain name of `path`, for programs that are told what file system is meant. */
  plain(path: TreePath): SystemName {
    return path === '' ? this.real : join(join(this.real, '/'), path);
  }

  close(): void {
    this.walker.close();
  }
}

/** A directory held by a descriptor. */
export class HeldPlace {
  readonly fd: number;
  /** What a name in it is appended to. */
  readonly prefix: SystemName;

  constructor(name: SystemName) {
    const linux = process.platform === 'linux';
    this.fd = openSync(join(name, '.'), linux ? DIRECTORY_FLAGS : SYNC_FLAGS);
    this.prefix = linux ? `/proc/self/fd/${this.fd}/` : name;
  }

  /** fsync(2): the names in it survive a power cut. */
  sync(): void {
    const fd = openSync(join(this.prefix, '.'), SYNC_FLAGS);
    try {
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  }

  attr(): Attr {
    return attrOf(fstatSync(this.fd, EXACT));
  }

  close(): void {
    closeSync(this.fd);
  }
}

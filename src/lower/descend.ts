import { closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync } from 'node:fs';
import type { BigIntStats } from 'node:fs';
import type { Attr, NodeType } from '../core/attr.ts';
import { S_IFMT } from '../core/attr.ts';
import { childOf, fromBytes, nameOf, parentOf } from '../core/path.ts';
import type { TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { codeOf, isGone } from './fault.ts';
import { HeldDirectory, isSteadyFileSystem } from './held.ts';
import type { HeldTree } from './held.ts';
import { join } from './listing.ts';
import type { Absence, LowerEntry, Vacancy } from './lower.ts';
import type { DescriptorPool } from './pool.ts';
import { attrOf, EXACT, LOOK } from './stats.ts';
import type { Opened, Walker } from './walker.ts';

// Not among node's constants; the same on every architecture of Linux.
const O_PATH = 0o10000000;
export const DIRECTORY_FLAGS = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** O_NONBLOCK and O_NOCTTY for the moment in which a regular file may have become something else. */
const FILE_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

/** Directories deeper than this are opened for one call and not held. */
const HELD_DEPTH = 64;

/** Names kept in memory by one lower. */
const KEPT_NAMES = 65536;

/** How long (ms) the root's own place is taken for granted. */
const ROOT_TRUST_MS = 1;

/** How often a name may turn from one thing into another under a single call before that is a fault. */
const TURN_LIMIT = 16;

const S_IFREG = 0o100000n;
const TYPE_MASK = BigInt(S_IFMT);

/** Walks by directory descriptors, each component looked up in the one above with no symlink followed. */
export class HeldWalker implements Walker, HeldTree {
  readonly root: string | Buffer;
  readonly clock: () => number;
  private readonly top: HeldDirectory;
  private readonly held = new Map<string, HeldDirectory>();
  private readonly pool: DescriptorPool;
  private readonly steady = new Map<bigint, boolean>();
  /**
   * Prefix of what the kernel calls places in the tree; undefined where it calls the root by another name.
   */
  private readonly placePrefix: string | undefined = undefined;
  private readonly user = process.geteuid?.();
  /** The last directory opened that is too deep to be held. */
  private deep: HeldDirectory | undefined;
  /** The directory asked for last, if it is held: most calls ask for its neighbours. */
  private latest: HeldDirectory;
  private rootSeen = -Infinity;
  private names = 0;
  private closed = false;

  /**
   * `fd`: an O_PATH descriptor of the directory whose real path is `root`; it is the walker's from now on.
   */
  constructor(root: string | Buffer, fd: number, pool: DescriptorPool, clock: () => number) {
    this.root = root;
    this.clock = clock;
    this.pool = pool;
    if (readlinkSync(`/proc/self/fd/${fd}`) === root) this.placePrefix = root === '/' ? root : root + '/';
    this.top = new HeldDirectory(this, undefined, '', '', fd);
    this.latest = this.top;
  }

  lstat(path: TreePath): Attr | Absence {
    if (path === '') return attrOf(fstatSync(this.enterRoot().fd, EXACT));
    const { latest } = this;
    // A directory is asked for its attributes before and after its names.
    if (path === latest.path && latest.inPlace()) return attrOf(fstatSync(latest.fd, EXACT));
    const directory = this.enterAbove(path);
    return directory === undefined ? 'unwalkable' : this.lookIn(directory, path);
  }

  vacancy(path: TreePath): Attr | Vacancy | 'unwalkable' {
    const directory = path === '' ? undefined : this.enterAbove(path);
    if (directory === undefined) return path === '' ? this.lstat(path) as Attr : 'unwalkable';
    const attr = this.lookIn(directory, path);
    return attr === 'absent' ? { kind: 'vacant', directory: attrOf(fstatSync(directory.fd, EXACT)) } : attr;
  }

  readlink(path: TreePath): string {
    if (path === '') throw new Refusal('EINVAL');
    const directory = this.enterAbove(path);
    if (directory === undefined) throw new Refusal('ENOENT');
    return fromBytes(readlinkSync(join(directory.prefix, checkedName(path)), 'buffer'));
  }

  list(path: TreePath): readonly LowerEntry[] {
    const directory = this.enter(path);
    if (directory !== undefined) return directory.list();
    throw new Refusal(this.lstat(path) === 'absent' ? 'ENOENT' : 'ENOTDIR');
  }

  open(path: TreePath): Opened | Attr | Absence {
    if (path === '') return this.lstat(path);
    const directory = this.enterAbove(path);
    if (directory === undefined) return 'unwalkable';
    const name = checkedName(path);
    let known: NodeType | 'absent' | undefined = directory.foreign ? undefined : directory.recall(name);
    const there = join(directory.prefix, name);
    for (let turn = 0; turn < TURN_LIMIT; turn++) {
      if (known === 'absent') return 'absent';
      let noAtime = true;
      if (known !== 'file') {
        const stats = lstatSync(there, LOOK);
        if (stats === undefined) return 'absent';
        if (!isRegular(stats)) return attrOf(stats);
        noAtime = !directory.foreign || Number(stats.uid) === this.user;
        directory.sawFile(name);
      }
      const opened = this.openRegular(directory, there, noAtime);
      if (opened !== undefined) return opened;
      known = undefined;
    }
    throw new Refusal('EIO', { reason: 'the file kept turning into something else while it was opened' });
  }

  withDirectory<T>(path: TreePath, use: (name: string | Buffer) => T): T | Absence {
    const directory = this.enter(path);
    if (directory !== undefined) return use(directory.prefix + '.');
    return this.lstat(path) === 'absent' ? 'absent' : 'unwalkable';
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.deep?.evict();
    for (const directory of this.held.values()) this.evict(directory);
    closeSync(this.top.fd);
  }

  placeOf(path: string): string | undefined {
    // A removed directory's place gets this very ending, so a name that has it proves nothing.
    if (this.placePrefix === undefined || path.endsWith(' (deleted)') || !path.isWellFormed()) return undefined;
    return this.placePrefix + path;
  }

  isRootDue(): boolean {
    return !(Math.abs(this.clock() - this.rootSeen) < ROOT_TRUST_MS);
  }

  trustRoot(): void {
    this.rootSeen = this.clock();
  }

  doubtRoot(): void {
    this.rootSeen = -Infinity;
  }

  isSteady(dev: bigint, directory: string): boolean {
    let steady = this.steady.get(dev);
    if (steady === undefined) this.steady.set(dev, steady = isSteadyFileSystem(directory));
    return steady;
  }

  keeps(names: number): void {
    this.names += names;
    // Those that are forgotten below are counted here, too.
    if (names <= 0 || this.names <= KEPT_NAMES) return;
    // Forgetting everything is crude and rare: whoever needs names again learns them anew.
    this.top.forget();
    for (const directory of this.held.values()) directory.forget();
    this.names = Math.max(names, 0);
  }

  evict(directory: HeldDirectory): void {
    directory.forget();
    if (directory === this.deep) this.deep = undefined;
    else {
      this.held.delete(directory.path);
      if (directory === this.latest) this.latest = this.top;
      this.pool.remove(directory);
      (directory.parent as HeldDirectory).children--;
    }
    closeSync(directory.fd);
  }

  private enterRoot(): HeldDirectory {
    if (this.closed) throw new Refusal('EBADF', { reason: 'the lower is closed' });
    this.top.inPlace();
    return this.top;
  }

  private lookIn(directory: HeldDirectory, path: TreePath): Attr | 'absent' {
    const name = checkedName(path);
    if (directory.recallsAbsence(name)) return 'absent';
    const stats = lstatSync(join(directory.prefix, name), LOOK);
    return stats === undefined ? 'absent' : attrOf(stats);
  }

  /** The directory that holds the last name of `path`, as `enter` gives it. */
  private enterAbove(path: TreePath): HeldDirectory | undefined {
    const { latest } = this;
    const length = latest.path.length;
    if (length > 0 && path.lastIndexOf('/') === length && path.startsWith(latest.path) && latest.inPlace()) return latest;
    return this.enter(parentOf(path));
  }

  /** The directory at `path`, certainly there at some moment of this call; undefined where none is. */
  private enter(path: TreePath): HeldDirectory | undefined {
    if (path === '') return this.enterRoot();
    const held = this.held.get(path);
    if (held !== undefined) {
      if (held.inPlace()) {
        held.used = true;
        this.latest = held;
        return held;
      }
      this.drop(path);
    }
    const parent = this.enter(parentOf(path));
    return parent === undefined ? undefined : this.step(parent, checkedName(path));
  }

  private step(parent: HeldDirectory, name: string): HeldDirectory | undefined {
    const there = join(parent.prefix, name);
    const known = parent.recall(name);
    if (known !== 'directory') {
      if (known !== undefined) return undefined;
      const stats = lstatSync(there, LOOK);
      if (stats === undefined || !isDirectory(stats)) return undefined;
    }
    const holds = parent.depth < HELD_DEPTH;
    if (holds) this.pool.makeRoom(parent);
    let fd: number;
    try {
      fd = this.openSparing(parent, there, DIRECTORY_FLAGS);
    } catch (error) {
      if (isGone(error)) return undefined;
      throw error;
    }
    const directory = new HeldDirectory(this, parent, childOf(parent.path as TreePath, name), name, fd);
    if (holds) {
      parent.children++;
      this.held.set(directory.path, directory);
      this.pool.add(directory);
      this.latest = directory;
    } else {
      this.deep?.evict();
      this.deep = directory;
    }
    return directory;
  }

  /** Closes the directory at `path`, which is another by now, and all that were opened through it. */
  private drop(path: TreePath): void {
    for (const [key, directory] of this.held) {
      if (key === path || (key.startsWith(path) && key.charCodeAt(path.length) === 47)) this.evict(directory);
    }
  }

  /** undefined: what was a regular file a moment ago is none any more. */
  private openRegular(directory: HeldDirectory, there: string | Buffer, noAtime: boolean): Opened | undefined {
    let fd: number;
    try {
      fd = this.openSparing(directory, there, noAtime ? FILE_FLAGS | constants.O_NOATIME : FILE_FLAGS);
    } catch (error) {
      const code = codeOf(error);
      if (code === 'EPERM' && noAtime && !directory.foreign) {
        directory.foreign = true;
        return undefined;
      }
      if (isGone(error) || code === 'ENXIO') return undefined;
      throw error;
    }
    try {
      const stats = fstatSync(fd, EXACT);
      if (isRegular(stats)) return { fd, attr: attrOf(stats) };
    } catch (error) {
      closeSync(fd);
      throw error;
    }
    closeSync(fd);
    return undefined;
  }

  /** open(2); where the process has no descriptor left, gives back those held and tries once more. */
  private openSparing(keep: HeldDirectory, name: string | Buffer, flags: number): number {
    try {
      return openSync(name, flags);
    } catch (error) {
      const code = codeOf(error);
      if ((code !== 'EMFILE' && code !== 'ENFILE') || !this.pool.shed(keep)) throw error;
      return openSync(name, flags);
    }
  }
}

function isRegular(stats: BigIntStats): boolean {
  return (stats.mode & TYPE_MASK) === S_IFREG;
}

function isDirectory(stats: BigIntStats): boolean {
  return stats.isDirectory();
}

/** The last name of `path`. A name that would lead elsewhere is a bug above, and must not get through. */
function checkedName(path: TreePath): string {
  const name = nameOf(path);
  if (name === '' || name === '.' || name === '..' || name.includes('\0') || path.charCodeAt(0) === 47) {
    throw new RangeError(`not a resolved path: ${JSON.stringify(path)}`);
  }
  return name;
}

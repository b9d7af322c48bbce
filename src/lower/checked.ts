import { closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync } from 'node:fs';
import type { BigIntStats } from 'node:fs';
import type { Attr } from '../core/attr.ts';
import { fromBytes } from '../core/path.ts';
import type { TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { codeOf, isGone } from './fault.ts';
import { join, readEntries, sortEntries } from './listing.ts';
import { vacancyByLooks } from './lower.ts';
import type { Absence, LowerEntry, Vacancy } from './lower.ts';
import { attrOf, EXACT, LOOK } from './stats.ts';
import type { Opened, Walker } from './walker.ts';

const FILE_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
/** Only Linux has it. */
const O_NOATIME = (constants.O_NOATIME as number | undefined) ?? 0;

/** How often a call is begun again when the path changed under it, before that is a fault. */
const ATTEMPT_LIMIT = 16;

/** How often an opened file and the path to it are looked at again. */
const CHECK_ROUNDS = 3;

type Chain = readonly BigIntStats[];

/**
 * Walks by plain paths, for systems without /proc: looks at every component, acts, and looks again; what was
 * opened is checked to be what is there. An outsider who swaps a component to and fro between every two of
 * these looks could still win; where there is /proc, `HeldWalker` leaves no such gap.
 */
export class CheckedWalker implements Walker {
  private readonly root: string | Buffer;
  private readonly below: string | Buffer;
  private readonly top: BigIntStats;

  constructor(root: string | Buffer) {
    this.root = root;
    this.below = root === '/' ? root : join(root, '/');
    this.top = lstatSync(root, EXACT);
  }

  lstat(path: TreePath): Attr | Absence {
    const stats = this.steadily(path, (name) => lstatSync(name, LOOK));
    return stats === 'unwalkable' ? stats : stats === undefined ? 'absent' : attrOf(stats);
  }

  vacancy(path: TreePath): Attr | Vacancy | 'unwalkable' {
    return vacancyByLooks(this, path);
  }

  readlink(path: TreePath): string {
    const target = this.steadily(path, (name) => readlinkSync(name, 'buffer'));
    if (target === 'unwalkable') throw new Refusal('ENOENT');
    return fromBytes(target);
  }

  list(path: TreePath): readonly LowerEntry[] {
    const entries = this.inDirectory(path, (name) => readEntries(join(name, '/')));
    if (typeof entries !== 'string') return sortEntries(entries);
    throw new Refusal(this.lstat(path) === 'absent' ? 'ENOENT' : 'ENOTDIR');
  }

  open(path: TreePath): Opened | Attr | Absence {
    for (let attempt = 0; attempt < ATTEMPT_LIMIT; attempt++) {
      const stats = this.steadily(path, (name) => lstatSync(name, LOOK));
      if (stats === 'unwalkable') return stats;
      if (stats === undefined) return 'absent';
      if (!stats.isFile()) return attrOf(stats);
      const fd = this.openSame(path, stats);
      if (fd !== undefined) return { fd, attr: attrOf(fstatSync(fd, EXACT)) };
    }
    throw changing();
  }

  withDirectory<T>(path: TreePath, use: (name: string | Buffer) => T): T | Absence {
    return this.inDirectory(path, (name) => use(join(name, '/.')));
  }

  close(): void {
    // Nothing is held.
  }

  /**
   * Does `act` on the name of `path` while every component above it is a directory, the same before and
   * after.
   */
  private steadily<T>(path: TreePath, act: (name: string | Buffer) => T): T | 'unwalkable' {
    const name = path === '' ? this.root : join(this.below, path);
    for (let attempt = 0; attempt < ATTEMPT_LIMIT; attempt++) {
      const before = this.chain(path, { itself: false });
      if (before === undefined) return 'unwalkable';
      const outcome = attempted(() => act(name));
      if (same(before, this.chain(path, { itself: false }))) return outcome();
    }
    throw changing();
  }

  /** The same for a directory, itself included. */
  private inDirectory<T>(path: TreePath, act: (name: string | Buffer) => T): T | Absence {
    const name = path === '' ? this.root : join(this.below, path);
    for (let attempt = 0; attempt < ATTEMPT_LIMIT; attempt++) {
      const before = this.chain(path, { itself: true });
      if (before === undefined) return this.lstat(path) === 'absent' ? 'absent' : 'unwalkable';
      const outcome = attempted(() => act(name));
      if (same(before, this.chain(path, { itself: true }))) return outcome();
    }
    throw changing();
  }

  /**
   * What the components of `path` are now, from the root down; undefined where one of them is no directory.
   */
  private chain(path: TreePath, { itself }: { itself: boolean }): Chain | undefined {
    const top = lstatSync(this.root, LOOK);
    if (top === undefined || top.ino !== this.top.ino || top.dev !== this.top.dev) {
      throw new Refusal('EIO', { reason: 'the root directory of the lower was moved away or replaced' });
    }
    const chain = [top];
    if (path === '') return chain;
    const names = path.split('/');
    if (names.some((name) => name === '' || name === '.' || name === '..' || name.includes('\0'))) {
      throw new RangeError(`not a resolved path: ${JSON.stringify(path)}`);
    }
    if (!itself) names.pop();
    let name = this.below;
    for (const component of names) {
      name = join(name, component);
      const stats = lstatSync(name, LOOK);
      if (stats === undefined || !stats.isDirectory()) return undefined;
      chain.push(stats);
      name = join(name, '/');
    }
    return chain;
  }

  /**
   * Opens the file at `path` if it is the one that `expected` tells of, found on the same way before and
   * after.
   */
  private openSame(path: TreePath, expected: BigIntStats): number | undefined {
    const name = join(this.below, path);
    const before = this.chain(path, { itself: false });
    if (before === undefined) return undefined;
    let fd: number;
    try {
      fd = openQuietly(name);
    } catch (error) {
      if (isGone(error) || codeOf(error) === 'ENXIO') return undefined;
      throw error;
    }
    try {
      const opened = fstatSync(fd, EXACT);
      let sound = opened.isFile() && opened.ino === expected.ino && opened.dev === expected.dev;
      for (let round = 0; sound && round < CHECK_ROUNDS; round++) {
        const found = lstatSync(name, LOOK);
        sound = found !== undefined && found.ino === opened.ino && found.dev === opened.dev &&
          same(before, this.chain(path, { itself: false }));
      }
      if (sound) return fd;
    } catch (error) {
      closeSync(fd);
      throw error;
    }
    closeSync(fd);
    return undefined;
  }
}

/** Opens without touching the access time where that is allowed: for files of others it is not. */
function openQuietly(name: string | Buffer): number {
  try {
    return openSync(name, FILE_FLAGS | O_NOATIME);
  } catch (error) {
    if (codeOf(error) !== 'EPERM') throw error;
    return openSync(name, FILE_FLAGS);
  }
}

/** The outcome of `call`, to be taken (value or error) once it is known to count. */
function attempted<T>(call: () => T): () => T {
  try {
    const value = call();
    return () => value;
  } catch (error) {
    return () => { throw error; };
  }
}

function same(before: Chain, after: Chain | undefined): boolean {
  return after !== undefined && before.length === after.length &&
    before.every((stats, at) => stats.ino === after[at]?.ino && stats.dev === after[at].dev);
}

function changing(): Refusal {
  return new Refusal('EIO', { reason: 'the path kept changing under the call' });
}

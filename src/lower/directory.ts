import { closeSync, existsSync, openSync, realpathSync, statSync, statfsSync } from 'node:fs';
import type { Attr } from '../core/attr.ts';
import { fromBytes } from '../core/path.ts';
import type { TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { CheckedWalker } from './checked.ts';
import { DIRECTORY_FLAGS, HeldWalker } from './descend.ts';
import { codeOf } from './fault.ts';
import { DescriptorFile, readWhole } from './file.ts';
import type { Absence, Lower, LowerEntry, LowerFile, LowerStatFs, Vacancy, WholeFile, Xattrs } from './lower.ts';
import { DescriptorPool, processPool } from './pool.ts';
import type { Walker } from './walker.ts';
import { TreeWatch } from './watch.ts';
import { LowerXattrs } from './xattrs.ts';

export interface DirectoryLowerOptions {
  /**
   * Most directory descriptors to hold at a time; default: a quarter of the process's limit, for all lowers
   * together.
   */
  readonly descriptors?: number;
  /** Wall clock in ms since 1970, the one that files are stamped by. */
  readonly clock?: () => number;
  /** How containment is kept; default: by directory descriptors, where /proc tells of them. */
  readonly by?: 'descriptors' | 'checks';
}

// Taken at load: a test that fakes the clock must not make young directories look old.
const wallClock = Date.now;

/**
 * The real directory `root` as a lower: no symlink is ever followed, no call leaves it. Throws an error with
 * `code` ENOENT or ENOTDIR that names `root` where it is no directory.
 *
 * If the root directory itself is moved away or replaced, calls fail with EIO from then on: another tree is
 * never shown. A directory that an outsider moves out of the root while a call is under way may still be read
 * by that call.
 */
export function openDirectoryLower(root: string, options: DirectoryLowerOptions = {}): Lower {
  const real = realRoot(root);
  return new DirectoryLower(real, walkerOf(real, options), options.clock ?? wallClock);
}

/**
 * A way to get at the paths below the real directory `root`, for whoever writes there too: same errors, same containment. Its
 * `root` is the real path.
 */
export function openWalker(root: string): { readonly root: string | Buffer; readonly walker: Walker } {
  const real = realRoot(root);
  return { root: real, walker: walkerOf(real, {}) };
}

function walkerOf(real: string | Buffer, options: DirectoryLowerOptions): Walker {
  if ((options.by ?? defaultStrategy()) === 'checks') return new CheckedWalker(real);
  const pool = options.descriptors === undefined ? processPool() : new DescriptorPool(options.descriptors);
  const fd = openSync(real, DIRECTORY_FLAGS);
  try {
    return new HeldWalker(real, fd, pool, options.clock ?? wallClock);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

function defaultStrategy(): 'descriptors' | 'checks' {
  return process.platform === 'linux' && existsSync('/proc/self/fd') ? 'descriptors' : 'checks';
}

function realRoot(root: string): string | Buffer {
  let real: Buffer;
  try {
    real = realpathSync.native(root, 'buffer');
    if (statSync(real).isDirectory()) {
      const text = fromBytes(real);
      return text.isWellFormed() ? text : real;
    }
  } catch (error) {
    const code = codeOf(error);
    if (code === '') throw error;
    const reason = code === 'ENOENT' ? 'does not exist' : `cannot be opened (${code})`;
    const message = `the root ${JSON.stringify(root)} ${reason}`;
    throw Object.assign(new Error(message, { cause: error }), { code, path: root });
  }
  const message = `the root ${JSON.stringify(root)} is not a directory`;
  throw Object.assign(new Error(message), { code: 'ENOTDIR', path: root });
}

class DirectoryLower implements Lower {
  readonly root: string;
  private readonly walker: Walker;
  private readonly real: string | Buffer;
  private readonly named: LowerXattrs;

  constructor(real: string | Buffer, walker: Walker, clock: () => number) {
    this.real = real;
    this.named = new LowerXattrs(walker, clock);
    this.root = typeof real === 'string' ? real : fromBytes(real);
    this.walker = walker;
  }

  lstat(path: TreePath): Attr | Absence {
    try {
      return this.walker.lstat(path);
    } catch (error) {
      throw Refusal.of(error);
    }
  }

  vacancy(path: TreePath): Attr | Vacancy | 'unwalkable' {
    try {
      return this.walker.vacancy(path);
    } catch (error) {
      throw Refusal.of(error);
    }
  }

  readlink(path: TreePath): string {
    try {
      return this.walker.readlink(path);
    } catch (error) {
      throw Refusal.of(error);
    }
  }

  list(path: TreePath): readonly LowerEntry[] {
    try {
      return this.walker.list(path);
    } catch (error) {
      throw Refusal.of(error);
    }
  }

  open(path: TreePath): LowerFile | Attr | Absence {
    try {
      const found = this.walker.open(path);
      return typeof found === 'object' && 'fd' in found ? new DescriptorFile(found) : found;
    } catch (error) {
      throw Refusal.of(error);
    }
  }

  slurp(path: TreePath, limit: number): WholeFile | LowerFile | Attr | Absence {
    try {
      const found = this.walker.open(path);
      if (typeof found !== 'object' || !('fd' in found)) return found;
      return found.attr.size > limit ? new DescriptorFile(found) : readWhole(found);
    } catch (error) {
      throw Refusal.of(error);
    }
  }

  xattrs(path: TreePath, attr: Attr): Xattrs | undefined {
    try {
      return this.named.of(path, attr);
    } catch (error) {
      throw Refusal.of(error);
    }
  }

  statfs(): LowerStatFs {
    try {
      return statfsSync(this.real, { bigint: true });
    } catch (error) {
      throw Refusal.of(error);
    }
  }

  watch(...[path, options, changed, failed]: Parameters<Lower['watch']>): { close(): void } {
    try {
      return new TreeWatch(this.walker, path, options, changed, failed);
    } catch (error) {
      throw Refusal.of(error);
    }
  }

  close(): void {
    this.walker.close();
  }
}

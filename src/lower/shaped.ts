import { constants } from 'node:fs';
import type { BigIntStats, Dirent, Stats } from 'node:fs';
import type { Attr, NodeType } from '../core/attr.ts';
import { sameFingerprint, typeOf } from '../core/attr.ts';
import { fromBytes, nameOf, parentOf, toBytes } from '../core/path.ts';
import type { TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { isGone } from './fault.ts';
import { sortEntries, typeOfDirent } from './listing.ts';
import { vacancyByLooks } from './lower.ts';
import type { Absence, Lower, LowerEntry, LowerFile, LowerStatFs, Vacancy, WholeFile, Xattrs } from './lower.ts';
import { NO_XATTRS } from './xattrs.ts';
import { attrOf } from './stats.ts';

const NEEDED = [
  'lstatSync', 'readdirSync', 'readlinkSync', 'readFileSync', 'openSync', 'fstatSync', 'readSync', 'closeSync',
] as const;

/** What an object must have to serve as a lower: these methods, as those of `node:fs` are called. */
export type FsShape = Record<(typeof NEEDED)[number], (...args: never[]) => unknown>;

type Name = string | Buffer;

/**
 * Those methods as they are called here; what they give is checked where it differs among implementations.
 */
interface Methods {
  lstatSync(path: Name, options: { bigint: true }): AnyStats;
  fstatSync(fd: number, options: { bigint: true }): AnyStats;
  readdirSync(path: Name, options: { withFileTypes: true } | { encoding: 'buffer' }): readonly Entry[];
  readlinkSync(path: Name, options: { encoding: 'buffer' }): string | Uint8Array;
  readFileSync(path: Name): Uint8Array;
  openSync(path: Name, flags: number): number;
  readSync(fd: number, into: Uint8Array, offset: number, length: number, position: number): number;
  closeSync(fd: number): void;
  statfsSync?(path: Name, options: { bigint: true }): LowerStatFs;
  watch?(path: Name, options: { recursive: boolean; persistent: false },
    changed: (event: 'rename' | 'change', name: string | null) => void): Watcher;
}

interface Watcher {
  close(): void;
  on?(event: 'error', failed: (fault: unknown) => void): unknown;
}

type AnyStats = Stats | BigIntStats;
type Entry = Dirent | string | Uint8Array;

/** How often a call is begun again when the file changed under it, before that is a fault. */
const ATTEMPT_LIMIT = 16;

const FILE_FLAGS = constants.O_RDONLY | ((constants.O_NOFOLLOW as number | undefined) ?? 0);

/**
 * Any object with the synchronous methods of `node:fs` as a lower, from its directory `root` down: a memfs
 * Volume, a unionfs, another overlay's `fs`. Only methods that read are called (access times are the object's
 * own affair). Each component is looked at before the next, so no symlink is followed; how well that holds
 * while others change the object is up to the object. Throws TypeError that names the methods missing, and an
 * error with `code` ENOENT or ENOTDIR where `root` is no directory.
 */
export function fsShapedLower(fs: FsShape, root = '/'): Lower {
  const missing = NEEDED.filter((name) => typeof (fs as Partial<FsShape> | null | undefined)?.[name] !== 'function');
  if (missing.length > 0) throw new TypeError(`the fs-shaped lower lacks ${missing.join(', ')}`);
  const methods = fs as unknown as Methods;
  const attr = lookUp(methods, root);
  if (attr === undefined || typeOf(attr.mode) !== 'directory') {
    const [code, reason] = attr === undefined ? ['ENOENT', 'does not exist'] : ['ENOTDIR', 'is not a directory'];
    const message = `the root ${JSON.stringify(root)} ${reason} in the fs-shaped lower`;
    throw Object.assign(new Error(message), { code, path: root });
  }
  return new ShapedLower(methods, root);
}

class ShapedLower implements Lower {
  /** Such a lower has no place that a session could name. */
  readonly root = '';
  private readonly fs: Methods;
  private readonly top: string;
  private readonly below: string;

  constructor(fs: Methods, top: string) {
    this.fs = fs;
    this.top = top;
    this.below = top.endsWith('/') ? top : top + '/';
  }

  lstat(path: TreePath): Attr | Absence {
    try {
      return this.look(path);
    } catch (error) {
      throw Refusal.of(error);
    }
  }

  vacancy(path: TreePath): Attr | Vacancy | 'unwalkable' {
    return vacancyByLooks(this, path);
  }

  readlink(path: TreePath): string {
    try {
      const found = this.look(path);
      if (typeof found === 'string') throw new Refusal('ENOENT');
      if (typeOf(found.mode) !== 'symlink') throw new Refusal('EINVAL');
      const target = this.fs.readlinkSync(this.nameOf(path), { encoding: 'buffer' });
      return typeof target === 'string' ? target : fromBytes(target);
    } catch (error) {
      throw Refusal.of(error);
    }
  }

  list(path: TreePath): readonly LowerEntry[] {
    try {
      const found = this.look(path);
      if (typeof found === 'string') throw new Refusal(found === 'absent' ? 'ENOENT' : 'ENOTDIR');
      if (typeOf(found.mode) !== 'directory') throw new Refusal('ENOTDIR');
      return sortEntries(this.entries(path));
    } catch (error) {
      throw Refusal.of(error);
    }
  }

  open(path: TreePath): LowerFile | Attr | Absence {
    try {
      for (let attempt = 0; attempt < ATTEMPT_LIMIT; attempt++) {
        const found = this.look(path);
        if (typeof found === 'string' || typeOf(found.mode) !== 'file') return found;
        const file = this.openSame(path, found);
        if (file !== undefined) return file;
      }
    } catch (error) {
      throw Refusal.of(error);
    }
    throw new Refusal('EIO', { reason: 'what was opened in the fs-shaped lower is never the file that is there' });
  }

  slurp(path: TreePath, limit: number): WholeFile | LowerFile | Attr | Absence {
    try {
      for (let attempt = 0; attempt < ATTEMPT_LIMIT; attempt++) {
        const attr = this.look(path);
        if (typeof attr === 'string' || typeOf(attr.mode) !== 'file') return attr;
        if (attr.size > limit) return this.open(path);
        // By its name: a descriptor of one layer of a unionfs may be taken for one of another.
        const bytes = readIfThere(this.fs, this.nameOf(path));
        const after = this.look(path);
        const isSame = typeof after === 'object' && sameFingerprint(attr, after);
        if (isSame && bytes?.length === attr.size) return { kind: 'whole', attr, bytes };
      }
    } catch (error) {
      throw Refusal.of(error);
    }
    throw new Refusal('EIO', { reason: 'the file kept changing while it was read' });
  }

  /** None: `node:fs` has no call for them. */
  xattrs(): Xattrs {
    return NO_XATTRS;
  }

  /** Zeros where the object has no `statfsSync`. */
  statfs(): LowerStatFs {
    try {
      return this.fs.statfsSync?.(this.top, { bigint: true }) ??
        { type: 0n, bsize: 4096n, blocks: 0n, bfree: 0n, bavail: 0n, files: 0n, ffree: 0n };
    } catch (error) {
      throw Refusal.of(error);
    }
  }

  /** By the object's own `watch`; without one nothing is ever told. */
  watch(...[path, { recursive }, changed, failed]: Parameters<Lower['watch']>): { close(): void } {
    try {
      const found = this.look(path);
      if (typeof found === 'string') throw new Refusal(found === 'absent' ? 'ENOENT' : 'ENOTDIR');
      const watcher = this.fs.watch?.(this.nameOf(path), { recursive, persistent: false }, (event, name) => {
        changed(event, name ?? nameOf(path));
      });
      if (failed !== undefined) watcher?.on?.('error', failed);
      return { close: () => watcher?.close() };
    } catch (error) {
      throw Refusal.of(error);
    }
  }

  close(): void {
    // Nothing is held.
  }

  private nameOf(path: TreePath): Name {
    const name = path === '' ? this.top : this.below + path;
    return name.isWellFormed() ? name : Buffer.from(toBytes(name));
  }

  private look(path: TreePath): Attr | Absence {
    if (!this.isDirectory(parentOf(path))) return 'unwalkable';
    return lookUp(this.fs, this.nameOf(path)) ?? 'absent';
  }

  /** Whether every component of `path` is a directory, looked at from the root down. */
  private isDirectory(path: TreePath): boolean {
    if (path === '') return true;
    if (!this.isDirectory(parentOf(path))) return false;
    const attr = lookUp(this.fs, this.nameOf(path));
    return attr !== undefined && typeOf(attr.mode) === 'directory';
  }

  private entries(path: TreePath): LowerEntry[] {
    const found = this.fs.readdirSync(this.nameOf(path), { withFileTypes: true });
    const lossy = found.some((entry) => nameOfEntry(entry).includes('\uFFFD'));
    const names = lossy ? this.fs.readdirSync(this.nameOf(path), { encoding: 'buffer' }) : found;
    return names.flatMap((entry) => {
      const name = nameOfEntry(entry);
      const type = typeOfEntry(entry) ?? this.typeAt(path === '' ? name : `${path}/${name}`);
      return type === undefined ? [] : [{ name, type }];
    });
  }

  private typeAt(path: string): NodeType | undefined {
    const attr = lookUp(this.fs, this.nameOf(path as TreePath));
    return attr === undefined ? undefined : typeOf(attr.mode);
  }

  /** undefined where the file opened is not the one that was looked at. */
  private openSame(path: TreePath, expected: Attr): LowerFile | undefined {
    let fd: number;
    try {
      fd = this.fs.openSync(this.nameOf(path), FILE_FLAGS);
    } catch (error) {
      if (isGone(error)) return undefined;
      throw error;
    }
    try {
      const attr = shapedAttr(this.fs.fstatSync(fd, { bigint: true }));
      if (sameFingerprint(attr, expected)) return new ShapedFile(this.fs, fd, attr);
    } catch (error) {
      this.fs.closeSync(fd);
      throw error;
    }
    this.fs.closeSync(fd);
    return undefined;
  }
}

class ShapedFile implements LowerFile {
  readonly kind = 'open';
  readonly attr: Attr;
  private readonly fs: Methods;
  private fd: number | undefined;

  constructor(fs: Methods, fd: number, attr: Attr) {
    this.fs = fs;
    this.fd = fd;
    this.attr = attr;
  }

  restat(): Attr {
    try {
      return shapedAttr(this.fs.fstatSync(this.held(), { bigint: true }));
    } catch (error) {
      throw Refusal.of(error);
    }
  }

  read(into: Uint8Array, offset: number, length: number, position: number): number {
    if (length === 0) return 0;
    try {
      return this.fs.readSync(this.held(), into, offset, length, position);
    } catch (error) {
      throw Refusal.of(error);
    }
  }

  async readLater(into: Uint8Array, offset: number, length: number, position: number): Promise<number> {
    return this.read(into, offset, length, position);
  }

  close(): void {
    if (this.fd === undefined) return;
    const fd = this.fd;
    this.fd = undefined;
    this.fs.closeSync(fd);
  }

  private held(): number {
    if (this.fd === undefined) throw new Refusal('EBADF', { reason: 'the lower file is closed' });
    return this.fd;
  }
}

function lookUp(fs: Methods, name: Name): Attr | undefined {
  try {
    // Without `throwIfNoEntry`: to a unionfs an undefined is an answer, and it would ask no further layer.
    return shapedAttr(fs.lstatSync(name, { bigint: true }));
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

/**
 * Attributes from whatever kind of stats the object gives; numbers and missing figures are what they come to.
 */
function shapedAttr(stats: AnyStats): Attr {
  if (isExact(stats)) return attrOf(stats);
  const size = Number(stats.size);
  return {
    dev: BigInt(stats.dev),
    ino: BigInt(stats.ino),
    mode: Number(stats.mode),
    nlink: Number(stats.nlink),
    uid: Number(stats.uid),
    gid: Number(stats.gid),
    rdev: Number(stats.rdev ?? 0),
    size,
    blksize: Number(stats.blksize ?? 4096),
    blocks: Number(stats.blocks ?? Math.ceil(size / 512)),
    atime: nanoseconds(stats.atimeMs),
    mtime: nanoseconds(stats.mtimeMs),
    ctime: nanoseconds(stats.ctimeMs),
    birthtime: nanoseconds(stats.birthtimeMs),
  };
}

function isExact(stats: AnyStats): stats is BigIntStats {
  return typeof stats.ino === 'bigint' && 'mtimeNs' in stats && typeof stats.mtimeNs === 'bigint';
}

function nanoseconds(ms: number | bigint): bigint {
  if (typeof ms === 'bigint') return ms * 1_000_000n;
  return BigInt(Math.trunc(ms)) * 1_000_000n + BigInt(Math.round((ms % 1) * 1e6));
}

function readIfThere(fs: Methods, name: Name): Uint8Array | undefined {
  try {
    return fs.readFileSync(name);
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

function nameOfEntry(entry: Entry): string {
  if (typeof entry === 'string') return entry;
  return entry instanceof Uint8Array ? fromBytes(entry) : String(entry.name);
}

function typeOfEntry(entry: Entry): NodeType | undefined {
  return typeof entry === 'string' || entry instanceof Uint8Array ? undefined : typeOfDirent(entry);
}

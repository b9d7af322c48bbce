import type { Attr } from '../core/attr.ts';
import type { LowerBase } from '../core/event.ts';
import { parentOf, ROOT, type TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { sortEntries } from '../lower/listing.ts';
import { vacancyByLooks } from '../lower/lower.ts';
import type { Absence, Lower, LowerEntry, LowerFile, LowerStatFs, Vacancy, WholeFile, Xattrs } from '../lower/lower.ts';
import type { Store } from '../store/store.ts';
import type { Knowledge, Known } from './knowledge.ts';
import { NotRecorded } from './not-recorded.ts';

const SECTOR_BYTES = 512, BLOCK_BYTES = 4096;

/**
 * The lower as a log has kept it. What it has not kept is refused as such, by `NotRecorded`: it is never taken for absent, empty or the like. Extended
 * attributes are not kept, so it has none to tell of.
 */
export class RecordedLower implements Lower {
  readonly root: string;
  private readonly knowledge: Knowledge;
  private readonly store: Store;

  constructor(root: string, knowledge: Knowledge, store: Store) {
    this.root = root;
    this.knowledge = knowledge;
    this.store = store;
  }

  lstat(path: TreePath): Attr | Absence {
    const known = this.knowledge.at(path);
    if (known?.base !== undefined) return attrOf(known.base);
    if (path === ROOT) throw new NotRecorded(path, 'the directory');
    const parent = this.lstatAbove(parentOf(path));
    if (parent !== undefined) return parent;
    if (known === undefined) throw new NotRecorded(path, 'what is at');
    return 'absent';
  }

  vacancy(path: TreePath): Attr | Vacancy | 'unwalkable' {
    return vacancyByLooks(this, path);
  }

  readlink(path: TreePath): string {
    const base = this.must(path);
    if (base.type !== 'symlink') throw new Refusal('EINVAL');
    if (base.target === undefined) throw new NotRecorded(path, 'the target of');
    return base.target;
  }

  list(path: TreePath): readonly LowerEntry[] {
    if (this.must(path).type !== 'directory') throw new Refusal('ENOTDIR');
    const listing = this.knowledge.list(path);
    if (listing === undefined) throw new NotRecorded(path, 'the list of the directory');
    return sortEntries(Array.from(listing, ([name, { type }]) => ({ name, type })));
  }

  open(path: TreePath): LowerFile | Attr | Absence {
    const attr = this.lstat(path), known = this.knowledge.at(path);
    if (typeof attr === 'string') return attr;
    return known?.base?.type === 'file' ? new RecordedFile(path, attr, known, this.store) : attr;
  }

  slurp(path: TreePath, limit: number): WholeFile | LowerFile | Attr | Absence {
    const file = this.open(path);
    if (typeof file === 'string' || !('kind' in file) || file.attr.size > limit) return file;
    const bytes = Buffer.allocUnsafeSlow(file.attr.size);
    if (bytes.length > 0) file.read(bytes, 0, bytes.length, 0);
    return { kind: 'whole', attr: file.attr, bytes };
  }

  xattrs(): Xattrs | undefined {
    return undefined;
  }

  statfs(): LowerStatFs {
    throw new NotRecorded(ROOT, 'the file system of');
  }

  watch(): { close(): void } {
    return { close: () => { /* What has been does not change. */ } };
  }

  close(): void { /* Nothing is open. */ }

  private must(path: TreePath): LowerBase {
    const attr = this.lstat(path), base = this.knowledge.at(path)?.base;
    if (typeof attr === 'string' || base === undefined) throw new Refusal('ENOENT');
    return base;
  }

  /** Why nothing can be below `parent`; `undefined` where something can, or nobody knows. */
  private lstatAbove(parent: TreePath): Absence | undefined {
    const known = this.knowledge.at(parent);
    if (known?.base !== undefined) return known.base.type === 'directory' ? undefined : 'unwalkable';
    if (known !== undefined) return 'unwalkable';
    return parent === ROOT || this.lstatAbove(parentOf(parent)) === undefined ? undefined : 'unwalkable';
  }
}

class RecordedFile implements LowerFile {
  readonly kind = 'open';
  readonly attr: Attr;
  private readonly path: TreePath;
  private readonly known: Known;
  private readonly store: Store;

  constructor(path: TreePath, attr: Attr, known: Known, store: Store) {
    this.path = path;
    this.attr = attr;
    this.known = known;
    this.store = store;
  }

  restat(): Attr {
    return this.attr;
  }

  read(into: Uint8Array, offset: number, length: number, position: number): number {
    const { blob, pieces } = this.known, end = Math.min(position + length, this.attr.size);
    if (position >= end) return 0;
    if (blob !== undefined) return this.store.readBlob(blob, into, offset, end - position, position);
    for (let at = position; at < end;) {
      const piece = [...pieces?.values() ?? []].find((each) => each.at <= at && at < each.at + each.length);
      if (piece?.blob === undefined) throw new NotRecorded(this.path, `what is at byte ${at} of`);
      const count = Math.min(end, piece.at + piece.length) - at;
      this.store.readBlob(piece.blob, into, offset + at - position, count, at - piece.at);
      at += count;
    }
    return end - position;
  }

  readLater(into: Uint8Array, offset: number, length: number, position: number): Promise<number> {
    return Promise.resolve().then(() => this.read(into, offset, length, position));
  }

  close(): void { /* Nothing is open. */ }
}

function attrOf(base: LowerBase): Attr {
  const mtime = BigInt(base.mtime), ctime = BigInt(base.ctime);
  return {
    dev: BigInt(base.dev), ino: BigInt(base.ino), mode: base.mode, nlink: base.nlink, uid: base.uid, gid: base.gid, rdev: base.rdev ?? 0,
    size: base.size, blksize: BLOCK_BYTES, blocks: Math.ceil(base.size / SECTOR_BYTES), mtime, ctime,
    atime: base.atime === undefined ? mtime : BigInt(base.atime), birthtime: base.birthtime === undefined ? ctime : BigInt(base.birthtime),
  };
}

import type { Event, ExtentRecord, KeptRecord, LowerBase } from '../core/event.ts';
import { childOf, parentOf, ROOT, type TreePath } from '../core/path.ts';
import type { Version } from '../core/version.ts';
import type { Store } from '../store/store.ts';

/** What a log has kept of one path of the lower. */
export interface Known {
  /** The event that told it; of one after the moment, with a minus: the earlier, the better. */
  readonly seq: number;
  /** Absent: nothing is there. */
  readonly base: LowerBase | undefined;
  /** Of a file, all it holds; of a directory, its list. */
  readonly blob: Version | undefined;
  /** Of a large file, pieces by where they begin. */
  readonly pieces: ReadonlyMap<number, ExtentRecord> | undefined;
}

/** The list of a directory, and what it showed of each name. */
type Listing = ReadonlyMap<string, LowerBase>;

/**
 * All that a log has kept of the lower, as it was at a moment. Of a path holds what was told last up to then. What was told of it only later holds as well: a lower
 * is there before it is looked at. That ends where changes were published to it. What was never told is not known.
 */
export class Knowledge {
  private readonly store: Store;
  private readonly byPath = new Map<TreePath, Known>();
  private readonly listings = new Map<Version, Listing>();
  constructor(store: Store, events: Iterable<Event>, moment = Infinity) {
    this.store = store;
    for (const { seq, op, kept } of events) {
      if (seq > moment && (op === 'commit' || op === 'revert')) return;
      for (const record of kept ?? []) this.learn(record, seq > moment ? -seq : seq);
    }
  }

  /** `undefined`: nothing was told of it. Throws EIO where a list that is kept cannot be read. */
  at(path: TreePath): Known | undefined {
    const own = this.byPath.get(path);
    if (path === ROOT) return own;
    const parent = parentOf(path), above = this.byPath.get(parent);
    if (above?.base?.type === 'directory' && above.blob !== undefined && (own === undefined || own.seq < above.seq)) {
      const base = this.listing(above.blob).get(path.slice(parent === ROOT ? 0 : parent.length + 1));
      if (base !== undefined && own?.base !== undefined && isSame(own.base, base)) return own;
      return { seq: above.seq, base, blob: undefined, pieces: undefined };
    }
    return own;
  }

  /** The list of a directory; `undefined` where it was not kept. */
  list(path: TreePath): Listing | undefined {
    const known = this.at(path);
    return known?.blob === undefined || known.base?.type !== 'directory' ? undefined : this.listing(known.blob);
  }

  /** Every path of which something was told, those that listings name included. */
  *paths(): Generator<TreePath> {
    const told = new Set<TreePath>();
    for (const [path, { base, blob }] of this.byPath) {
      if (!told.has(path)) yield path;
      told.add(path);
      if (base?.type !== 'directory' || blob === undefined) continue;
      for (const name of this.listing(blob).keys()) {
        const child = childOf(path, name);
        if (!told.has(child)) yield child;
        told.add(child);
      }
    }
  }

  private learn({ path, base, blob, extents }: KeptRecord, seq: number): void {
    const before = this.byPath.get(path), goesOn = before?.base !== undefined && base !== undefined && isSame(before.base, base);
    const pieces = new Map(goesOn ? before.pieces : undefined);
    if (seq < 0 && before !== undefined && !goesOn) return;
    for (const extent of extents ?? []) pieces.set(extent.at, extent);
    this.byPath.set(path, { seq: seq < 0 && before !== undefined ? before.seq : seq, base, blob: blob ?? (goesOn ? before.blob : undefined), pieces: pieces.size === 0 ? undefined : pieces });
  }

  private listing(blob: Version): Listing {
    let listing = this.listings.get(blob);
    if (listing === undefined) {
      const entries = JSON.parse(Buffer.from(this.store.getBlob(blob)).toString('utf8')) as [string, LowerBase][];
      this.listings.set(blob, listing = new Map(entries));
    }
    return listing;
  }
}

/** Whether two looks found the same file with the same content. */
function isSame(a: LowerBase, b: LowerBase): boolean {
  return a.type === b.type && a.ino === b.ino && a.dev === b.dev && a.size === b.size && a.mtime === b.mtime && a.ctime === b.ctime;
}

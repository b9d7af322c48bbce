import { fstatSync, lstatSync, readlinkSync, statfsSync } from 'node:fs';
import type { NodeType } from '../core/attr.ts';
import { Refusal } from '../core/refusal.ts';
import { codeOf } from './fault.ts';
import { join, Listing, readEntries, sortEntries } from './listing.ts';
import type { LowerEntry } from './lower.ts';
import type { Pooled } from './pool.ts';
import { EXACT, LOOK } from './stats.ts';

/** A ctime that equals none: nothing is known of the directory's last change. */
const UNKNOWN = NaN;

/**
 * Below a directory of this depth one `readlink` of the descriptor is cheaper than an fstat of each one
 * above.
 */
const CHAIN_DEPTH = 2;

/**
 * A change within this time (ms) of the look may leave the ctime as it is: the kernel stamps with the time of
 * its last tick, which is up to 10 ms old. So a ctime younger than this is not trusted, as git does with its
 * index.
 */
const RACY_MS = 20;

/** Looks in a directory whose ctime is too young to be trusted before it is asked again, doubled each time up to the limit. */
const PATIENCE_LOOKS = 4;
const PATIENCE_LIMIT = 4096;

/** Names kept of a directory that was listed anyway: at most so many. */
const LISTED_NAMES = 16384;

/**
 * File systems whose directories' ctime changes with every change of their names and of their own place, on
 * this machine's clock. On others (network, FUSE, FAT) a name is looked at each time.
 */
const STEADY_FILE_SYSTEMS = new Set([
  0xef53n, // ext2, ext3, ext4
  0x58465342n, // xfs
  0x9123683en, // btrfs
  0x01021994n, // tmpfs
  0x858458f6n, // ramfs
  0xf2f52010n, // f2fs
  0x2fc12fc1n, // zfs
  0x794c7630n, // overlayfs
]);

/**
 * The longest name answered from memory, in UTF-16 units: longer ones may exceed NAME_MAX, which the system
 * says.
 */
const REMEMBERED_NAME_UNITS = 85;

/** What the directories of one root have in common. */
export interface HeldTree {
  readonly root: string | Buffer;
  readonly clock: () => number;
  /** Whether it is time to see whether the root itself still is in its place. */
  isRootDue(): boolean;
  /** It was seen to be; and: something says that it may not be. */
  trustRoot(): void;
  doubtRoot(): void;
  /** What the kernel calls the place of `path`, where that is unmistakable. */
  placeOf(path: string): string | undefined;
  /** Whether directories on this device change their ctime whenever they should. */
  isSteady(dev: bigint, directory: string): boolean;
  /** Counts names kept in memory; may drop listings. */
  keeps(names: number): void;
  evict(directory: HeldDirectory): void;
}

/**
 * A directory held by an O_PATH descriptor: names are looked up in that very directory, wherever it is by
 * now.
 *
 * So each use first makes sure that it still is where it was found (`inPlace`). Measured per use, in µs:
 * fstat of a descriptor .73, readlink of /proc/self/fd/N 1.45, lstat by the plain path 1.2, lstat through the
 * parent's descriptor 2.0. The ctime of a directory changes when it is renamed or removed, but not when one
 * above it is; so up to two below the root each one is asked for its ctime, and deeper down the kernel is
 * asked for the whole path, which covers all above at once. An lstat by the plain path would be cheaper
 * there, but is wrong when a directory is renamed and a symlink to it left behind: it finds the same inode.
 * The root is asked once a ms only: what it holds stays what it held, wherever it is.
 *
 * Not noticed: something mounted over it, or over a directory above, while it is held.
 */
export class HeldDirectory implements Pooled {
  readonly parent: HeldDirectory | undefined;
  /** Key among the directories of its tree. */
  readonly path: string;
  readonly name: string;
  readonly depth: number;
  readonly fd: number;
  /** What a name in this directory is appended to, for the system. */
  readonly prefix: string;
  /** Set where an open with O_NOATIME was refused here: some file is another user's. */
  foreign = false;

  slot = -1;
  used = true;
  children = 0;

  private readonly tree: HeldTree;
  private readonly link: string;
  private place: string | undefined;
  private identity: { readonly dev: bigint; readonly ino: bigint; readonly steady: boolean } | undefined;
  /** ctime (ms) when its place was last confirmed. */
  private confirmed = UNKNOWN;
  /** ctime (ms) by an fstat since the last `inPlace`, if there was one. */
  private ctime = UNKNOWN;
  private kept: Listing | undefined;
  /**
   * Names that looks found to be regular files while the ctime was `since`. (To read all names for that costs as much as a look
   * at each, and most are asked for once.)
   */
  private readonly files = new Set<string>();
  private since = UNKNOWN;
  /** Looks until the ctime is asked again whether it can be trusted by now. */
  private looks = 0;
  private patience = PATIENCE_LOOKS;

  constructor(tree: HeldTree, parent: HeldDirectory | undefined, path: string, name: string, fd: number) {
    this.tree = tree;
    this.parent = parent;
    this.path = path;
    this.name = name;
    this.fd = fd;
    this.link = `/proc/self/fd/${fd}`;
    this.prefix = this.link + '/';
    this.depth = parent === undefined ? 0 : parent.depth + 1;
    this.place = parent === undefined ? undefined : tree.placeOf(path);
  }

  /** Whether it still is where it was found. Throws EIO where the root itself is found not to be. */
  inPlace(): boolean {
    if (this.depth <= CHAIN_DEPTH || this.place === undefined || !this.identify().steady) {
      return this.isUntouched() || this.confirm();
    }
    this.ctime = UNKNOWN;
    if (this.isPlaceTold()) return true;
    this.tree.doubtRoot();
    return this.confirm();
  }

  /** Whether neither it nor any above changed since their places were confirmed. */
  private isUntouched(): boolean {
    this.ctime = fstatSync(this.fd).ctimeMs;
    if (this.ctime !== this.confirmed) return false;
    const { parent } = this;
    if (parent !== undefined) return (parent.parent === undefined && !this.tree.isRootDue()) || parent.isUntouched();
    this.tree.trustRoot();
    return true;
  }

  private isPlaceTold(): boolean {
    if (this.place === undefined) return false;
    try {
      return readlinkSync(this.link) === this.place;
    } catch (error) {
      // The kernel tells no path longer than a page.
      if (codeOf(error) !== 'ENAMETOOLONG') throw error;
      return false;
    }
  }

  /** The same from the root down. The ctime is taken before the place, so that any later change shows in it. */
  private confirm(): boolean {
    if (this.parent !== undefined && !this.parent.inPlace()) return false;
    const { steady } = this.identify();
    const stats = fstatSync(this.fd);
    if (!steady || !this.isPlaceTold()) {
      if (!this.isFoundByName()) return false;
      // The kernel calls it by another name than ours: it need not be asked again.
      this.place = undefined;
    }
    if (this.parent === undefined) this.tree.trustRoot();
    this.ctime = stats.ctimeMs;
    this.confirmed = steady && this.isSettled(stats.ctimeMs) ? stats.ctimeMs : UNKNOWN;
    return true;
  }

  private isFoundByName(): boolean {
    const name = this.parent === undefined ? this.tree.root : join(this.parent.prefix, this.name);
    const found = lstatSync(name, LOOK);
    const { dev, ino } = this.identify();
    if (found !== undefined && found.ino === ino && found.dev === dev) return true;
    if (this.parent !== undefined) return false;
    this.tree.doubtRoot();
    throw new Refusal('EIO', { reason: 'the root directory of the lower was moved away or replaced' });
  }

  private identify(): { readonly dev: bigint; readonly ino: bigint; readonly steady: boolean } {
    if (this.identity === undefined) {
      const { dev, ino } = fstatSync(this.fd, EXACT);
      this.identity = { dev, ino, steady: this.tree.isSteady(dev, this.prefix) };
    }
    return this.identity;
  }

  private isSettled(ctime: number): boolean {
    return this.tree.clock() - ctime > RACY_MS;
  }

  /**
   * What is known from memory of a name in this directory, which the caller has just found in its place; `undefined`: nothing.
   */
  recall(name: string): NodeType | 'absent' | undefined {
    const listing = this.listing();
    if (listing !== undefined) return this.told(listing, name);
    if (!this.files.has(name)) return undefined;
    if (this.ctimeNow() === this.since) return 'file';
    this.forget();
    return undefined;
  }

  /** Whether memory tells that the name is not there. Where it is, its caller looks anyway. */
  recallsAbsence(name: string): boolean {
    const { kept } = this;
    return kept !== undefined && this.told(kept, name) === 'absent' && this.listing() !== undefined;
  }

  /** Remembers a name that the caller has just looked at and found to be a regular file. */
  sawFile(name: string): void {
    if (!Number.isNaN(this.since)) {
      if (this.files.has(name)) return;
      this.files.add(name);
      this.tree.keeps(1);
    } else if (--this.looks <= 0) {
      // From now on: that look was before.
      const ctime = fstatSync(this.fd).ctimeMs;
      if (this.identify().steady && this.isSettled(ctime)) this.since = ctime;
      else this.looks = this.patience = Math.min(2 * this.patience, PATIENCE_LIMIT);
    }
  }

  /** All names by their bytes; from memory where they are known. */
  list(): readonly LowerEntry[] {
    const kept = this.listing();
    if (kept !== undefined) return kept.entries;
    const before = fstatSync(this.fd);
    const settled = this.identify().steady && this.isSettled(before.ctimeMs);
    const entries = sortEntries(readEntries(this.prefix));
    if (settled && entries.length <= LISTED_NAMES) this.keep(new Listing(entries, before.ctimeMs));
    return entries;
  }

  /** Forgets the names. */
  forget(): void {
    this.tree.keeps(-this.files.size - (this.kept?.entries.length ?? 0));
    this.files.clear();
    this.since = UNKNOWN;
    this.kept = undefined;
  }

  evict(): void {
    this.tree.evict(this);
  }

  private listing(): Listing | undefined {
    const kept = this.kept;
    if (kept === undefined || kept.ctime === this.ctimeNow()) return kept;
    this.forget();
    return undefined;
  }

  private ctimeNow(): number {
    if (Number.isNaN(this.ctime)) this.ctime = fstatSync(this.fd).ctimeMs;
    return this.ctime;
  }

  private told(listing: Listing, name: string): NodeType | 'absent' | undefined {
    const type = listing.typeOf(name);
    return type !== 'absent' || (name.length <= REMEMBERED_NAME_UNITS && !listing.folds(this.prefix)) ? type : undefined;
  }

  /** Keeps names that were read since the directory had their ctime, unless it has another by now. */
  private keep(listing: Listing): void {
    const now = fstatSync(this.fd).ctimeMs;
    if (now !== listing.ctime) return;
    this.forget();
    this.tree.keeps(listing.entries.length);
    this.kept = listing;
    this.ctime = now;
  }
}

/** Whether a file system is of those whose directories can be trusted by their ctime. */
export function isSteadyFileSystem(directory: string): boolean {
  return STEADY_FILE_SYSTEMS.has(statfsSync(directory, EXACT).type);
}

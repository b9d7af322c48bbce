import { typeOf, type Attr } from '../core/attr.ts';
import { Refusal } from '../core/refusal.ts';
import { spotType, type Spot } from './spot.ts';

export const READ = 4;
export const WRITE = 2;
export const SEARCH = 1;

/** Tells a spot's attributes; the walker and the metadata share one way to. */
export type AttrOf = (spot: Spot) => Attr;

interface Ids {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Who this process is to a file system. The permission bits of overlay files are checked here, since no kernel does;
 * those of lower files too, so that a change of mode in the overlay counts. ACLs are not looked at.
 */
export class Credentials {
  /**
   * For whom a kernel asks, having checked itself what they may: nothing is checked here then, and what they create is theirs.
   * `undefined`: this process acts for itself.
   */
  caller: Ids | undefined = undefined;
  private readonly own: Ids;
  private readonly groups: ReadonlySet<number>;
  private attrOf: AttrOf | undefined = undefined;

  constructor(ids: { uid: number; gid: number; groups: readonly number[] }) {
    this.own = ids;
    this.groups = new Set([ids.gid, ...ids.groups]);
  }

  /** Those of this process. */
  static ofProcess(): Credentials {
    return new Credentials({
      uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0, groups: process.getgroups?.() ?? [],
    });
  }

  get uid(): number {
    return (this.caller ?? this.own).uid;
  }

  get gid(): number {
    return (this.caller ?? this.own).gid;
  }

  /** Mode bits that new files do not get; a kernel has taken its caller's away already. */
  get umask(): number {
    return this.caller === undefined ? process.umask() : 0;
  }

  /** Whether everything is allowed here. */
  get isRoot(): boolean {
    return this.caller !== undefined || this.own.uid === 0;
  }

  /** Whether `trusted.` attributes are listed: on a mount they are not, since a run's root may not read them. */
  get isTrusted(): boolean {
    return this.caller === undefined && this.isRoot;
  }

  /** How to learn attributes; set once, when the overlay is put together. */
  learn(attrOf: AttrOf): void {
    this.attrOf = attrOf;
  }

  isMember(gid: number): boolean {
    return this.groups.has(gid);
  }

  /** Whether `attr` allows all of `want` (READ | WRITE | SEARCH). Root may all, but execute only what someone may. */
  allows(attr: Attr, want: number): boolean {
    if (this.isRoot) {
      return (want & SEARCH) === 0 || typeOf(attr.mode) === 'directory' || (attr.mode & 0o111) !== 0;
    }
    const shift = attr.uid === this.uid ? 6 : this.groups.has(attr.gid) ? 3 : 0;
    return ((attr.mode >> shift) & want) === want;
  }

  /** Throws EACCES unless `spot` allows all of `want`. */
  demand(spot: Spot, want: number): void {
    if (this.isRoot && (want & SEARCH) === 0) return;
    if (!this.allows((this.attrOf as AttrOf)(spot), want)) {
      throw new Refusal('EACCES', { fsCode: 'FS_PERMISSION_DENIED' });
    }
  }

  /** Throws ENOTDIR for what is no directory, EACCES for one that may not be searched. */
  demandSearch(spot: Spot): void {
    if (spotType(spot) !== 'directory') throw new Refusal('ENOTDIR');
    if (!this.isRoot) this.demand(spot, SEARCH);
  }

  /** A mode as write(2) by others than root leaves it: setuid goes, and setgid where the group may execute. */
  modeAfterWrite(mode: number): number {
    if (this.isRoot) return mode;
    return mode & ~0o4000 & ((mode & 0o010) !== 0 ? ~0o2000 : ~0);
  }

  /** Throws EPERM unless this process owns the file. */
  demandOwner(attr: Attr): void {
    if (!this.isRoot && attr.uid !== this.uid) throw new Refusal('EPERM');
  }

  /** Throws EPERM where the sticky bit of `directory` keeps `entry` from others than its owners. */
  demandUnsticky(directory: Attr, entry: Attr): void {
    if ((directory.mode & 0o1000) === 0 || this.isRoot) return;
    if (directory.uid !== this.uid && entry.uid !== this.uid) throw new Refusal('EPERM');
  }
}

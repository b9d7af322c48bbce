import { chmodSync, chownSync, closeSync, constants, lchownSync, linkSync, lstatSync, lutimesSync, mkdirSync, openSync, renameSync, unlinkSync, utimesSync } from 'node:fs';
import type { Attr } from '../core/attr.ts';
import { childOf, nameOf, parentOf, ROOT, type TreePath } from '../core/path.ts';
import type { Conflict } from '../core/plan.ts';
import { Refusal } from '../core/refusal.ts';
import { unreachable } from '../core/unreachable.ts';
import { codeOf } from '../lower/fault.ts';
import { attrOf, LOOK } from '../lower/stats.ts';
import { give } from './carrier.ts';
import type { AdjustEntry, Entry, LinkEntry, MakeEntry, Metadata, MoveEntry, RemoveEntry, SwapEntry } from './entry.ts';
import { describe } from './examiner.ts';
import type { Ground, SystemName } from './ground.ts';
import { changedBelow } from './late.ts';
import { digestOf, isSameThing, isUntouched, type Known } from './known.ts';
import { secondsOf, type Volume } from './volume.ts';

/** The mode of what only holds a name until the real thing takes it over: nobody else makes such a thing. */
export const HOLDER_MODE = 0;
const O_PATH = 0o10000000;
const LOOK_FLAGS = O_PATH | constants.O_NOFOLLOW;

/** The disk turned out to be another in the moment of publishing. */
export class LateConflict extends Error {
  override readonly name = 'LateConflict';
  readonly conflict: Conflict;

  constructor(conflict: Conflict) {
    super(`${conflict.path} is ${conflict.actual}`);
    this.conflict = conflict;
  }
}

/**
 * Does what a journal says, an entry at a time; each looks once more whether the disk is as it was found, right before it changes
 * it. Throws `LateConflict` where it is not, and whatever the system refuses; what was done so far stays.
 */
export class Publication {
  private readonly ground: Ground;
  private readonly volumes: readonly Volume[];
  private readonly guarded: boolean;
  /** Files with several names, by device and inode: their change times as this commit left them. */
  private readonly bumped = new Map<string, string>();
  /** The directory that went away last, and what was in it. */
  private removed: { readonly entry: RemoveEntry; readonly below: Map<TreePath, Known> } | undefined;
  private verified: TreePath = ROOT;

  constructor(ground: Ground, volumes: readonly Volume[], guard: 'expectations' | 'none') {
    this.ground = ground;
    this.volumes = volumes;
    this.guarded = guard === 'expectations';
  }

  /** Whether the disk still is as it was when `entry` was written; nothing has been published yet. */
  verify(entry: Entry): Conflict | undefined {
    if (!this.guarded) return undefined;
    if (entry.act === 'make' || entry.act === 'link') return undefined;
    if (entry.act === 'below') return this.look(childOf(this.verified, entry.path), entry.known);
    const { disk } = entry;
    if (entry.act === 'remove') this.verified = entry.disk;
    return disk === undefined ? undefined : this.look(disk, entry.before);
  }

  private look(disk: TreePath, before: Known): Conflict | undefined {
    return this.compare(disk, before, this.ground.find(disk));
  }

  /** Does it; only what takes other programs is not done at once. After the last one `finish` is due. */
  publish(entry: Entry): Promise<void> | undefined {
    if (entry.act !== 'below') this.finish();
    switch (entry.act) {
      case 'make':
        this.make(entry);
        return undefined;
      case 'link':
        this.link(entry);
        return undefined;
      case 'swap':
        this.swap(entry);
        return undefined;
      case 'remove':
        this.remove(entry);
        return undefined;
      case 'move':
        this.move(entry);
        return undefined;
      case 'adjust': return this.adjust(entry);
      case 'below':
        this.removed?.below.set(entry.path, entry.known);
        return undefined;
      default: return unreachable(entry);
    }
  }

  /** Nobody may lose what he has put into a directory in the moment in which it was taken away. */
  finish(): void {
    const { removed } = this;
    this.removed = undefined;
    if (removed === undefined || !this.guarded) return;
    const { entry, below } = removed;
    for (const { relative, attr } of changedBelow(this.ground, this.volume(entry.volume), entry, below)) {
      throw this.differs(childOf(entry.path, relative), attr);
    }
  }

  private make({ path, volume: index, staged, after, parked }: MakeEntry): void {
    const volume = this.volume(index), from = volume.name(staged);
    this.ground.at(path, (name) => {
      if (after.type === 'directory') {
        this.reserve(path, () => mkdirSync(name, HOLDER_MODE));
        try {
          renameSync(from, name);
        } catch (error) {
          if (codeOf(error) !== 'ENOTEMPTY' && codeOf(error) !== 'EEXIST') throw error;
          throw this.occupied(path);
        }
      } else if (volume.links) {
        this.reserve(path, () => linkSync(from, name));
        unlinkSync(from);
      } else {
        this.reserve(path, () => closeSync(openSync(name, 'wx', HOLDER_MODE)));
        renameSync(from, name);
      }
    });
    if (parked !== undefined) this.bump(after, this.ground.find(path));
  }

  private link({ path, of, after }: LinkEntry): void {
    this.ground.between(of, path, (from, to) => this.reserve(path, () => linkSync(from, to)));
    const now = this.ground.find(path);
    if (!isSameThing(after, now)) throw this.differs(path, now);
    this.bump(after, now);
  }

  private swap({ path, volume: index, staged, displaced, before }: SwapEntry): void {
    const volume = this.volume(index), kept = volume.name(displaced);
    this.ground.at(path, (name) => {
      this.demand(path, before, name);
      // What is linked now is what is hashed at the end: whatever came between is noticed then, and not lost.
      linkSync(name, kept);
      renameSync(volume.name(staged), name);
    });
    this.bump(before, before.nlink > 1 ? volume.find(displaced) : undefined);
  }

  private remove(entry: RemoveEntry): void {
    const { path, displaced, before } = entry, volume = this.volume(entry.volume);
    this.ground.at(path, (name) => {
      this.demand(path, before, name);
      renameSync(name, volume.name(displaced));
    });
    const taken = volume.find(displaced);
    if (!isSameThing(before, taken) && this.guarded) throw this.differs(path, taken);
    this.bump(before, before.nlink > 1 || entry.parked !== undefined ? taken : undefined);
    if (before.type === 'directory' && entry.parked === undefined) this.removed = { entry, below: new Map() };
  }

  private move({ path, to, volume: index, displaced, before }: MoveEntry): void {
    const volume = this.volume(index);
    this.ground.between(path, to, (from, target) => {
      this.demand(path, before, from);
      const there = this.ground.find(to);
      if (before.type === 'directory' || (there !== undefined && isSameThing(before, there))) {
        if (there !== undefined && !isSameThing(before, there)) throw this.differs(to, there);
        renameSync(from, target);
        return;
      }
      if (!volume.links) {
        if (there !== undefined) throw this.differs(to, there);
        renameSync(from, target);
        return;
      }
      this.reserve(to, () => linkSync(from, target));
      if (!isSameThing(before, this.ground.find(to))) throw this.differs(path, this.ground.find(to));
      renameSync(from, volume.name(displaced));
      // It stays until the end: so whatever becomes of the new name, the old one can be had back.
      if (!isSameThing(before, volume.find(displaced))) throw this.differs(path, volume.find(displaced));
    });
    if (before.type !== 'directory') this.bump(before, this.ground.find(to));
  }

  private async adjust({ path, disk, before, to }: AdjustEntry): Promise<void> {
    const now = this.ground.find(path);
    if (!isSameThing(before, now)) throw this.differs(path, now);
    // What the commit itself made or put names into looks as it left it.
    if (disk !== undefined && before.type !== 'directory') this.ground.at(path, (name) => this.demand(path, before, name));
    await setMetadata(this.ground, path, before, to);
    this.bump(before, before.nlink > 1 ? this.ground.find(path) : undefined);
  }

  /** Throws where what is at `path`, which the system knows as `name`, is not what the journal says. */
  private demand(path: TreePath, before: Known, name: SystemName): void {
    if (!this.guarded) return;
    const stats = lstatSync(name, LOOK);
    const conflict = this.compare(path, before, stats === undefined ? undefined : attrOf(stats));
    if (conflict !== undefined) throw new LateConflict(conflict);
  }

  private compare(path: TreePath, before: Known, now: Attr | undefined): Conflict | undefined {
    if (now !== undefined && isUntouched(before, now, this.bumped.get(keyOf(before)))) {
      if (before.racy === undefined || before.version === undefined) return undefined;
      const digest = digestOf(this.ground, path);
      if (digest !== undefined && digest !== 'moving' && digest.version === before.version) return undefined;
    }
    return this.differs(path, now).conflict;
  }

  /** Does what takes a free name, and fails where it is taken. */
  private reserve(path: TreePath, take: () => void): void {
    try {
      take();
    } catch (error) {
      if (codeOf(error) === 'EEXIST') throw this.occupied(path);
      throw error;
    }
  }

  private occupied(path: TreePath): LateConflict {
    const now = this.ground.find(path);
    return new LateConflict({ path, expected: 'nothing', actual: now === undefined ? 'something that vanished' : describe(now) });
  }

  private differs(path: TreePath, now: Attr | undefined): LateConflict {
    return new LateConflict({
      path, expected: 'as it was when the commit began', actual: now === undefined ? 'nothing' : `${describe(now)}, changed since`,
    });
  }

  /** Other names of the file will be found with another change time, which is of our own making. */
  private bump(before: Known, now: Attr | undefined): void {
    if (now !== undefined && now.nlink > 0) this.bumped.set(keyOf(before), String(now.ctime));
  }

  private volume(index: number): Volume {
    const volume = this.volumes[index];
    if (volume === undefined) throw new Refusal('EIO', { reason: 'a staging directory is gone' });
    return volume;
  }
}

/** Sets metadata of what is at `path` and still is what `known` says; no symlink is followed. */
export async function setMetadata(ground: Ground, path: TreePath, known: Known, to: Metadata): Promise<void> {
  if (known.type === 'symlink') ground.at(path, (name) => setOfSymlink(name, to));
  else setByDescriptor(ground, path, to);
  if (to.xattrs === undefined) return;
  const place = ground.hold(parentOf(path));
  try {
    await give(place.fd, path === '' ? '.' : nameOf(path), new Map(Object.entries(to.xattrs)));
  } finally {
    place.close();
  }
}

function setOfSymlink(name: SystemName, { uid, gid, atime, mtime }: Metadata): void {
  if (uid !== undefined && gid !== undefined) lchownSync(name, uid, gid);
  if (atime !== undefined && mtime !== undefined) lutimesSync(name, secondsOf(BigInt(atime)), secondsOf(BigInt(mtime)));
}

/** By a descriptor that may neither read nor write, so it can be had of everything; its name in /proc leads to that very file. */
function setByDescriptor(ground: Ground, path: TreePath, { mode, uid, gid, atime, mtime }: Metadata): void {
  const apply = (name: SystemName): void => {
    if (uid !== undefined && gid !== undefined) chownSync(name, uid, gid);
    if (mode !== undefined) chmodSync(name, mode);
    if (atime !== undefined && mtime !== undefined) utimesSync(name, secondsOf(BigInt(atime)), secondsOf(BigInt(mtime)));
  };
  if (path === '') {
    ground.inside(path, apply);
    return;
  }
  if (process.platform !== 'linux') {
    ground.at(path, apply);
    return;
  }
  const fd = ground.at(path, (name) => openSync(name, LOOK_FLAGS));
  try {
    apply(`/proc/self/fd/${fd}`);
  } finally {
    closeSync(fd);
  }
}

function keyOf({ dev, ino }: Known): string {
  return `${dev}:${ino}`;
}

import { linkSync, renameSync, rmdirSync, unlinkSync } from 'node:fs';
import { PERMISSION_BITS, typeOf, type Attr } from '../core/attr.ts';
import { nameOf, parentOf, type TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { unreachable } from '../core/unreachable.ts';
import { isGone } from '../lower/fault.ts';
import type { AdjustEntry, Entry, LinkEntry, MakeEntry, Metadata, MoveEntry, RemoveEntry, SwapEntry } from './entry.ts';
import { describe } from './examiner.ts';
import type { Ground } from './ground.ts';
import { digestOf, hasSameMetadata, isSameThing, type Known } from './known.ts';
import { HOLDER_MODE, setMetadata } from './publication.ts';
import type { Rescuer } from './rescue.ts';
import type { Volume } from './volume.ts';

/** Whose version of a file it is: as it was before the commit, or as the commit made it. */
export type Side = 'before' | 'commit';

/** A path that was left as it is, because an outsider has changed it since; and where the versions of it are that it has not. */
export interface Left {
  readonly path: TreePath;
  /** What is there. */
  readonly found: string;
  readonly saved: readonly { readonly side: Side; readonly path: TreePath }[];
}

/** A time that was set is kept to a quarter of a µs. */
const TIME_SLACK_NS = 1000n;

/**
 * Takes back what a journal says, from its last entry to the first, whatever of it was done: a path is touched only if it
 * holds exactly what the journal has as before or after. Can be killed and begun again at any point.
 *
 * What was done is always the first so many entries: publishing goes forward, taking back goes backward. So entries are passed over
 * until one shows that it was begun, by what of it is in staging, or by a file of ours in the tree. From there on each was done, and
 * where its path does not hold what it left there, an outsider was at it.
 *
 * Nothing is written, only renamed, linked and unlinked: a full disk is no obstacle.
 */
export class Undoing {
  readonly left: Left[] = [];
  private readonly ground: Ground;
  private readonly volumes: ReadonlyMap<number, Volume>;
  private readonly rescuer: Rescuer;
  /** Whether an entry has been met that was begun. */
  private reached = false;

  constructor(ground: Ground, volumes: ReadonlyMap<number, Volume>, rescuer: Rescuer) {
    this.ground = ground;
    this.volumes = volumes;
    this.rescuer = rescuer;
  }

  async undo(entry: Entry): Promise<void> {
    if (!this.reached && !(this.reached = this.wasBegun(entry)) && !hasHiddenTraces(entry)) return;
    try {
      await this.takeBackEntry(entry);
    } catch (error) {
      // Outsiders have taken away the very directory.
      if (!isGone(error)) throw error;
      const taken = entry.act === 'swap' || entry.act === 'remove' || entry.act === 'move' ? entry : undefined;
      this.leave(entry.path, undefined, taken === undefined ? [] : [[this.volume(taken.volume), taken.displaced, taken.n, 'before']]);
    }
  }

  private async takeBackEntry(entry: Entry): Promise<void> {
    switch (entry.act) {
      case 'make': return this.make(entry);
      case 'link': return this.link(entry);
      case 'swap': return this.swap(entry);
      case 'remove': return this.remove(entry);
      case 'move': return entry.before.type === 'directory' ? this.moveDirectory(entry) : this.move(entry);
      case 'adjust': return this.adjust(entry);
      case 'below': return;
      default: return unreachable(entry);
    }
  }

  private wasBegun(entry: Entry): boolean {
    switch (entry.act) {
      case 'make': {
        const now = this.find(entry.path);
        if (isSameThing(entry.after, now)) return true;
        if (now !== undefined && this.isHolder(entry.path, now, entry.after)) return true;
        return entry.parked === undefined && this.volume(entry.volume).find(entry.staged) === undefined;
      }
      case 'link': return isSameThing(entry.after, this.find(entry.path));
      case 'swap':
      case 'remove': return this.volume(entry.volume).find(entry.displaced) !== undefined || this.rescuer.has(`${entry.n}-before`);
      case 'move':
        return isSameThing(entry.before, this.find(entry.to)) || this.volume(entry.volume).find(entry.displaced) !== undefined;
      case 'adjust': {
        const now = this.find(entry.path);
        return isSameThing(entry.before, now) && isAdjusted(now, entry.from, entry.to);
      }
      case 'below': return false;
      default: return unreachable(entry);
    }
  }

  private make(entry: MakeEntry): void {
    const { n, path, staged, after } = entry, volume = this.volume(entry.volume), now = this.find(path);
    if (now === undefined) return;
    if (!isSameThing(after, now)) {
      if (this.isHolder(path, now, after)) this.ground.at(path, (name) => (after.type === 'directory' ? rmdirSync(name) : unlinkSync(name)));
      else this.leave(path, now, [[volume, staged, n, 'commit']]);
      return;
    }
    if (entry.parked === undefined && !this.isAsMade(path, after, now)) {
      this.leave(path, now, []);
      return;
    }
    this.takeBack(path, volume, staged);
    if (entry.parked !== undefined || after.type !== 'directory' || volume.isEmpty(staged)) return;
    // Somebody has put something into it in this very moment.
    this.ground.at(path, (name) => renameSync(volume.name(staged), name));
    this.leave(path, now, []);
  }

  private link({ n, path, of, after }: LinkEntry): void {
    const now = this.find(path);
    if (now === undefined) return;
    if (isSameThing(after, now)) {
      // A rename onto another name of the same file does nothing: so it must be free.
      const volume = this.volume(0);
      this.takeBack(path, volume, `u${n}`);
      return;
    }
    if (isSameThing(after, this.find(of))) this.leave(path, now, []);
  }

  private swap({ n, path, volume: index, staged, displaced, before, after }: SwapEntry): void {
    const volume = this.volume(index), now = this.find(path);
    if (isSameThing(before, now)) {
      // It had not come to the rename.
      if (volume.find(displaced) !== undefined) unlinkSync(volume.name(displaced));
      if (!this.isContent(path, before, now)) this.leave(path, now, [[volume, staged, n, 'commit']]);
      return;
    }
    if (now !== undefined && isSameThing(after, now) && this.isAsMade(path, after, now) && volume.find(displaced) !== undefined) {
      this.ground.at(path, (name) => renameSync(volume.name(displaced), name));
      return;
    }
    this.leave(path, now, [[volume, displaced, n, 'before'], [volume, staged, n, 'commit']]);
  }

  private remove(entry: RemoveEntry): void {
    const { n, path, displaced, before } = entry, volume = this.volume(entry.volume);
    const now = this.find(path), taken = volume.find(displaced);
    if (taken === undefined) {
      // Never taken, or back already. Whatever an outsider did to it since is his.
      if (!isSameThing(before, now)) this.leave(path, now, []);
      return;
    }
    if (now === undefined) this.putBack(path, volume, displaced, before);
    else if (isSameThing(before, now) && before.type !== 'directory') unlinkSync(volume.name(displaced));
    else this.leave(path, now, [[volume, displaced, n, 'before']]);
  }

  private move(entry: MoveEntry): void {
    const { n, path: from, to, displaced, before } = entry, volume = this.volume(entry.volume);
    const source = this.find(from), target = this.find(to), taken = volume.find(displaced);
    const isThere = isSameThing(before, target);
    if (source === undefined && taken !== undefined) this.putBack(from, volume, displaced, before);
    else if (source === undefined && isThere) {
      if (volume.links) this.ground.between(to, from, (there, back) => linkSync(there, back));
      else this.ground.between(to, from, (there, back) => renameSync(there, back));
    } else if (!isSameThing(before, source)) {
      // Its old name is taken, or it is nowhere any more; where the new one still leads to it, nothing is lost.
      this.leave(from, source, isThere ? [] : [[volume, displaced, n, 'before']]);
      return;
    } else if (taken !== undefined) unlinkSync(volume.name(displaced));
    if (isThere && this.find(to) !== undefined && !this.isOneName(from, to)) this.takeBack(to, volume, `u${n}`);
    else if (target !== undefined && !isThere) this.leave(to, target, []);
  }

  private moveDirectory({ path: from, to, before }: MoveEntry): void {
    const source = this.find(from), target = this.find(to);
    if (isSameThing(before, source)) {
      if (this.isOneName(from, to) && !this.isListed(from)) this.rename(to, from);
      else if (target !== undefined && !isSameThing(before, target)) this.leave(to, target, []);
      return;
    }
    if (source === undefined && isSameThing(before, target)) this.rename(to, from);
    else this.leave(from, source, []);
  }

  private async adjust({ path, before, from, to }: AdjustEntry): Promise<void> {
    const now = this.find(path);
    if (!isSameThing(before, now)) {
      this.leave(path, now, []);
      return;
    }
    const back = metadataBack(now, from, to);
    if (back === 'other') this.leave(path, now, []);
    else await setMetadata(this.ground, path, before, back);
  }

  /** From staging to where it was. Whatever has taken its place meanwhile stays. */
  private putBack(path: TreePath, volume: Volume, name: string, before: Known): void {
    this.ground.at(path, (target) => {
      if (before.type === 'directory' || !volume.links) {
        renameSync(volume.name(name), target);
        return;
      }
      linkSync(volume.name(name), target);
      unlinkSync(volume.name(name));
    });
  }

  /** Out of the tree, to where it came from. */
  private takeBack(path: TreePath, volume: Volume, name: string): void {
    // Of two names of one file a rename would leave both.
    if (volume.find(name) !== undefined) unlinkSync(volume.name(name));
    this.ground.at(path, (there) => renameSync(there, volume.name(name)));
  }

  private rename(from: TreePath, to: TreePath): void {
    this.ground.between(from, to, (source, target) => renameSync(source, target));
  }

  /** Whether what is there is what the commit made, and nobody has touched it since. */
  private isAsMade(path: TreePath, after: Known, now: Attr): boolean {
    if (after.type !== 'symlink' && !hasSameMetadata(after, now)) return false;
    if (after.type === 'directory') return this.ground.list(path).length === 0;
    return this.isContent(path, after, now);
  }

  private isContent(path: TreePath, known: Known, now: Attr): boolean {
    if (known.type !== 'file' || known.version === undefined) return true;
    if (now.size !== known.size) return false;
    const digest = digestOf(this.ground, path);
    return digest !== undefined && digest !== 'moving' && digest.version === known.version;
  }

  /** Whether it only held the name until the real thing came. */
  private isHolder(path: TreePath, now: Attr, after: Known): boolean {
    if (typeOf(now.mode) !== (after.type === 'directory' ? 'directory' : 'file')) return false;
    if ((now.mode & PERMISSION_BITS) !== HOLDER_MODE || now.uid !== process.geteuid?.()) return false;
    return after.type === 'directory' ? this.ground.list(path).length === 0 : now.size === 0;
  }

  /** On a directory that folds case two spellings are one name. */
  private isOneName(a: TreePath, b: TreePath): boolean {
    return parentOf(a) === parentOf(b) && nameOf(a).toLowerCase() === nameOf(b).toLowerCase() && !(this.isListed(a) && this.isListed(b));
  }

  private isListed(path: TreePath): boolean {
    return this.ground.list(parentOf(path)).some(({ name }) => name === nameOf(path));
  }

  private leave(path: TreePath, now: Attr | undefined, keep: readonly (readonly [Volume, string, number, Side])[]): void {
    const saved = keep.flatMap(([volume, name, n, side]) => {
      const place = this.rescuer.save(volume, name, `${n}-${side}`, path);
      return place === undefined ? [] : [{ side, path: place }];
    });
    this.left.push({ path, found: now === undefined ? 'nothing' : describe(now), saved });
  }

  private find(path: TreePath): Attr | undefined {
    return this.ground.find(path);
  }

  private volume(index: number): Volume {
    const volume = this.volumes.get(index);
    if (volume === undefined) throw new Refusal('EIO', { reason: 'a staging directory is gone; is a file system not mounted?' });
    return volume;
  }
}

/** Whether what was begun of an entry may not show. Then it is taken back in any case, which does no harm. */
function hasHiddenTraces(entry: Entry): boolean {
  return entry.act === 'adjust' && entry.to.xattrs !== undefined;
}

/** Whether any of it has been set. */
function isAdjusted(now: Attr, from: Metadata, to: Metadata): boolean {
  if (to.mode !== undefined && to.mode !== from.mode && (now.mode & PERMISSION_BITS) === to.mode) return true;
  if (to.uid !== undefined && (to.uid !== from.uid || to.gid !== from.gid) && now.uid === to.uid && now.gid === to.gid) return true;
  // Times of what the commit itself made are never taken back, so they say nothing.
  return to.mtime !== undefined && from.mtime !== undefined && to.mtime !== from.mtime && distance(now.mtime, BigInt(to.mtime)) < TIME_SLACK_NS;
}

/** What has to be set to go back; `'other'` where something is neither as it was nor as it was to be. */
function metadataBack(now: Attr, from: Metadata, to: Metadata): Metadata | 'other' {
  const mode = now.mode & PERMISSION_BITS;
  // While an owner changes the system may take bits away that count only for him.
  if (to.mode !== undefined && mode !== to.mode && mode !== from.mode && mode !== ((from.mode ?? 0) & ~0o6000)) return 'other';
  if (to.uid !== undefined && (now.uid !== to.uid || now.gid !== to.gid) && (now.uid !== from.uid || now.gid !== from.gid)) return 'other';
  const hasOurTime = to.mtime !== undefined && distance(now.mtime, BigInt(to.mtime)) < TIME_SLACK_NS;
  const { atime, mtime, ...rest } = from;
  const back: { -readonly [K in keyof Metadata]: Metadata[K] } = { ...rest };
  if (to.mode === undefined) delete back.mode;
  return hasOurTime && atime !== undefined && mtime !== undefined ? { ...back, atime, mtime } : back;
}

function distance(a: bigint, b: bigint): bigint {
  return a < b ? b - a : a - b;
}

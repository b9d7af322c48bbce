import { typeOf, type Attr } from '../core/attr.ts';
import { isWithin, nameOf, parentOf, rebase, type TreePath } from '../core/path.ts';
import type { AdjustStep, Attributes, Conflict, NewNode, Source, Step } from '../core/plan.ts';
import { Refusal } from '../core/refusal.ts';
import { unreachable } from '../core/unreachable.ts';
import type { Version } from '../core/version.ts';
import { xattrsOf, type Carrier } from './carrier.ts';
import type { Metadata, SwapEntry } from './entry.ts';
import { describe, walk, type Examiner, type Finding } from './examiner.ts';
import { CommitError } from './fault.ts';
import type { Ground } from './ground.ts';
import type { JournalWriter } from './journal.ts';
import { digestOf, knownOf, type Keeper, type Known } from './known.ts';
import type { Losses } from './losses.ts';
import { guiseOf, linkStaged, makeStaged } from './stager.ts';
import type { Volume } from './volume.ts';
import type { Volumes } from './volumes.ts';

/** A directory of ours stays open to us until all is in it: these bits it gets at once. */
const OWNER_BITS = 0o700;
/** Bytes copied at a time where a move leads to another file system. */
const COPY_BYTES = 1 << 20;
/** Directories whose file system is remembered. */
const KNOWN_DIRECTORIES = 1024;

export interface Workplace {
  readonly ground: Ground;
  readonly volumes: Volumes;
  readonly journal: JournalWriter;
  /** Absent where this machine cannot carry extended attributes. */
  readonly carrier: Carrier | undefined;
  readonly examiner: Examiner;
  readonly losses: Losses;
  keep(path: TreePath, size: number): Keeper | undefined;
}

/**
 * Makes all that a plan makes, in staging, and writes down what will be done with it. Nothing of the tree changes. Where the disk
 * is found to be another than when it was examined, `conflicts` says so, and the rest is looked at only.
 */
export class Preparation {
  readonly conflicts: Conflict[] = [];
  private readonly place: Workplace;
  /** Names that other steps link to, by path: the staged file that will be there. */
  private readonly linked: ReadonlySet<TreePath>;
  private readonly stagedAt = new Map<TreePath, { readonly volume: Volume; readonly name: string; readonly known: Known }>();
  private readonly parked = new Map<number, { readonly volume: Volume; readonly known: Known; readonly disk: TreePath }>();
  /** What directories get when all is in them. */
  private readonly late: { readonly n: number; readonly path: TreePath; readonly disk: TreePath | undefined; readonly from: Metadata; readonly to: Metadata; readonly before: Known }[] = [];

  /** Directories asked for; forgotten when names of directories may have changed. */
  private readonly known = new Map<TreePath, Volume>();

  constructor(place: Workplace, linked: ReadonlySet<TreePath>) {
    this.place = place;
    this.linked = linked;
  }

  async step(n: number, step: Step): Promise<void> {
    const path = step.act === 'move' ? step.from : step.path;
    try {
      const { examiner } = this.place;
      // Asked before the step is gone past: then it is no more where it was.
      const volume = step.act === 'move' || step.act === 'unpark' ? this.volumeOf(step.act === 'move' ? step.to : step.path) : this.volumeOf(path);
      const source = step.act === 'move' ? this.volumeOf(step.from) : volume;
      const found = examiner.examine(step);
      this.place.losses.of(step, found);
      if (mayMoveDirectories(step)) this.known.clear();
      if (examiner.conflicts.length > 0 || this.conflicts.length > 0) return;
      await this.prepare(n, step, found, volume, source);
    } catch (error) {
      throw CommitError.of(this.place.ground.root, path, error);
    }
  }

  /** What is due when all steps are done. */
  finish(): void {
    // The deepest first: whoever locks a directory up must be done below it.
    for (const { n, path, disk, from, to, before } of this.late.reverse()) {
      this.place.journal.entry({ n, act: 'adjust', path, ...(disk === undefined ? {} : { disk }), before, from, to });
    }
  }

  private async prepare(n: number, step: Step, found: Finding, volume: Volume, source: Volume): Promise<void> {
    switch (step.act) {
      case 'create':
        return this.put(n, step.path, found, step.node, 'own', volume);
      case 'replace':
        return this.put(n, step.path, found, step.node, step.attributes, volume);
      case 'remove':
        if (found.attr !== undefined) this.remove(n, step.path, found, volume, `d${n}`);
        return;
      case 'park': {
        const known = this.remove(n, step.path, this.there(found), volume, `p${step.slot}`, { parked: true });
        if (known !== undefined) this.parked.set(step.slot, { volume, known, disk: found.disk as TreePath });
        return;
      }
      case 'unpark': {
        const parked = this.parked.get(step.slot);
        if (parked === undefined) return;
        if (parked.volume !== volume) throw elsewhere();
        this.place.journal.entry({ n, act: 'make', path: step.path, volume: volume.index, staged: `p${step.slot}`, after: parked.known, parked: true });
        return;
      }
      case 'move':
        if (source !== volume) return this.copy(n, step.from, step.to, this.there(found), volume, source);
        this.move(n, step.from, step.to, this.there(found), volume);
        return;
      case 'adjust': return this.adjust(n, step, this.there(found));
      default: return unreachable(step);
    }
  }

  /** Without guards a step may find nothing where it needs something. */
  private there(found: Finding): Finding {
    if (found.attr === undefined) throw new Refusal('ENOENT');
    return found;
  }

  private async put(n: number, path: TreePath, found: Finding, node: NewNode, attributes: 'kept' | 'own', volume: Volume): Promise<void> {
    const { attr, disk } = found;
    if (attr === undefined || disk === undefined) {
      await this.make(n, path, node, volume, undefined, undefined);
      return;
    }
    const wasDirectory = typeOf(attr.mode) === 'directory';
    if (wasDirectory || node.type === 'directory' || node.type === 'link' || !canLink(attr, volume)) {
      const kept = attributes === 'kept' && typeOf(attr.mode) === node.type;
      const before = this.remove(n, path, found, volume, `d${n}`);
      if (before !== undefined) await this.make(n, path, node, volume, kept ? before : undefined, kept ? disk : undefined);
      return;
    }
    const before = this.take(disk, attr);
    if (before === undefined) return;
    const kept = attributes === 'kept' && before.type === node.type ? before : undefined;
    const after = await this.stage(n, path, node, volume, kept, kept === undefined ? undefined : disk);
    const entry: SwapEntry = { n, act: 'swap', path, disk, volume: volume.index, staged: `n${n}`, displaced: `d${n}`, before, after };
    this.place.journal.entry(entry);
  }

  private async make(n: number, path: TreePath, node: NewNode, volume: Volume, kept: Known | undefined, keptFrom: TreePath | undefined): Promise<void> {
    const { journal } = this.place;
    if (node.type !== 'link') {
      const after = await this.stage(n, path, node, volume, kept, keptFrom);
      journal.entry({ n, act: 'make', path, volume: volume.index, staged: `n${n}`, after });
      return;
    }
    const staged = this.stagedAt.get(node.of);
    if (staged !== undefined) {
      if (staged.volume !== volume) throw elsewhere();
      linkStaged(volume, staged.name, `n${n}`);
      journal.entry({ n, act: 'make', path, volume: volume.index, staged: `n${n}`, after: staged.known });
      return;
    }
    const disk = this.place.examiner.diskOf(node.of), attr = disk === undefined ? undefined : this.place.ground.find(disk);
    if (attr === undefined) throw new Refusal('ENOENT', { reason: `there is no ${JSON.stringify(node.of)} to be linked to` });
    journal.entry({ n, act: 'link', path, of: node.of, after: knownOf(attr, Date.now()) });
  }

  private async stage(n: number, path: TreePath, node: Exclude<NewNode, { type: 'link' }>, volume: Volume, kept: Known | undefined, keptFrom: TreePath | undefined): Promise<Known> {
    const guise = guiseOf(node, kept, node.type), name = `n${n}`;
    const known = await makeStaged(volume, name, node, guise);
    if (keptFrom !== undefined || node.xattrs !== undefined) this.place.carrier?.add({ disk: keptFrom, volume, name, wanted: node.xattrs });
    if (this.linked.has(path)) this.stagedAt.set(path, { volume, name, known });
    if (node.type === 'directory' && (node.mtime !== undefined || (guise.mode & OWNER_BITS) !== OWNER_BITS)) {
      this.late.push({ n, path, disk: undefined, before: known, from: { mode: known.mode }, to: { mode: guise.mode, ...timesOf(node) } });
    }
    return known;
  }

  /** Gives what is known of what goes away; undefined where it is another already. */
  private remove(n: number, path: TreePath, found: Finding, volume: Volume, displaced: string, more: { parked?: true } = {}): Known | undefined {
    const disk = found.disk as TreePath, attr = found.attr as Attr, { ground, journal } = this.place;
    const before = more.parked === undefined ? this.take(disk, attr) : knownOf(attr, Date.now());
    if (before === undefined) return undefined;
    journal.entry({ n, act: 'remove', path, disk, volume: volume.index, displaced, before, ...more });
    if (before.type !== 'directory' || more.parked !== undefined) return before;
    for (const below of walk(ground, disk, found.gone)) {
      const known = this.take(below.path, below.attr);
      if (known === undefined) return undefined;
      journal.entry({ n, act: 'below', path: rebase(below.path, disk, '' as TreePath), known });
    }
    return before;
  }

  /** What is at `disk` before it goes away, its bytes kept. A conflict, and undefined, where it is not what it was a moment ago. */
  private take(disk: TreePath, attr: Attr): Known | undefined {
    const { ground } = this.place, type = typeOf(attr.mode);
    if (type === 'symlink') return knownOf(attr, Date.now(), { target: ground.readlink(disk) });
    if (type !== 'file') return knownOf(attr, Date.now());
    const keeper = this.place.keep(disk, attr.size);
    const digest = digestOf(ground, disk, keeper === undefined ? undefined : (bytes) => keeper.add(bytes));
    if (digest !== undefined && digest !== 'moving' && digest.attr.ctime === attr.ctime && digest.attr.ino === attr.ino) {
      keeper?.end(digest.version);
      return knownOf(digest.attr, Date.now(), { version: digest.version });
    }
    const now = ground.find(disk);
    this.conflicts.push({ path: disk, expected: 'as it was a moment ago', actual: now === undefined ? 'nothing' : `${describe(now)}, changed since` });
    return undefined;
  }

  private move(n: number, from: TreePath, to: TreePath, found: Finding, volume: Volume): void {
    if (isWithin(to, from)) throw new Refusal('EINVAL', { reason: 'it cannot be moved into itself' });
    const before = knownOf(found.attr as Attr, Date.now());
    this.place.journal.entry({ n, act: 'move', path: from, to, disk: found.disk as TreePath, volume: volume.index, displaced: `d${n}`, before });
  }

  /** A move to another file system: all of it is copied, then the original goes away. */
  private async copy(n: number, from: TreePath, to: TreePath, found: Finding, volume: Volume, source: Volume): Promise<void> {
    const disk = found.disk as TreePath, attr = found.attr as Attr;
    let count = 0;
    const one = async (path: TreePath, at: Attr): Promise<void> => {
      const name = `n${n}.${count++}`, node = this.copyOf(path, at);
      const known = await makeStaged(volume, name, node, guiseOf(node, undefined, node.type));
      this.place.carrier?.add({ disk: path, volume, name, wanted: undefined });
      const target = rebase(path, disk, to);
      this.place.journal.entry({ n, act: 'make', path: target, volume: volume.index, staged: name, after: known });
      if (node.type === 'directory') this.late.push({ n, path: target, disk: undefined, before: known, from: { mode: known.mode }, to: { mode: at.mode & 0o7777, ...timesOf(node) } });
    };
    await one(disk, attr);
    if (typeOf(attr.mode) === 'directory') for (const below of walk(this.place.ground, disk)) await one(below.path, below.attr);
    this.remove(n, from, found, source, `d${n}`);
  }

  private copyOf(path: TreePath, attr: Attr): Exclude<NewNode, { type: 'link' }> {
    const type = typeOf(attr.mode);
    const attributes: Attributes = { mode: attr.mode & 0o7777, uid: attr.uid, gid: attr.gid, atime: attr.atime, mtime: attr.mtime };
    switch (type) {
      case 'file': return { type, content: copySource(this.place.ground, path, attr), ...attributes };
      case 'symlink': return { type, target: this.place.ground.readlink(path), ...attributes };
      case 'directory': return { type, ...attributes };
      case 'socket': throw new Refusal('ENOTSUP', { reason: 'not supported: a socket moved to another file system' });
      default: return { type, rdev: attr.rdev, ...attributes };
    }
  }

  private async adjust(n: number, { path, set }: AdjustStep, found: Finding): Promise<void> {
    const disk = found.disk as TreePath, attr = found.attr as Attr, { ground, journal } = this.place;
    const before = knownOf(attr, Date.now(), typeOf(attr.mode) === 'symlink' ? { target: ground.readlink(disk) } : {});
    const isDirectory = before.type === 'directory';
    const now: Metadata = {
      ...(set.mode === undefined ? {} : { mode: before.mode }),
      ...(set.uid === undefined && set.gid === undefined ? {} : { uid: before.uid, gid: before.gid }),
      ...(set.xattrs === undefined ? {} : { xattrs: await this.xattrsBefore(disk, set.xattrs) }),
    };
    const to: Metadata = {
      // A change of owner takes such bits away.
      ...(set.mode === undefined && set.uid === undefined && set.gid === undefined ? {} : { mode: set.mode ?? before.mode }),
      ...(set.uid === undefined && set.gid === undefined ? {} : { uid: set.uid ?? before.uid, gid: set.gid ?? before.gid }),
      ...(set.xattrs === undefined ? {} : { xattrs: Object.fromEntries(set.xattrs) }),
    };
    const times = timesOf(set), hadTimes: Metadata = set.mtime === undefined && set.atime === undefined ? {} : { atime: String(attr.atime), mtime: String(attr.mtime) };
    if (isDirectory && times.mtime !== undefined) this.late.push({ n, path, disk, before, from: hadTimes, to: times });
    const early = isDirectory ? {} : times;
    if (Object.keys({ ...to, ...early }).length === 0) return;
    journal.entry({ n, act: 'adjust', path, disk, before, from: { mode: before.mode, ...now, ...(isDirectory ? {} : hadTimes) }, to: { ...to, ...early } });
  }

  private async xattrsBefore(disk: TreePath, set: ReadonlyMap<string, string | null>): Promise<Record<string, string | null>> {
    const place = this.place.ground.hold(parentOf(disk));
    try {
      const now = await xattrsOf(place.fd, disk === '' ? '.' : nameOf(disk));
      return Object.fromEntries([...set.keys()].map((name) => [name, now.get(name) ?? null]));
    } finally {
      place.close();
    }
  }

  /** The file system that a name at this point of the plan is on: that of the nearest directory above it that is on the disk. */
  private volumeOf(path: TreePath): Volume {
    const directory = parentOf(path);
    const known = this.known.get(directory);
    if (known !== undefined) return known;
    for (let at = directory; ; at = parentOf(at)) {
      const disk = this.place.examiner.diskOf(at);
      if (disk === undefined || this.place.ground.find(disk) === undefined) continue;
      const volume = this.place.volumes.of(disk);
      if (this.known.size >= KNOWN_DIRECTORIES) this.known.clear();
      this.known.set(directory, volume);
      return volume;
    }
  }
}

function mayMoveDirectories(step: Step): boolean {
  if (step.act === 'create' || step.act === 'adjust') return false;
  return step.act !== 'replace' || step.before.state.type === 'directory' || step.node.type === 'directory';
}

function timesOf({ atime, mtime }: Attributes): Metadata {
  if (atime === undefined && mtime === undefined) return {};
  const both = mtime ?? atime;
  return { atime: String(atime ?? both), mtime: String(both) };
}

/** Whether it may get a second name: not what is another's, for a user who is not root. */
function canLink(attr: Attr, volume: Volume): boolean {
  const self = process.geteuid?.();
  return volume.links && (self === 0 || self === attr.uid);
}

function elsewhere(): Refusal {
  return new Refusal('EXDEV', { reason: 'not supported: it would have to be on two file systems at once' });
}

function copySource(ground: Ground, path: TreePath, attr: Attr): Source {
  return {
    size: attr.size,
    version: undefined as Version | undefined,
    * pieces() {
      const file = ground.open(path);
      if (file === undefined) throw new Refusal('ENOENT');
      try {
        const buffer = Buffer.allocUnsafe(COPY_BYTES);
        const isSparse = attr.blocks * 512 < attr.size;
        for (let at = 0; at < attr.size;) {
          const count = file.read(buffer, 0, Math.min(COPY_BYTES, attr.size - at), at);
          if (count === 0) throw new Refusal('EIO', { reason: 'it became shorter while it was copied' });
          const bytes = buffer.subarray(0, count);
          if (!isSparse || bytes.some((byte) => byte !== 0)) yield { at, bytes };
          at += count;
        }
      } finally {
        file.close();
      }
    },
  };
}


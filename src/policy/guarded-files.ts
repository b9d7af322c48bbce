import { constants } from 'node:fs';
import { type Attr, type NodeType, typeOf } from '../core/attr.ts';
import type { Splice } from '../core/event.ts';
import type { Guard } from '../core/guard.ts';
import { parentOf, toBytes, type PathName, type TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { splicedShown, wasShown, type Shown } from '../core/shown.ts';
import type { Version } from '../core/version.ts';
import { originOf } from '../overlay/attributes.ts';
import { Files } from '../overlay/files.ts';
import { Guards, CHANGED, NOT_ALL_SHOWN } from '../overlay/guards.ts';
import { versionOf } from '../overlay/hash.ts';
import { Kernel } from '../overlay/kernel.ts';
import { PendingWrite, type Range } from '../overlay/pending-write.ts';
import { READ, WRITE } from '../overlay/permission.ts';
import type { Observed, ReadFacts } from '../overlay/recorder.ts';
import { changedBelow, notFound, outsideTree } from '../overlay/refusals.ts';
import { READS, WRITES, type Operation } from '../overlay/ruling.ts';
import { spotType, type Look, type Spot } from '../overlay/spot.ts';
import type { SystemEntry } from '../overlay/system.ts';
import { readThrough, type World } from '../overlay/world.ts';
import { asFsError, FsError } from './fs-error.ts';
import { Removal } from './removal.ts';

/** Most bytes of a file that is held whole to be read or edited. */
export const HELD_BYTES = 64 * 1024 * 1024;

const EDITS: readonly Operation[] = ['read', 'write'];
/** An edit that replaces more is told without saying where: then none of the file counts as shown. */
const SPLICES_PER_EVENT = 256;

/** A file held whole, at one moment. Its actor has seen it once it says what was shown. */
export interface HeldFile {
  /** Its name in the tree, symlinks resolved. */
  readonly path: TreePath;
  readonly bytes: Uint8Array;
  readonly version: Version;
  readonly mode: number;
  /**
   * Records the read: bytes [start, end) of it were shown, or the whole. `search`: of what it was looked through for, so that a file of which
   * nothing was shown does not count as seen.
   */
  show(ranges: readonly Range[] | 'whole', how?: { readonly search: boolean }): void;
}

/** What a change did to one file. */
export interface Written {
  readonly operation: 'create' | 'update';
  readonly path: TreePath;
  /** Of what is there now: what the next look at it gives. */
  readonly version: Version;
  /** What was there before; `undefined` where nothing was, or more than can be held. */
  readonly before: { readonly bytes: Uint8Array; readonly version: Version } | undefined;
  readonly after: Uint8Array;
}

/** A change that was looked up, decided and checked. `apply` is to follow before anything else happens. */
export interface Prepared<T> {
  readonly path: TreePath;
  apply(): T;
}

/** Bytes of a file with replacements in them, and where these are. */
export interface Edited {
  readonly bytes: Uint8Array;
  readonly splices: readonly Splice[];
}

/**
 * The files of an overlay as a layer of tools has them for one actor: whole, by paths absolute or relative to the root of the tree, and
 * changed only as whoever decides allows by what the actor has seen. A change is checked and applied in one synchronous step: of two at
 * one version one wins, and the other is FS_STALE_VERSION. Every method throws `FsError` with the path as it was given.
 */
export class GuardedFiles {
  readonly actor: string;
  private readonly world: World;
  private readonly guards: Guards;
  private readonly files: Files;
  private readonly kernel: Kernel;

  constructor(world: World, actor: string) {
    this.world = world;
    this.actor = actor;
    this.guards = new Guards(world, actor);
    this.files = new Files(world);
    this.kernel = new Kernel(world, actor, { guarded: false });
  }

  /** Type, size and mode of what is there; `undefined` where nothing is. Recorded as a stat, or a miss: no seeing. */
  stat(path: string, { follow = true, verb = 'stat' }: { follow?: boolean; verb?: string } = {}): (Attr & { readonly type: NodeType }) | undefined {
    return asFsError(verb, path, () => {
      this.look(path, { follow, call: verb });
      const attr = follow ? this.kernel.stat(this.named(path)) : this.kernel.lstat(this.named(path));
      return attr && { ...attr, type: typeOf(attr.mode) };
    });
  }

  /** Where it is in the tree, symlinks resolved, whether something is there or not. Recorded nowhere. */
  resolve(path: string, { follow = true }: { follow?: boolean } = {}): TreePath {
    return asFsError('find', path, () => {
      const look = this.look(path, { follow, call: 'look' });
      return look.kind === 'spot' ? look.spot.path : look.missing.path;
    });
  }

  /** The version of what is there now; `undefined` where nothing is, or no file or directory. Recorded nowhere. */
  version(path: string): Version | undefined {
    return asFsError('stat', path, () => {
      const look = this.look(path, { follow: true, call: 'stat' });
      return look.kind === 'spot' ? this.guards.versionOf(look.spot) : undefined;
    });
  }

  /** What a directory holds, by the bytes of the names. To list it is to have seen it. */
  list(path: string, verb = 'list'): readonly SystemEntry[] {
    return asFsError(verb, path, () => {
      this.look(path, { follow: true, call: 'scandir' });
      return this.kernel.readdir(this.named(path));
    });
  }

  /** Where a symlink leads. */
  readlink(path: string): string {
    return asFsError('read', path, () => this.kernel.readlink(this.named(path)));
  }

  /** Holds a regular file whole. A miss is recorded before FS_NOT_FOUND; nothing else is, before `show`. FS_TOO_LARGE beyond `limit` bytes. */
  hold(path: string, { verb = 'read', limit = HELD_BYTES }: { verb?: string; limit?: number } = {}): HeldFile {
    return asFsError(verb, path, () => {
      const look = this.look(path, { follow: true, call: 'open' });
      if (look.kind === 'missing') throw this.world.missed(this.actor, look, READS, 'open');
      const { spot } = look, at = { path: spot.path, via: look.via };
      this.world.gate?.demand(this.actor, at, spot, READS, 'open');
      this.demandRegular(spot);
      this.world.credentials.demand(spot, READ);
      const { mode } = this.world.attributes.of(spot), { bytes, facts, version } = this.contentOf(spot, limit);
      return {
        path: spot.path, bytes, version, mode,
        show: (ranges, how) => this.world.recorder.shown(this.actor, at, facts, ranges, how?.search === true),
      };
    });
  }

  /** Puts `content` there, in place of whatever file was. `guard` stands in for what would be decided. Directories above are made. */
  write(path: string, content: Uint8Array, options: { guard?: Guard } = {}): Written {
    return this.prepareWrite(path, content, options).apply();
  }

  /** The same, checked and not yet applied. */
  prepareWrite(path: string, content: Uint8Array, { guard, mode = 0o666 }: { guard?: Guard; mode?: number } = {}): Prepared<Written> {
    return asFsError('write', path, () => {
      const look = this.look(path, { follow: true, creates: true, call: 'write' });
      const at = placeOf(look), spot = look.kind === 'spot' ? look.spot : undefined;
      if (look.kind === 'missing' && look.missing.directoryOnly) throw new Refusal('EISDIR');
      if (look.kind === 'missing') this.demandNameable(look);
      if (spot !== undefined) {
        this.world.gate?.demand(this.actor, at, spot, WRITES, 'open');
        this.demandRegular(spot);
      }
      const before = spot && this.contentIfHeld(spot);
      this.guards.check(guard ?? this.guards.decide(at.path, 'write', spot), at, spot, 'write', before?.version);
      if (spot !== undefined) this.world.credentials.demand(spot, WRITE);
      const after = Uint8Array.from(content);
      return { path: at.path, apply: () => asFsError('write', path, () => {
        if (spot === undefined) this.create(path, after, mode);
        else this.replace(path, after, before);
        return this.written(spot === undefined ? 'create' : 'update', at.path, before, after);
      }) };
    });
  }

  /** Changes a file as `change` says of its bytes; what that throws goes out as it is, and nothing is changed. */
  edit(path: string, change: (before: Uint8Array) => Edited, options: { guard?: Guard } = {}): Written {
    return this.prepareEdit(path, change, options).apply();
  }

  /** The same, checked and not yet applied. */
  prepareEdit(path: string, change: (before: Uint8Array) => Edited, { guard }: { guard?: Guard } = {}): Prepared<Written> {
    return asFsError('edit', path, () => {
      const look = this.look(path, { follow: true, call: 'edit' }), at = placeOf(look), spot = look.kind === 'spot' ? look.spot : undefined;
      if (spot !== undefined) this.world.gate?.demand(this.actor, at, spot, EDITS, 'open');
      else if (look.kind === 'missing') this.world.gate?.demandMissing(this.actor, look.missing, look.via, EDITS, 'open');
      const decision = guard ?? this.guards.decide(at.path, 'edit', spot);
      if (decision.kind === 'refuse') this.guards.check(decision, at, spot, 'edit');
      if (spot === undefined) throw this.guards.refuse(at, 'edit', 'FS_STALE_VERSION', CHANGED);
      this.demandRegular(spot);
      this.world.credentials.demand(spot, READ | WRITE);
      const before = this.contentOf(spot, HELD_BYTES);
      this.guards.check(decision, at, spot, 'edit', before.version);
      if (before.bytes.includes(0)) throw new FsError('FS_NOT_TEXT', `cannot edit "${path}": binary file`);
      const { bytes: after, splices } = change(before.bytes);
      if (decision.kind === 'seen' && decision.shown === 'span' && !isCovered(decision.seen.shown, before.bytes.length, splices)) {
        throw this.guards.refuse(at, 'edit', 'FS_NOT_OBSERVED', NOT_ALL_SHOWN);
      }
      return { path: at.path, apply: () => asFsError('edit', path, () => {
        this.replace(path, after, before, splices);
        return this.written('update', at.path, before, after);
      }) };
    });
  }

  /** Takes a file, symlink or empty directory away; `recursive`: a directory with all it holds, which has to be listed before. */
  remove(path: string, options: { recursive?: boolean } = {}): { path: TreePath; type: NodeType } {
    return this.prepareRemove(path, options).apply();
  }

  /** The same, checked and not yet applied. */
  prepareRemove(path: string, { recursive = false }: { recursive?: boolean } = {}): Prepared<{ path: TreePath; type: NodeType }> {
    return asFsError('delete', path, () => {
      const { spot, at } = this.must(path, 'delete');
      const removal = new Removal(this.world, this.guards, this.kernel);
      removal.demand(spot, at, { recursive });
      return { path: spot.path, apply: () => asFsError('delete', path, () => {
        removal.remove(spot);
        return { path: spot.path, type: spotType(spot) };
      }) };
    });
  }

  /** Gives what is at `from` another name, in place of a file that is there. Directories above the new name are made. */
  move(from: string, to: string): { from: TreePath; to: TreePath; replaced: boolean } {
    return this.prepareMove(from, to).apply();
  }

  /** The same, checked and not yet applied. */
  prepareMove(from: string, to: string): Prepared<{ from: TreePath; to: TreePath; replaced: boolean }> {
    const { spot, at } = asFsError('move', from, () => this.must(from, 'rename'));
    asFsError('move', from, () => {
      this.guards.demand(at, 'rename', spot, 'rename');
    });
    return asFsError('write', to, () => {
      const look = this.look(to, { follow: false, call: 'rename' }), target = look.kind === 'spot' ? look.spot : undefined, place = placeOf(look);
      if (target === undefined && look.kind === 'missing') this.demandNameable(look);
      if (target !== undefined && target.path === spot.path) throw new Refusal('EEXIST');
      this.guards.demand(place, 'write', target, 'rename');
      return { path: spot.path, apply: () => asFsError('move', from, () => {
        this.makeAbove(place.path);
        this.kernel.rename(this.named(from), this.named(to));
        return { from: spot.path, to: place.path, replaced: target !== undefined };
      }) };
    });
  }

  /** Copies a file's content and mode onto `to`. Directories above it are made. */
  copy(from: string, to: string): Written {
    const held = this.hold(from, { verb: 'copy' });
    const written = this.prepareWrite(to, held.bytes, { mode: held.mode & 0o777 });
    held.show('whole');
    return written.apply();
  }

  /** Makes a directory, and those above it. */
  mkdir(path: string): TreePath {
    return asFsError('create', path, () => {
      const look = this.look(path, { follow: true, call: 'mkdir' });
      if (look.kind === 'spot') throw new Refusal('EEXIST');
      this.guards.demand(placeOf(look), 'write', undefined, 'mkdir');
      this.makeAbove(look.missing.path);
      this.kernel.mkdir(this.named(path), 0o777);
      return look.missing.path;
    });
  }

  chmod(path: string, mode: number): void {
    asFsError('chmod', path, () => {
      const { spot, at } = this.must(path, 'chmod', { follow: true });
      this.guards.demand(at, 'attributes', spot, 'chmod');
      this.kernel.chmod(this.named(path), mode, { follow: true });
    });
  }

  /** Looks a path up; one that leads out of the tree is refused, and that is recorded. */
  private look(path: string, { call, ...options }: { follow: boolean; creates?: boolean; call: string }): Exclude<Look, { kind: 'outside' }> {
    const look = this.world.look(this.actor, this.named(path), call, options);
    if (look.kind !== 'outside') return look;
    this.world.recorder.refuse(this.actor, { outside: look.outside, call, code: 'EACCES' });
    throw outsideTree();
  }

  private must(path: string, call: string, { follow = false }: { follow?: boolean } = {}): { spot: Spot; at: Observed } {
    const operation: Operation = call === 'delete' ? 'delete' : call === 'rename' ? 'rename' : 'attributes';
    const look = this.look(path, { follow, call });
    if (look.kind === 'missing') throw this.world.missed(this.actor, look, [operation], call);
    const at = placeOf(look);
    this.world.gate?.demand(this.actor, at, look.spot, [operation], call);
    return { spot: look.spot, at };
  }

  private named(path: string): PathName {
    if (path.includes('\0')) throw notFound();
    const { mountPoint } = this.world.walker;
    return (path.startsWith('/') ? path : path === '' ? mountPoint : `${mountPoint === '/' ? '' : mountPoint}/${path}`) as PathName;
  }

  private demandRegular(spot: Spot): void {
    if (spotType(spot) !== 'file') throw new Refusal('EISDIR', { fsCode: 'FS_NOT_REGULAR_FILE', reason: 'not a regular file' });
  }

  /** Throws where a name cannot be given, or one above it cannot be made. */
  private demandNameable({ missing, via }: Look & { kind: 'missing' }): void {
    this.world.gate?.demandVacant(this.actor, missing, via, ['create', 'write'], 'open');
    for (const name of missing.path.split('/')) if (toBytes(name).length > 255) throw new Refusal('ENAMETOOLONG');
    for (let above = parentOf(missing.path); above !== ''; above = parentOf(above)) {
      const look = this.world.walker.look(this.world.walker.seenAs(above) as PathName, { follow: true });
      if (look.kind === 'outside') throw outsideTree();
      if (look.kind === 'missing') {
        this.world.gate?.demandVacant(this.actor, look.missing, undefined, ['create'], 'mkdir');
        continue;
      }
      if (spotType(look.spot) !== 'directory') throw new Refusal('ENOTDIR');
      this.world.demandWritable(look.spot);
      return;
    }
  }

  private makeAbove(path: TreePath): void {
    const above = parentOf(path);
    if (above === '' || this.world.walker.look(this.world.walker.seenAs(above) as PathName, { follow: true }).kind !== 'missing') return;
    this.makeAbove(above);
    this.kernel.mkdir(this.world.walker.seenAs(above) as PathName, 0o777);
  }

  /** All of a regular file, without a word to the log. */
  private contentOf(spot: Spot, limit: number): Content {
    const { world } = this, { node } = spot;
    world.session.publish();
    if (node !== undefined && node.content.kind !== 'lower') {
      const size = world.attributes.sizeOf(node);
      if (size > limit) throw tooLarge(size, limit);
      const bytes = Uint8Array.from(world.contents.whole(node, undefined)), version = world.contents.versionOf(node);
      return { bytes, version, facts: { version, print: undefined, size } };
    }
    const origin = originOf(spot) as TreePath, file = world.lower.open(origin);
    if (typeof file === 'string' || !('kind' in file)) throw node === undefined ? notFound() : changedBelow(origin);
    try {
      const attr = file.restat();
      if (attr.size > limit) throw tooLarge(attr.size, limit);
      const bytes = readThrough(file, attr.size), version = versionOf(bytes);
      world.versions.set(origin, attr, version, world.session.clock.now());
      return { bytes, version, facts: { version, print: attr, size: bytes.length } };
    } finally {
      file.close();
    }
  }

  /** The same, where it is not too large to be held: a file is overwritten whatever its size, but then nobody is told what was there. */
  private contentIfHeld(spot: Spot): Content | undefined {
    return this.world.attributes.of(spot).size > HELD_BYTES ? undefined : this.contentOf(spot, HELD_BYTES);
  }

  private create(path: string, bytes: Uint8Array, mode: number): void {
    const look = this.look(path, { follow: true, creates: true, call: 'open' });
    this.makeAbove(placeOf(look).path);
    const again = this.look(path, { follow: true, creates: true, call: 'open' });
    if (again.kind !== 'missing') throw new Refusal('EPERM', { fsCode: 'FS_NOT_OBSERVED' });
    this.files.nameNew(this.actor, again, constants.S_IFREG | mode, PendingWrite.whole(bytes.slice()));
    this.world.watchers.changed(again.missing.path);
    this.world.session.publish();
  }

  /** Gives a file other bytes, if those it has are still `before`. */
  private replace(path: string, bytes: Uint8Array, before: Content | undefined, splices?: readonly Splice[]): void {
    const look = this.look(path, { follow: true, call: 'open' }), at = placeOf(look);
    if (look.kind !== 'spot') throw this.guards.refuse(at, 'write', 'FS_STALE_VERSION', CHANGED);
    if (look.spot.node === undefined && before !== undefined) {
      // An outsider may have changed the lower since it was read.
      const { version } = this.world.hashBase(look.spot);
      if (version !== undefined && version !== before.version) throw this.guards.refuse(at, 'write', 'FS_STALE_VERSION', CHANGED);
    }
    const told = splices === undefined || splices.length <= SPLICES_PER_EVENT ? splices
      : [[0, before?.bytes.length ?? 0, 0] as const];
    this.files.replace(this.actor, look.spot, at, PendingWrite.whole(bytes.slice()), told);
    this.world.session.publish();
  }

  private written(operation: Written['operation'], path: TreePath, before: Content | undefined, after: Uint8Array): Written {
    return { operation, path, version: versionOf(after), before: before && { bytes: before.bytes, version: before.version }, after };
  }
}

interface Content {
  readonly bytes: Uint8Array;
  readonly version: Version;
  readonly facts: ReadFacts;
}

function placeOf(look: Exclude<Look, { kind: 'outside' }>): Observed {
  return { path: look.kind === 'spot' ? look.spot.path : look.missing.path, via: look.via };
}

/** Whether all that `splices` replace was shown. */
function isCovered(shown: Shown, size: number, splices: readonly Splice[]): boolean {
  let now = shown, length = size;
  for (const splice of splices) {
    const [at, removed, added] = splice;
    if (!wasShown(now, at, at + removed)) return false;
    length += added - removed;
    now = splicedShown(now, [splice], length);
  }
  return true;
}

function tooLarge(size: number, limit: number): Refusal {
  return new Refusal('EFBIG', { fsCode: 'FS_TOO_LARGE', reason: `file is too large (${size} bytes; at most ${limit})` });
}

import { typeOf, type Attr } from '../core/attr.ts';
import type { DiscardBody, Inode, LowerBase, MutationBody, UndoBody } from '../core/event.ts';
import { DeciderSlot } from '../core/guard.ts';
import { compareNames, type PathName, type TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { find, nodeOf, type State } from '../core/state.ts';
import { linkKey, Node, WHITEOUT, type Entry } from '../core/tree.ts';
import type { Version } from '../core/version.ts';
import type { Lower, LowerEntry, LowerFile } from '../lower/lower.ts';
import { baseRecord, inodeRecord, originOf, type Attributes } from './attributes.ts';
import type { Contents } from './contents.ts';
import type { Descriptors } from './descriptor.ts';
import type { Gate } from './gate.ts';
import { inodeKeyOf, type OpenInode, type OpenInodes } from './inode.ts';
import type { OutsideFs } from './outside.ts';
import type { PendingWrite } from './pending-write.ts';
import { SEARCH, WRITE, type Credentials } from './permission.ts';
import type { Observed, Recorder } from './recorder.ts';
import { changedBelow, notFound } from './refusals.ts';
import type { Operation } from './ruling.ts';
import type { Session } from './session.ts';
import type { Look, Missing, ParentLook, Spot } from './spot.ts';
import type { LowerVersions } from './versions.ts';
import type { LookOptions, Walker } from './walker.ts';
import type { Watchers } from './watchers.ts';

/** A lower file up to this size is hashed when its content is first changed, so that its base has a version. */
export const HASHED_BASE_BYTES = 1024 * 1024;

/** What all actors and all calls of one overlay share, and the few acts that every kind of call needs. */
export class World {
  readonly session: Session;
  readonly lower: Lower;
  readonly walker: Walker;
  readonly attributes: Attributes;
  readonly contents: Contents;
  readonly recorder: Recorder;
  readonly versions: LowerVersions;
  readonly inodes: OpenInodes;
  readonly descriptors: Descriptors;
  readonly credentials: Credentials;
  readonly watchers: Watchers;
  readonly outside: OutsideFs;
  /** Where there are path rules. */
  readonly gate: Gate | undefined;
  /** Who decides what an actor may change by what it has seen. */
  readonly deciders = new DeciderSlot();
  /** Whether every call is held against what is decided, and not those of tools alone. */
  guardsCalls = false;

  constructor(parts: Pick<World, 'session' | 'lower' | 'walker' | 'attributes' | 'contents' | 'recorder' | 'versions'
    | 'inodes' | 'descriptors' | 'credentials' | 'watchers' | 'outside' | 'gate'>) {
    this.session = parts.session;
    this.lower = parts.lower;
    this.walker = parts.walker;
    this.attributes = parts.attributes;
    this.contents = parts.contents;
    this.recorder = parts.recorder;
    this.versions = parts.versions;
    this.inodes = parts.inodes;
    this.descriptors = parts.descriptors;
    this.credentials = parts.credentials;
    this.watchers = parts.watchers;
    this.outside = parts.outside;
    this.gate = parts.gate;
  }

  get state(): State {
    return this.session.state;
  }

  /** Does outside the tree what may be done there. Throws what that throws; that it may not be is recorded. */
  beyond<T>(actor: string, path: string, call: string, act: (outside: OutsideFs) => T): T {
    try {
      return act(this.outside);
    } catch (error) {
      if (error instanceof Refusal && error.fsCode === 'FS_SANDBOX_DENIED') {
        this.recorder.refuse(actor, { outside: path, call, code: error.code });
      }
      throw error;
    }
  }

  /** Throws why what is at `path` outside the tree may not be changed; recorded under the name that was `named`. */
  refuseBeyond(actor: string, path: string, call: string, options: { follow: boolean; named?: string }): never {
    return this.beyond(actor, options.named ?? path, call, (outside) => { throw outside.refusal(path, options); });
  }

  /** Looks a path up. Throws as the walker does, and EACCES where rules deny following a symlink on the way. */
  look(actor: string, path: PathName, call: string, options: LookOptions): Look {
    const look = this.walker.look(path, options);
    if (look.through !== undefined) this.gate?.demandFollowed(actor, look, call);
    return look;
  }

  /** The same of the directory that holds the last name of a path. */
  lookParent(actor: string, path: PathName, call: string): ParentLook {
    const look = this.walker.lookParent(path);
    if (look.through !== undefined) this.gate?.demandFollowed(actor, look, call);
    return look;
  }

  /** Looks up what has to be there. A miss is recorded before ENOENT is thrown; outside the tree is EACCES. */
  must(actor: string, path: PathName, call: string, options: { follow: boolean; does: readonly Operation[] }): { spot: Spot; at: Observed } {
    const look = this.look(actor, path, call, options);
    if (look.kind === 'outside') return this.refuseBeyond(actor, look.outside, call, options);
    if (look.kind === 'missing') throw this.missed(actor, look, options.does, call);
    const { spot } = look, at = { path: spot.path, via: look.via };
    this.gate?.demand(actor, at, spot, options.does, call);
    return { spot, at };
  }

  /** Nothing is there, or a rule hides it: recorded, the latter as a flag. Throws EACCES where rules deny what was to be done. */
  missed(actor: string, look: { missing: Missing; via: string | undefined }, does: readonly Operation[], call: string): Refusal {
    const { missing, via } = look, isHidden = this.gate?.demandMissing(actor, missing, via, does, call) === true;
    if (!isHidden) this.recorder.miss(actor, { path: missing.path, via }, call);
    return notFound();
  }

  /** The place where something new is to be named; its directory has to be there, and to allow it. */
  vacant(actor: string, look: Look & { kind: 'missing' }, does: readonly Operation[], call: string): { missing: Missing & { parent: Spot }; at: Observed } {
    const { missing, via } = look, { parent } = missing;
    if (parent === undefined) throw this.missed(actor, look, does, call);
    this.gate?.demandVacant(actor, missing, via, does, call);
    this.demandWritable(parent);
    return { missing: { ...missing, parent }, at: { path: missing.path, via } };
  }

  /** Throws EACCES unless names may come and go in `directory`. */
  demandWritable(directory: Spot): void {
    if (!this.credentials.isRoot) this.credentials.demand(directory, WRITE | SEARCH);
  }

  /** All that a directory holds, by the bytes of the names: the overlay's over the lower's, each once. */
  entries(spot: Spot): readonly LowerEntry[] {
    const { node } = spot, origin = originOf(spot);
    if (node === undefined) return this.lower.list(origin as TreePath);
    const below = origin === undefined || node.opaque ? [] : this.shownThrough(origin);
    const { names } = node;
    if (names === undefined || names.size === 0) return below;
    const entries: LowerEntry[] = [];
    let at = 0;
    for (const name of names.names()) {
      const to = placeOf(name, below, at);
      while (at < to) entries.push(below[at++] as LowerEntry);
      if (below[at]?.name === name) at++;
      const found = nodeOf(this.state, names.get(name) as Entry);
      if (found !== WHITEOUT) entries.push({ name, type: found.type });
    }
    while (at < below.length) entries.push(below[at++] as LowerEntry);
    return entries;
  }

  /** What an event has to tell of a lower file that it is the first to change; `undefined` where it is not. */
  base(spot: Spot, version?: Version): LowerBase | undefined {
    const { node } = spot;
    if (node !== undefined && node.ino !== undefined && spot.borrowed !== true) return undefined;
    const attr = spot.borrowed === true ? spot.attr as Attr : this.attributes.of(spot), origin = (spot.borrowed === true ? spot.origin : originOf(spot)) as TreePath;
    const isLink = typeOf(attr.mode) === 'symlink';
    return baseRecord(attr, {
      version: version ?? this.versions.get(origin, attr), target: isLink ? this.lower.readlink(origin) : undefined,
    });
  }

  /**
   * The version of a lower file about to be changed for the first time, and its bytes; neither where it is too large.
   * `open`: the file, where a descriptor holds it.
   */
  hashBase(spot: Spot, open?: LowerFile): { version: Version | undefined; bytes: Uint8Array | undefined; attr: Attr } {
    const origin = originOf(spot) as TreePath, found = open ?? this.lower.slurp(origin, HASHED_BASE_BYTES);
    if (typeof found === 'string' || !('kind' in found)) throw changedBelow(origin);
    if (found.kind === 'whole') {
      return { version: this.contents.versionOfBytes(origin, found.attr, found.bytes), bytes: found.bytes, attr: found.attr };
    }
    const attr = found.restat();
    if (open === undefined) found.close();
    if (open === undefined || attr.size > HASHED_BASE_BYTES) return { version: this.versions.get(origin, attr), bytes: undefined, attr };
    const bytes = readThrough(open, attr.size);
    return { version: this.contents.versionOfBytes(origin, attr, bytes), bytes, attr };
  }

  /** Opens the lower file that an inode is. Throws ENOENT, or EIO where another kind of file is there by now. */
  openLower(inode: OpenInode): void {
    const file = this.lower.open(inode.origin as TreePath);
    if (typeof file === 'string') throw notFound();
    if (!('kind' in file)) throw new Refusal('EIO', { reason: 'became another kind of file while it was opened' });
    inode.lowerFile = file;
  }

  /** The version of the lower file at `origin` now; `undefined` where no file is there. */
  versionOfLower(origin: TreePath): Version | undefined {
    const file = this.lower.open(origin);
    if (typeof file === 'string' || !('kind' in file)) return undefined;
    try {
      return this.contents.versionOfLower(origin, file);
    } finally {
      file.close();
    }
  }

  /** Appends a mutation; descriptors that hold what it took over see the node from now on. */
  mutate(actor: string, body: Exclude<MutationBody, DiscardBody | UndoBody>, write?: PendingWrite, orphan?: Node): void {
    this.session.append(actor, body, write, orphan);
    if (this.inodes.size === 0) return;
    if (body.lower !== undefined) this.attach(body.lower, body.op === 'rename' ? body.to : body.path);
    if (body.op === 'rename' && body.onto !== undefined) this.attach(body.onto, body.exchange === true ? body.path : undefined);
  }

  /** After a commit: descriptors of what was published hold what the lower has now. */
  settle(): void {
    if (this.inodes.size > 0) this.inodes.settle((path) => this.published(path));
  }

  /** Device and number by which an event finds a node with several names, should its path be none of them any more. */
  identity(node: Node): { ino: Inode; dev?: Inode } {
    const ino = inodeRecord(node.ino as bigint);
    if (node.dev === undefined || this.state.links.get(inodeKeyOf(node)) === undefined) return { ino };
    return { ino, dev: inodeRecord(node.dev) };
  }

  /**
   * What an event has to tell of a node that it changes by `path`: `identity`, and where only the lower has had that name of it so
   * far, what is there.
   */
  changedBy(path: TreePath, node: Node): { ino: Inode; dev?: Inode; lower?: LowerBase } {
    const identity = this.identity(node);
    if (identity.dev === undefined || node.origin === undefined) return identity;
    const found = find(this.state, path);
    if (found === undefined || found === WHITEOUT || found instanceof Node) return identity;
    const attr = this.lower.lstat(found.lower);
    return typeof attr === 'string' || attr.ino !== node.ino || attr.dev !== node.dev ? identity : { ...identity, lower: baseRecord(attr, {}) };
  }

  /** Owner and group of what is named in `directory`: this process's, the group a setgid directory's. */
  ownerIn(directory: Spot, below?: Attr): { uid: number; gid: number } {
    const { uid, gid } = this.credentials, { node } = directory;
    const attr = node === undefined ? this.attributes.of(directory) : this.attributes.ofNode(node, below);
    return { uid, gid: (attr.mode & 0o2000) === 0 ? gid : attr.gid };
  }

  /** Mode of what is named in `directory`: without the umask, and setgid only for members of the group that it would give. */
  newMode(directory: Spot, mode: number): number {
    const { credentials } = this, bits = mode & ~credentials.umask;
    if (credentials.isRoot || (bits & 0o2010) !== 0o2010) return bits;
    const attr = this.attributes.of(directory);
    return (attr.mode & 0o2000) === 0 || credentials.isMember(attr.gid) ? bits : bits & ~0o2000;
  }

  now(): string {
    return String(this.session.clock.nanoseconds());
  }

  private published(path: TreePath): Node | { origin: TreePath; attr: Attr } | undefined {
    const found = find(this.state, path);
    if (found === undefined || found === WHITEOUT || found instanceof Node) return found === WHITEOUT ? undefined : found;
    const attr = this.lower.lstat(found.lower);
    return typeof attr === 'string' ? undefined : { origin: found.lower, attr };
  }

  /** What a lower directory adds to one of the overlay's own; nothing where outsiders have taken it away. */
  shownThrough(origin: TreePath): readonly LowerEntry[] {
    try {
      return this.lower.list(origin);
    } catch (error) {
      if (error instanceof Refusal && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return [];
      throw error;
    }
  }

  /** `path`: the name that what was taken over has now; without, only other names of it can have stayed. */
  private attach(base: LowerBase, path: TreePath | undefined): void {
    const key = linkKey(BigInt(base.dev), BigInt(base.ino)), inode = this.inodes.get(key);
    if (inode === undefined || inode.node !== undefined) return;
    const found = this.state.links.get(key) ?? (path === undefined ? undefined : find(this.state, path));
    if (found instanceof Node) inode.node = found;
  }
}

/** The first `size` bytes of a lower file, fewer where it has become shorter. */
export function readThrough(file: LowerFile, size: number): Uint8Array {
  const bytes = Buffer.allocUnsafeSlow(size);
  let at = 0;
  while (at < bytes.length) {
    const count = file.read(bytes, at, bytes.length - at, at);
    if (count === 0) break;
    at += count;
  }
  return bytes.subarray(0, at);
}

/** The open file as the look-up of its name would have found it. */
export function spotOf(inode: OpenInode): Spot {
  return { path: inode.path, node: inode.node, origin: inode.origin, attr: inode.attr };
}

/** Where `name` is, or would be, among sorted entries, of which the first `from` come before it. */
function placeOf(name: string, sorted: readonly LowerEntry[], from: number): number {
  let low = from, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compareNames((sorted[middle] as LowerEntry).name, name) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

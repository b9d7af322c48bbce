import { constants } from 'node:fs';
import type { Attr } from '../core/attr.ts';
import type { Splice, WriteBody } from '../core/event.ts';
import { extentsOf, lowerExtents } from '../core/evolve.ts';
import type { PathName, TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { find } from '../core/state.ts';
import { linkKey, takenOver, type Node } from '../core/tree.ts';
import type { Version } from '../core/version.ts';
import type { Lower, LowerFile } from '../lower/lower.ts';
import { baseRecord, inodeRecord } from './attributes.ts';
import { Descriptor } from './descriptor.ts';
import type { Guards } from './guards.ts';
import { inodeKeyOf, OpenInode } from './inode.ts';
import { PendingWrite, WHOLE_BYTES } from './pending-write.ts';
import { READ, WRITE } from './permission.ts';
import { viaField, type Observed } from './recorder.ts';
import { changedBelow, notFound } from './refusals.ts';
import { MAX_FILE_BYTES, Resizing } from './resizing.ts';
import { LISTS, MAKES, operationsOf, READS, WRITES, type Operation } from './ruling.ts';
import { spotType, type Look, type Spot } from './spot.ts';
import { O_ACCMODE } from './system.ts';
import type { Walker } from './walker.ts';
import { HASHED_BASE_BYTES, readThrough, spotOf, type World } from './world.ts';

const { O_APPEND, O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_TRUNC, O_RDONLY, O_WRONLY, S_IFREG } = constants;
/** Files up to this size are read whole in one go where a whole file is asked for. */
const SLURP_BYTES = 1024 * 1024;
const APPEND_FLAGS = O_WRONLY | O_CREAT | O_APPEND;
const WHOLE_FILE_FLAGS = O_WRONLY | O_CREAT | O_TRUNC;
/** Ends in a slash, `.` or `..`. */
const NO_FILE_NAME = /(?:\/|(?:^|\/)\.{1,2})$/;

type Glance = NonNullable<ReturnType<Walker['glance']>>;

/** What opening, and changing the content of, regular files means to the overlay. */
export class Files {
  private readonly world: World;
  /** Of the actor whose calls these are, where they are guarded. */
  private readonly guards: Guards | undefined;
  readonly resizing: Resizing;

  constructor(world: World, guards?: Guards) {
    this.world = world;
    this.guards = guards;
    this.resizing = new Resizing(world);
  }

  /** open(2) below the root; `outside` gets the paths that are not. */
  open(actor: string, path: PathName, flags: number, mode: number, outside: (path: string) => number): number {
    const exclusive = (flags & O_CREAT) !== 0 && (flags & O_EXCL) !== 0;
    const creates = (flags & O_CREAT) !== 0;
    if (creates) this.demandFileName(actor, path, { exclusive });
    const look = this.world.look(actor, path, 'open', { follow: (flags & O_NOFOLLOW) === 0 && !exclusive, creates });
    if (look.kind === 'outside') return outside(look.outside);
    if (look.kind === 'missing') {
      if (!creates) throw this.world.missed(actor, look, operationsOf(flags), 'open');
      if (look.missing.directoryOnly && look.missing.parent !== undefined) throw new Refusal('EISDIR');
      if ((flags & O_DIRECTORY) !== 0) throw new Refusal('EINVAL');
      return this.describe(actor, this.create(actor, look, mode, PendingWrite.whole(new Uint8Array(0))), look.via, flags);
    }
    if (exclusive) throw new Refusal('EEXIST');
    const at = { path: look.spot.path, via: look.via };
    const inode = this.openSpot(actor, look.spot, at, flags);
    return this.describe(actor, inode, look.via, flags);
  }

  /**
   * The content of the file at `path`, whole; the caller owns the bytes. `undefined` where it has to be opened instead: it
   * lies outside, or has more than `limit` bytes.
   */
  readFile(actor: string, path: PathName, limit: number): Uint8Array | undefined {
    const { world } = this, glance = world.credentials.isRoot ? world.walker.glance(path) : undefined;
    if (glance?.node?.type === 'file') {
      this.demandGlanced(actor, glance, READS);
      return this.readNode(actor, glance.node, { path: glance.path, via: undefined }, limit);
    }
    if (glance?.origin !== undefined) {
      const at = { path: glance.path, via: undefined, origin: glance.origin };
      const found = world.lower.slurp(glance.origin, SLURP_BYTES);
      if (typeof found === 'object' && 'kind' in found) {
        if (found.attr.nlink === 1 || (world.state.links.size === 0 && world.gate === undefined)) {
          this.demandGlanced(actor, glance, READS, found);
          return this.readLower(actor, at, found, limit);
        }
        if (found.kind === 'open') found.close();
      }
    }
    const look = world.look(actor, path, 'open', { follow: true });
    if (look.kind === 'outside') return undefined;
    if (look.kind === 'missing') throw world.missed(actor, look, READS, 'open');
    const { spot } = look, at = { path: spot.path, via: look.via };
    world.gate?.demand(actor, at, spot, READS, 'open');
    world.credentials.demand(spot, READ);
    this.demandRegular(spot);
    if (spot.node === undefined) return this.readLower(actor, { ...at, origin: spot.origin as TreePath }, undefined, limit);
    return this.readNode(actor, spot.node, at, limit);
  }

  /** open with O_CREAT and O_TRUNC (O_EXCL as asked) or O_APPEND, write, close; `not plain`: it has to be done in these steps. */
  writeFile(actor: string, path: PathName, bytes: Uint8Array, flags: number, mode: number): 'done' | 'not plain' {
    if (flags === APPEND_FLAGS && this.appendPlainly(actor, path, bytes)) return 'done';
    const exclusive = (flags & O_EXCL) !== 0;
    if ((flags & ~O_EXCL) !== WHOLE_FILE_FLAGS) return 'not plain';
    this.demandFileName(actor, path, { exclusive });
    const look = this.world.look(actor, path, 'open', { follow: !exclusive, creates: true });
    if (look.kind === 'outside') return 'not plain';
    const write = (): PendingWrite => PendingWrite.whole(copyOf(bytes));
    if (look.kind === 'missing') {
      if (look.missing.directoryOnly && look.missing.parent !== undefined) throw new Refusal('EISDIR');
      this.nameNew(actor, look, bytes.length > 0 ? this.world.credentials.modeAfterWrite(mode) : mode, write());
      if (bytes.length > 0) this.world.watchers.changed(look.missing.path);
      return 'done';
    }
    if (exclusive) throw new Refusal('EEXIST');
    const { spot } = look, at = { path: spot.path, via: look.via };
    this.world.gate?.demand(actor, at, spot, WRITES, 'open');
    this.demandWritableFile(spot);
    this.guards?.demand(at, 'write', spot, 'open');
    this.replace(actor, spot, at, write());
    return 'done';
  }

  /**
   * The two commonest appends, without opening: to the file whose write is pending (a log that is written line by line), and the
   * first to a lower file. False where it is neither.
   */
  private appendPlainly(actor: string, path: PathName, bytes: Uint8Array): boolean {
    const { world } = this, isPlain = world.credentials.isRoot && bytes.length > 0 && this.guards === undefined;
    const glance = isPlain ? world.walker.glance(path) : undefined;
    if (glance === undefined) return false;
    if (glance.origin !== undefined) return this.appendToLower(actor, { path: glance.path, origin: glance.origin }, bytes);
    const pending = glance.node && world.session.pendingWrite(actor, glance.node, glance.path);
    if (pending === undefined || pending.size + bytes.length > MAX_FILE_BYTES) return false;
    this.demandGlanced(actor, glance, WRITES);
    world.session.demandRoom(bytes.length);
    pending.put(pending.size, bytes);
    world.session.grow(world.session.clock.nanoseconds());
    world.watchers.changed(glance.path);
    return true;
  }

  private appendToLower(actor: string, { path, origin }: { path: TreePath; origin: TreePath }, bytes: Uint8Array): boolean {
    const { world } = this, found = world.lower.slurp(origin, HASHED_BASE_BYTES);
    if (typeof found !== 'object' || !('kind' in found)) return false;
    if (found.kind === 'open' || found.attr.nlink > 1) {
      if (found.kind === 'open') found.close();
      return false;
    }
    this.demandGlanced(actor, { path, node: undefined, origin }, WRITES);
    const { attr } = found, version = world.contents.versionOfBytes(origin, attr, found.bytes), mtime = world.now();
    const write = attr.size <= WHOLE_BYTES ? PendingWrite.whole(found.bytes) : PendingWrite.over(lowerExtents(attr.size));
    write.secret = world.contents.isSecretOrigin(origin);
    write.put(attr.size, bytes);
    this.appendFirst(actor, { path, node: undefined, origin, attr }, { path, via: undefined }, write, { version, mtime });
    world.watchers.changed(path);
    return true;
  }

  /** Asks the rules about what a glance found; `found`: the lower file, which is closed where they deny. */
  private demandGlanced(actor: string, glance: Glance, does: readonly Operation[], found?: ReturnType<Lower['slurp']>): void {
    const { gate } = this.world, { path, node } = glance;
    if (gate === undefined) return;
    const spot: Spot = { path, node, origin: node?.origin ?? glance.origin, attr: undefined };
    try {
      gate.demand(actor, { path, via: undefined }, spot, does, 'open');
    } catch (error) {
      if (typeof found === 'object' && 'kind' in found && found.kind === 'open') found.close();
      throw error;
    }
  }

  /** Writes into an open file at `position`. The bytes are copied. */
  put(actor: string, inode: OpenInode, via: string | undefined, position: number, bytes: Uint8Array): void {
    if (position + bytes.length > MAX_FILE_BYTES) throw new Refusal('EFBIG');
    const { world } = this, { path } = inode, mtime = world.now();
    const pending = inode.node && world.session.pendingWrite(actor, inode.node, path);
    if (pending !== undefined && this.keepsMode(inode.node as Node)) {
      world.session.demandRoom(bytes.length);
      pending.put(position, bytes);
      world.session.grow(BigInt(mtime));
    } else if (inode.node === undefined && !inode.unlinked) {
      this.putFirst(actor, inode, via, position, bytes, mtime);
    } else {
      const node = inode.node ?? this.orphan(inode);
      world.session.publish();
      const write = this.onNode(node, inode.lowerFile);
      write.put(position, bytes);
      this.appendWrite(actor, node, { path, via }, write, { mtime, unlinked: inode.unlinked });
    }
    world.watchers.changed(path);
  }

  /** A descriptor for reading what a look-up found, unopened below until it is read: what a mount opens it often only keeps. */
  openLazily(actor: string, spot: Spot, flags = O_RDONLY): number {
    return this.describe(actor, this.hold(spot), undefined, flags);
  }

  /** open(2) of `/proc/self/fd/N`: what is held open once more, whatever its names. */
  reopen(actor: string, fd: number, flags: number): number {
    const { inode, via } = this.world.descriptors.get(fd), type = spotType(spotOf(inode)), truncates = (flags & O_TRUNC) !== 0;
    if (type === 'directory' && ((flags & O_ACCMODE) !== O_RDONLY || truncates)) throw new Refusal('EISDIR');
    if (type !== 'directory' && type !== 'file') throw new Refusal('ENXIO', { reason: `a ${type} is seen, never opened` });
    if (truncates && inode.unlinked) this.resizing.resizeOrphan(actor, inode.node ?? this.orphan(inode), { path: inode.path, via }, 0);
    else if (truncates) this.replace(actor, spotOf(inode), { path: inode.path, via }, PendingWrite.whole(new Uint8Array(0)));
    return this.describe(actor, this.world.inodes.hold(inode.key, () => inode), via, flags);
  }

  /** Content and size in bytes of an open file now. */
  sizeOf(inode: OpenInode): number {
    if (inode.node !== undefined) return this.world.attributes.sizeOf(inode.node);
    return inode.lowerFile === undefined ? (inode.attr as Attr).size : inode.lowerFile.restat().size;
  }

  /** One descriptor fewer. */
  close(fd: number): void {
    this.world.inodes.release(this.world.descriptors.remove(fd).inode);
  }

  /** The node of a lower file that lost its last name while open: known to its descriptors alone. */
  orphan(inode: OpenInode): Node {
    const file = inode.lowerFile, attr = file === undefined ? inode.attr as Attr : file.restat();
    const node = takenOver(this.world.state.owner, inode.origin, baseRecord(attr, {}));
    node.nlink = 0;
    return inode.node = node;
  }

  private readLower(actor: string, at: Observed & { origin: TreePath }, found: ReturnType<Lower['slurp']> | undefined,
    limit: number): Uint8Array | undefined {
    const { world } = this;
    const got = found ?? world.lower.slurp(at.origin, SLURP_BYTES);
    if (typeof got === 'string' || !('kind' in got)) throw notFound();
    if (got.kind === 'whole') {
      const { attr, bytes } = got;
      const version = world.contents.versionOfBytes(at.origin, attr, bytes);
      world.recorder.read(actor, at, { version, print: attr, size: bytes.length });
      return bytes;
    }
    try {
      if (got.attr.size > limit) return undefined;
      const bytes = readThrough(got, got.attr.size), { attr } = got;
      const known = bytes.length === attr.size ? world.contents.versionOfBytes(at.origin, attr, bytes) : undefined;
      world.recorder.read(actor, at, { version: known, print: attr, size: bytes.length });
      return bytes;
    } finally {
      got.close();
    }
  }

  private readNode(actor: string, node: Node, at: Observed, limit: number): Uint8Array | undefined {
    const { world } = this;
    if (limit !== Infinity && world.attributes.sizeOf(node) > limit) return undefined;
    world.session.publish();
    if (node.content.kind === 'lower') {
      const origin = node.origin as TreePath, found = world.lower.slurp(origin, SLURP_BYTES);
      if (typeof found === 'string' || !('kind' in found)) throw changedBelow(origin);
      return this.readLower(actor, { ...at, origin }, found, limit);
    }
    const bytes = copyOf(world.contents.whole(node, undefined));
    world.recorder.read(actor, at, { version: node.version, print: undefined, size: bytes.length });
    return bytes;
  }

  private create(actor: string, look: Look & { kind: 'missing' }, mode: number, write: PendingWrite): OpenInode {
    this.nameNew(actor, look, mode, write);
    const node = find(this.world.state, look.missing.path) as Node;
    return this.holdNode(node, look.missing.path);
  }

  /** Gives content to a name that is free. */
  nameNew(actor: string, look: Look & { kind: 'missing' }, mode: number, write: PendingWrite): void {
    const { world } = this, { missing, at } = world.vacant(actor, look, MAKES, 'open');
    this.guards?.demand(at, 'write', undefined, 'open');
    world.mutate(actor, {
      op: 'write', path: at.path, ...viaField(at), size: write.size, mode: world.newMode(missing.parent, S_IFREG | (mode & 0o7777)),
      ino: world.state.nextIno, created: world.ownerIn(missing.parent, missing.parentBelow), mtime: world.now(),
    }, write);
    world.watchers.renamed(at.path);
  }

  private openSpot(actor: string, spot: Spot, at: Observed, flags: number): OpenInode {
    const { world } = this, type = spotType(spot);
    this.world.gate?.demand(actor, at, spot, type === 'directory' ? LISTS : operationsOf(flags), 'open');
    const truncates = (flags & O_TRUNC) !== 0;
    const writes = (flags & O_ACCMODE) !== O_RDONLY || truncates, reads = (flags & O_ACCMODE) !== O_WRONLY;
    if (type === 'symlink') throw new Refusal((flags & O_DIRECTORY) !== 0 ? 'ENOTDIR' : 'ELOOP');
    if (type === 'directory') {
      if (writes || (flags & O_CREAT) !== 0) throw new Refusal('EISDIR');
      world.credentials.demand(spot, READ);
      return this.hold(spot);
    }
    if ((flags & O_DIRECTORY) !== 0) throw new Refusal('ENOTDIR');
    if (type !== 'file') throw new Refusal('ENXIO', { reason: `a ${type} is seen, never opened` });
    world.credentials.demand(spot, (reads ? READ : 0) | (writes ? WRITE : 0));
    if (writes) this.guards?.demand(at, 'write', spot, 'open');
    if (truncates) {
      const inode = this.hold(spot);
      this.replace(actor, { ...spot, node: inode.node }, at, PendingWrite.whole(new Uint8Array(0)));
      return inode;
    }
    const inode = this.hold(spot);
    if (inode.node !== undefined || inode.lowerFile !== undefined) return inode;
    try {
      this.world.openLower(inode);
      return inode;
    } catch (error) {
      this.world.inodes.release(inode);
      throw error;
    }
  }

  private hold(spot: Spot): OpenInode {
    if (spot.node !== undefined && spot.node.ino !== undefined) return this.holdNode(spot.node, spot.path);
    const attr = this.world.attributes.of(spot), key = linkKey(attr.dev, attr.ino);
    return this.world.inodes.hold(key, () => new OpenInode({ key, path: spot.path, node: spot.node, origin: spot.origin, attr }));
  }

  /** An open file that is `node`, whatever name leads to it. */
  holdNode(node: Node, path: TreePath): OpenInode {
    const key = inodeKeyOf(node);
    return this.world.inodes.hold(key, () => new OpenInode({ key, path, node, origin: node.origin, attr: undefined }));
  }

  /** A descriptor of an open file. */
  describe(actor: string, inode: OpenInode, via: string | undefined, flags: number): number {
    const access = flags & O_ACCMODE;
    return this.world.descriptors.add(new Descriptor({
      inode, actor, via, readable: access !== O_WRONLY, writable: access !== O_RDONLY,
      append: (flags & O_APPEND) !== 0, isDirectory: spotType(spotOf(inode)) === 'directory',
    }));
  }

  /** Throws EISDIR where a path ends in no name, so that only a directory can be meant; first its directory has to be there. */
  demandFileName(actor: string, path: PathName, { exclusive }: { exclusive: boolean }): void {
    if (!NO_FILE_NAME.test(path)) return;
    const look = this.world.lookParent(actor, path, 'open');
    if (look.kind === 'outside') return;
    if (look.kind !== 'missing') throw new Refusal(exclusive && look.kind === 'special' && !look.slash ? 'EEXIST' : 'EISDIR');
    throw this.world.missed(actor, look, MAKES, 'open');
  }

  private demandRegular(spot: Spot): void {
    const type = spotType(spot);
    if (type === 'directory') throw new Refusal('EISDIR');
    if (type !== 'file') throw new Refusal('ENXIO', { reason: `a ${type} is seen, never opened` });
  }

  /** Throws where a spot is no regular file, or may not be written. */
  demandWritableFile(spot: Spot): void {
    this.demandRegular(spot);
    this.world.credentials.demand(spot, WRITE);
  }

  /** Gives a file other content altogether; `splices`: what of it is other. */
  replace(actor: string, spot: Spot, at: Observed, write: PendingWrite, splices?: readonly Splice[]): void {
    const { world } = this, mtime = world.now();
    if (spot.node === undefined) {
      const { version, attr } = world.hashBase(spot);
      this.appendFirst(actor, { ...spot, attr }, at, write, { version, mtime, splices });
    } else {
      world.session.publish();
      this.appendWrite(actor, spot.node, at, write, { mtime, splices });
    }
    world.watchers.changed(at.path);
  }

  private putFirst(actor: string, inode: OpenInode, via: string | undefined, position: number, bytes: Uint8Array, mtime: string): void {
    const spot = spotOf(inode), { version, bytes: old, attr } = this.world.hashBase(spot, inode.lowerFile);
    const write = attr.size <= WHOLE_BYTES && old !== undefined ? PendingWrite.whole(old) : PendingWrite.over(lowerExtents(attr.size));
    write.secret = this.world.contents.isSecretOrigin(spot.origin as TreePath);
    write.put(position, bytes);
    this.appendFirst(actor, { ...spot, attr }, { path: inode.path, via }, write, { version, mtime });
  }

  private appendFirst(actor: string, spot: Spot, at: Observed, write: PendingWrite,
    { version, mtime, splices }: { version: Version | undefined; mtime: string; splices?: readonly Splice[] | undefined }): void {
    const attr = spot.attr as Attr, lower = this.world.base(spot, version);
    this.world.mutate(actor, {
      op: 'write', path: at.path, ...viaField(at), size: write.size, mode: this.world.credentials.modeAfterWrite(attr.mode), ino: inodeRecord(attr.ino),
      mtime, ...(lower === undefined ? undefined : { lower }), ...(version === undefined ? undefined : { before: version }),
      ...(splices === undefined ? undefined : { splices }),
    }, write);
  }

  private appendWrite(actor: string, node: Node, at: Observed, write: PendingWrite,
    { mtime, unlinked, splices }: { mtime: string; unlinked?: boolean; splices?: readonly Splice[] | undefined }): void {
    const before = node.version;
    const body: WriteBody = {
      op: 'write', path: at.path, ...viaField(at), size: write.size, mode: this.world.credentials.modeAfterWrite(node.mode as number),
      ...(unlinked === true ? this.world.identity(node) : this.world.changedBy(at.path, node)), mtime, ...(before === undefined ? undefined : { before }),
      ...(splices === undefined ? undefined : { splices }), ...(unlinked === true ? { unlinked: true } : undefined),
    };
    this.world.mutate(actor, body, write, unlinked === true ? node : undefined);
  }

  private onNode(node: Node, open: LowerFile | undefined): PendingWrite {
    const size = this.world.attributes.sizeOf(node);
    const write = size > WHOLE_BYTES ? PendingWrite.over(extentsOf(node))
      : PendingWrite.whole(copyOf(this.world.contents.whole(node, open)));
    write.secret = this.world.contents.isSecret(node);
    return write;
  }

  private keepsMode(node: Node): boolean {
    return node.mode === this.world.credentials.modeAfterWrite(node.mode as number);
  }
}

/** A copy of its own. (slice() of a Buffer costs half as much again, since it asks for the species.) */
function copyOf(bytes: Uint8Array): Uint8Array {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  copy.set(bytes);
  return copy;
}

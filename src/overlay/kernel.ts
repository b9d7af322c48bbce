import { constants } from 'node:fs';
import { sameFingerprint, type Attr } from '../core/attr.ts';
import type { PathName, TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import type { LowerStatFs } from '../lower/lower.ts';
import { originOf } from './attributes.ts';
import { copyFile } from './copy.ts';
import type { Descriptor } from './descriptor.ts';
import { Files } from './files.ts';
import { Guards } from './guards.ts';
import { Metadata } from './metadata.ts';
import { Namespace } from './namespace.ts';
import { Ranges } from './ranges.ts';
import { Reading } from './reading.ts';
import type { Observed } from './recorder.ts';
import { notFound, outsideTree } from './refusals.ts';
import { ALTERS, READS, STATS } from './ruling.ts';
import { spotType, type Look, type Spot } from './spot.ts';
import { FIRST_DESCRIPTOR, type System, type SystemEntry, type SystemTime, type WatchListener } from './system.ts';
import { spotOf, type World } from './world.ts';
import { Unnamed } from './unnamed.ts';
import { XattrCalls } from './xattrs.ts';
import { find } from '../core/state.ts';
import { Node } from '../core/tree.ts';
import type { OpenInode } from './inode.ts';

const READING = constants.O_RDONLY;

/** The overlay's system calls for one actor: looks up, checks, lets the part that knows the matter decide and record. */
export class Kernel implements System {
  private readonly world: World;
  private readonly actor: string;
  private readonly files: Files;
  private readonly reading: Reading;
  private readonly namespace: Namespace;
  private readonly metadata: Metadata;
  private readonly ranges: Ranges;
  private readonly unnamed: Unnamed;
  readonly xattrs: XattrCalls;
  /** What looks repeated on a timer showed last, by path as asked. */
  private readonly repeated = new Map<PathName, Attr | 'nothing'>();

  /** `guarded`: whether what its actor has seen decides what its calls may change. */
  constructor(world: World, actor: string, { guarded } = { guarded: world.guardsCalls }) {
    const guards = guarded ? new Guards(world, actor) : undefined;
    this.world = world;
    this.actor = actor;
    this.files = new Files(world, guards);
    this.reading = new Reading(world);
    this.namespace = new Namespace(world, guards);
    this.ranges = new Ranges(world, this.files, this.reading);
    this.unnamed = new Unnamed(world, this.files, this.namespace);
    const metadata = this.metadata = new Metadata(world, guards);
    this.xattrs = new XattrCalls({ world, actor, metadata, held: (target, call, options) => {
      const changes = call === 'setxattr' || call === 'removexattr';
      if (typeof target === 'number') return this.held(target, changes ? call : undefined);
      return { ...world.must(actor, target, call, { ...options, does: changes ? ALTERS : STATS }), unlinked: false };
    } });
  }

  open(path: PathName, flags: number, mode: number): number {
    return this.files.open(this.actor, path, flags, mode, (outside) =>
      this.world.beyond(this.actor, outside, 'open', (beyond) => beyond.open(outside, flags)));
  }

  reopen(fd: number, flags: number): number {
    return this.files.reopen(this.actor, fd, flags);
  }

  close(fd: number): void {
    if (this.isReal(fd)) this.world.outside.close(fd);
    else this.files.close(fd);
  }

  read(fd: number, into: Uint8Array, offset: number, length: number, position: number | null): number {
    if (this.isReal(fd)) return this.world.outside.read(fd, into, offset, length, position);
    return this.reading.read(this.descriptor(fd), into, offset, length, position);
  }

  async readLater(fd: number, into: Uint8Array, offset: number, length: number, position: number | null): Promise<number> {
    if (this.isReal(fd)) return this.world.outside.read(fd, into, offset, length, position);
    return this.reading.readLater(this.descriptor(fd), into, offset, length, position);
  }

  write(fd: number, from: Uint8Array, offset: number, length: number, position: number | null): number {
    if (this.isReal(fd)) return this.world.outside.write(fd, from, offset, length, position);
    const d = this.writable(fd);
    if (length === 0) return 0;
    const at = d.append ? this.files.sizeOf(d.inode) : position ?? d.position;
    this.files.put(this.actor, d.inode, d.via, at, from.subarray(offset, offset + length));
    // pwrite(2) never moves the descriptor's own position, not even where O_APPEND chose another place to write.
    if (position === null) d.position = at + length;
    return length;
  }

  ftruncate(fd: number, size: number): void {
    if (this.isReal(fd)) throw new Refusal('EINVAL');
    const d = this.descriptor(fd);
    if (!d.writable || d.isDirectory) throw new Refusal('EINVAL');
    const { spot, at, unlinked } = this.held(fd);
    this.files.resizing.resize(this.actor, spot, at, size, unlinked);
  }

  fsync(fd: number): void {
    if (this.isReal(fd)) return this.world.outside.fsync(fd);
    this.descriptor(fd);
    this.world.session.sync();
  }

  fstat(fd: number): Attr {
    if (this.isReal(fd)) return this.world.outside.fstat(fd);
    const { inode } = this.descriptor(fd), { node } = this.spotOf(inode);
    if (node !== undefined) {
      const attr = this.world.attributes.ofNode(node);
      return inode.unlinked && node.type === 'directory' ? { ...attr, nlink: 0 } : attr;
    }
    const attr = inode.lowerFile === undefined ? this.directoryAttr(inode.origin, inode.attr as Attr) : inode.lowerFile.restat();
    return inode.unlinked ? { ...attr, nlink: 0 } : attr;
  }

  fchmod(fd: number, mode: number): void {
    const { spot, at, unlinked } = this.held(fd, 'fchmod');
    this.metadata.chmod(this.actor, spot, at, mode, unlinked);
  }

  fchown(fd: number, uid: number, gid: number): void {
    const { spot, at, unlinked } = this.held(fd, 'fchown');
    this.metadata.chown(this.actor, spot, at, uid, gid, unlinked);
  }

  futimes(fd: number, atime: SystemTime, mtime: SystemTime): void {
    const { spot, at, unlinked } = this.held(fd, 'futime');
    this.metadata.utimes(this.actor, spot, at, { atime, mtime }, unlinked);
  }

  fallocate(fd: number, mode: number, offset: number, length: number): void {
    this.ranges.allocate(this.actor, { descriptor: this.descriptor(fd), ...this.held(fd) }, mode, offset, length);
  }

  seek(fd: number, offset: number, wanted: 'data' | 'hole'): number {
    return this.ranges.seek(this.descriptor(fd), offset, wanted);
  }

  copyRange(from: number, fromAt: number | null, to: number, toAt: number | null, length: number): number {
    return this.ranges.copy(this.actor, { from: this.descriptor(from), fromAt, to: this.descriptor(to), toAt, length });
  }

  tmpfile(path: PathName, flags: number, mode: number): number {
    return this.unnamed.open(this.actor, path, flags, mode);
  }

  linkOpen(fd: number, to: PathName): void {
    this.unnamed.link(this.actor, this.descriptor(fd).inode, this.held(fd), to);
  }

  readFile(path: PathName, flags: number): Uint8Array;
  readFile(path: PathName, flags: number, limit: number): Uint8Array | number;
  readFile(path: PathName, flags: number, limit = Infinity): Uint8Array | number {
    if (flags === READING) {
      const bytes = this.files.readFile(this.actor, path, limit);
      if (bytes !== undefined) return bytes;
    }
    const fd = this.open(path, flags, 0o666);
    let kept = false;
    try {
      kept = limit !== Infinity && this.fstat(fd).size > limit;
      return kept ? fd : this.readAll(fd);
    } finally {
      if (!kept) this.close(fd);
    }
  }

  writeFile(path: PathName, bytes: Uint8Array, flags: number, mode: number): void {
    if (this.files.writeFile(this.actor, path, bytes, flags, mode) === 'done') return;
    const fd = this.open(path, flags, mode);
    try {
      for (let at = 0; at < bytes.length;) at += this.write(fd, bytes, at, bytes.length - at, null);
    } finally {
      this.close(fd);
    }
  }

  copyFile(from: PathName, to: PathName, options: { exclusive: boolean }): void {
    copyFile(this, {
      demandFileName: () => this.files.demandFileName(this.actor, to, options),
      quietly: (path) => this.quietly(path), readAll: (fd) => this.readAll(fd),
    }, from, to, options);
  }

  stat(path: PathName): Attr | undefined {
    return this.statAt(path, { follow: true, call: 'stat' });
  }

  lstat(path: PathName): Attr | undefined {
    return this.statAt(path, { follow: false, call: 'lstat' });
  }

  mustStat(path: PathName, options: { follow: boolean; repeated?: boolean }): Attr {
    const call = options.follow ? 'stat' : 'lstat', look = this.world.look(this.actor, path, call, options);
    if (look.kind === 'outside') {
      const attr = this.world.beyond(this.actor, look.outside, call, (outside) => outside.stat(look.outside, options));
      if (attr === undefined) throw notFound();
      return attr;
    }
    if (options.repeated !== true || this.isNews(path, look)) {
      const attr = this.attrOf(look, call);
      if (attr !== undefined) return attr;
    }
    if (look.kind === 'missing') throw notFound();
    if (this.isDenied(look.spot)) throw new Refusal('EACCES', { fsCode: 'FS_PERMISSION_DENIED' });
    return this.world.attributes.of(look.spot);
  }

  exists(path: PathName): boolean {
    try {
      return this.statAt(path, { follow: true, call: 'access' }) !== undefined;
    } catch (error) {
      if (error instanceof Refusal && /^(ELOOP|EACCES|ENAMETOOLONG|ENOENT|ENOTDIR)$/.test(error.code)) return false;
      throw error;
    }
  }

  access(path: PathName, mode: number): void {
    const look = this.world.look(this.actor, path, 'access', { follow: true });
    if (look.kind === 'outside') {
      return this.world.beyond(this.actor, look.outside, 'access', (outside) => outside.access(look.outside, mode));
    }
    if (look.kind === 'spot') this.demandAccess(look.spot, look.via, mode);
    if (this.attrOf(look, 'access') === undefined) throw notFound();
  }

  readdir(path: PathName): readonly SystemEntry[] {
    return this.namespace.readdir(this.actor, path, (outside) =>
      this.world.beyond(this.actor, outside, 'scandir', (beyond) => beyond.readdir(outside)));
  }

  readlink(path: PathName): string {
    const look = this.world.look(this.actor, path, 'readlink', { follow: false });
    if (look.kind === 'outside') return this.world.beyond(this.actor, look.outside, 'readlink', (outside) => outside.readlink(look.outside));
    if (look.kind === 'missing') throw this.world.missed(this.actor, look, READS, 'readlink');
    const { spot } = look;
    this.world.gate?.demand(this.actor, { path: spot.path, via: look.via }, spot, READS, 'readlink');
    if (spotType(spot) !== 'symlink') throw new Refusal('EINVAL');
    const target = spot.node?.target ?? this.world.lower.readlink(originOf(spot) as TreePath);
    this.world.recorder.readlink(this.actor, { path: spot.path, via: look.via }, target);
    return target;
  }

  realpath(path: PathName): string {
    const look = this.world.look(this.actor, path, 'realpath', { follow: true });
    if (look.kind === 'outside') return this.world.beyond(this.actor, look.outside, 'realpath', (outside) => outside.realpath(look.outside));
    if (this.attrOf(look, 'realpath') === undefined || look.kind !== 'spot') throw notFound();
    return this.world.walker.seenAs(look.spot.path);
  }

  statfs(path: PathName): LowerStatFs {
    const look = this.world.look(this.actor, path, 'statfs', { follow: true });
    if (look.kind === 'outside') return this.world.beyond(this.actor, look.outside, 'statfs', (outside) => outside.statfs(look.outside));
    if (look.kind === 'missing') throw this.world.missed(this.actor, look, STATS, 'statfs');
    this.world.gate?.demand(this.actor, { path: look.spot.path, via: look.via }, look.spot, STATS, 'statfs');
    return this.world.lower.statfs();
  }

  mkdir(path: PathName, mode: number): void {
    this.namespace.mkdir(this.actor, path, mode);
  }

  mknod(path: PathName, mode: number, rdev: number): void {
    this.namespace.mknod(this.actor, path, mode, rdev);
  }

  symlink(target: string, path: PathName): void {
    this.namespace.symlink(this.actor, target, path);
  }

  link(from: PathName, to: PathName): void {
    this.namespace.link(this.actor, from, to);
  }

  rename(from: PathName, to: PathName, options: { exchange?: boolean; noReplace?: boolean } = {}): void {
    this.namespace.rename(this.actor, from, to, options);
  }

  unlink(path: PathName): void {
    this.namespace.unlink(this.actor, path);
  }

  rmdir(path: PathName): void {
    this.namespace.rmdir(this.actor, path);
  }

  truncate(path: PathName, size: number): void {
    const fd = this.open(path, constants.O_WRONLY, 0);
    try {
      this.ftruncate(fd, size);
    } finally {
      this.close(fd);
    }
  }

  chmod(path: PathName, mode: number, options: { follow: boolean }): void {
    const { spot, at } = this.world.must(this.actor, path, 'chmod', { ...options, does: ALTERS });
    this.metadata.chmod(this.actor, spot, at, mode, false);
  }

  chown(path: PathName, uid: number, gid: number, options: { follow: boolean }): void {
    const { spot, at } = this.world.must(this.actor, path, options.follow ? 'chown' : 'lchown', { ...options, does: ALTERS });
    this.metadata.chown(this.actor, spot, at, uid, gid, false);
  }

  utimes(path: PathName, atime: SystemTime, mtime: SystemTime, options: { follow: boolean }): void {
    // As utimensat(2): with nothing to do, not even the path is looked at.
    if (atime === 'omit' && mtime === 'omit') return;
    const { spot, at } = this.world.must(this.actor, path, options.follow ? 'utime' : 'lutime', { ...options, does: ALTERS });
    this.metadata.utimes(this.actor, spot, at, { atime, mtime }, false);
  }

  watch(
    path: PathName, options: { recursive: boolean }, changed: WatchListener, failed?: (fault: unknown) => void,
  ): { close(): void } {
    const look = this.world.look(this.actor, path, 'watch', { follow: true });
    if (look.kind === 'outside') {
      return this.world.beyond(this.actor, look.outside, 'watch', (outside) => outside.watch(look.outside, options, changed));
    }
    if (look.kind === 'missing') throw this.world.missed(this.actor, look, STATS, 'watch');
    this.world.gate?.demand(this.actor, { path: look.spot.path, via: look.via }, look.spot, STATS, 'watch');
    const { spot } = look, origin = spot.node?.opaque === true ? undefined : originOf(spot);
    const isDirectory = spotType(spot) === 'directory';
    return this.world.watchers.watch(spot.path, origin, { ...options, isDirectory }, { changed, failed });
  }

  cwd(): string {
    return process.cwd();
  }

  /** Attributes without an event: for a call that is recorded by what it does. */
  private quietly(path: PathName): Attr | undefined {
    const look = this.world.walker.look(path, { follow: true });
    return look.kind === 'spot' ? this.world.attributes.of(look.spot) : undefined;
  }

  private isReal(fd: number): boolean {
    return fd < FIRST_DESCRIPTOR && this.world.outside.owns(fd);
  }

  private descriptor(fd: number): Descriptor {
    return this.world.descriptors.get(fd);
  }

  private writable(fd: number): Descriptor {
    const d = this.descriptor(fd);
    if (!d.writable) throw new Refusal('EBADF');
    return d;
  }

  /** What a descriptor holds as a look-up would find it; a directory's node may have come after the descriptor. */
  private spotOf(inode: OpenInode): Spot {
    const spot = spotOf(inode);
    if (inode.lowerFile !== undefined || inode.unlinked || (spot.node !== undefined && spot.node.type !== 'directory')) return spot;
    const found = find(this.world.state, inode.path);
    return found instanceof Node ? { ...spot, node: found } : spot;
  }

  /** `call`: one that changes attributes, which rules may deny; what was opened for writing may be written. */
  private held(fd: number, call?: string): { spot: Spot; at: Observed; unlinked: boolean } {
    if (this.isReal(fd)) throw outsideTree();
    const { inode, via } = this.descriptor(fd);
    // A lower file that has lost its last name becomes a node of its own before it changes.
    if (inode.unlinked && inode.node === undefined) this.files.orphan(inode);
    const spot = this.spotOf(inode), at = { path: spot.path, via };
    if (call !== undefined) this.world.gate?.demand(this.actor, at, spot, ALTERS, call);
    return { spot, at, unlinked: inode.unlinked };
  }

  private directoryAttr(origin: TreePath | undefined, opened: Attr): Attr {
    const attr = origin === undefined ? 'absent' : this.world.lower.lstat(origin);
    return typeof attr === 'string' ? opened : attr;
  }

  private statAt(path: PathName, options: { follow: boolean; call: string }): Attr | undefined {
    if (path === '') return undefined;
    const look = this.world.look(this.actor, path, options.call, options);
    if (look.kind === 'outside') {
      return this.world.beyond(this.actor, look.outside, options.call, (outside) => outside.stat(look.outside, options));
    }
    return this.attrOf(look, options.call);
  }

  /** Attributes of what is there, recorded as a stat; `undefined` where nothing is, recorded as a miss. */
  private attrOf(look: Exclude<Look, { kind: 'outside' }>, call: string): Attr | undefined {
    if (look.kind === 'missing') {
      this.world.missed(this.actor, look, STATS, call);
      return undefined;
    }
    this.world.gate?.demand(this.actor, { path: look.spot.path, via: look.via }, look.spot, STATS, call);
    const attr = this.world.attributes.of(look.spot);
    this.world.recorder.stat(this.actor, { path: look.spot.path, via: look.via }, attr);
    return attr;
  }

  /** Whether a look repeated on a timer shows something else than the last one did: only then is it worth an event. */
  private isNews(path: PathName, look: Exclude<Look, { kind: 'outside' }>): boolean {
    const attr = look.kind === 'spot' && !this.isDenied(look.spot) ? this.world.attributes.of(look.spot) : undefined;
    const last = this.repeated.get(path);
    this.repeated.set(path, attr ?? 'nothing');
    if (last === undefined || attr === undefined || last === 'nothing') return last !== (attr ?? 'nothing');
    return !sameFingerprint(last, attr) || last.mode !== attr.mode;
  }

  /** access(2) asks for what may be done later, which rules may deny; done it is not. */
  private demandAccess(spot: Spot, via: string | undefined, mode: number): void {
    const { gate } = this.world;
    for (const operation of ['read', 'write'] as const) {
      const wanted = (mode & (operation === 'read' ? constants.R_OK : constants.W_OK)) !== 0;
      if (wanted && gate?.denies(spot, operation) === true) gate.demand(this.actor, { path: spot.path, via }, spot, [operation], 'access');
    }
    this.metadata.access(spot, mode);
  }

  private isDenied(spot: Spot): boolean {
    return this.world.gate?.denies(spot, 'stat') === true;
  }

  private readAll(fd: number): Uint8Array {
    const chunks: Uint8Array[] = [];
    const size = this.fstat(fd).size;
    for (let length = Math.max(size + 1, 8192); ; length = 65536) {
      const bytes = Buffer.allocUnsafeSlow(length), count = this.read(fd, bytes, 0, length, null);
      if (count === 0) return chunks.length === 1 ? chunks[0] as Uint8Array : Buffer.concat(chunks);
      chunks.push(bytes.subarray(0, count));
    }
  }
}

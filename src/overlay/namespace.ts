import { S_IFMT, typeBits, typeOf } from '../core/attr.ts';
import { byteLength, childOf, isWithin, PATH_MAX_BYTES, type PathName, type TreePath } from '../core/path.ts';
import { Refusal, type ErrnoCode } from '../core/refusal.ts';
import type { Version } from '../core/version.ts';
import { inodeRecord, originOf } from './attributes.ts';
import type { Gate } from './gate.ts';
import type { Guards } from './guards.ts';
import { versionOfList } from './hash.ts';
import { READ, WRITE } from './permission.ts';
import { viaField, type Observed } from './recorder.ts';
import { notFound } from './refusals.ts';
import { CREATES, DELETES, LINKS, LISTS, MAKES, RENAMES, REPLACES, type Operation } from './ruling.ts';
import { Sieve } from './sieve.ts';
import { spotType, type Missing, type ParentLook, type Spot } from './spot.ts';
import type { SystemEntry } from './system.ts';
import type { World } from './world.ts';

type Named = ParentLook & { kind: 'parent' };

/** Of a name whose directory is not there: it could neither come nor go. */
const NAMES: readonly Operation[] = ['create', 'delete'];

/** Names: what comes, goes and moves, and what a directory lists. */
export class Namespace {
  private readonly world: World;

  private readonly sieve: Sieve | undefined;

  private readonly guards: Guards | undefined;

  constructor(world: World, guards?: Guards) {
    this.world = world;
    this.guards = guards;
    this.sieve = world.gate && new Sieve(world, world.gate);
  }

  mkdir(actor: string, path: PathName, mode: number): void {
    const { world } = this, { parent, at } = this.vacancy(actor, path, 'mkdir', { directory: true });
    const setgid = world.attributes.of(parent).mode & 0o2000;
    const bits = (mode & 0o1777 & ~world.credentials.umask) | setgid;
    world.mutate(actor, {
      op: 'mkdir', path: at.path, ...viaField(at), mode: typeBits('directory') | bits, ino: world.state.nextIno,
      ...world.ownerIn(parent), mtime: world.now(),
    });
    world.watchers.renamed(at.path);
  }

  mknod(actor: string, path: PathName, mode: number, rdev: number): void {
    const { world } = this, { parent, at } = this.vacancy(actor, path, 'mknod', { directory: false });
    const type = (mode & S_IFMT) === 0 ? 'file' : typeOf(mode);
    if (type === 'directory' || type === 'symlink') throw new Refusal('EINVAL');
    if ((type === 'block' || type === 'character') && !world.credentials.isRoot) throw new Refusal('EPERM');
    world.mutate(actor, {
      op: 'mknod', path: at.path, ...viaField(at), type, mode: world.newMode(parent, typeBits(type) | (mode & 0o7777)),
      rdev: type === 'block' || type === 'character' ? rdev : 0, ino: world.state.nextIno, ...world.ownerIn(parent), mtime: world.now(),
    });
    world.watchers.renamed(at.path);
  }

  symlink(actor: string, target: string, path: PathName): void {
    if (target === '') throw notFound();
    if (byteLength(target) >= PATH_MAX_BYTES) throw new Refusal('ENAMETOOLONG');
    const { world } = this, { parent, at } = this.vacancy(actor, path, 'symlink', { directory: false });
    world.mutate(actor, {
      op: 'symlink', path: at.path, ...viaField(at), target, ino: world.state.nextIno, ...world.ownerIn(parent),
      mtime: world.now(),
    });
    world.watchers.renamed(at.path);
  }

  link(actor: string, from: PathName, to: PathName): void {
    this.linkTo(actor, this.world.must(actor, from, 'link', { follow: false, does: LINKS }), to);
  }

  /** A further name for what was found, or is held open and still has a name. */
  linkTo(actor: string, { spot, at }: { spot: Spot; at: Observed }, to: PathName): void {
    const { world } = this;
    const target = this.vacancy(actor, to, 'link', { directory: false }).at;
    if (spotType(spot) === 'directory') throw new Refusal('EPERM');
    this.sieve?.demandMovable(actor, spot, target.path, 'link');
    const attr = world.attributes.of(spot), lower = world.base(spot);
    world.mutate(actor, {
      op: 'link', path: spot.path, ...viaField(at), to: target.path,
      ...(spot.node === undefined ? { ino: inodeRecord(attr.ino) } : world.identity(spot.node)), mtime: world.now(),
      ...(lower === undefined ? undefined : { lower }),
    });
    world.watchers.renamed(target.path);
    world.watchers.changed(spot.path);
  }

  unlink(actor: string, path: PathName): void {
    const { world } = this, named = this.named(actor, path, 'unlink', { special: { '/': 'EISDIR', '.': 'EISDIR', '..': 'EISDIR' } });
    const { spot, at } = this.present(actor, named, DELETES, 'unlink');
    const isDirectory = spotType(spot) === 'directory';
    if (named.slash) throw new Refusal(isDirectory ? 'EISDIR' : 'ENOTDIR');
    this.demandRemovable(named.parent, spot);
    if (isDirectory) throw new Refusal('EISDIR');
    this.guards?.demand(at, 'delete', spot, 'unlink');
    this.remove(actor, named, spot, at);
    world.watchers.renamed(spot.path);
  }

  rmdir(actor: string, path: PathName): void {
    const { world } = this, named = this.named(actor, path, 'rmdir', { special: { '/': 'EBUSY', '.': 'EINVAL', '..': 'ENOTEMPTY' } });
    const { spot, at } = this.present(actor, named, DELETES, 'rmdir');
    this.demandRemovable(named.parent, spot);
    if (spotType(spot) !== 'directory') throw new Refusal('ENOTDIR');
    this.demandEmpty(actor, spot, 'rmdir');
    this.guards?.demand(at, 'delete', spot, 'rmdir');
    this.remove(actor, named, spot, at);
    world.watchers.renamed(spot.path);
  }

  /** rename(2) and renameat2(2), with Linux's own order of refusals. */
  rename(actor: string, from: PathName, to: PathName, options: { exchange?: boolean; noReplace?: boolean }): void {
    if (options.exchange === true && options.noReplace === true) throw new Refusal('EINVAL');
    const { world } = this, a = world.lookParent(actor, from, 'rename');
    if (a.kind === 'missing') throw world.missed(actor, a, RENAMES, 'rename');
    const b = world.lookParent(actor, to, 'rename');
    if (b.kind === 'missing') throw world.missed(actor, b, MAKES, 'rename');
    if (a.kind === 'outside') return world.refuseBeyond(actor, a.outside, 'rename', { follow: false, named: a.named });
    if (b.kind === 'outside') return world.beyond(actor, b.named, 'rename', (outside) => { throw outside.boundary(); });
    if (a.kind === 'special' || b.kind === 'special') throw new Refusal('EBUSY');
    const { spot: source, at } = this.present(actor, a, RENAMES, 'rename'), sourceType = spotType(source);
    const found = world.walker.child(b.parent, b.name), target = 'parent' in found ? undefined : found, { path } = found;
    if (world.gate !== undefined) this.demandTarget(actor, found, b.via, { isFile: sourceType !== 'directory', exchange: options.exchange === true });
    if (options.noReplace === true && target !== undefined) throw new Refusal('EEXIST');
    if (options.exchange === true && target === undefined) throw world.missed(actor, { missing: found as Missing, via: b.via }, RENAMES, 'rename');
    if (sourceType !== 'directory' && (a.slash || (b.slash && options.exchange !== true))) throw new Refusal('ENOTDIR');
    if (isBelow(path, source.path)) throw new Refusal('EINVAL');
    if (isBelow(source.path, path)) throw new Refusal(options.exchange === true ? 'EINVAL' : 'ENOTEMPTY');
    if (target !== undefined && (path === source.path || this.isSameFile(source, target))) return;
    this.demandRemovable(a.parent, source);
    if (target === undefined) world.demandWritable(b.parent);
    else this.demandRemovable(b.parent, target);
    const replaced = options.exchange === true ? undefined : target;
    if (replaced !== undefined && sourceType === 'directory' && spotType(replaced) !== 'directory') throw new Refusal('ENOTDIR');
    if (replaced !== undefined && sourceType !== 'directory' && spotType(replaced) === 'directory') throw new Refusal('EISDIR');
    if (a.parent.path !== b.parent.path) {
      this.demandMovable(source);
      if (target !== undefined && options.exchange === true) this.demandMovable(target);
    }
    if (replaced !== undefined && sourceType === 'directory') this.demandEmpty(actor, replaced, 'rename');
    this.sieve?.demandMovable(actor, source, path, 'rename');
    if (target !== undefined && options.exchange === true) this.sieve?.demandMovable(actor, target, source.path, 'rename');
    this.guards?.demand(at, 'rename', source, 'rename');
    this.guards?.demand({ path, via: b.via }, options.exchange === true ? 'rename' : 'write', target, 'rename');
    this.move(actor, { named: a, source, at }, path, target, options.exchange === true);
  }

  /** Names and types in the directory at `path`; the listing is recorded. */
  readdir(actor: string, path: PathName, outside: (path: string) => readonly SystemEntry[]): readonly SystemEntry[] {
    const { world } = this, look = world.look(actor, path, 'scandir', { follow: true });
    if (look.kind === 'outside') return outside(look.outside);
    if (look.kind === 'missing') throw world.missed(actor, look, LISTS, 'scandir');
    const { spot } = look;
    world.gate?.demand(actor, { path: spot.path, via: look.via }, spot, LISTS, 'scandir');
    if (spotType(spot) !== 'directory') throw new Refusal('ENOTDIR');
    world.credentials.demand(spot, READ);
    const entries = this.entries(spot);
    const version = versionOfList(entries);
    world.recorder.list(actor, { path: spot.path, via: look.via }, version, entries.length, this.lowerList(spot, version));
    return entries;
  }

  /** The version of what the lower itself lists there, where that is not `shown`. */
  lowerList(spot: Spot, shown: Version): Version | undefined {
    const { node } = spot, origin = originOf(spot);
    if (origin === undefined || node?.opaque === true) return undefined;
    if (this.sieve === undefined && (node?.names === undefined || node.names.size === 0)) return undefined;
    const version = versionOfList(this.world.shownThrough(origin));
    return version === shown ? undefined : version;
  }

  /** What a directory shows, by the bytes of the names. Nothing is recorded. */
  entries(spot: Spot): readonly SystemEntry[] {
    const entries = this.world.entries(spot);
    return this.sieve === undefined ? entries : this.sieve.shown(spot, entries);
  }

  private move(actor: string, from: { named: Named; source: Spot; at: Observed }, to: TreePath, target: Spot | undefined, exchange: boolean): void {
    const { world } = this, { named, source, at } = from, lower = world.base(source), onto = target && world.base(target);
    if (target !== undefined && !exchange) this.forget(target);
    const whiteout = !exchange && this.hides(named, source);
    world.mutate(actor, {
      op: 'rename', path: source.path, ...viaField(at), to, ...(exchange ? { exchange: true } : undefined), mtime: world.now(),
      ...(lower === undefined ? undefined : { lower }), ...(onto === undefined ? undefined : { onto }),
      ...(whiteout ? { whiteout: true } : undefined),
    });
    world.inodes.moved(source.path, to, exchange);
    world.watchers.renamed(source.path);
    world.watchers.renamed(to);
  }

  private remove(actor: string, named: Named, spot: Spot, at: Observed): void {
    const { world } = this, lower = world.base(spot);
    const whiteout = this.hides(named, spot);
    this.forget(spot);
    world.mutate(actor, {
      op: 'delete', path: spot.path, ...viaField(at), mtime: world.now(), ...(whiteout ? { whiteout: true } : undefined),
      ...(lower === undefined ? undefined : { lower }),
    });
  }

  /** Descriptors that hold what is about to lose its name: with its last one, the file is theirs alone. */
  private forget(spot: Spot): void {
    if (this.world.inodes.size === 0) return;
    const nlink = this.world.attributes.of(spot).nlink, isDirectory = spotType(spot) === 'directory';
    for (const inode of this.world.inodes.at(spot.path)) {
      if (!isDirectory && nlink > 1) continue;
      inode.unlinked = true;
      if (isDirectory) inode.node = spot.node;
    }
    if (spot.node !== undefined && nlink <= 1) {
      for (const inode of this.world.inodes.values()) if (inode.node === spot.node) inode.unlinked = true;
    }
  }

  /** Whether the lower has something under the name of a spot, which has to stay hidden when the name goes. */
  private hides({ parent, name }: Named, spot: Spot): boolean {
    if (spot.node === undefined) return true;
    const natural = parent.node !== undefined ? parent.node.below(name) : childOf(parent.origin as TreePath, name);
    return natural !== undefined && typeof this.world.lower.lstat(natural) !== 'string';
  }

  /** Where a name is to come or go. `special`: what the call says of a path that ends in no name. */
  private named(actor: string, path: PathName, call: string, { special }: { special: Record<'/' | '.' | '..', ErrnoCode> }): Named {
    const look = this.world.lookParent(actor, path, call);
    if (look.kind === 'missing') throw this.world.missed(actor, look, NAMES, call);
    if (look.kind === 'outside') return this.world.refuseBeyond(actor, look.outside, call, { follow: false, named: look.named });
    if (look.kind === 'special') throw new Refusal(special[look.last]);
    return look;
  }

  /** What goes by a name. A miss is recorded before ENOENT is thrown. */
  private present(actor: string, { parent, name, via }: Named, does: readonly Operation[], call: string): { spot: Spot; at: Observed } {
    const found = this.world.walker.child(parent, name);
    if ('parent' in found) throw this.world.missed(actor, { missing: found, via }, does, call);
    const at = { path: found.path, via };
    this.world.gate?.demand(actor, at, found, does, call);
    return { spot: found, at };
  }

  /** A place for something new. Throws EEXIST where something is, ENOENT where only a directory could be, and is not wanted. */
  vacancy(actor: string, path: PathName, call: string, wanted: { directory: boolean }): { parent: Spot; at: Observed } {
    const named = this.named(actor, path, call, { special: { '/': 'EEXIST', '.': 'EEXIST', '..': 'EEXIST' } });
    const found = this.world.walker.child(named.parent, named.name);
    if (!('parent' in found)) throw new Refusal('EEXIST');
    if (named.slash && !wanted.directory) throw notFound();
    this.world.gate?.demandVacant(actor, found, named.via, wanted.directory ? CREATES : MAKES, call);
    this.world.demandWritable(named.parent);
    this.guards?.demand({ path: found.path, via: named.via }, 'write', undefined, call);
    return { parent: named.parent, at: { path: found.path, via: named.via } };
  }

  private demandRemovable(parent: Spot, spot: Spot): void {
    const { world } = this;
    if (world.credentials.isRoot) return;
    world.demandWritable(parent);
    world.credentials.demandUnsticky(world.attributes.of(parent), world.attributes.of(spot));
  }

  /** Asks the rules about the name that something is renamed to. */
  private demandTarget(actor: string, found: Spot | Missing, via: string | undefined, how: { isFile: boolean; exchange: boolean }): void {
    const gate = this.world.gate as Gate;
    if ('parent' in found) gate.demandVacant(actor, found, via, how.isFile ? MAKES : CREATES, 'rename');
    else gate.demand(actor, { path: found.path, via }, found, how.exchange ? RENAMES : REPLACES, 'rename');
  }

  /** Throws EACCES where a directory may not be written: its `..` changes with its parent. */
  private demandMovable(spot: Spot): void {
    if (spotType(spot) === 'directory') this.world.credentials.demand(spot, WRITE);
  }

  /** Hidden names count: nothing unseen gets lost. */
  private demandEmpty(actor: string, spot: Spot, call: string): void {
    if (this.isEmpty(spot)) return;
    this.sieve?.tellHidden(actor, spot, this.world.entries(spot), call);
    throw new Refusal('ENOTEMPTY');
  }

  /** A directory that this process may not list is taken for one that holds something: nothing unseen gets lost. */
  private isEmpty(spot: Spot): boolean {
    try {
      return this.world.entries(spot).length === 0;
    } catch (error) {
      if (error instanceof Refusal && error.code === 'EACCES') return false;
      throw error;
    }
  }

  private isSameFile(a: Spot, b: Spot): boolean {
    if (spotType(a) === 'directory') return false;
    const x = this.world.attributes.of(a), y = this.world.attributes.of(b);
    return x.ino === y.ino && x.dev === y.dev;
  }
}

function isBelow(path: TreePath, ancestor: TreePath): boolean {
  return path !== ancestor && isWithin(path, ancestor);
}

import { S_IFMT, typeBits, typeOf } from '../core/attr.ts';
import { byteLength, childOf, isWithin, PATH_MAX_BYTES, type PathName, type TreePath } from '../core/path.ts';
import { Refusal, type ErrnoCode } from '../core/refusal.ts';
import { WHITEOUT } from '../core/tree.ts';
import { sortEntries } from '../lower/listing.ts';
import { originOf, inodeRecord } from './attributes.ts';
import { versionOfList } from './hash.ts';
import { READ, WRITE } from './permission.ts';
import { viaField, type Observed } from './recorder.ts';
import { notFound } from './refusals.ts';
import { spotType, type Missing, type ParentLook, type Spot } from './spot.ts';
import type { SystemEntry } from './system.ts';
import type { World } from './world.ts';
import { nodeOf } from '../core/state.ts';

type Named = ParentLook & { kind: 'parent' };

/** Names: what comes, goes and moves, and what a directory lists. */
export class Namespace {
  private readonly world: World;

  constructor(world: World) {
    this.world = world;
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
      op: 'mknod', path: at.path, ...viaField(at), type, mode: typeBits(type) | (mode & 0o7777 & ~world.credentials.umask),
      rdev, ino: world.state.nextIno, ...world.ownerIn(parent), mtime: world.now(),
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
    const { world } = this, { spot, at } = world.must(actor, from, 'link', { follow: false });
    const target = this.vacancy(actor, to, 'link', { directory: false }).at;
    if (spotType(spot) === 'directory') throw new Refusal('EPERM');
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
    const { spot, at } = this.present(actor, named, 'unlink');
    const isDirectory = spotType(spot) === 'directory';
    if (named.slash) throw new Refusal(isDirectory ? 'EISDIR' : 'ENOTDIR');
    this.demandRemovable(named.parent, spot);
    if (isDirectory) throw new Refusal('EISDIR');
    this.remove(actor, named, spot, at);
    world.watchers.renamed(spot.path);
  }

  rmdir(actor: string, path: PathName): void {
    const { world } = this, named = this.named(actor, path, 'rmdir', { special: { '/': 'EBUSY', '.': 'EINVAL', '..': 'ENOTEMPTY' } });
    const { spot, at } = this.present(actor, named, 'rmdir');
    this.demandRemovable(named.parent, spot);
    if (spotType(spot) !== 'directory') throw new Refusal('ENOTDIR');
    this.demandEmpty(spot);
    this.remove(actor, named, spot, at);
    world.watchers.renamed(spot.path);
  }

  /** rename(2) and renameat2(2), with Linux's own order of refusals. */
  rename(actor: string, from: PathName, to: PathName, options: { exchange?: boolean; noReplace?: boolean }): void {
    const { world } = this, a = world.walker.lookParent(from);
    if (a.kind === 'missing') throw this.missed(actor, a, 'rename');
    const b = world.walker.lookParent(to);
    if (b.kind === 'missing') throw this.missed(actor, b, 'rename');
    if (a.kind === 'outside') return world.refuseBeyond(actor, a.outside, 'rename', { follow: false, named: a.named });
    if (b.kind === 'outside') return world.beyond(actor, b.named, 'rename', (outside) => { throw outside.boundary(); });
    if (a.kind === 'special' || b.kind === 'special') throw new Refusal('EBUSY');
    const { spot: source, at } = this.present(actor, a, 'rename'), sourceType = spotType(source);
    const found = world.walker.child(b.parent, b.name), target = 'parent' in found ? undefined : found, { path } = found;
    if (options.noReplace === true && target !== undefined) throw new Refusal('EEXIST');
    if (options.exchange === true && target === undefined) throw this.missed(actor, { missing: found as Missing, via: b.via }, 'rename');
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
    if (replaced !== undefined && sourceType === 'directory') this.demandEmpty(replaced);
    this.move(actor, { named: a, source, at }, path, target, options.exchange === true);
  }

  /** Names and types in the directory at `path`; the listing is recorded. */
  readdir(actor: string, path: PathName, outside: (path: string) => readonly SystemEntry[]): readonly SystemEntry[] {
    const { world } = this, look = world.walker.look(path, { follow: true });
    if (look.kind === 'outside') return outside(look.outside);
    if (look.kind === 'missing') {
      world.recorder.miss(actor, { path: look.missing.path, via: look.via }, 'scandir');
      throw notFound();
    }
    const { spot } = look;
    if (spotType(spot) !== 'directory') throw new Refusal('ENOTDIR');
    world.credentials.demand(spot, READ);
    const entries = this.entries(spot);
    world.recorder.list(actor, { path: spot.path, via: look.via }, versionOfList(entries), entries.length);
    return entries;
  }

  /** What a directory holds by the bytes of the names: the overlay's over the lower's, each once. Nothing is recorded. */
  entries(spot: Spot): readonly SystemEntry[] {
    const { world } = this, { node } = spot, origin = originOf(spot);
    if (node === undefined) return world.lower.list(origin as TreePath);
    const below = origin === undefined || node.opaque ? [] : this.shownThrough(origin);
    const { names } = node;
    if (names === undefined || names.size === 0) return below;
    const entries: SystemEntry[] = below.filter((entry) => names.get(entry.name) === undefined);
    names.forEach((entry, name) => {
      const found = nodeOf(world.state, entry);
      if (found !== WHITEOUT) entries.push({ name, type: found.type });
    });
    return sortEntries(entries);
  }

  /** What a lower directory adds to one of the overlay's own; nothing where outsiders have taken it away. */
  private shownThrough(origin: TreePath): readonly SystemEntry[] {
    try {
      return this.world.lower.list(origin);
    } catch (error) {
      if (error instanceof Refusal && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return [];
      throw error;
    }
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
    const look = this.world.walker.lookParent(path);
    if (look.kind === 'missing') throw this.missed(actor, look, call);
    if (look.kind === 'outside') return this.world.refuseBeyond(actor, look.outside, call, { follow: false, named: look.named });
    if (look.kind === 'special') throw new Refusal(special[look.last]);
    return look;
  }

  /** What goes by a name. A miss is recorded before ENOENT is thrown. */
  private present(actor: string, { parent, name, via }: Named, call: string): { spot: Spot; at: Observed } {
    const found = this.world.walker.child(parent, name);
    if ('parent' in found) throw this.missed(actor, { missing: found, via }, call);
    return { spot: found, at: { path: found.path, via } };
  }

  /** A place for something new. Throws EEXIST where something is, ENOENT where only a directory could be, and is not wanted. */
  private vacancy(actor: string, path: PathName, call: string, wanted: { directory: boolean }): { parent: Spot; at: Observed } {
    const named = this.named(actor, path, call, { special: { '/': 'EEXIST', '.': 'EEXIST', '..': 'EEXIST' } });
    const found = this.world.walker.child(named.parent, named.name);
    if (!('parent' in found)) throw new Refusal('EEXIST');
    if (named.slash && !wanted.directory) throw notFound();
    this.world.demandWritable(named.parent);
    return { parent: named.parent, at: { path: found.path, via: named.via } };
  }

  private demandRemovable(parent: Spot, spot: Spot): void {
    const { world } = this;
    if (world.credentials.isRoot) return;
    world.demandWritable(parent);
    world.credentials.demandUnsticky(world.attributes.of(parent), world.attributes.of(spot));
  }

  private missed(actor: string, look: { missing: Missing; via: string | undefined }, call: string): Refusal {
    this.world.recorder.miss(actor, { path: look.missing.path, via: look.via }, call);
    return notFound();
  }

  /** Throws EACCES where a directory may not be written: its `..` changes with its parent. */
  private demandMovable(spot: Spot): void {
    if (spotType(spot) === 'directory') this.world.credentials.demand(spot, WRITE);
  }

  private demandEmpty(spot: Spot): void {
    if (!this.isEmpty(spot)) throw new Refusal('ENOTEMPTY');
  }

  /** A directory that this process may not list is taken for one that holds something: nothing unseen gets lost. */
  private isEmpty(spot: Spot): boolean {
    try {
      return this.entries(spot).length === 0;
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

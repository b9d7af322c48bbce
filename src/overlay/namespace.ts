import { typeBits, typeOf } from '../core/attr.ts';
import { isWithin, type PathName, type TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { WHITEOUT } from '../core/tree.ts';
import { originOf, inodeRecord } from './attributes.ts';
import { sortEntries, versionOfList } from './hash.ts';
import type { Observed } from './recorder.ts';
import { notFound } from './refusals.ts';
import { spotType, type Missing, type Spot } from './spot.ts';
import type { SystemEntry } from './system.ts';
import type { World } from './world.ts';
import { nodeOf } from '../core/state.ts';

/** Names: what comes, goes and moves, and what a directory lists. */
export class Namespace {
  private readonly world: World;

  constructor(world: World) {
    this.world = world;
  }

  mkdir(actor: string, path: PathName, mode: number): void {
    const { world } = this, { missing, at } = world.vacancy(actor, path, 'mkdir');
    const setgid = world.attributes.of(missing.parent).mode & 0o2000;
    const bits = (mode & 0o1777 & ~process.umask()) | setgid;
    world.mutate(actor, {
      op: 'mkdir', path: at.path, ...viaField(at), mode: typeBits('directory') | bits, ino: world.state.nextIno,
      ...world.ownerIn(missing.parent), mtime: world.now(),
    });
    world.watchers.renamed(at.path);
  }

  mknod(actor: string, path: PathName, mode: number, rdev: number): void {
    const { world } = this, { missing, at } = this.vacantFile(actor, path, 'mknod');
    const type = (mode & 0o170000) === 0 ? 'file' : typeOf(mode);
    if (type === 'directory' || type === 'symlink') throw new Refusal('EINVAL');
    if ((type === 'block' || type === 'character') && !world.credentials.isRoot) throw new Refusal('EPERM');
    world.mutate(actor, {
      op: 'mknod', path: at.path, ...viaField(at), type, mode: typeBits(type) | (mode & 0o7777 & ~process.umask()),
      rdev, ino: world.state.nextIno, ...world.ownerIn(missing.parent), mtime: world.now(),
    });
    world.watchers.renamed(at.path);
  }

  symlink(actor: string, target: string, path: PathName): void {
    if (target === '') throw notFound();
    const { world } = this, { missing, at } = this.vacantFile(actor, path, 'symlink');
    world.mutate(actor, {
      op: 'symlink', path: at.path, ...viaField(at), target, ino: world.state.nextIno, ...world.ownerIn(missing.parent),
      mtime: world.now(),
    });
    world.watchers.renamed(at.path);
  }

  link(actor: string, from: PathName, to: PathName): void {
    const { world } = this, { spot, at } = world.must(actor, from, 'link', { follow: false });
    if (spotType(spot) === 'directory') throw new Refusal('EPERM');
    const target = this.vacantFile(actor, to, 'link').at, attr = world.attributes.of(spot);
    const lower = world.base(spot);
    world.mutate(actor, {
      op: 'link', path: spot.path, ...viaField(at), to: target.path,
      ...(spot.node === undefined ? { ino: inodeRecord(attr.ino) } : world.identity(spot.node)), mtime: world.now(),
      ...(lower === undefined ? undefined : { lower }),
    });
    world.watchers.renamed(target.path);
    world.watchers.changed(spot.path);
  }

  unlink(actor: string, path: PathName): void {
    const { world } = this, { spot, at } = this.mustName(actor, path, 'unlink');
    if (spotType(spot) === 'directory') throw new Refusal('EISDIR');
    this.remove(actor, spot, at);
    world.watchers.renamed(spot.path);
  }

  rmdir(actor: string, path: PathName): void {
    const { world } = this, { spot, at } = this.mustName(actor, path, 'rmdir');
    if (spotType(spot) !== 'directory') throw new Refusal('ENOTDIR');
    if (/(^|\/)\.\/*$/.test(path)) throw new Refusal('EINVAL');
    if (spot.path === '') throw new Refusal('EBUSY');
    this.demandEmpty(spot);
    this.remove(actor, spot, at);
    world.watchers.renamed(spot.path);
  }

  rename(actor: string, from: PathName, to: PathName, options: { exchange?: boolean; noReplace?: boolean }): void {
    const { world } = this, { spot: source, at } = this.mustName(actor, from, 'rename');
    const look = world.walker.look(to, { follow: false });
    if (look.kind === 'outside') throw world.outside.boundary();
    const sourceType = spotType(source);
    if (/(^|\/)\.{1,2}\/*$/.test(from) || /(^|\/)\.{1,2}\/*$/.test(to)) throw new Refusal('EBUSY');
    if (source.path === '') throw new Refusal('EBUSY');
    const target = look.kind === 'spot' ? look.spot : undefined;
    if (target === undefined) {
      if (options.exchange === true) this.missed(actor, look as { missing: Missing; via: string | undefined });
      const { missing } = world.vacant(actor, look as typeof look & { kind: 'missing' }, 'rename');
      if (missing.directoryOnly && sourceType !== 'directory') throw new Refusal('ENOTDIR');
      this.demandNotBelow(source, missing.path);
      this.move(actor, source, at, missing.path, undefined, false);
      return;
    }
    if (options.noReplace === true) throw new Refusal('EEXIST');
    if (target.path === source.path || this.isSameFile(source, target)) return;
    if (target.path === '') throw new Refusal('EBUSY');
    this.demandUnsticky(target);
    if (options.exchange === true) {
      this.demandNotBelow(source, target.path);
      this.demandNotBelow(target, source.path);
      this.move(actor, source, at, target.path, target, true);
      return;
    }
    if (sourceType === 'directory') {
      if (spotType(target) !== 'directory') throw new Refusal('ENOTDIR');
      this.demandNotBelow(source, target.path);
      if (isWithin(source.path, target.path)) throw new Refusal('ENOTEMPTY');
      this.demandEmpty(target);
    } else if (spotType(target) === 'directory') throw new Refusal('EISDIR');
    this.move(actor, source, at, target.path, target, false);
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
    world.credentials.demand(spot, 4);
    const entries = sortEntries(this.entries(spot));
    world.recorder.list(actor, { path: spot.path, via: look.via }, versionOfList(entries), entries.length);
    return entries;
  }

  /** What a directory holds: the overlay's names over the lower's, each once. Nothing is recorded. */
  entries(spot: Spot): SystemEntry[] {
    const { world } = this, { node } = spot, origin = originOf(spot);
    const shows = origin !== undefined && node?.opaque !== true && this.isLowerDirectory(origin);
    const below = shows ? world.lower.list(origin) : [];
    const names = node?.names;
    if (names === undefined || names.size === 0) return [...below];
    const entries: SystemEntry[] = below.filter((entry) => names.get(entry.name) === undefined);
    names.forEach((entry, name) => {
      const found = nodeOf(world.state, entry);
      if (found !== WHITEOUT) entries.push({ name, type: found.type });
    });
    return entries;
  }

  private isLowerDirectory(origin: TreePath): boolean {
    const attr = this.world.lower.lstat(origin);
    return typeof attr !== 'string' && typeOf(attr.mode) === 'directory';
  }

  private move(actor: string, source: Spot, at: Observed, to: TreePath, target: Spot | undefined, exchange: boolean): void {
    const { world } = this, lower = world.base(source), onto = target && world.base(target);
    if (target !== undefined && !exchange) this.forget(target);
    const whiteout = !exchange && world.hides(this.naturalOrigin(source));
    world.mutate(actor, {
      op: 'rename', path: source.path, ...viaField(at), to, ...(exchange ? { exchange: true } : undefined), mtime: world.now(),
      ...(lower === undefined ? undefined : { lower }), ...(onto === undefined ? undefined : { onto }),
      ...(whiteout ? { whiteout: true } : undefined),
    });
    world.inodes.moved(source.path, to, exchange);
    world.watchers.renamed(source.path);
    world.watchers.renamed(to);
  }

  private remove(actor: string, spot: Spot, at: Observed): void {
    const { world } = this, lower = world.base(spot);
    const whiteout = world.hides(this.naturalOrigin(spot));
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
      if (isDirectory || nlink <= 1) inode.unlinked = true;
    }
    if (spot.node !== undefined && nlink <= 1) {
      for (const inode of this.world.inodes.values()) if (inode.node === spot.node) inode.unlinked = true;
    }
  }

  /** Where the lower would have the name of a spot, whatever the spot itself comes from. */
  private naturalOrigin(spot: Spot): TreePath | undefined {
    const parent = this.world.parentOf(spot), name = spot.path.slice(spot.path.lastIndexOf('/') + 1);
    if (parent.node !== undefined) return parent.node.below(name);
    return parent.origin === undefined ? undefined : (parent.origin === '' ? name : `${parent.origin}/${name}`) as TreePath;
  }

  /** What is to lose its name `path`: the sticky bit and the directory's permissions allow it. */
  private mustName(actor: string, path: PathName, call: string): { spot: Spot; at: Observed } {
    const found = this.world.must(actor, path, call, { follow: false });
    if (found.spot.path !== '') this.demandUnsticky(found.spot);
    return found;
  }

  private demandUnsticky(spot: Spot): void {
    const { world } = this;
    if (world.credentials.isRoot) return;
    const parent = world.parentOf(spot);
    world.demandWritable(parent);
    world.credentials.demandUnsticky(world.attributes.of(parent), world.attributes.of(spot));
  }

  private vacantFile(actor: string, path: PathName, call: string): ReturnType<World['vacancy']> {
    const vacancy = this.world.vacancy(actor, path, call);
    if (vacancy.missing.directoryOnly) throw notFound();
    return vacancy;
  }

  private missed(actor: string, look: { missing: Missing; via: string | undefined }): never {
    this.world.recorder.miss(actor, { path: look.missing.path, via: look.via }, 'rename');
    throw notFound();
  }

  private demandEmpty(spot: Spot): void {
    if (this.entries(spot).length > 0) throw new Refusal('ENOTEMPTY');
  }

  private demandNotBelow(source: Spot, to: TreePath): void {
    if (spotType(source) === 'directory' && to !== source.path && isWithin(to, source.path)) throw new Refusal('EINVAL');
  }

  private isSameFile(a: Spot, b: Spot): boolean {
    if (spotType(a) === 'directory') return false;
    const x = this.world.attributes.of(a), y = this.world.attributes.of(b);
    return x.ino === y.ino && x.dev === y.dev;
  }
}

export function viaField(at: Observed): { via?: string } {
  return at.via === undefined ? {} : { via: at.via };
}


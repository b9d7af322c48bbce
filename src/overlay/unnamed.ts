import { constants } from 'node:fs';
import { typeBits } from '../core/attr.ts';
import type { WriteBody } from '../core/event.ts';
import { emptyExtents, slices } from '../core/extents.ts';
import { childOf, type PathName } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { find } from '../core/state.ts';
import { newborn, type Node } from '../core/tree.ts';
import { extentRecord } from './contents.ts';
import { EMPTY_VERSION } from './hash.ts';
import type { Files } from './files.ts';
import type { OpenInode } from './inode.ts';
import type { Namespace } from './namespace.ts';
import { viaField } from './recorder.ts';
import { LINKS, MAKES } from './ruling.ts';
import { spotType } from './spot.ts';
import { O_ACCMODE } from './system.ts';
import type { World } from './world.ts';

const { O_EXCL, O_RDONLY } = constants;

/**
 * Files without a name. What is written to one is told with `unlinked`, under a name that none has (its number behind a `#`); when it is
 * given a name, a `write` that creates it tells all of it.
 */
export class Unnamed {
  private readonly world: World;
  private readonly files: Files;
  private readonly namespace: Namespace;

  constructor(world: World, files: Files, namespace: Namespace) {
    this.world = world;
    this.files = files;
    this.namespace = namespace;
  }

  /** open(2) with O_TMPFILE in the directory at `path`; with O_EXCL it can never be named. Gives a descriptor. */
  open(actor: string, path: PathName, flags: number, mode: number): number {
    if ((flags & O_ACCMODE) === O_RDONLY) throw new Refusal('EINVAL');
    const { world } = this, { spot } = world.must(actor, path, 'open', { follow: true, does: [] });
    if (spotType(spot) !== 'directory') throw new Refusal('ENOTDIR');
    const ino = world.state.nextIno, name = childOf(spot.path, `#${ino}`);
    world.gate?.demandVacant(actor, { path: name, parent: spot, origin: undefined, directoryOnly: false }, undefined, MAKES, 'open');
    world.demandWritable(spot);
    const created = world.ownerIn(spot), time = world.now();
    const body: WriteBody = {
      op: 'write', path: name, version: EMPTY_VERSION, size: 0, mode: world.newMode(spot, typeBits('file') | mode), ino, created,
      extents: [], mtime: time, unlinked: true,
    };
    const node = newborn(world.state.owner, 'file', { ino: BigInt(ino), mode: body.mode, ...created, time: BigInt(time) });
    node.nlink = 0;
    node.content = { kind: 'extents', map: emptyExtents(0) };
    world.mutate(actor, body);
    const inode = this.files.holdNode(node, name);
    inode.unlinked = true;
    inode.nameable = (flags & O_EXCL) === 0;
    return this.files.describe(actor, inode, undefined, flags);
  }

  /** linkat(2) of `/proc/self/fd/N`. Throws ENOENT for a file that has lost its last name: only one that never had any may get one. */
  link(actor: string, inode: OpenInode, from: Parameters<Namespace['linkTo']>[1], to: PathName): void {
    const { world } = this;
    if (!inode.unlinked) {
      world.gate?.demand(actor, from.at, from.spot, LINKS, 'link');
      return this.namespace.linkTo(actor, from, to);
    }
    const { node } = inode, { at } = this.namespace.vacancy(actor, to, 'link', { directory: false });
    if (!inode.nameable || node === undefined) throw new Refusal('ENOENT');
    world.session.publish();
    world.mutate(actor, {
      op: 'write', path: at.path, ...viaField(at), mode: node.mode as number, ino: Number(node.ino), created: {
        uid: node.uid as number, gid: node.gid as number, at: world.now(),
      }, mtime: String(node.mtime), ...contentOf(node, world.contents.isSecret(node)),
    });
    const named = find(world.state, at.path) as Node;
    inode.node = named;
    inode.path = at.path;
    inode.unlinked = inode.nameable = false;
    this.dress(actor, named, node, at.path);
    world.watchers.renamed(at.path);
  }

  /** Gives the named file what the creating event does not tell. */
  private dress(actor: string, named: Node, unnamed: Node, path: WriteBody['path']): void {
    const { world } = this, ino = Number(named.ino);
    for (const [name, value] of unnamed.xattrs ?? []) {
      if (value !== undefined) world.mutate(actor, { op: 'setxattr', path, ino, name, value, mtime: world.now() });
    }
    if (!unnamed.timesSet) return;
    world.mutate(actor, { op: 'utimes', path, ino, atime: String(unnamed.atime), mtime: String(unnamed.mtime), ctime: world.now() });
  }
}

/** What an event tells of content that is stored; of content that must not be, only its version. */
function contentOf({ content, version }: Node, isSecret: boolean): Pick<WriteBody, 'size'> & Partial<WriteBody> {
  const known = version === undefined ? undefined : { version };
  if (content.kind === 'blob') return { size: content.size, version: content.digest, ...(isSecret ? undefined : { blob: content.digest }) };
  if (content.kind !== 'extents') throw new Error('a file born in the overlay has no bytes of the lower, and none that are not stored');
  const { map } = content;
  return { size: map.size, ...known, extents: slices(map, 0, map.size).map((extent) => extentRecord(extent, 0)) };
}

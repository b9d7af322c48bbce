import { sameFingerprint, type Attr, type Fingerprint } from '../core/attr.ts';
import type { TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import type { Version } from '../core/version.ts';
import type { LowerFile } from '../lower/lower.ts';
import type { Descriptor } from './descriptor.ts';
import { RunningVersion, versionOf } from './hash.ts';
import type { OpenInode } from './inode.ts';
import type { World } from './world.ts';

/** Reading through descriptors: the bytes, and what the log is told of them. */
export class Reading {
  private readonly world: World;

  constructor(world: World) {
    this.world = world;
  }

  /** pread(2), or read(2) where `position` is null. */
  read(d: Descriptor, into: Uint8Array, offset: number, length: number, position: number | null): number {
    const { at } = this.begin(d, position);
    if (length === 0) return 0;
    const count = this.bytes(d.inode, into, offset, length, at);
    this.tell(d, at, into.subarray(offset, offset + count));
    if (position === null) d.position = at + count;
    return count;
  }

  /** The same, bulk bytes of the lower read off this thread. */
  async readLater(d: Descriptor, into: Uint8Array, offset: number, length: number, position: number | null): Promise<number> {
    const { inode } = d;
    if (inode.node !== undefined || inode.lowerFile === undefined || length === 0) return this.read(d, into, offset, length, position);
    const { at } = this.begin(d, position);
    const count = await inode.lowerFile.readLater(into, offset, length, at);
    this.tell(d, at, into.subarray(offset, offset + count));
    if (position === null) d.position = at + count;
    return count;
  }

  /** The same from `at` on, without a word to the log. */
  bytes(inode: OpenInode, into: Uint8Array, offset: number, length: number, at: number): number {
    if (inode.node !== undefined) return this.world.contents.read(inode.node, lowerFileOf(inode), into, offset, length, at);
    if (inode.lowerFile === undefined) this.world.openLower(inode);
    return (inode.lowerFile as LowerFile).read(into, offset, length, at);
  }

  private begin(d: Descriptor, position: number | null): { at: number; inode: OpenInode } {
    if (!d.readable) throw new Refusal('EBADF');
    if (d.isDirectory) throw new Refusal('EISDIR');
    return { at: position ?? d.position, inode: d.inode };
  }

  /** Records what was read, unless the file has no name any more: then there is no path to speak of. */
  private tell(d: Descriptor, at: number, bytes: Uint8Array): void {
    const { inode } = d;
    if (inode.unlinked) return;
    const end = at + bytes.length, place = { path: inode.path, via: d.via };
    if (inode.node !== undefined && inode.node.content.kind !== 'lower') {
      this.world.session.publish();
      const { node } = inode, size = this.world.attributes.sizeOf(node);
      if (end === at && size > 0) return;
      this.world.recorder.read(d.actor, place, { version: node.version, print: undefined, size }, [at, end]);
      return;
    }
    const { print, size } = this.lowerFacts(inode);
    if (end === at && size > 0) return;
    const version = this.hashed(d, inode.origin as TreePath, print, size, at, bytes);
    this.world.recorder.read(d.actor, place, { version, print, size }, [at, end]);
  }

  private lowerFacts(inode: OpenInode): { print: Fingerprint; size: number } {
    const attr = inode.lowerFile === undefined ? this.world.attributes.of(
      { path: inode.path, node: inode.node, origin: inode.origin, attr: inode.attr }) : inode.lowerFile.restat();
    return { print: attr, size: attr.size };
  }

  /** The version of a lower file: known, or from these bytes if they are all of it or its end after all before. */
  private hashed(d: Descriptor, origin: TreePath, print: Fingerprint, size: number, at: number, bytes: Uint8Array): Version | undefined {
    const known = this.world.versions.get(origin, print as Attr);
    if (known !== undefined) return known;
    if (at === 0 && bytes.length === size) return this.learn(d, origin, print, versionOf(bytes));
    if (at === 0) d.hashing = { version: new RunningVersion(), upTo: 0 };
    const { hashing } = d;
    if (hashing === undefined || hashing.upTo !== at || bytes.length === 0) return undefined;
    hashing.version.add(bytes);
    hashing.upTo += bytes.length;
    if (hashing.upTo < size) return undefined;
    d.hashing = undefined;
    return hashing.upTo === size ? this.learn(d, origin, print, hashing.version.finish()) : undefined;
  }

  private learn(d: Descriptor, origin: TreePath, print: Fingerprint, version: Version): Version | undefined {
    const opened = d.inode.lowerFile?.attr;
    if (opened === undefined || !sameFingerprint(opened, print)) return undefined;
    this.world.versions.set(origin, opened, version, this.world.session.clock.now());
    return version;
  }
}

/** The lower file that an inode holds, where it still is what its node's content comes from. */
export function lowerFileOf(inode: OpenInode): LowerFile | undefined {
  return inode.node === undefined || inode.node.origin === inode.origin ? inode.lowerFile : undefined;
}

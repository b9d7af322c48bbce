import type { WriteBody } from '../core/event.ts';
import { applyWrite, extentsOf } from '../core/evolve.ts';
import { slices } from '../core/extents.ts';
import { Refusal } from '../core/refusal.ts';
import type { Node } from '../core/tree.ts';
import { inodeRecord } from './attributes.ts';
import { extentRecord } from './contents.ts';
import type { Descriptor } from './descriptor.ts';
import { type Files } from './files.ts';
import { WHOLE_BYTES } from './pending-write.ts';
import type { Reading } from './reading.ts';
import { viaField, type Observed } from './recorder.ts';
import type { Spot } from './spot.ts';
import { FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, FALLOC_ZERO_RANGE } from './system.ts';
import { MAX_FILE_BYTES } from './resizing.ts';
import type { World } from './world.ts';

/** Bytes that one copy moves at most: the caller asks again for the rest, and others are served in between. */
const COPY_BYTES = 1 << 20;
/** Bytes of a file's map that are looked through at first for its next hole; twice as many each time after. */
const SEEK_BYTES = 1 << 20;

/** Modes that Linux knows and few file systems have (collapse, insert, unshare): refused after the descriptor was looked at. */
const KNOWN = new Set([8, 32, 64]), KNOWN_KEEPING = new Set([64]);

/** What a descriptor holds, as the kernel's table found it. */
export interface HeldFile {
  readonly descriptor: Descriptor;
  readonly spot: Spot;
  readonly at: Observed;
  readonly unlinked: boolean;
}

/** A copy between two open files: where from, where to (`null`: at the descriptor's own position, which moves), how much. */
export interface RangeCopy {
  readonly from: Descriptor;
  readonly fromAt: number | null;
  readonly to: Descriptor;
  readonly toAt: number | null;
  readonly length: number;
}

/** Ranges of open files: holes made and looked for, bytes copied from one to another. */
export class Ranges {
  private readonly world: World;
  private readonly files: Files;
  private readonly reading: Reading;

  constructor(world: World, files: Files, reading: Reading) {
    this.world = world;
    this.files = files;
    this.reading = reading;
  }

  /**
   * fallocate(2): grows the file, makes a hole in it or zeros (here the same). Room is not set aside: a later write may still
   * meet ENOSPC. EOPNOTSUPP for the modes that move bytes.
   */
  allocate(actor: string, { descriptor, spot, at, unlinked }: HeldFile, mode: number, offset: number, length: number): void {
    if (offset < 0 || length <= 0) throw new Refusal('EINVAL');
    const what = mode & ~FALLOC_KEEP_SIZE, keeps = what !== mode;
    const isDone = what === 0 || what === FALLOC_ZERO_RANGE || (what === FALLOC_PUNCH_HOLE && keeps);
    if (!isDone && !(keeps ? KNOWN_KEEPING : KNOWN).has(what)) throw new Refusal('ENOTSUP');
    if (!descriptor.writable) throw new Refusal('EBADF');
    if (descriptor.isDirectory) throw new Refusal('EISDIR');
    if (!isDone) throw new Refusal('ENOTSUP');
    const end = offset + length, before = this.files.sizeOf(descriptor.inode);
    if (end > MAX_FILE_BYTES) throw new Refusal('EFBIG');
    const size = keeps ? before : Math.max(before, end), until = Math.min(end, size);
    if (what !== 0 && offset < until) this.zero(actor, { spot, at, unlinked }, { from: offset, to: until, size });
    // Where nothing else changes, the times do.
    else this.files.resizing.resize(actor, spot, at, size, unlinked);
  }

  /**
   * lseek(2) with SEEK_DATA or SEEK_HOLE; the descriptor's position stays. What the lower holds counts as data to its end, as a
   * file system may have it that does not know better. Throws ENXIO at or after the end.
   */
  seek(d: Descriptor, offset: number, wanted: 'data' | 'hole'): number {
    if (d.isDirectory) throw new Refusal('EINVAL');
    const size = this.files.sizeOf(d.inode), { node } = d.inode;
    if (offset < 0 || offset >= size) throw new Refusal('ENXIO');
    if (node !== undefined) this.world.session.publish();
    if (node?.content.kind !== 'extents') return wanted === 'data' ? offset : size;
    const { map } = node.content;
    for (let at = offset, step = SEEK_BYTES; at < size; at += step, step *= 2) {
      const found = slices(map, at, at + step).find(({ source }) => (source.kind === 'zeros') === (wanted === 'hole'));
      if (found !== undefined) return found.at;
    }
    if (wanted === 'data') throw new Refusal('ENXIO');
    return size;
  }

  /** copy_file_range(2): bytes copied, fewer than asked for as it pleases, 0 at the end. Stored bytes are shared, not copied. */
  copy(actor: string, copy: RangeCopy): number {
    const { from, to } = copy, fromAt = copy.fromAt ?? from.position, toAt = copy.toAt ?? to.position;
    if (from.isDirectory || to.isDirectory) throw new Refusal('EISDIR');
    if (!from.readable || !to.writable || to.append) throw new Refusal('EBADF');
    const length = Math.min(copy.length, this.files.sizeOf(from.inode) - fromAt);
    if (length <= 0) return 0;
    if (toAt + length > MAX_FILE_BYTES) throw new Refusal('EFBIG');
    if (from.inode === to.inode && fromAt < toAt + length && toAt < fromAt + length) throw new Refusal('EINVAL');
    const count = this.share(actor, copy, { fromAt, toAt, length }) ?? this.move(actor, copy, { fromAt, toAt, length });
    if (copy.fromAt === null) from.position = fromAt + count;
    if (copy.toAt === null) to.position = toAt + count;
    return count;
  }

  private get isServed(): boolean {
    return this.world.credentials.caller !== undefined;
  }

  private move(actor: string, { from, to }: RangeCopy, { fromAt, toAt, length }: { fromAt: number; toAt: number; length: number }): number {
    const bytes = Buffer.allocUnsafeSlow(Math.min(length, COPY_BYTES));
    // A mount has told the opening, and tells no reads.
    const read = this.isServed ? this.reading.bytes(from.inode, bytes, 0, bytes.length, fromAt) : this.reading.read(from, bytes, 0, bytes.length, fromAt);
    if (read > 0) this.files.put(actor, to.inode, to.via, toAt, bytes.subarray(0, read));
    return read;
  }

  /** Lets the target name the blobs that the source is made of; `undefined` where it is made of anything else, or is small. */
  private share(actor: string, { from, to }: RangeCopy, { fromAt, toAt, length }: { fromAt: number; toAt: number; length: number }): number | undefined {
    const { world } = this, { node } = from.inode, target = to.inode.node;
    if (node === undefined || target === undefined || length <= WHOLE_BYTES) return undefined;
    world.session.publish();
    if (node.content.kind === 'lower' || world.contents.isSecret(node)) return undefined;
    const pieces = slices(extentsOf(node), fromAt, fromAt + length);
    if (pieces.some(({ source }) => source.kind !== 'blob' && source.kind !== 'zeros')) return undefined;
    if (!from.inode.unlinked && !this.isServed) {
      const facts = { version: node.version, print: undefined, size: world.attributes.sizeOf(node) };
      world.recorder.read(from.actor, { path: from.inode.path, via: from.via }, facts, [fromAt, fromAt + length]);
    }
    const extents = pieces.map((piece) => extentRecord(piece, toAt - fromAt));
    const size = Math.max(world.attributes.sizeOf(target), toAt + length);
    this.write(actor, target, { at: { path: to.inode.path, via: to.via }, unlinked: to.inode.unlinked }, { size, extents });
    return length;
  }

  private zero(actor: string, { spot, at, unlinked }: Pick<HeldFile, 'spot' | 'at' | 'unlinked'>, range: { from: number; to: number; size: number }): void {
    const { world } = this, extents = [{ at: range.from, length: range.to - range.from }];
    if (spot.node !== undefined) return this.write(actor, spot.node, { at, unlinked }, { size: range.size, extents });
    const { version, attr } = world.hashBase(spot), lower = world.base({ ...spot, attr }, version);
    world.mutate(actor, {
      op: 'write', path: at.path, ...viaField(at), size: range.size, mode: this.world.credentials.modeAfterWrite(attr.mode), ino: inodeRecord(attr.ino),
      extents, mtime: world.now(), ...(lower === undefined ? undefined : { lower }), ...(version === undefined ? undefined : { before: version }),
    });
    world.watchers.changed(at.path);
  }

  /** A write whose bytes need no storing. */
  private write(actor: string, node: Node, { at, unlinked }: Pick<HeldFile, 'at' | 'unlinked'>, what: Pick<WriteBody, 'size'> & { extents: NonNullable<WriteBody['extents']> }): void {
    const { world } = this, before = node.version;
    const body: WriteBody = {
      op: 'write', path: at.path, ...viaField(at), size: what.size, mode: this.world.credentials.modeAfterWrite(node.mode as number), ...world.changedBy(at.path, node),
      extents: what.extents, mtime: world.now(), ...(before === undefined ? undefined : { before }), ...(unlinked ? { unlinked: true } : undefined),
    };
    world.mutate(actor, body);
    if (unlinked) applyWrite(node, { ...body, seq: world.state.seq }, undefined);
    world.watchers.changed(at.path);
  }
}

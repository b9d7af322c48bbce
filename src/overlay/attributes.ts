import { typeBits, type Attr, type Fingerprint } from '../core/attr.ts';
import type { Content } from '../core/content.ts';
import type { FingerprintRecord, Inode, LowerBase } from '../core/event.ts';
import { dataBytes } from '../core/extents.ts';
import { toBytes, type TreePath } from '../core/path.ts';
import type { Node } from '../core/tree.ts';
import type { Version } from '../core/version.ts';
import type { Lower } from '../lower/lower.ts';
import { typeOf } from '../core/attr.ts';
import { notFound } from './refusals.ts';
import type { Spot } from './spot.ts';

/** What a directory of the overlay's own says of its size, and the block size of every file: ext4's usual. */
const BLOCK_BYTES = 4096;
/** st_blocks counts in units of this. */
const SECTOR_BYTES = 512;

/** Attributes of what a look-up found: the node's own fields over what the lower says. */
export class Attributes {
  private readonly lower: Lower;
  /** Device that files born in the overlay report. */
  readonly device: bigint;

  constructor(lower: Lower, device: bigint) {
    this.lower = lower;
    this.device = device;
  }

  of(spot: Spot): Attr {
    if (spot.node !== undefined) return this.ofNode(spot.node);
    if (spot.attr !== undefined) return spot.attr;
    const attr = this.lower.lstat(spot.origin as TreePath);
    if (typeof attr === 'string') throw notFound();
    return attr;
  }

  /** `found`: what the lower has just said of the node's origin, where it is the same type of thing. */
  ofNode(node: Node, found?: Attr): Attr {
    const below = needsLower(node) ? found ?? this.lowerAttr(node) : undefined;
    const base = node.base;
    const ctime = node.ctime ?? below?.ctime ?? BigInt(base?.ctime ?? 0);
    const mtime = node.mtime ?? below?.mtime ?? BigInt(base?.mtime ?? 0);
    const size = sizeOf(node, below);
    return {
      dev: node.dev ?? (node.ino === undefined ? below?.dev : undefined) ?? this.device,
      ino: node.ino ?? below?.ino ?? 0n,
      mode: node.mode ?? below?.mode ?? typeBits(node.type) + 0o755,
      nlink: node.type === 'directory' ? directoryLinks(node, below) : node.nlink,
      uid: node.uid ?? below?.uid ?? 0,
      gid: node.gid ?? below?.gid ?? 0,
      rdev: node.rdev,
      size,
      blksize: below?.blksize ?? BLOCK_BYTES,
      blocks: node.content.kind === 'lower' && below !== undefined && node.type !== 'directory' ? below.blocks : blocksOf(node, size),
      atime: node.atime ?? below?.atime ?? (base?.atime === undefined ? mtime : BigInt(base.atime)),
      mtime,
      ctime,
      birthtime: node.birthtime ?? below?.birthtime ?? (base?.birthtime === undefined ? ctime : BigInt(base.birthtime)),
    };
  }

  /** What the lower says at a node's origin now; `undefined` where it has nothing of that type any more. */
  lowerAttr(node: Node): Attr | undefined {
    if (node.origin === undefined) return undefined;
    const attr = this.lower.lstat(node.origin);
    return typeof attr === 'string' || typeOf(attr.mode) !== node.type ? undefined : attr;
  }

  /** Content size in bytes. */
  sizeOf(node: Node): number {
    return sizeOf(node, node.content.kind === 'lower' ? this.lowerAttr(node) : undefined);
  }
}

/** 1 where the lower's file system does not count subdirectories: a wrong count would let `find` pass them over. */
function directoryLinks(node: Node, below: Attr | undefined): number {
  if (node.opaque || below === undefined) return 2 + node.subdirectories;
  return below.nlink < 2 ? below.nlink : below.nlink + node.subdirectories;
}

function needsLower(node: Node): boolean {
  if (node.ino === undefined) return true;
  if (node.type === 'directory') return !node.opaque;
  return node.origin !== undefined && node.content.kind === 'lower' && node.type !== 'symlink';
}

function sizeOf(node: Node, below: Attr | undefined): number {
  if (node.type === 'symlink') return toBytes(node.target ?? '').length;
  if (node.type === 'directory') return below?.size ?? BLOCK_BYTES;
  if (node.type !== 'file') return 0;
  return node.content.kind === 'lower' ? below?.size ?? node.base?.size ?? 0 : contentSize(node.content);
}

/** Size in bytes of content that is not the lower's. */
export function contentSize(content: Exclude<Content, { kind: 'lower' }>): number {
  return content.kind === 'extents' ? content.map.size : content.size;
}

function blocksOf(node: Node, size: number): number {
  if (node.type === 'directory') return BLOCK_BYTES / SECTOR_BYTES;
  if (node.type !== 'file') return 0;
  const bytes = node.content.kind === 'extents' ? dataBytes(node.content.map) : size;
  return Math.ceil(bytes / BLOCK_BYTES) * (BLOCK_BYTES / SECTOR_BYTES);
}

/** Exact as a JSON number where it can be. */
export function inodeRecord(value: bigint): Inode {
  return value <= 9007199254740991n ? Number(value) : String(value);
}

/** A fingerprint as an event holds it. */
export function fingerprintRecord(print: Fingerprint): FingerprintRecord {
  return {
    dev: inodeRecord(print.dev), ino: inodeRecord(print.ino), size: print.size,
    mtime: String(print.mtime), ctime: String(print.ctime),
  };
}

/** A lower file as a mutation that takes it over has to remember it. */
export function baseRecord(attr: Attr, more: { version?: Version | undefined; target?: string | undefined }): LowerBase {
  return {
    type: typeOf(attr.mode), mode: attr.mode, uid: attr.uid, gid: attr.gid, size: attr.size, nlink: attr.nlink,
    dev: inodeRecord(attr.dev), ino: inodeRecord(attr.ino),
    ...(attr.rdev === 0 ? undefined : { rdev: attr.rdev }),
    mtime: String(attr.mtime), ctime: String(attr.ctime), atime: String(attr.atime), birthtime: String(attr.birthtime),
    ...(more.version === undefined ? undefined : { version: more.version }),
    ...(more.target === undefined ? undefined : { target: more.target }),
  };
}

/** The path in the lower that a spot's content, or a directory's names, come from. */
export function originOf(spot: Spot): TreePath | undefined {
  return spot.node === undefined ? spot.origin : spot.node.origin;
}

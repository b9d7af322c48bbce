import { S_IFMT, typeBits, type NodeType } from './attr.ts';
import { LOWER_CONTENT, type Content } from './content.ts';
import type { LowerBase } from './event.ts';
import { Names } from './names.ts';
import type { Owner } from './owner.ts';
import { childOf, type TreePath } from './path.ts';
import type { Version } from './version.ts';

/**
 * The overlay's own part of the tree. Nodes are inodes, not paths: what a name of a directory leads to is a node, a
 * whiteout, or a key into the table of nodes with several names. A name that is not there falls through to the lower
 * at the directory's origin, so an untouched file costs nothing and a renamed directory is one move.
 */
export class Node {
  owner: Owner;
  readonly type: NodeType;
  /** Device of a file born in the lower; `undefined`: the overlay's own. */
  readonly dev: bigint | undefined;
  /** `undefined`: a directory that only leads to changes below it, and is in all else what the lower says. */
  readonly ino: bigint | undefined;
  /** Where in the lower this node's content, names and unset fields come from. */
  readonly origin: TreePath | undefined;
  /** What the lower held when the node was taken over. */
  readonly base: LowerBase | undefined;

  /** With type bits. Here and below, `undefined` is: as the lower has it. */
  mode: number | undefined = undefined;
  uid: number | undefined = undefined;
  gid: number | undefined = undefined;
  rdev = 0;
  atime: bigint | undefined = undefined;
  mtime: bigint | undefined = undefined;
  ctime: bigint | undefined = undefined;
  birthtime: bigint | undefined = undefined;
  /** Times were set on purpose (utimes), so they are a change of their own. */
  timesSet = false;

  /** Names that lead here; of a directory, 1 while it has its name. */
  nlink = 1;
  /** Of a directory: subdirectories gained and lost, for its link count. */
  subdirectories = 0;

  content: Content = LOWER_CONTENT;
  /** Version of `content`, where known. */
  version: Version | undefined = undefined;
  /** The event that last changed `content`; stands in for a version that is not known. 0: the lower's content. */
  contentSeq = 0;
  /** Of a symlink. */
  target: string | undefined = undefined;
  /** Of a directory. */
  names: Names<Entry> | undefined = undefined;
  /** Nothing of the lower shows through, whatever `origin`. */
  opaque = false;
  /** What was changed of the extended attributes, over what `origin` has: a value in base64, or `undefined` for one taken away. */
  xattrs: ReadonlyMap<string, string | undefined> | undefined = undefined;

  constructor(owner: Owner, born: { type: NodeType; ino: bigint | undefined; dev?: bigint | undefined;
    origin?: TreePath | undefined; base?: LowerBase | undefined; }) {
    this.owner = owner;
    this.type = born.type;
    this.ino = born.ino;
    this.dev = born.dev;
    this.origin = born.origin;
    this.base = born.base;
  }

  /** The path in the lower that name `name` of this directory falls through to; `undefined` where none does. */
  below(name: string): TreePath | undefined {
    return this.opaque || this.origin === undefined ? undefined : childOf(this.origin, name);
  }

  copyFor(owner: Owner): Node {
    const copy = new Node(owner, this);
    Object.assign(copy, this);
    copy.owner = owner;
    if (this.names !== undefined) copy.names = this.names.ownedBy(owner);
    return copy;
  }
}

/** Hides whatever the lower has under the name. */
export const WHITEOUT = Symbol('whiteout');

/** Leads to a node of the link table: one with several names. */
export class Shared {
  readonly key: string;

  constructor(key: string) {
    this.key = key;
  }
}

export type Entry = Node | typeof WHITEOUT | Shared;

/** The key of a node with several names: device and inode number, which no other live file shares. */
export function linkKey(dev: bigint | undefined, ino: bigint): string {
  return dev === undefined ? `:${ino}` : `${dev}:${ino}`;
}

/** A directory that leads to changes below it. */
export function passThrough(owner: Owner, origin: TreePath | undefined): Node {
  const node = new Node(owner, { type: 'directory', ino: undefined, origin });
  node.names = new Names(owner);
  return node;
}

/** A node born in the overlay. */
export function newborn(owner: Owner, type: NodeType, born: { ino: bigint; mode: number; uid: number; gid: number; time: bigint }): Node {
  const node = new Node(owner, { type, ino: born.ino });
  node.mode = (born.mode & ~S_IFMT) | typeBits(type);
  node.uid = born.uid;
  node.gid = born.gid;
  node.atime = node.mtime = node.ctime = node.birthtime = born.time;
  if (type === 'directory') {
    node.names = new Names(owner);
    node.opaque = true;
  }
  return node;
}

/** A lower file taken over as `base` found it: identity, owner and mode are its own from now on, content follows the lower. */
export function takenOver(owner: Owner, origin: TreePath | undefined, base: LowerBase): Node {
  const node = new Node(owner, { type: base.type, ino: BigInt(base.ino), dev: BigInt(base.dev), origin, base });
  node.mode = base.mode;
  node.uid = base.uid;
  node.gid = base.gid;
  node.rdev = base.rdev ?? 0;
  node.nlink = base.type === 'directory' ? 1 : base.nlink;
  node.target = base.target;
  node.version = base.version;
  if (base.type === 'directory') node.names = new Names(owner);
  return node;
}

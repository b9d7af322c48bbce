/** What stat(2) tells of a file: the one shape that the lower, the overlay and the faces pass around. */

export type NodeType = 'file' | 'directory' | 'symlink' | 'fifo' | 'socket' | 'block' | 'character';

/** Times in ns since 1970; sizes in bytes; `blocks` of 512 bytes; `mode` with its type bits (S_IFMT). */
export interface Attr {
  readonly dev: bigint;
  readonly ino: bigint;
  readonly mode: number;
  readonly nlink: number;
  readonly uid: number;
  readonly gid: number;
  readonly rdev: number;
  readonly size: number;
  readonly blksize: number;
  readonly blocks: number;
  readonly atime: bigint;
  readonly mtime: bigint;
  readonly ctime: bigint;
  readonly birthtime: bigint;
}

/** dev, ino, size, mtime and ctime (ns) of a lower file: a cache key for its version, as in git's index. */
export type Fingerprint = Pick<Attr, 'dev' | 'ino' | 'size' | 'mtime' | 'ctime'>;

export const S_IFMT = 0o170000;
/** Permission bits with setuid, setgid and sticky. */
export const PERMISSION_BITS = 0o7777;

const TYPE_BITS: Record<NodeType, number> = {
  fifo: 0o010000, character: 0o020000, directory: 0o040000, block: 0o060000,
  file: 0o100000, symlink: 0o120000, socket: 0o140000,
};
const TYPE_OF = new Map<number, NodeType>(Object.entries(TYPE_BITS).map(([type, bits]) => [bits, type as NodeType]));

/** The S_IFMT bits of a type. */
export function typeBits(type: NodeType): number {
  return TYPE_BITS[type];
}

/** The type in a mode's S_IFMT bits. Throws RangeError for bits that no Linux file has. */
export function typeOf(mode: number): NodeType {
  const type = TYPE_OF.get(mode & S_IFMT);
  if (type === undefined) throw new RangeError(`mode ${mode.toString(8)} has no file type`);
  return type;
}

/** Whether two looks at a lower file gave the same fingerprint. */
export function sameFingerprint(a: Fingerprint, b: Fingerprint): boolean {
  return a.ctime === b.ctime && a.mtime === b.mtime && a.size === b.size && a.ino === b.ino && a.dev === b.dev;
}

import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import type { Attr, NodeType } from '../core/attr.ts';
import { compareNames, toBytes, type TreePath } from '../core/path.ts';
import type { Spot } from '../overlay/spot.ts';
import type { Snapshot } from './snapshot.ts';

/** A larger file is not compared line by line: nobody reads that, and lines take many times their bytes. */
const SHOWN_BYTES = 32 * 1024 * 1024;
/** Git's rule: a NUL within these first bytes makes a file binary. */
const BINARY_WITHIN_BYTES = 8000;

/** What is at a path before or after a change. */
export class Side {
  readonly path: TreePath;
  readonly spot: Spot;
  readonly type: NodeType;
  readonly attr: Attr;
  readonly snapshot: Snapshot;
  private bytesOnce: Buffer | undefined = undefined;

  private constructor(snapshot: Snapshot, path: TreePath, spot: Spot) {
    this.snapshot = snapshot;
    this.path = path;
    this.spot = spot;
    this.type = snapshot.type(spot);
    this.attr = snapshot.attr(spot);
  }

  /** `undefined` where nothing is at `path` any more. */
  static at(snapshot: Snapshot, path: TreePath | undefined): Side | undefined {
    const spot = path === undefined ? undefined : snapshot.at(path);
    return spot && new Side(snapshot, path as TreePath, spot);
  }

  /** Bytes of the content: of a symlink, of its target. */
  get size(): number {
    return this.type === 'symlink' ? this.whole().length : this.attr.size;
  }

  /** Throws as `Snapshot.chunks`. */
  chunks(): Iterable<Uint8Array> {
    return this.type === 'symlink' ? [this.whole()] : this.snapshot.chunks(this.spot, this.attr.size);
  }

  /** The content as text of which each character is one byte (`latin1`), or why it is not shown by lines; `utf8`: only where it is UTF-8. */
  text({ utf8 }: { readonly utf8: boolean }): { readonly shown: string } | { readonly unshown: 'binary' | 'large' } {
    if (this.type === 'file' && this.attr.size > SHOWN_BYTES) return { unshown: 'large' };
    const bytes = this.bytesOnce ??= this.whole();
    const isBinary = bytes.subarray(0, BINARY_WITHIN_BYTES).includes(0) || (utf8 && !isUtf8(bytes));
    return isBinary ? { unshown: 'binary' } : { shown: bytes.toString('latin1') };
  }

  /** Whether the session was told not to keep the content. */
  get isSecret(): boolean {
    return this.snapshot.isSecret(this.spot);
  }

  /** Git's name for the content. */
  blobId(): string {
    const hash = createHash('sha1').update(`blob ${this.size}\0`);
    for (const piece of this.chunks()) hash.update(piece);
    return hash.digest('hex');
  }

  /** Whether both hold the same bytes. Throws as `chunks`. */
  hasContentOf(other: Side): boolean {
    if (this.size !== other.size) return false;
    const { node } = this.spot, { node: others } = other.spot;
    const [a, b] = [node?.content, others?.content];
    if ((a === undefined || a.kind === 'lower') && (b === undefined || b.kind === 'lower') && this.type === 'file' && this.snapshot.sharesLower(other.snapshot)) {
      const [mine, theirs] = [node === undefined ? this.spot.origin : node.origin, others === undefined ? other.spot.origin : others.origin];
      if (mine === theirs) return true;
    }
    if (a?.kind === 'blob' && b?.kind === 'blob') return a.digest === b.digest;
    return sameBytes(this.chunks(), other.chunks());
  }

  /** Digest of the content, or of what names a symlink's target. Throws as `chunks`. */
  version(): string | undefined {
    return this.type === 'file' ? this.snapshot.version(this.spot) : undefined;
  }

  /** All extended attributes as one text. */
  xattrs(): string {
    return JSON.stringify([...this.snapshot.xattrs(this.spot)].sort(([a], [b]) => compareNames(a, b)));
  }

  private whole(): Buffer {
    if (this.type === 'symlink') return Buffer.from(toBytes(this.snapshot.target(this.spot)));
    return Buffer.concat([...this.snapshot.chunks(this.spot, this.attr.size)]);
  }
}

function sameBytes(a: Iterable<Uint8Array>, b: Iterable<Uint8Array>): boolean {
  const others = b[Symbol.iterator]();
  let rest: Uint8Array = Buffer.alloc(0);
  try {
    for (const piece of a) {
      for (let at = 0; at < piece.length;) {
        if (rest.length === 0) {
          const next = others.next();
          if (next.done === true) return false;
          rest = next.value;
        }
        const count = Math.min(piece.length - at, rest.length);
        if (Buffer.compare(piece.subarray(at, at + count), rest.subarray(0, count)) !== 0) return false;
        rest = rest.subarray(count);
        at += count;
      }
    }
    return true;
  } finally {
    others.return?.();
  }
}

import { sameFingerprint, type Attr } from '../core/attr.ts';
import type { ExtentRecord } from '../core/event.ts';
import { overwrite, slices, type Extent, type ExtentMap } from '../core/extents.ts';
import type { TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import type { Node } from '../core/tree.ts';
import { unreachable } from '../core/unreachable.ts';
import type { Version } from '../core/version.ts';
import type { Lower, LowerFile } from '../lower/lower.ts';
import type { Store } from '../store/store.ts';
import { contentSize, inodeRecord } from './attributes.ts';
import { versionOf, versionOfFile, RunningVersion } from './hash.ts';
import { changedBelow } from './refusals.ts';
import type { Settle } from './session.ts';
import type { LowerVersions } from './versions.ts';

/** Bytes hashed at a time where content is too large to be held at once. */
const STEP_BYTES = 1 << 20;

/** Reads content wherever it is, and stores what was written. */
export class Contents {
  private readonly store: Store;
  private readonly lower: Lower;
  private readonly versions: LowerVersions;
  private readonly isRedacted: (path: TreePath) => boolean;
  private readonly now: () => number;
  /** Contents that must not be stored, by digest: they live as long as this process. */
  private readonly redacted = new Map<Version, Uint8Array>();

  constructor(parts: { store: Store; lower: Lower; versions: LowerVersions; isRedacted: (path: TreePath) => boolean;
    now: () => number; }) {
    this.store = parts.store;
    this.lower = parts.lower;
    this.versions = parts.versions;
    this.isRedacted = parts.isRedacted;
    this.now = parts.now;
  }

  /**
   * Bytes of a node's content from `position` on; 0 at its end. `open`: the node's lower file, where a descriptor holds
   * it. Throws EIO where the lower file under extents is not the one that was taken over, or a blob is gone.
   */
  read(node: Node, open: LowerFile | undefined, into: Uint8Array, offset: number, length: number, position: number): number {
    const { content } = node;
    switch (content.kind) {
      case 'draft': {
        const count = Math.max(0, Math.min(length, content.size - position));
        into.set(content.bytes.subarray(position, position + count), offset);
        return count;
      }
      case 'blob': {
        const count = Math.max(0, Math.min(length, content.size - position));
        return count === 0 ? 0 : this.blobPart(content.digest, into, offset, count, position);
      }
      case 'extents': return this.readExtents(node, content.map, open, into, offset, length, position);
      case 'lower': return this.withLower(node, open, (file) => file.read(into, offset, length, position));
      default: return unreachable(content);
    }
  }

  /** All of a node's content. */
  whole(node: Node, open: LowerFile | undefined): Uint8Array {
    const { content } = node;
    if (content.kind === 'blob') return this.redacted.get(content.digest) ?? this.store.getBlob(content.digest);
    if (content.kind === 'draft') return content.bytes.subarray(0, content.size);
    const size = content.kind === 'lower'
      ? this.withLower(node, open, (file) => file.restat().size) : contentSize(content);
    const bytes = Buffer.allocUnsafeSlow(size);
    let at = 0;
    while (at < size) {
      const count = this.read(node, open, bytes, at, size - at, at);
      if (count === 0) break;
      at += count;
    }
    return bytes.subarray(0, at);
  }

  /** The version of a node's content, hashed now where it is not known; what was learned is kept. */
  versionOf(node: Node): Version {
    if (node.content.kind === 'lower') return this.withLower(node, undefined, (file) => this.versionOfLower(node.origin as TreePath, file));
    if (node.version !== undefined) return node.version;
    const running = new RunningVersion(), size = contentSize(node.content);
    for (let at = 0; at < size;) {
      const step = Buffer.allocUnsafeSlow(Math.min(STEP_BYTES, size - at));
      const count = this.read(node, undefined, step, 0, step.length, at);
      if (count === 0) break;
      running.add(step.subarray(0, count));
      at += count;
    }
    return node.version = running.finish();
  }

  /** The version of an open lower file, from the cache where its fingerprint is known. */
  versionOfLower(origin: TreePath, file: LowerFile): Version {
    const attr = file.restat();
    const known = this.versions.get(origin, attr);
    if (known !== undefined) return known;
    const now = this.now(), version = versionOfFile(file);
    if (sameFingerprint(attr, file.restat())) this.versions.set(origin, attr, version, now);
    return version;
  }

  /** The version of lower bytes that were just read whole. */
  versionOfBytes(origin: TreePath, attr: Attr, bytes: Uint8Array): Version {
    const known = this.versions.get(origin, attr);
    if (known !== undefined) return known;
    const version = versionOf(bytes);
    this.versions.set(origin, attr, version, this.now());
    return version;
  }

  /** Stores what a write holds in memory. */
  readonly settle: Settle = ({ path, held, ranges, secret }) => {
    const hidden = secret || this.isRedacted(path);
    if (held.kind === 'draft') return this.settleWhole(hidden, held.bytes.subarray(0, held.size));
    if (held.kind !== 'extents') return { content: held, fields: {} };
    const { map } = held, [first] = ranges;
    if (ranges.length === 1 && first !== undefined && first[0] === 0 && first[1] === map.size) {
      return this.settleWhole(hidden, gather(map, 0, map.size));
    }
    const extents: ExtentRecord[] = [];
    let settled = map;
    for (const [start, end] of ranges) {
      const bytes = gather(map, start, Math.min(end, map.size));
      if (bytes.length === 0) continue;
      const digest = versionOf(bytes);
      this.keep(hidden, digest, bytes);
      settled = overwrite(settled, start, bytes.length, { kind: 'blob', digest, from: 0 });
      extents.push({ at: start, length: bytes.length, blob: digest });
    }
    return { content: { kind: 'extents', map: settled }, fields: { extents } };
  };

  /** Whether what a node holds came from a redacted path, by its own name in the lower or by what was written to it. */
  isSecret(node: Node): boolean {
    const { content, origin } = node;
    if (origin !== undefined && this.isRedacted(origin)) return true;
    if (this.redacted.size === 0) return false;
    if (content.kind === 'blob') return this.redacted.has(content.digest);
    if (content.kind !== 'extents') return false;
    return slices(content.map, 0, content.map.size).some(({ source }) => source.kind === 'blob' && this.redacted.has(source.digest));
  }

  /** Whether a lower path is redacted. */
  isSecretOrigin(origin: TreePath): boolean {
    return this.isRedacted(origin);
  }

  private settleWhole(hidden: boolean, bytes: Uint8Array): ReturnType<Settle> {
    const digest = versionOf(bytes), content = { kind: 'blob', digest, size: bytes.length } as const;
    this.keep(hidden, digest, bytes);
    // A redacted event names no blob, only its version: whoever opens the session later has nothing to look for.
    return { content, fields: hidden ? { version: digest } : { version: digest, blob: digest } };
  }

  private keep(hidden: boolean, digest: Version, bytes: Uint8Array): void {
    if (hidden) this.redacted.set(digest, bytes);
    else this.store.putBlob(digest, bytes);
  }

  private blobPart(digest: Version, into: Uint8Array, offset: number, length: number, position: number): number {
    const kept = this.redacted.get(digest);
    if (kept === undefined) return this.store.readBlob(digest, into, offset, length, position);
    const part = kept.subarray(position, position + length);
    into.set(part, offset);
    return part.length;
  }

  private readExtents(node: Node, map: ExtentMap, open: LowerFile | undefined, into: Uint8Array, offset: number,
    length: number, position: number): number {
    const pieces = slices(map, position, position + length);
    let count = 0;
    for (const piece of pieces) {
      this.readPiece(node, piece, open, into, offset + count);
      count += piece.length;
    }
    return count;
  }

  private readPiece(node: Node, { source, length }: Extent, open: LowerFile | undefined, into: Uint8Array, offset: number): void {
    switch (source.kind) {
      case 'zeros':
        into.fill(0, offset, offset + length);
        return;
      case 'bytes':
        into.set(source.bytes.subarray(source.from, source.from + length), offset);
        return;
      case 'blob':
        if (this.blobPart(source.digest, into, offset, length, source.from) !== length) {
          throw new Refusal('EIO', { fsCode: 'FS_IO_ERROR', reason: `blob ${source.digest} is shorter than the log says` });
        }
        return;
      case 'lower':
        this.withLower(node, open, (file) => {
          this.demandUnchanged(node, file);
          for (let at = 0; at < length;) {
            const count = file.read(into, offset + at, length - at, source.from + at);
            if (count === 0) throw changedBelow(node.origin);
            at += count;
          }
          this.demandUnchanged(node, file);
        });
        return;
      default: unreachable(source);
    }
  }

  /** Throws EIO unless the lower file under a node's extents is still the one taken over: never mixed bytes. */
  private demandUnchanged(node: Node, file: LowerFile): void {
    const base = node.base, attr = file.restat();
    if (base === undefined) throw changedBelow(node.origin);
    if (String(attr.ctime) === base.ctime && String(attr.mtime) === base.mtime && attr.size === base.size
      && inodeRecord(attr.ino) === base.ino && inodeRecord(attr.dev) === base.dev) return;
    // Touched, but the same bytes: that is no other content.
    if (base.version === undefined || attr.size !== base.size) throw changedBelow(node.origin);
    if (this.versionOfLower(node.origin as TreePath, file) !== base.version) throw changedBelow(node.origin);
  }

  private withLower<T>(node: Node, open: LowerFile | undefined, use: (file: LowerFile) => T): T {
    if (open !== undefined) return use(open);
    const file = node.origin === undefined ? 'absent' : this.lower.open(node.origin);
    if (typeof file === 'string' || !('kind' in file)) throw changedBelow(node.origin);
    try {
      return use(file);
    } finally {
      file.close();
    }
  }
}

/** An extent whose bytes are stored, or zeros, as an event holds it: `shift` bytes further on. */
export function extentRecord({ at, length, source }: Extent, shift: number): ExtentRecord {
  const place = { at: at + shift, length };
  return source.kind === 'blob' ? { ...place, blob: source.digest, from: source.from } : place;
}

/** The bytes of a range that lies in memory, as one piece; no copy where it is one piece already. */
function gather(map: ExtentMap, start: number, end: number): Uint8Array {
  const pieces = slices(map, start, end), [only] = pieces;
  if (pieces.length === 1 && only?.source.kind === 'bytes') {
    return only.source.bytes.subarray(only.source.from, only.source.from + only.length);
  }
  const bytes = Buffer.allocUnsafeSlow(end - start);
  for (const { at, length, source } of pieces) {
    if (source.kind === 'bytes') bytes.set(source.bytes.subarray(source.from, source.from + length), at - start);
    else if (source.kind === 'zeros') bytes.fill(0, at - start, at - start + length);
    else throw new Error('a range just written is not in memory');
  }
  return bytes;
}

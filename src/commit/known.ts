import { PERMISSION_BITS, typeOf, type Attr, type NodeType } from '../core/attr.ts';
import type { TreePath } from '../core/path.ts';
import type { Version } from '../core/version.ts';
import { EMPTY_VERSION, RunningVersion, versionOf } from '../overlay/hash.ts';
import type { Ground } from './ground.ts';

/**
 * What a journal says of a file, so that it can be told whether it is that very file, and as it was. Numbers that JSON cannot
 * hold are decimal strings; times in ns. `mode`: permission bits.
 */
export interface Known {
  readonly type: NodeType;
  readonly dev: string;
  readonly ino: string;
  readonly nlink: number;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly size: number;
  readonly mtime: string;
  readonly ctime: string;
  readonly rdev?: number;
  /** Of a symlink. */
  readonly target?: string;
  /** Of a file, where its bytes were read. */
  readonly version?: Version;
  /** Changed so shortly before it was looked at that a later change need not show in its times. */
  readonly racy?: true;
}

/** As in `overlay/versions.ts`: within one tick of the file system's clock two changes look the same. */
const RACY_NS = 20_000_000n;
/** Bytes read and hashed at a time. */
const STEP_BYTES = 1 << 20;

/** `attr` as it was found at `now` (ms since 1970). */
export function knownOf(attr: Attr, now: number, more: { version?: Version; target?: string } = {}): Known {
  const settled = BigInt(Math.floor(now)) * 1_000_000n - RACY_NS;
  return {
    type: typeOf(attr.mode), dev: String(attr.dev), ino: String(attr.ino), nlink: attr.nlink,
    mode: attr.mode & PERMISSION_BITS, uid: attr.uid, gid: attr.gid, size: attr.size,
    mtime: String(attr.mtime), ctime: String(attr.ctime),
    ...(attr.rdev === 0 ? {} : { rdev: attr.rdev }), ...more,
    ...(attr.ctime >= settled || attr.mtime >= settled ? { racy: true } : {}),
  };
}

/** Whether `attr` is of the very thing, whatever became of it. Device numbers may differ after the next start of the machine. */
export function isSameThing(known: Known, attr: Attr | undefined): attr is Attr {
  return attr !== undefined && String(attr.ino) === known.ino && typeOf(attr.mode) === known.type;
}

/** Whether mode and owner are as they were. */
export function hasSameMetadata(known: Known, attr: Attr): boolean {
  return (attr.mode & PERMISSION_BITS) === known.mode && attr.uid === known.uid && attr.gid === known.gid;
}

/** Whether nothing was done to it since it was looked at; of a directory, whatever happened to its names. */
export function isUntouched(known: Known, attr: Attr, ctime: string = known.ctime): boolean {
  if (!isSameThing(known, attr) || String(attr.dev) !== known.dev || !hasSameMetadata(known, attr)) return false;
  if (known.type === 'directory') return true;
  return attr.size === known.size && String(attr.mtime) === known.mtime && String(attr.ctime) === ctime;
}

/** A file's bytes as they were read, and the attributes they belong to. */
export interface Digest {
  readonly attr: Attr;
  readonly version: Version;
}

/** Takes the bytes of one file, in order; pieces are good only during the call. `end`: they are whole and have this version. */
export interface Keeper {
  add(bytes: Uint8Array): void;
  end(version: Version): void;
}

let buffer: Buffer | undefined;

/**
 * Reads the regular file at `path` to its end, in pieces that are good until the next; undefined where there is none (any
 * more), `'moving'` where it was found to change meanwhile. A change in the moment of one read is not: whoever wants to know looks again
 * afterwards.
 */
export function digestOf(ground: Ground, path: TreePath, add?: (bytes: Uint8Array) => void): Digest | 'moving' | undefined {
  const file = ground.open(path);
  if (file === undefined) return undefined;
  try {
    const { attr } = file;
    buffer ??= Buffer.allocUnsafeSlow(STEP_BYTES);
    if (attr.size === 0) return { attr, version: EMPTY_VERSION };
    if (attr.size < STEP_BYTES) {
      // One byte more: so a file that grew shows.
      const bytes = buffer.subarray(0, file.read(buffer, 0, attr.size + 1, 0));
      if (bytes.length !== attr.size) return 'moving';
      add?.(bytes);
      return { attr, version: versionOf(bytes) };
    }
    const running = new RunningVersion();
    for (let at = 0; ;) {
      const count = file.read(buffer, 0, STEP_BYTES, at);
      if (count === 0) break;
      running.add(buffer.subarray(0, count));
      add?.(buffer.subarray(0, count));
      at += count;
    }
    const now = file.restat();
    return now.ctime === attr.ctime && now.size === attr.size ? { attr, version: running.finish() } : 'moving';
  } finally {
    file.close();
  }
}

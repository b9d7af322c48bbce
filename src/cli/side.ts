import type { Stats } from 'node:fs';
import type { Overlay } from '../index.ts';
import { fileName } from './path.ts';

/** A larger file is not compared line by line: nobody reads that, and lines take many times their bytes. */
const SHOWN_BYTES = 32 * 1024 * 1024;
/** A larger file is in no patch: it is held in memory whole, several times over. */
const PATCHED_BYTES = 512 * 1024 * 1024;
/** Git's rule: a NUL within these first bytes makes a file binary. */
const BINARY_WITHIN_BYTES = 8000;

/** What is at a path before or after a change. Content is text of which each character is one byte, or the reason why it cannot be shown. */
export interface Side {
  readonly type: 'file' | 'symlink' | 'directory' | 'fifo' | 'socket' | 'device';
  /** Permission bits. */
  readonly mode: number;
  readonly owner: string;
  readonly mtime: string;
  readonly size: number;
  readonly content: string | Unshown;
}

/** A content that is not shown, and why. */
export interface Unshown {
  readonly reason: 'binary' | 'large' | 'unreadable';
  /** The content; `undefined` where it cannot be read, or is too large for a patch. */
  bytes(): Buffer | undefined;
}

/** What `overlay` has at `path`, with its content or with none; `undefined` where nothing is there. */
export function sideOf(overlay: Overlay, path: string, options: { content: boolean }): Side | undefined {
  const name = fileName(overlay.mountPoint, path);
  const stats = statsAt(overlay, path);
  if (stats === undefined) return undefined;
  const type = typeOf(stats);
  return {
    type, mode: stats.mode & 0o7777, owner: `${stats.uid}:${stats.gid}`, mtime: stats.mtime.toISOString(), size: stats.size,
    content: options.content ? contentOf(overlay, name, stats) : '',
  };
}

/** What lstat(2) says of `path`; `undefined` where nothing is there. */
export function statsAt({ fs, mountPoint }: Overlay, path: string): Stats | undefined {
  try {
    return fs.lstatSync(fileName(mountPoint, path), { throwIfNoEntry: false }) as Stats | undefined;
  } catch (error) {
    // Below what is a file here, and a directory on the other side.
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return undefined;
    throw error;
  }
}

function contentOf(overlay: Overlay, name: string | Buffer, stats: Stats): string | Unshown {
  const { size } = stats;
  if (stats.isSymbolicLink()) return overlay.fs.readlinkSync(name, 'buffer').toString('latin1');
  if (!stats.isFile()) return '';
  if (size > SHOWN_BYTES) return { reason: 'large', bytes: () => size > PATCHED_BYTES ? undefined : bytesOf(overlay, name) };
  const bytes = bytesOf(overlay, name);
  if (bytes === undefined) return { reason: 'unreadable', bytes: () => undefined };
  return bytes.subarray(0, BINARY_WITHIN_BYTES).includes(0) ? { reason: 'binary', bytes: () => bytes } : bytes.toString('latin1');
}

function bytesOf({ fs }: Overlay, name: string | Buffer): Buffer | undefined {
  try {
    return fs.readFileSync(name) as Buffer;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EACCES' && code !== 'EIO') throw error;
    return undefined;
  }
}

function typeOf(stats: Stats): Side['type'] {
  if (stats.isFile()) return 'file';
  if (stats.isDirectory()) return 'directory';
  if (stats.isSymbolicLink()) return 'symlink';
  return stats.isFIFO() ? 'fifo' : stats.isSocket() ? 'socket' : 'device';
}

import type { Stats } from 'node:fs';
import type { Overlay } from '../index.ts';
import { fileName } from './path.ts';

/** A larger file is not compared line by line: nobody reads that, and lines take many times their bytes. */
const SHOWN_BYTES = 32 * 1024 * 1024;
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

/** Why a content is not shown. */
export interface Unshown {
  readonly reason: 'binary' | 'large' | 'unreadable';
}

/** What `overlay` has at `path`, with its content or with none; `undefined` where nothing is there. */
export function sideOf(overlay: Overlay, path: string, options: { content: boolean }): Side | undefined {
  const name = fileName(overlay.mountPoint, path);
  const stats = overlay.fs.lstatSync(name, { throwIfNoEntry: false }) as Stats | undefined;
  if (stats === undefined) return undefined;
  const type = typeOf(stats);
  return {
    type, mode: stats.mode & 0o7777, owner: `${stats.uid}:${stats.gid}`, mtime: stats.mtime.toISOString(), size: stats.size,
    content: options.content ? contentOf(overlay, name, stats) : '',
  };
}

function contentOf({ fs }: Overlay, name: string | Buffer, stats: Stats): string | Unshown {
  const { size } = stats;
  if (stats.isSymbolicLink()) return fs.readlinkSync(name, 'buffer').toString('latin1');
  if (!stats.isFile()) return '';
  if (size > SHOWN_BYTES) return { reason: 'large' };
  let bytes: Buffer;
  try {
    bytes = fs.readFileSync(name) as Buffer;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EACCES' && code !== 'EIO') throw error;
    return { reason: 'unreadable' };
  }
  return bytes.subarray(0, BINARY_WITHIN_BYTES).includes(0) ? { reason: 'binary' } : bytes.toString('latin1');
}

function typeOf(stats: Stats): Side['type'] {
  if (stats.isFile()) return 'file';
  if (stats.isDirectory()) return 'directory';
  if (stats.isSymbolicLink()) return 'symlink';
  return stats.isFIFO() ? 'fifo' : stats.isSocket() ? 'socket' : 'device';
}

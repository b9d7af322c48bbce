/**
 * A program: what one fuzz run does. Plain JSON, so that a shrunk failure can be pasted as a regression case.
 *
 * Paths are relative to the work directory `WORK` of either world, so that `..` stays inside the tree. Names that
 * are not UTF-8 hold lone low surrogates as `core/path.ts` writes them. A symlink target that starts with `@/` is
 * absolute in the tree.
 */
export const WORK = 'r/s/t/p/q';

export interface Program {
  readonly lower: 'mixed' | 'awkward' | 'large' | 'empty' | 'guarded';
  readonly umask: number;
  /** Who this process is while the program runs. `nobody` is subject to permissions; needs root to become. */
  readonly user?: 'nobody';
  /** In memory, or in a session directory (needed where a step reopens it). */
  readonly session: 'memory' | 'directory';
  /** Whether the log is read after each step: then no two events grow together. */
  readonly watched: boolean;
  readonly steps: readonly Step[];
}

export type Step = PathStep | DescriptorStep | WorldStep;
export type Style = 'sync' | 'callback' | 'promises';

/** Bytes: the text as UTF-8, repeated. */
export interface Data {
  readonly text: string;
  readonly times?: number;
}

interface Caller {
  readonly actor?: 0 | 1;
  readonly style?: Style;
}

interface OnPath extends Caller {
  readonly path: string;
  /** How the path is handed over; names that are not UTF-8 are always Buffers. */
  readonly form?: 'buffer' | 'url';
}

interface OnSlot extends Caller {
  readonly slot: number;
}

export type PathStep = OnPath & (
  | { readonly op: 'open'; readonly flags: string | number; readonly mode?: number; readonly slot: number }
  | { readonly op: 'readFile'; readonly flag?: string; readonly encoding?: 'utf8' | 'latin1' }
  | { readonly op: 'writeFile' | 'appendFile'; readonly data: Data; readonly flag?: string; readonly mode?: number }
  | { readonly op: 'mkdir'; readonly mode?: number; readonly recursive?: boolean }
  | { readonly op: 'rm'; readonly recursive?: boolean; readonly force?: boolean }
  | { readonly op: 'rename' | 'link'; readonly to: string }
  | { readonly op: 'copyFile'; readonly to: string; readonly exclusive?: boolean }
  | { readonly op: 'cp'; readonly to: string; readonly force?: boolean }
  | { readonly op: 'symlink'; readonly target: string }
  | { readonly op: 'rmdir' | 'unlink' | 'opendir' | 'readlink' | 'realpath' | 'native' | 'exists' }
  | { readonly op: 'chmod'; readonly mode: number }
  | { readonly op: 'access'; readonly mode: number }
  | { readonly op: 'chown' | 'lchown'; readonly uid: number; readonly gid: number }
  | { readonly op: 'utimes' | 'lutimes'; readonly atime: number; readonly mtime: number }
  | { readonly op: 'truncate'; readonly size: number }
  | { readonly op: 'readdir'; readonly recursive?: boolean; readonly types?: boolean; readonly encoding?: 'buffer' }
  | { readonly op: 'stat' | 'lstat'; readonly bigint?: boolean; readonly quiet?: boolean }
  | { readonly op: 'readStream'; readonly start?: number; readonly end?: number }
  | { readonly op: 'writeStream'; readonly data: Data; readonly flags?: string; readonly start?: number }
);

export type DescriptorStep = OnSlot & (
  | { readonly op: 'read' | 'readv'; readonly length: number; readonly position: number | null }
  | { readonly op: 'write' | 'writev'; readonly data: Data; readonly position: number | null }
  | { readonly op: 'ftruncate'; readonly size: number }
  | { readonly op: 'fchmod'; readonly mode: number }
  | { readonly op: 'fchown'; readonly uid: number; readonly gid: number }
  | { readonly op: 'futimes'; readonly atime: number; readonly mtime: number }
  | { readonly op: 'fstat' | 'fsync' | 'fdatasync' | 'close' | 'readFileFd' }
  | { readonly op: 'writeFileFd' | 'appendFileFd'; readonly data: Data }
);

export type WorldStep =
  | { readonly op: 'umask'; readonly mask: number }
  /** Closes the session and opens it again; `leaky` leaves the open descriptors to the overlay's own closing. */
  | { readonly op: 'reopen'; readonly leaky?: boolean };

export const SLOTS = 4;

export function isDescriptorStep(step: Step): step is DescriptorStep {
  return 'slot' in step && step.op !== 'open';
}

export function isWorldStep(step: Step): step is WorldStep {
  return step.op === 'umask' || step.op === 'reopen';
}

export function bytesOf(data: Data): Buffer {
  return Buffer.from(data.text.repeat(data.times ?? 1));
}

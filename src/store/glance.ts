import { closeSync, constants, existsSync, fstatSync, openSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Header } from '../core/format.ts';
import { DiskBytes } from './bytes.ts';
import { SessionError } from './fault.ts';
import { hasCode } from './file.ts';
import { readHeader } from './header.ts';
import { seqOf } from './line.ts';
import { lockOwner, takeLock, type LockOwner } from './lock.ts';
import { baseSeq } from './log.ts';
import { LOG_NAME, nameDirectory, OWN_NAMES } from './open.ts';

/** What can be told of a session directory without reading its log. Nothing is checked but the header. */
export interface SessionGlance {
  readonly directory: string;
  readonly header: Header;
  /** The last event whose line is whole; `undefined` where the log's end is damaged. */
  readonly lastSeq: number | undefined;
  readonly logBytes: number;
  /** When the log was last written, in ms since 1970. */
  readonly modified: number;
  /** Who writes it now. */
  readonly owner: LockOwner | undefined;
}

/** The end of a log in which its last line is looked for. */
const TAIL_BYTES = 64 * 1024;
const NEWLINE = 10;

/** Looks at the session in `directory`. Throws `SessionError` where none is that can be read, `CorruptLogError` where its header is damaged. */
export function glance(directory: string): SessionGlance {
  const path = join(directory, LOG_NAME);
  try {
    return glanceAt(directory, path);
  } catch (error) {
    throw nameDirectory(error, directory);
  }
}

function glanceAt(directory: string, path: string): SessionGlance {
  const fd = openLog(directory, path);
  try {
    const { size, mtimeMs } = fstatSync(fd), source = new DiskBytes(fd, size);
    const { header, end } = readHeader(source, directory, path);
    return {
      directory, header, logBytes: size, modified: mtimeMs, owner: lockOwner(directory),
      lastSeq: lastSeqOf(source, end) ?? (size === end ? baseSeq(header) : undefined),
    };
  } finally {
    closeSync(fd);
  }
}

function openLog(directory: string, path: string): number {
  try {
    return openSync(path, constants.O_RDONLY);
  } catch (error) {
    if (!hasCode(error, 'ENOENT') && !hasCode(error, 'ENOTDIR')) throw error;
    throw new SessionError('ERR_NO_SESSION', directory, 'no session is there', { cause: error });
  }
}

function lastSeqOf(source: DiskBytes, headerEnd: number): number | undefined {
  for (let length = TAIL_BYTES; ; length *= 16) {
    const from = Math.max(headerEnd, source.size - length), bytes = Buffer.alloc(source.size - from);
    source.read(bytes, 0, bytes.length, from);
    const end = bytes.lastIndexOf(NEWLINE);
    const before = end < 1 ? -1 : bytes.lastIndexOf(NEWLINE, end - 1);
    if (before < 0 && from > headerEnd) continue;
    if (end < 0) return undefined;
    const seq = seqOf(bytes, before + 1, end);
    return seq < 0 ? undefined : seq;
  }
}

/**
 * Removes the session in `directory`, damaged or not, and the directory. Throws `LockedSessionError` where a live process
 * writes it, `SessionError` where no session is, or where the directory holds other files: those stay.
 */
export function removeSession(directory: string): void {
  if (!existsSync(join(directory, LOG_NAME))) throw new SessionError('ERR_NO_SESSION', directory, 'no session is there');
  const lock = takeLock(directory);
  try {
    // The log last: until it is gone, what is left can be removed again.
    const own = readdirSync(directory).filter((name) => OWN_NAMES.test(name) && !/^lock(\.|$)/.test(name));
    for (const name of own.filter((each) => each !== LOG_NAME)) rmSync(join(directory, name), { recursive: true });
    rmSync(join(directory, LOG_NAME), { recursive: true });
  } finally {
    lock.release();
  }
  try {
    rmdirSync(directory);
  } catch (error) {
    if (!hasCode(error, 'ENOTEMPTY')) throw error;
    throw new SessionError('ERR_NOT_A_SESSION', directory, 'the session is removed; the directory holds other files and stays', { cause: error });
  }
}

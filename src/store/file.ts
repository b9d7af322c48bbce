import {
  chmodSync, closeSync, constants as flags, fchmodSync, fdatasyncSync, fsyncSync, mkdirSync, openSync, readSync, unlinkSync,
  writeSync,
} from 'node:fs';
import { Refusal } from '../core/refusal.ts';

/** Calls on files that do not do all at once what they are asked. */

/** pread(2) until `length` bytes are there or the file ends. */
export function readFully(fd: number, into: Uint8Array, offset: number, length: number, position: number): number {
  let got = 0;
  while (got < length) {
    const count = readSome(fd, into, offset + got, length - got, position + got);
    if (count === 0) break;
    got += count;
  }
  return got;
}

function readSome(fd: number, into: Uint8Array, offset: number, length: number, position: number): number {
  try {
    return readSync(fd, into, offset, length, position);
  } catch (error) {
    throw Refusal.of(error);
  }
}

/** pwrite(2) of what `bytes` has from `from` on: at least one byte, maybe not all; gives how many. */
export function writeSome(fd: number, bytes: Uint8Array, from: number, position: number): number {
  let written: number;
  try {
    written = writeSync(fd, bytes, from, bytes.length - from, position);
  } catch (error) {
    throw Refusal.of(error);
  }
  if (written === 0) throw new Refusal('EIO', { reason: 'the file system wrote nothing' });
  return written;
}

/** Writes a new file of exactly these bytes, mode 0600; where that fails nothing is left of it. */
export function writeNew(path: string, bytes: Uint8Array, { through }: { through: boolean }): void {
  const fd = openSync(path, flags.O_WRONLY | flags.O_CREAT | flags.O_TRUNC, 0o600);
  try {
    // The umask may have taken even that.
    fchmodSync(fd, 0o600);
    for (let at = 0; at < bytes.length;) at += writeSome(fd, bytes, at, at);
    if (through) fdatasyncSync(fd);
  } catch (error) {
    unlinkSync(path);
    throw error;
  } finally {
    closeSync(fd);
  }
}

/** Makes a directory, and those above it, that only its owner may enter, whatever the umask. Gives the first one made. */
export function makePrivate(directory: string): string | undefined {
  const made = mkdirSync(directory, { recursive: true, mode: 0o700 });
  if (made !== undefined) chmodSync(directory, 0o700);
  return made;
}

/** Makes the names in a directory survive a power cut. */
export function syncDirectory(path: string): void {
  const fd = openSync(path, flags.O_RDONLY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Whether `error` is node's for the errno name `code`. */
export function hasCode(error: unknown, code: string): boolean {
  return (error as { code?: unknown } | null)?.code === code;
}

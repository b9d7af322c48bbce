import { Refusal } from '../../core/refusal.ts';
import { FIRST_DESCRIPTOR, type System } from '../system.ts';
import { descriptor, fileMode, openFlags, pathName, timeNs, validateId, validateInteger } from './arguments.ts';
import { failure } from './errors.ts';
import type { Body, Call } from './lift.ts';
import { statsAs } from './stats.ts';
import { readRequest, writeRequest, validateViews, bytesOf, type Transfer } from './transfer.ts';

const NO_BYTES = new Uint8Array(0);

/** More bytes than this are read without blocking the thread. */
export const BULK_BYTES = 1 << 20;

const OPEN_MODE = 0o666;

function checkLength(length: unknown): void {
  if (length !== undefined) validateInteger(length, 'len');
}

function checkIds(uid: unknown, gid: unknown): void {
  validateId(uid, 'uid');
  validateId(gid, 'gid');
}

/** Calls on descriptors, each as one synchronous body. */
export function descriptorCalls(system: System) {
  function openSync(path: unknown, flags?: unknown, mode?: unknown): number {
    const name = pathName(path), bits = openFlags(flags), permissions = fileMode(mode, 'mode', OPEN_MODE);
    try {
      return system.open(name, bits, permissions);
    } catch (error) {
      throw failure(error, 'open', name);
    }
  }

  /** A call that only names a descriptor, or checks its own arguments first. */
  function onDescriptor<T>(value: unknown, syscall: string, act: (fd: number) => T): T {
    const fd = descriptor(value);
    try {
      return act(fd);
    } catch (error) {
      throw failure(error, syscall);
    }
  }

  function closeSync(fd: unknown): void {
    onDescriptor(fd, 'close', (number) => system.close(number));
  }

  function fstatSync(fd: unknown, options?: unknown): unknown {
    return statsAs(onDescriptor(fd, 'fstat', (number) => system.fstat(number)), options);
  }

  function ftruncateSync(fd: unknown, length: unknown = 0): void {
    validateInteger(length, 'len');
    onDescriptor(fd, 'ftruncate', (number) => system.ftruncate(number, Math.max(0, length)));
  }

  function fchmodSync(fd: unknown, mode: unknown): void {
    const bits = fileMode(mode, 'mode');
    onDescriptor(fd, 'fchmod', (number) => system.fchmod(number, bits));
  }

  function fchownSync(fd: unknown, uid: unknown, gid: unknown): void {
    validateId(uid, 'uid');
    validateId(gid, 'gid');
    onDescriptor(fd, 'fchown', (number) => system.fchown(number, uid, gid));
  }

  function futimesSync(fd: unknown, atime: unknown, mtime: unknown): void {
    const accessed = timeNs(atime, 'atime'), modified = timeNs(mtime, 'mtime');
    onDescriptor(fd, 'futime', (number) => system.futimes(number, accessed, modified));
  }

  function read(request: Transfer): number {
    const { fd, view, offset, length, position } = request;
    if (length === 0) return 0;
    try {
      return system.read(fd, view, offset, length, position);
    } catch (error) {
      throw failure(error, 'read');
    }
  }

  /** Bulk, and descriptors that are none of the System's files and may block, are read beside the thread. */
  function readLifted(request: Transfer): number | Promise<number> {
    const { fd, view, offset, length, position } = request;
    if (length === 0 || (length <= BULK_BYTES && fd >= FIRST_DESCRIPTOR)) return read(request);
    let later;
    try {
      later = system.readLater(fd, view, offset, length, position);
    } catch (error) {
      throw failure(error, 'read');
    }
    return later.catch((error: unknown) => {
      throw failure(error, 'read');
    });
  }

  function write(request: Transfer): number {
    const { fd, view, offset, length, position } = request;
    try {
      return system.write(fd, view, offset, length, position);
    } catch (error) {
      throw failure(error, 'write');
    }
  }

  /** Buffer after buffer until one is not filled; what failed after the first bytes shows in the next call. */
  function vectored(fd: unknown, buffers: unknown, position: unknown, transfer: (request: Transfer) => number): number {
    const number = descriptor(fd);
    validateViews(buffers);
    let at = typeof position === 'number' ? position : null;
    let total = 0;
    for (const buffer of buffers) {
      const view = bytesOf(buffer);
      if (view.length === 0) continue;
      const moved = transfer({ fd: number, view, offset: 0, length: view.length, position: at });
      total += moved;
      if (at !== null) at += moved;
      if (moved < view.length) break;
    }
    // Nothing to move is still a call, which a descriptor of the wrong kind refuses.
    if (buffers.every((buffer) => bytesOf(buffer).length === 0)) {
      if (transfer === write) system.write(number, NO_BYTES, 0, 0, at);
      else system.read(number, NO_BYTES, 0, 0, at);
    }
    return total;
  }

  function readSync(fd: unknown, buffer: unknown, ...range: unknown[]): number {
    return read(readRequest(descriptor(fd), buffer, range));
  }

  function writeSync(fd: unknown, data: unknown, ...range: unknown[]): number {
    return write(writeRequest(descriptor(fd), data, range));
  }

  function readvSync(fd: unknown, buffers: unknown, position?: unknown): number {
    return refused('read', () => vectored(fd, buffers, position, read));
  }

  function writevSync(fd: unknown, buffers: unknown, position?: unknown): number {
    return refused('write', () => vectored(fd, buffers, position, write));
  }

  function refused(syscall: string, act: () => number): number {
    try {
      return act();
    } catch (error) {
      throw error instanceof Refusal ? failure(error, syscall) : error;
    }
  }

  const calls = {
    open: { sync: openSync, callback: [1, 3], promise: false },
    close: { sync: closeSync, callback: [1, 1], promise: false },
    fstat: { sync: fstatSync, callback: [1, 2], promise: false },
    fsync: { sync: function fsyncSync(fd) { onDescriptor(fd, 'fsync', (number) => system.fsync(number)); }, callback: [1, 1], promise: false },
    fdatasync: { sync: function fdatasyncSync(fd) { onDescriptor(fd, 'fdatasync', (number) => system.fsync(number)); }, callback: [1, 1], promise: false },
    ftruncate: { sync: ftruncateSync, check: (_fd, length) => checkLength(length), callback: [1, 2], promise: false },
    fchmod: { sync: fchmodSync, check: (_fd, mode) => fileMode(mode, 'mode'), callback: [2, 2], promise: false },
    fchown: { sync: fchownSync, check: (_fd, uid, gid) => checkIds(uid, gid), callback: [3, 3], promise: false },
    futimes: { sync: futimesSync, callback: [3, 3], promise: false },
  } satisfies Record<string, Call>;

  return { calls, readSync, writeSync, readvSync, writevSync, readLifted: readLifted as (request: Transfer) => ReturnType<Body>, write };
}

import { readSync, writeSync, writevSync } from 'node:fs';
import type { Server } from './server.ts';

/** Between two looks whether the device is mounted by now. */
const MOUNT_POLL_MS = 1;
/** Places in the numbers that a serving thread shares with the main one. */
export const DIRTY = 0, STOP = 1, RINGER = 2;

/** Events are written at the latest this long after they happened, while requests keep coming. */
const FLUSH_WITHIN_MS = 50;

/**
 * Serves a FUSE connection from when it is mounted until it is unmounted, blocking this thread. `shared[DIRTY]` is 1 while
 * events wait to be written: when no more requests come, somebody else has to ring for that. `shared[STOP]` set to 1 ends
 * the wait for the mount.
 */
export function serveBlocking(device: number, server: Server, shared: Int32Array): void {
  const { request, reply } = server;
  let flushed = performance.now(), mounted = false;
  for (;;) {
    const length = receive(device, request.buffer);
    if (length === 'ended') {
      if (mounted || !waitForMount(shared)) return;
      continue;
    }
    if (length === 'gone') continue;
    mounted = true;
    const answer = server.handle(length);
    if (answer > 0) send(device, reply.buffer, answer);
    const now = performance.now();
    const isAll = now - flushed >= FLUSH_WITHIN_MS && server.idle();
    if (isAll) flushed = now;
    Atomics.store(shared, DIRTY, isAll ? 0 : 1);
  }
}

/** Waits a little for the device to be mounted; false where it never will be. */
export function waitForMount(shared: Int32Array): boolean {
  if (Atomics.load(shared, STOP) !== 0) return false;
  Atomics.wait(shared, STOP, 0, MOUNT_POLL_MS);
  return true;
}

/** The next request, in `buffer`: its length. `gone`: it was taken back. `ended`: there is no mount. */
export function receive(device: number, buffer: Buffer): number | 'gone' | 'ended' {
  try {
    return readSync(device, buffer, 0, buffer.length, null);
  } catch (error) {
    switch (codeOf(error)) {
      // Unmounted, or not yet mounted; or the connection was aborted.
      case 'ENODEV': case 'EPERM': case 'ECONNABORTED': return 'ended';
      // The caller was killed before its request was read.
      case 'ENOENT': case 'EINTR': case 'EAGAIN': return 'gone';
      default: throw error;
    }
  }
}

/** Sends the reply of `length` bytes in `buffer`. */
export function send(device: number, buffer: Buffer, length: number): void {
  try {
    writeSync(device, buffer, 0, length, null);
  } catch (error) {
    // ENOENT: nobody waits for it any more. After ENODEV the next read says so too.
    if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENODEV') throw error;
  }
}

/** Gives the kernel what it has not asked for. False where it does not want it: it has forgotten the file, or is out of memory. */
export function push(device: number, parts: readonly Uint8Array[]): boolean {
  try {
    writevSync(device, parts);
    return true;
  } catch (error) {
    if (['ENOENT', 'ENODEV', 'ENOMEM', 'EINVAL'].includes(codeOf(error) ?? '')) return false;
    throw error;
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

import { randomBytes } from 'node:crypto';
import {
  closeSync, fchmodSync, linkSync, openSync, readFileSync, readdirSync, readlinkSync, renameSync, unlinkSync, writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { LockedSessionError } from './fault.ts';
import { hasCode } from './file.ts';

/**
 * The lock of a session: a file that names its owner. It comes into being whole (written under another name, then
 * linked), so nobody ever reads half of one.
 *
 * A dead owner's lock is taken over. Who wants to must first hold the *claim* on that very lock, a second lock whose
 * name holds the dead one's nonce; then looks whether the lock is still the dead one, replaces it by rename, and gives
 * the claim up. Only the claim's holder ever replaces a lock, and a lock of that nonce never comes back: so of any
 * number that try at once exactly one wins. A claim whose holder died is taken over in the same way.
 *
 * Not told apart: owners on other machines that share the directory over a network. An owner in another pid namespace
 * of this machine cannot be seen from here and counts as live.
 */
export interface Lock {
  /** Removes the lock, if it is still this one. Idempotent. */
  release(): void;
}

interface Owner {
  readonly pid: number;
  readonly boot: string;
  /** Start of the process, in clock ticks since boot: tells it from a later one of the same pid. */
  readonly start: string;
  /** The pid namespace that `pid` is meant in. */
  readonly namespace: string;
  readonly nonce: string;
}

/** Takes the lock of a session. Throws `LockedSessionError` where a live process has it. */
export function takeLock(directory: string): Lock {
  const owner: Owner = {
    pid: process.pid, boot: bootId(), start: startOf('self') ?? '', namespace: pidNamespace(),
    nonce: randomBytes(9).toString('base64url'),
  };
  const lock = acquire(directory, 'lock', owner);
  sweep(directory);
  return lock;
}

/** The process that has a session open: `live`, or `unseen` where it cannot be told from here whether it still runs. */
export interface LockOwner {
  readonly pid: number;
  readonly state: 'live' | 'unseen';
}

/** Who holds the lock of a session; `undefined` where nobody does, or a dead process. */
export function lockOwner(directory: string): LockOwner | undefined {
  const owner = readOwner(join(directory, 'lock'));
  if (owner === undefined) return undefined;
  const state = stateOf(owner);
  return state === 'dead' ? undefined : { pid: owner.pid, state };
}

function acquire(directory: string, name: string, owner: Owner): Lock {
  const own = join(directory, `lock.${owner.nonce}.${randomBytes(6).toString('base64url')}`);
  let lock: Lock;
  try {
    writeOwner(own, owner);
    lock = contend(directory, name, owner, own);
  } catch (error) {
    unlinkIfThere(own);
    throw error;
  }
  try {
    unlinkIfThere(own);
  } catch (error) {
    // Nobody would know of the lock.
    lock.release();
    unlinkIfThere(own);
    throw error;
  }
  return lock;
}

function contend(directory: string, name: string, owner: Owner, own: string): Lock {
  const path = join(directory, name);
  for (;;) {
    if (linked(own, path)) return held(path, owner);
    const holder = readOwner(path);
    if (holder === undefined) continue;
    const state = stateOf(holder);
    if (state !== 'dead') {
      const more = holder.nonce === owner.nonce || isSelf(holder) ? ', this one'
        : state === 'unseen' ? ` of another pid namespace; if that is gone, remove ${path}` : '';
      throw new LockedSessionError(directory, holder.pid, more);
    }
    const claim = acquire(directory, `lock.${holder.nonce}.claim`, owner);
    try {
      if (readOwner(path)?.nonce === holder.nonce) {
        renameSync(own, path);
        return held(path, owner);
      }
    } finally {
      claim.release();
    }
  }
}

function writeOwner(path: string, owner: Owner): void {
  const fd = openSync(path, 'wx', 0o600);
  try {
    // The umask may have taken even that.
    fchmodSync(fd, 0o600);
    writeFileSync(fd, JSON.stringify(owner) + '\n');
  } finally {
    closeSync(fd);
  }
}

function held(path: string, owner: Owner): Lock {
  let isHeld = true;
  return {
    release() {
      if (isHeld && readOwner(path)?.nonce === owner.nonce) unlinkIfThere(path);
      isHeld = false;
    },
  };
}

function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
    return false;
  }
}

/** Who a lock file names; `undefined` where there is none (any more). */
function readOwner(path: string): Owner | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
    return undefined;
  }
  return parseOwner(text);
}

/** A lock is written whole; where it is not, the machine lost power meanwhile, and its owner is dead. */
const LOST: Owner = { pid: 0, boot: 'lost', start: '', namespace: '', nonce: 'lost' };

function parseOwner(text: string): Owner {
  try {
    const { pid, boot, start, namespace, nonce } = JSON.parse(text) as Record<string, unknown>;
    if (typeof pid !== 'number' || typeof boot !== 'string' || typeof start !== 'string') return LOST;
    if (typeof namespace !== 'string' || typeof nonce !== 'string' || !/^[\w-]+$/.test(nonce)) return LOST;
    return { pid, boot, start, namespace, nonce };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return LOST;
  }
}

function stateOf(owner: Owner): 'live' | 'dead' | 'unseen' {
  if (owner === LOST || owner.boot !== bootId()) return 'dead';
  if (owner.namespace !== pidNamespace()) return 'unseen';
  if (owner.start === '') return isRunning(owner.pid) ? 'live' : 'dead';
  return startOf(owner.pid) === owner.start ? 'live' : 'dead';
}

function isSelf(owner: Owner): boolean {
  return owner.pid === process.pid && owner.namespace === pidNamespace();
}

/** Field 22 of /proc/PID/stat; `undefined` where no such process runs. A zombie runs no more. */
function startOf(pid: number | 'self'): string | undefined {
  const stat = readIfThere(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The name in field 2 may hold spaces and parentheses: fields count from behind its last one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
}

function bootId(): string {
  return readIfThere('/proc/sys/kernel/random/boot_id')?.trim() ?? '';
}

function pidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
    return '';
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !hasCode(error, 'ESRCH');
  }
}

/**
 * Removes what dead contenders left behind. Done by the lock's holder alone: while it lives, a claim on any earlier
 * lock gives nobody anything.
 */
function sweep(directory: string): void {
  for (const name of readdirSync(directory)) {
    if (!name.startsWith('lock.')) continue;
    const owner = readOwner(join(directory, name));
    // One that is not whole may be a contender's that is just being written.
    if (owner !== undefined && owner !== LOST && stateOf(owner) === 'dead') unlinkIfThere(join(directory, name));
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    // A process that ends while its stat is read gives ESRCH.
    if (!hasCode(error, 'ENOENT') && !hasCode(error, 'ESRCH')) throw error;
    return undefined;
  }
}

function unlinkIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}

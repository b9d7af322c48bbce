import { closeSync, constants, lstatSync, openSync, renameSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { childOf, ROOT } from '../core/path.ts';
import { STAGING_NAME } from '../core/plan.ts';
import { codeOf } from '../lower/fault.ts';
import { LockedSessionError } from '../store/fault.ts';
import { lockOwner, takeLock, type Lock } from '../store/lock.ts';
import { CommitError, LockedRootError } from './fault.ts';
import type { Ground } from './ground.ts';
import { isCommitId, PHASES, type Phase } from './journal.ts';
import { IGNORE_FILE, Volume } from './volume.ts';

const STAGING = childOf(ROOT, STAGING_NAME);

/** ms between two tries at a lock, at first and at most. */
const RETRY_MS = 10;
const RETRY_LIMIT_MS = 200;

/** What a lock's files are called, so nobody clears them away: another may be waiting with one. */
const isLockFile = (name: string): boolean => name === 'lock' || name.startsWith('lock.');

/** The staging directory of a root, which has its lock and its journal, held by one process at a time. */
export class Site {
  readonly volume: Volume;
  private readonly lock: Lock;

  private constructor(volume: Volume, lock: Lock) {
    this.volume = volume;
    this.lock = lock;
  }

  /** Waits at most `patience` ms. Throws `LockedRootError` after that, `CommitError` where the root cannot be written. */
  static async take(ground: Ground, patience: number): Promise<Site> {
    const until = performance.now() + patience;
    for (let wait = RETRY_MS; ; wait = Math.min(2 * wait, RETRY_LIMIT_MS)) {
      const taken = Site.tryTake(ground);
      if (taken instanceof Site) return taken;
      const left = until - performance.now();
      if (left <= 0) throw taken;
      // Whoever has just left takes the directory along: then there is nothing to wait for.
      await new Promise((resolve) => { setTimeout(resolve, taken instanceof LockedRootError ? Math.min(wait, left) : 1); });
    }
  }

  private static tryTake(ground: Ground): Site | LockedRootError | CommitError {
    let volume: Volume | undefined, lock: Lock | undefined;
    try {
      volume = Volume.make(ground, 0, STAGING);
      lock = takeLock(volume.directory);
      volume.begin();
      return new Site(volume, lock);
    } catch (error) {
      const locked = error instanceof LockedSessionError && volume !== undefined ? lockedBy(ground, volume, error.pid) : undefined;
      if (locked === undefined) volume?.forsake();
      lock?.release();
      if (locked === undefined) volume?.remove();
      volume?.close();
      if (locked !== undefined) return locked;
      const fault = CommitError.of(ground.root, ROOT, error);
      if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '') && isDirectory(ground.root)) return fault;
      throw fault;
    }
  }

  /** How far a commit that was begun here has come; undefined where there is none. */
  phase(): Phase | undefined {
    return PHASES.find((phase) => this.volume.find(phase) !== undefined);
  }

  /** From one phase to the next. Once it is made it is not unmade: nothing between. */
  become(phase: Phase, from: Phase): void {
    renameSync(this.volume.name(from), this.volume.name(phase));
  }

  /** Removes what is in staging, the journal at the very end. */
  clear(volumes: Iterable<Volume>): void {
    for (const volume of volumes) {
      if (volume === this.volume) continue;
      volume.clear(() => false);
      volume.remove();
    }
    this.volume.clear((name) => isLockFile(name) || (PHASES as readonly string[]).includes(name));
    this.volume.clear((name) => isLockFile(name) || name === IGNORE_FILE);
  }

  /** Gives up the lock, and removes the staging directory, which is clear. */
  leave(volumes: Iterable<Volume>): void {
    this.volume.clear(isLockFile);
    this.lock.release();
    this.volume.remove();
    for (const volume of volumes) volume.close();
  }

  /** Gives up the lock and leaves all else, for a recovery. */
  abandon(volumes: Iterable<Volume>): void {
    this.lock.release();
    for (const volume of volumes) volume.close();
  }
}

/** What lies at a root without being looked into. */
export interface Pending {
  /** The staging directory. */
  readonly directory: string;
  /** `published`: a commit was interrupted, and some of it may have been done; `harmless`: nothing has, or all of it. */
  readonly state: 'published' | 'harmless';
  /** The process that is at it; undefined where none is. */
  readonly pid: number | undefined;
}

/**
 * Whether a commit to `root` was begun and has not ended: then `recover` has to be called, unless a live process is at it. Throws
 * nothing for a root that is not there.
 */
export function pending(root: string): Pending | undefined {
  const directory = join(root, STAGING_NAME);
  if (!isDirectory(directory)) return undefined;
  const owner = lockOwner(directory);
  return { directory, state: lstatSync(join(directory, 'journal'), { throwIfNoEntry: false }) === undefined ? 'harmless' : 'published', pid: owner?.pid };
}

/**
 * Whether the commit `id` was done, and killed before it could tell its session so. True from its recovery on, until
 * `acknowledge`.
 */
export function wasPublished(root: string, id: string): boolean {
  return lstatSync(join(root, markerOf(id)), { throwIfNoEntry: false })?.isFile() === true;
}

/** The session of commit `id` knows that it was done. Nothing to acknowledge is fine. */
export function acknowledge(root: string, id: string): void {
  const marker = join(root, markerOf(id));
  if (lstatSync(marker, { throwIfNoEntry: false })?.isFile() === true) unlinkSync(marker);
}

/** Leaves word for the session of commit `id`. */
export function markPublished(ground: Ground, id: string): void {
  ground.at(childOf(ROOT, markerOf(id)), (name) => closeSync(openSync(name, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)));
}

function markerOf(id: string): string {
  if (!isCommitId(id)) throw new RangeError(`not the id of a commit: ${JSON.stringify(id)}`);
  return `${STAGING_NAME}-done-${id}`;
}

function isDirectory(name: string): boolean {
  try {
    return lstatSync(name, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch (error) {
    // The root has become a file: who opens it says so in his own words.
    if (codeOf(error) === 'ENOTDIR') return false;
    throw error;
  }
}

function lockedBy(ground: Ground, volume: Volume, pid: number): LockedRootError {
  const isUnseen = lockOwner(volume.directory)?.state === 'unseen';
  return new LockedRootError(ground.root, pid, isUnseen
    ? `, in another pid namespace; if that is gone, remove ${join(ground.root, STAGING_NAME, 'lock')}` : '');
}

import { EventEmitter } from 'node:events';
import type { BigIntStats, Stats } from 'node:fs';
import { posix } from 'node:path';
import type { Attr } from '../../core/attr.ts';
import type { PathName } from '../../core/path.ts';
import { Refusal } from '../../core/refusal.ts';
import type { System } from '../system.ts';
import { pathName, validateFunction, validateUint32, type PathArgument } from './arguments.ts';
import { statsAs } from './stats.ts';

/** `fs.watchFile` and `fs.unwatchFile`: a look at a path every so often, whatever changed it. */

export interface WatchFileOptions {
  readonly bigint?: boolean | undefined;
  readonly persistent?: boolean | undefined;
  /** Between two looks, in ms. */
  readonly interval?: number | undefined;
}

type AnyStats = Stats | BigIntStats;
export type StatsListener = (current: AnyStats, previous: AnyStats) => void;

/** Node's default. */
const INTERVAL_MS = 5007;

const NOTHING: Attr = {
  dev: 0n, ino: 0n, mode: 0, nlink: 0, uid: 0, gid: 0, rdev: 0, size: 0, blksize: 0, blocks: 0,
  atime: 0n, mtime: 0n, ctime: 0n, birthtime: 0n,
};

/** The calls that watch by looking, over `system`. All that watch one path share one watcher. */
export function fileWatches(system: System) {
  const watchers = new Map<string, StatWatcher>();

  function watchFile(
    path: PathArgument, options?: WatchFileOptions | null | StatsListener, listener?: StatsListener,
  ): StatWatcher {
    const name = absolute(path);
    if (options === null || typeof options !== 'object') {
      listener = options ?? undefined;
      options = undefined;
    }
    const { interval, persistent, bigint } = { interval: INTERVAL_MS, persistent: true, bigint: false, ...options };
    validateFunction(listener, 'listener');
    let watcher = watchers.get(name);
    if (watcher) watcher[ADD_USER]();
    else {
      validateUint32(interval, 'interval');
      watcher = new StatWatcher(() => system.mustStat(name, { follow: true, repeated: true }), {
        interval, persistent: Boolean(persistent), bigint: Boolean(bigint), stopped: () => { watchers.delete(name); },
      });
      watchers.set(name, watcher);
    }
    watcher.addListener('change', listener);
    return watcher;
  }

  function unwatchFile(path: PathArgument, listener?: StatsListener): void {
    const watcher = watchers.get(absolute(path));
    if (!watcher) return;
    if (typeof listener === 'function') {
      const before = watcher.listenerCount('change');
      watcher.removeListener('change', listener);
      if (watcher.listenerCount('change') < before) watcher[REMOVE_USER]();
    } else watcher.removeAllListeners('change');
    if (watcher.listenerCount('change') === 0) watcher.stop();
  }

  function absolute(path: PathArgument): PathName {
    return posix.resolve(system.cwd(), pathName(path, 'filename')) as PathName;
  }

  return { watchFile, unwatchFile };
}

const ADD_USER = Symbol('add user');
const REMOVE_USER = Symbol('remove user');

interface Looks {
  readonly interval: number;
  readonly persistent: boolean;
  readonly bigint: boolean;
  readonly stopped: () => void;
}

/**
 * Emits `'change'` with the stats now and those before, when a look shows a change of more than the access time. A
 * path with nothing there has stats of zeros; the first look at one tells so. After a time without a file, the stats
 * before are those of the file that was there.
 */
export class StatWatcher extends EventEmitter {
  readonly #look: () => Attr;
  readonly #bigint: boolean;
  readonly #stopped: () => void;
  #timer: NodeJS.Timeout | undefined;
  #previous: Attr;
  /** Code of the fault that the last look met. */
  #fault: string | undefined;
  /** Users of this watcher, and those of them that keep the process running. */
  #users = 1;
  #referenced = 1;

  constructor(look: () => Attr, { interval, persistent, bigint, stopped }: Looks) {
    super();
    this.#look = look;
    this.#bigint = bigint;
    this.#stopped = stopped;
    // Looked at before the call returns: a change right after it is never missed.
    const first = this.#seen();
    this.#timer = setInterval(() => this.#poll(), interval);
    if (!persistent) this.unref();
    if (typeof first !== 'string') {
      this.#previous = first;
      return;
    }
    this.#previous = NOTHING;
    this.#fault = first;
    setImmediate(() => {
      if (this.#timer) this.#tell(NOTHING);
    });
  }

  /** Does nothing where it is stopped already. */
  stop(): void {
    if (!this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#stopped();
    process.nextTick(() => this.emit('stop'));
  }

  ref(): this {
    if (this.#referenced < this.#users && this.#referenced++ === 0) this.#timer?.ref();
    return this;
  }

  unref(): this {
    if (this.#referenced > 0 && --this.#referenced === 0) this.#timer?.unref();
    return this;
  }

  [ADD_USER](): void {
    this.#users++;
    this.#referenced++;
  }

  [REMOVE_USER](): void {
    this.#users--;
    this.unref();
  }

  #poll(): void {
    const seen = this.#seen();
    if (typeof seen === 'string') {
      if (seen === this.#fault) return;
      this.#fault = seen;
      this.#tell(NOTHING);
      return;
    }
    const changed = this.#fault !== undefined || differs(seen, this.#previous), previous = this.#previous;
    this.#fault = undefined;
    this.#previous = seen;
    if (changed) this.#tell(seen, previous);
  }

  #tell(current: Attr, previous = this.#previous): void {
    const options = { bigint: this.#bigint };
    this.emit('change', statsAs(current, options), statsAs(previous, options));
  }

  #seen(): Attr | string {
    try {
      return this.#look();
    } catch (error) {
      return Refusal.of(error).code;
    }
  }
}

/** As libuv compares: all but times of access, links, blocks and device numbers of special files. */
function differs(a: Attr, b: Attr): boolean {
  return a.ctime !== b.ctime || a.mtime !== b.mtime || a.birthtime !== b.birthtime || a.size !== b.size ||
    a.mode !== b.mode || a.uid !== b.uid || a.gid !== b.gid || a.ino !== b.ino || a.dev !== b.dev;
}

import { addAbortListener, EventEmitter } from 'node:events';
import { Buffer } from 'node:buffer';
import type { PathName } from '../../core/path.ts';
import { Refusal } from '../../core/refusal.ts';
import type { System, WatchListener } from '../system.ts';
import {
  encoded, getOptions, pathName, validateBoolean, validateObject, validateSignal, type Encoding, type PathArgument,
} from './arguments.ts';
import { abortError, invalidValue, nodeError, type NodeError } from './errors.ts';
import { KeepAlive } from './keep-alive.ts';

/** `fs.watch` and `fs.promises.watch`, over changes of the overlay and of the lower alike. */

export interface WatchOptions {
  readonly encoding?: Encoding | null | undefined;
  /** Whether the watcher keeps the process running. */
  readonly persistent?: boolean | undefined;
  readonly recursive?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

export type ChangeType = 'rename' | 'change';
type Filename = string | Buffer;
export type ChangeListener = (eventType: ChangeType, filename: Filename) => void;

export interface ChangeInfo {
  readonly eventType: ChangeType;
  readonly filename: Filename;
}

/** Changes that wait to be told, of one watcher; what comes beyond is dropped. inotify's own queue holds 16384. */
const PENDING_LIMIT = 16_384;

/** The calls that watch, over `system`. */
export function watches(system: System) {
  function watch(
    path: PathArgument, options?: WatchOptions | Encoding | null | ChangeListener, listener?: ChangeListener,
  ): FSWatcher {
    if (typeof options === 'function') [listener, options] = [options, undefined];
    const { persistent = true, recursive = false, encoding, signal } = getOptions<WatchOptions>(options, {});
    const name = pathName(path);
    if (recursive) {
      validateBoolean(recursive, 'options.recursive');
      if (persistent !== null) validateBoolean(persistent, 'options.persistent');
    }
    const start = starting(system, name, recursive ?? false);
    const watcher = new FSWatcher(start, name, { persistent: persistent ?? false, encoding });
    if (listener) watcher.addListener('change', listener);
    if (signal) closeOnAbort(watcher, signal);
    return watcher;
  }

  async function* watchLater(
    path: PathArgument, options: WatchOptions = {},
  ): AsyncGenerator<ChangeInfo, void, undefined> {
    const name = pathName(path);
    validateObject(options, 'options');
    const { persistent = true, recursive = false, encoding = 'utf8', signal } = options;
    validateBoolean(persistent, 'options.persistent');
    validateBoolean(recursive, 'options.recursive');
    if (signal !== undefined) validateSignal(signal, 'options.signal');
    if (encoding && encoding !== 'buffer' && !Buffer.isEncoding(encoding)) {
      throw invalidValue('encoding', encoding, 'is invalid encoding');
    }
    if (signal?.aborted) throw abortError(signal);
    const told: ChangeInfo[] = [];
    let failure: Error | undefined;
    let wake = (): void => undefined;
    const fail = (error: Error): void => {
      failure ??= error;
      wake();
    };
    const watcher = new FSWatcher(starting(system, name, recursive), name, { persistent, encoding });
    watcher.on('change', (eventType: ChangeType, filename: Filename) => {
      if (told.length < PENDING_LIMIT) told.push({ eventType, filename });
      wake();
    });
    watcher.on('error', fail);
    const abort = signal && addAbortListener(signal, () => fail(abortError(signal)));
    try {
      for (;;) {
        if (failure !== undefined) throw failure;
        const change = told.shift();
        if (change) yield change;
        else await new Promise<void>((resolve) => { wake = resolve; });
      }
    } finally {
      abort?.[Symbol.dispose]();
      watcher.close();
    }
  }

  // The name node's own has.
  Object.defineProperty(watchLater, 'name', { value: 'watch' });
  return { watch, promises: { watch: watchLater } };
}

type Start = (changed: WatchListener, failed: (fault: unknown) => void) => { close(): void };

function starting(system: System, path: PathName, recursive: boolean): Start {
  return (changed, failed) => {
    try {
      return system.watch(path, { recursive }, changed, failed);
    } catch (error) {
      // Node's recursive watcher looks at the path first.
      throw watchError(error, recursive ? 'stat' : 'watch', path);
    }
  };
}

function watchError(error: unknown, syscall: 'stat' | 'watch', path: PathName): NodeError {
  const made = nodeError(Refusal.of(error), syscall, path) as NodeError & { filename?: string };
  made.filename = path.toWellFormed();
  return made;
}

function closeOnAbort(watcher: FSWatcher, signal: AbortSignal): void {
  if (signal.aborted) {
    process.nextTick(() => watcher.close());
    return;
  }
  const listening = addAbortListener(signal, () => watcher.close());
  watcher.once('close', () => listening[Symbol.dispose]());
}

/**
 * Tells changes, as `'change'` events, after the call that made them has returned and in their order. Equal
 * neighbours that nobody was told of yet are one, as inotify has it. After `close()` nothing is told but `'close'`.
 */
export class FSWatcher extends EventEmitter {
  readonly #encoding: Encoding | null | undefined;
  readonly #path: PathName;
  readonly #alive: KeepAlive;
  #watching: { close(): void } | undefined;
  #pending: { event: ChangeType; name: string }[] = [];
  #scheduled = false;

  constructor(
    start: Start, path: PathName, options: { persistent: boolean; encoding: Encoding | null | undefined },
  ) {
    super();
    this.#encoding = options.encoding;
    this.#path = path;
    this.#watching = start((event, name) => this.#note(event, name), (fault) => this.#fail(fault));
    this.#alive = new KeepAlive(options.persistent);
  }

  /** Does nothing where it is closed already. */
  close(): void {
    if (!this.#end()) return;
    process.nextTick(() => this.emit('close'));
  }

  ref(): this {
    this.#alive.ref();
    return this;
  }

  unref(): this {
    this.#alive.unref();
    return this;
  }

  #end(): boolean {
    if (!this.#watching) return false;
    this.#watching.close();
    this.#watching = undefined;
    this.#pending = [];
    this.#alive.end();
    return true;
  }

  #note(event: ChangeType, name: string): void {
    const last = this.#pending.at(-1);
    if (last?.event === event && last.name === name) return;
    if (this.#pending.length >= PENDING_LIMIT) return;
    this.#pending.push({ event, name });
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#tell());
  }

  #tell(): void {
    this.#scheduled = false;
    const pending = this.#pending;
    this.#pending = [];
    try {
      for (let change = pending.shift(); change; change = pending.shift()) {
        if (!this.#watching) return;
        this.emit('change', change.event, encoded(change.name, this.#encoding));
      }
    } finally {
      // A listener threw: what it was not told of yet is told all the same.
      if (this.#watching && pending.length > 0) {
        this.#pending.unshift(...pending);
        this.#schedule();
      }
    }
  }

  /** The watch is over, without `'close'`, as node has it. */
  #fail(fault: unknown): void {
    setImmediate(() => {
      if (this.#end()) this.emit('error', watchError(fault, 'watch', this.#path));
    });
  }
}

import { Buffer } from 'node:buffer';
import type { Dirent } from 'node:fs';
import { posix } from 'node:path';
import type { PathName } from '../../core/path.ts';
import { Refusal } from '../../core/refusal.ts';
import type { System, SystemEntry } from '../system.ts';
import {
  encoded, getOptions, pathName, validateFunction, validateInteger, type Encoding, type PathArgument,
} from './arguments.ts';
import { dirent } from './dirent.ts';
import { codedError, nodeError } from './errors.ts';
import { conclude, settled } from './lift.ts';

/** `fs.opendir` in all its faces, and the `Dir` it gives. */

export interface OpenDirOptions {
  readonly encoding?: Encoding | null | undefined;
  /** Entries fetched at a time; between two fetches an asynchronous read answers from what it has. */
  readonly bufferSize?: number | undefined;
  /** Entries of directories below follow, symlinks not followed. */
  readonly recursive?: boolean | undefined;
}

type ReadCallback = (error: unknown, entry?: Dirent | null) => void;
type DirCallback = (error: unknown, dir?: Dir) => void;

const DEFAULT_BUFFER_SIZE = 32;
const UINT32_MAX = 2 ** 32 - 1;

/** The calls that open directories, over `system`. */
export function directories(system: System) {
  function opened(path: PathArgument, options: unknown): Dir {
    const name = pathName(path);
    const checked = getOptions<OpenDirOptions>(options, { encoding: 'utf8' });
    const shown = path instanceof URL ? name.toWellFormed() : path;
    const list = (directory: PathName) => listed(system, directory);
    // Listed at once: a directory that is renamed or removed while it is open is still read to its end.
    return new Dir({ list, entries: list(name), name }, shown, checked);
  }

  function opendirSync(path: PathArgument, options?: OpenDirOptions | Encoding): Dir {
    return opened(path, options);
  }

  function opendir(
    path: PathArgument, options?: OpenDirOptions | Encoding | DirCallback, callback?: DirCallback,
  ): void {
    if (typeof options === 'function') callback = options;
    validateFunction(callback, 'callback');
    conclude(() => opened(path, options), [], callback);
  }

  const promises = {
    async opendir(path: PathArgument, options?: OpenDirOptions | Encoding): Promise<Dir> {
      return await settled(() => opened(path, options), []) as Dir;
    },
  };
  return { opendir, opendirSync, promises };
}

function listed(system: System, path: PathName): readonly SystemEntry[] {
  try {
    return system.readdir(path);
  } catch (error) {
    throw nodeError(Refusal.of(error), 'opendir', path);
  }
}

/** What a `Dir` reads from: one directory's entries, and the way to list those below. */
interface Listing {
  readonly list: (path: PathName) => readonly SystemEntry[];
  readonly entries: readonly SystemEntry[];
  readonly name: PathName;
}

/** An entry as it waits to be read, with the directory it is in as the System and as the user calls it. */
interface Waiting {
  readonly entry: SystemEntry;
  readonly parent: PathName;
  readonly shown: string | Uint8Array;
}

/**
 * A directory held open. As with node's, reads that find nothing buffered are operations: others queue behind a
 * running one, and synchronous ones are refused meanwhile (ERR_DIR_CONCURRENT_OPERATION).
 */
export class Dir implements AsyncIterable<Dirent> {
  readonly #listing: Listing;
  readonly #path: string | Uint8Array;
  readonly #encoding: Encoding | null | undefined;
  readonly #recursive: boolean;
  readonly #bufferSize: number;
  #fetched = 0;
  #buffered: Waiting[] = [];
  /** The next of what is buffered: shifting it off would take time with the number of entries. */
  #next = 0;
  #closed = false;
  /** What waits for the running operation; `undefined` while none runs. */
  #queue: (() => void)[] | undefined;

  constructor(listing: Listing, path: string | Uint8Array, options?: OpenDirOptions) {
    if (listing === undefined || listing === null) {
      throw codedError(TypeError, 'ERR_MISSING_ARGS', 'The "handle" argument must be specified');
    }
    const { bufferSize, encoding, recursive } = { bufferSize: DEFAULT_BUFFER_SIZE, ...options };
    validateInteger(bufferSize, 'options.bufferSize', 1, UINT32_MAX);
    this.#listing = listing;
    this.#path = path;
    this.#encoding = encoding;
    this.#recursive = Boolean(recursive);
    this.#bufferSize = bufferSize;
  }

  /** As it was given to the call that opened it. */
  get path(): string {
    return this.#path as string;
  }

  read(): Promise<Dirent | null>;
  read(callback: ReadCallback): void;
  read(callback?: ReadCallback): Promise<Dirent | null> | void {
    this.#checkOpen();
    if (callback === undefined) {
      return new Promise((resolve, reject) => {
        this.read((error, entry) => error ? reject(error) : resolve(entry ?? null));
      });
    }
    validateFunction(callback, 'callback');
    if (this.#queue) {
      this.#queue.push(() => this.#readQueued(callback));
      return;
    }
    if (this.#next < this.#buffered.length) {
      process.nextTick(callback, ...this.#outcome());
      return;
    }
    this.#operate(() => {
      this.#fetch();
      callback(...this.#outcome());
    });
  }

  /** The next entry, `null` after the last. */
  readSync(): Dirent | null {
    this.#checkOpen();
    this.#checkIdle();
    if (this.#next === this.#buffered.length) this.#fetch();
    return this.#take();
  }

  close(): Promise<void>;
  close(callback: (error?: Error | null) => void): void;
  close(callback?: (error?: Error | null) => void): Promise<void> | void {
    if (callback === undefined) {
      return new Promise((resolve, reject) => {
        this.close((error) => error ? reject(error) : resolve());
      });
    }
    validateFunction(callback, 'callback');
    if (this.#closed) {
      process.nextTick(callback, closedError());
      return;
    }
    if (this.#queue) {
      this.#queue.push(() => this.close(callback));
      return;
    }
    this.#close();
    setImmediate(callback, null);
  }

  closeSync(): void {
    this.#checkOpen();
    this.#checkIdle();
    this.#close();
  }

  /** Closes the directory at its end, or when the loop over it ends. */
  async* entries(): AsyncGenerator<Dirent, void, undefined> {
    try {
      for (let entry = await this.read(); entry !== null; entry = await this.read()) yield entry;
    } finally {
      await this.close();
    }
  }

  declare [Symbol.asyncIterator]: () => AsyncGenerator<Dirent, void, undefined>;

  /** A read whose turn has come; the directory may have been closed meanwhile. */
  #readQueued(callback: ReadCallback): void {
    if (this.#closed) process.nextTick(callback, closedError());
    else this.read(callback);
  }

  #operate(operation: () => void): void {
    this.#queue = [];
    setImmediate(() => {
      process.nextTick(() => {
        const waiting = this.#queue ?? [];
        this.#queue = undefined;
        for (const resume of waiting) resume();
      });
      operation();
    });
  }

  #fetch(): void {
    const { entries, name } = this.#listing;
    this.#buffered = [];
    this.#next = 0;
    const end = Math.min(this.#fetched + this.#bufferSize, entries.length);
    this.#buffer(entries.slice(this.#fetched, end), name, this.#path);
    this.#fetched = end;
  }

  #buffer(entries: readonly SystemEntry[], parent: PathName, shown: string | Uint8Array): void {
    for (const entry of entries) this.#buffered.push({ entry, parent, shown });
  }

  #take(): Dirent | null {
    const waiting = this.#buffered[this.#next];
    if (waiting === undefined) return null;
    this.#next++;
    const { entry: { name, type }, parent, shown } = waiting;
    if (this.#recursive && type === 'directory') {
      const below = posix.join(parent, name) as PathName;
      const text = typeof shown === 'string' ? shown : Buffer.from(shown).toString();
      this.#buffer(this.#listing.list(below), below, posix.join(text, name.toWellFormed()));
    }
    return dirent(encoded(name, this.#encoding), type, shown);
  }

  #outcome(): [error: unknown, entry?: Dirent | null] {
    try {
      return [null, this.#take()];
    } catch (error) {
      return [error];
    }
  }

  #close(): void {
    this.#closed = true;
    this.#buffered = [];
    this.#next = 0;
  }

  #checkOpen(): void {
    if (this.#closed) throw closedError();
  }

  #checkIdle(): void {
    if (!this.#queue) return;
    throw codedError(Error, 'ERR_DIR_CONCURRENT_OPERATION',
      'Cannot do synchronous work on directory handle with concurrent asynchronous operations');
  }
}

Object.defineProperty(Dir.prototype, Symbol.asyncIterator, {
  value: Dir.prototype.entries, enumerable: false, writable: true, configurable: true,
});

function closedError(): Error {
  return codedError(Error, 'ERR_DIR_CLOSED', 'Directory handle was closed');
}

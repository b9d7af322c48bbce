import { EventEmitter } from 'node:events';
import type { ReadStream, WriteStream } from 'node:fs';
import { createInterface, type Interface } from 'node:readline';
import { ReadableStream, type ReadableByteStreamController, type ReadableStreamDefaultController } from 'node:stream/web';
import { validateString } from './arguments.ts';
import { codedError } from './errors.ts';
import { settled, type Body } from './lift.ts';

/** What a FileHandle needs of the face: the bodies of the calls on descriptors, and the stream classes. */
export interface HandleCalls {
  readonly bodies: Readonly<Record<HandleCall, Body>>;
  close(fd: number): void;
  createReadStream(options: object): ReadStream;
  createWriteStream(options: object): WriteStream;
}

export type HandleCall =
  | 'appendFile' | 'fchmod' | 'fchown' | 'fdatasync' | 'fsync' | 'read' | 'readv' | 'readFile' | 'fstat' | 'ftruncate'
  | 'futimes' | 'write' | 'writev' | 'writeFile';

/** Bytes that a web stream reads at a time. */
const WEB_CHUNK_BYTES = 16384;

const FORGOTTEN = 'Closing a FileHandle object on garbage collection is deprecated. Please close FileHandle objects explicitly ' +
  'using FileHandle.prototype.close(). In the future, an error will be thrown if a file descriptor is closed during garbage collection.';

let warnedOfForgotten = false;

/** Closes what nobody can close any more, and says so as node does. */
const forgotten = new FinalizationRegistry<{ readonly fd: number; close(fd: number): void }>(({ fd, close }) => {
  try {
    close(fd);
  } catch (error) {
    // Whoever closed the overlay has closed its descriptors with it.
    if ((error as NodeJS.ErrnoException).code !== 'EBADF') throw error;
    return;
  }
  process.emitWarning(`Closing file descriptor ${fd} on garbage collection`);
  if (warnedOfForgotten) return;
  warnedOfForgotten = true;
  process.emitWarning(FORGOTTEN, 'DeprecationWarning', 'DEP0137');
});

/**
 * A file opened by `promises.open`. Closing waits for the calls and streams that still use it; every call after that
 * rejects with EBADF.
 */
export class FileHandle extends EventEmitter {
  readonly #calls: HandleCalls;
  #fd: number;
  /** The descriptor as it is to be closed: `#fd` says -1 from the call of `close` on. */
  readonly #opened: number;
  /** Users of the descriptor: the holder, and each call and stream under way. */
  #users = 1;
  #closing: Deferred | undefined;
  #locked = false;

  constructor(calls: HandleCalls, fd: number) {
    super();
    this.#calls = calls;
    this.#fd = this.#opened = fd;
    forgotten.register(this, { fd, close: calls.close }, this);
  }

  get fd(): number {
    return this.#fd;
  }

  appendFile(data: unknown, options?: unknown): Promise<unknown> {
    return FileHandle.#call(this, 'writeFile', 'appendFile', data, options);
  }

  chmod(mode: unknown): Promise<unknown> {
    return FileHandle.#call(this, 'fchmod', 'fchmod', mode);
  }

  chown(uid: unknown, gid: unknown): Promise<unknown> {
    return FileHandle.#call(this, 'fchown', 'fchown', uid, gid);
  }

  datasync(): Promise<unknown> {
    return FileHandle.#call(this, 'fdatasync', 'fdatasync');
  }

  sync(): Promise<unknown> {
    return FileHandle.#call(this, 'fsync', 'fsync');
  }

  read(...range: unknown[]): Promise<unknown> {
    return FileHandle.#call(this, 'read', 'read', ...range);
  }

  readv(buffers: unknown, position?: unknown): Promise<unknown> {
    return FileHandle.#call(this, 'readv', 'readv', buffers, position);
  }

  readFile(options?: unknown): Promise<unknown> {
    return FileHandle.#call(this, 'readFile', 'readFile', options);
  }

  readLines(options?: object): Interface {
    return createInterface({ input: this.createReadStream(options), crlfDelay: Infinity });
  }

  stat(options?: unknown): Promise<unknown> {
    return FileHandle.#call(this, 'fstat', 'fstat', options);
  }

  truncate(length: unknown = 0): Promise<unknown> {
    return FileHandle.#call(this, 'ftruncate', 'ftruncate', length);
  }

  utimes(atime: unknown, mtime: unknown): Promise<unknown> {
    return FileHandle.#call(this, 'futimes', 'futimes', atime, mtime);
  }

  write(data: unknown, ...range: unknown[]): Promise<unknown> {
    return FileHandle.#call(this, 'write', 'write', data, ...range);
  }

  writev(buffers: unknown, position?: unknown): Promise<unknown> {
    return FileHandle.#call(this, 'writev', 'writev', buffers, position);
  }

  writeFile(data: unknown, options?: unknown): Promise<unknown> {
    return FileHandle.#call(this, 'writeFile', 'writeFile', data, options);
  }

  createReadStream(options?: object): ReadStream {
    return this.#calls.createReadStream({ ...options, fd: this });
  }

  createWriteStream(options?: object): WriteStream {
    return this.#calls.createWriteStream({ ...options, fd: this });
  }

  /** A property and no method, as node has it: callers pass `handle.close` around. */
  close = (): Promise<void> => {
    if (this.#closing) return this.#closing.promise;
    if (this.#fd === -1) return Promise.resolve();
    const closing = deferred();
    this.#closing = closing;
    this.release();
    this.emit('close');
    return closing.promise;
  };

  async [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** One more user of the descriptor, which stays open until its `release`. */
  retain(): void {
    this.#users++;
  }

  release(): void {
    if (--this.#users > 0) return;
    this.#fd = -1;
    forgotten.unregister(this);
    try {
      this.#calls.close(this.#opened);
      this.#closing?.resolve();
    } catch (error) {
      this.#closing?.reject(error);
    }
    this.#closing = undefined;
  }

  /** `name` is what the error of a closed handle calls it. */
  static async #call(handle: FileHandle, name: string, call: HandleCall, ...args: unknown[]): Promise<unknown> {
    if (!(#fd in handle)) throw codedError(Error, 'ERR_INTERNAL_ASSERTION', 'handle must be an instance of FileHandle');
    if (handle.#fd === -1) {
      throw Object.assign(new Error('file closed'), { code: 'EBADF', syscall: name });
    }
    handle.retain();
    try {
      return await settled(handle.#calls.bodies[call], [handle.#fd, ...args]);
    } finally {
      handle.release();
    }
  }

  /** The rest of the file as a web stream of bytes; the handle belongs to it from then on. */
  readableWebStream(options: { type?: unknown } = {}): ReadableStream {
    if (this.#fd === -1) throw invalidState('The FileHandle is closed');
    if (this.#closing) throw invalidState('The FileHandle is closing');
    if (this.#locked) throw invalidState('The FileHandle is locked');
    this.#locked = true;
    const { type } = options;
    if (type !== undefined) validateString(type, 'options.type');
    this.retain();
    let active: ReadableByteStreamController | ReadableStreamDefaultController | undefined;
    const ended = (): void => {
      if (active === undefined) return;
      active = undefined;
      this.release();
    };
    const pull = async (into: Uint8Array): Promise<number> => {
      const { bytesRead } = await this.read(into, 0, into.byteLength) as { bytesRead: number };
      return bytesRead;
    };
    this.once('close', () => {
      const controller = active;
      if (controller === undefined) return;
      ended();
      controller.close();
      if ('byobRequest' in controller) controller.byobRequest?.respond(0);
    });
    if (type === 'bytes') {
      return new ReadableStream({
        type: 'bytes',
        autoAllocateChunkSize: WEB_CHUNK_BYTES,
        start(controller: ReadableByteStreamController) {
          active = controller;
        },
        async pull(controller: ReadableByteStreamController) {
          const request = controller.byobRequest;
          const view = request?.view as Uint8Array;
          const count = await pull(new Uint8Array(view.buffer, view.byteOffset, view.byteLength));
          if (active === undefined) return;
          if (count === 0) {
            ended();
            controller.close();
          }
          request?.respond(count);
        },
        cancel: ended,
      });
    }
    return new ReadableStream({
      start(controller: ReadableStreamDefaultController) {
        active = controller;
      },
      async pull(controller: ReadableStreamDefaultController) {
        const chunk = new Uint8Array(WEB_CHUNK_BYTES);
        const count = await pull(chunk);
        if (active === undefined) return;
        if (count > 0) return controller.enqueue(chunk.buffer.slice(0, count));
        ended();
        controller.close();
      },
      cancel: ended,
    });
  }
}

interface Deferred {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

function deferred(): Deferred {
  let resolve = (): void => {}, reject = (_error: unknown): void => {};
  const promise = new Promise<void>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

function invalidState(reason: string): Error {
  return codedError(Error, 'ERR_INVALID_STATE', `Invalid state: ${reason}`);
}

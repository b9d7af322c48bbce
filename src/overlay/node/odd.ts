import { Blob } from 'node:buffer';
import { promisify } from 'node:util';
import { descriptor, validateFunction, validateObject, validateString } from './arguments.ts';
import type { descriptorCalls } from './descriptors.ts';
import { codedError, isFault } from './errors.ts';
import { conclude, named, type Body } from './lift.ts';
import { bytesOf, readArguments, readRequest, validateViews, writeRequest } from './transfer.ts';

/** The calls of `node:fs` whose callback face is like no other's: more results than one, or no error among them. */

type Descriptors = ReturnType<typeof descriptorCalls>;

/** read, write, readv and writev: their callbacks get the count and the buffer, also with an error. */
export function transferCalls({ readSync, writeSync, readvSync, writevSync, readLifted, write }: Descriptors): Record<string, Body> {
  const counted = (done: Body, buffer: unknown): Body => (error, count = 0) => done(error, count, buffer);

  const calls: Record<string, Body> = {
    read(fd, ...given) {
      const number = descriptor(fd);
      // All of them are there, or the callback is the last: a position may be a function by mistake.
      const done = given[given.length > 4 ? 4 : given.length - 1];
      const { buffer, range } = readArguments(given.slice(0, given.length > 4 ? 4 : -1));
      const request = readRequest(number, buffer, range);
      validateFunction(done);
      conclude(() => readLifted(request), [], counted(done, buffer));
    },
    write(fd, data, ...given) {
      const number = descriptor(fd);
      const { args, done } = split(given);
      validateFunction(done);
      const request = writeRequest(number, data, args);
      conclude(() => write(request), [], counted(done, data));
    },
    readv(fd, buffers, ...given) {
      descriptor(fd);
      validateViews(buffers);
      const { args, done } = split(given);
      validateFunction(done);
      conclude(readvSync, [fd, buffers, ...args], counted(done, buffers));
    },
    writev(fd, buffers, ...given) {
      descriptor(fd);
      validateViews(buffers);
      const { args, done } = split(given);
      validateFunction(done);
      conclude(writevSync, [fd, buffers, ...args], counted(done, buffers));
    },
  };
  const counts = { read: ['bytesRead', 'buffer'], write: ['bytesWritten', 'buffer'], readv: ['bytesRead', 'buffers'], writev: ['bytesWritten', 'buffer'] };
  for (const [name, fields] of Object.entries(counts)) {
    const call = calls[name] as Body;
    named(call, name, name.endsWith('v') ? 4 : 6);
    Object.defineProperty(call, promisify.custom, { value: countedPromise(call, fields) });
  }
  return { ...calls, readSync, writeSync, readvSync, writevSync };
}

/** The arguments before the first function, and that function. */
function split(given: readonly unknown[]): { args: readonly unknown[]; done: unknown } {
  const at = given.findIndex((value) => typeof value === 'function');
  return at < 0 ? { args: given, done: undefined } : { args: given.slice(0, at), done: given[at] };
}

function countedPromise(call: Body, [count, buffer]: readonly string[]): Body {
  return (...args) => new Promise((resolve, reject) => {
    call(...args, (error: Error | null, moved: unknown, moving: unknown) => {
      if (error) reject(error);
      else resolve({ [count as string]: moved, [buffer as string]: moving });
    });
  });
}

/** `fs.exists`: its callback gets the answer alone. */
export function existsCall(existsSync: Body): Body {
  const exists: Body = (path, done) => {
    validateFunction(done);
    const answer = existsSync(path);
    setImmediate(() => done(answer));
  };
  Object.defineProperty(exists, promisify.custom, {
    value: (path: unknown) => new Promise((resolve) => exists(path, resolve)),
  });
  return named(exists, 'exists', 2);
}

/** `fs.close`: without a callback its failure is an uncaught exception. */
export function closeCall(closeSync: Body): Body {
  return named((fd, done = rethrow) => {
    validateFunction(done);
    conclude(closeSync, [fd], done);
  }, 'close', 1);
}

function rethrow(error: unknown): void {
  if (error !== null) throw error;
}

/** `fs.truncate` of a descriptor, which node deprecates and still does. */
export function orDescriptor(face: Record<string, unknown>, name: 'truncate' | 'truncateSync', instead: 'ftruncate' | 'ftruncateSync'): Body {
  const onPath = face[name] as Body;
  return named((path, ...rest) => {
    if (typeof path !== 'number') return onPath(path, ...rest);
    warnOfTruncate();
    return (face[instead] as Body)(path, ...rest);
  }, name, onPath.length);
}

let warnedOfTruncate = false;

function warnOfTruncate(): void {
  if (warnedOfTruncate) return;
  warnedOfTruncate = true;
  process.emitWarning('Using fs.truncate with a file descriptor is deprecated. Please use fs.ftruncate with a file descriptor instead.',
    'DeprecationWarning', 'DEP0081');
}

/** `fs.openAsBlob`. The blob holds the bytes as they were at the call; later changes of the file do not show in it. */
export function openAsBlobCall(readFileSync: Body): Body {
  return named((path, options = {}) => {
    validateObject(options, 'options');
    const type = (options as { type?: unknown }).type || '';
    validateString(type, 'options.type');
    try {
      return Promise.resolve(new Blob([bytesOf(readFileSync(path) as Uint8Array) as Uint8Array<ArrayBuffer>], { type }));
    } catch (error) {
      if (!isFault(error)) throw error;
      throw codedError(TypeError, 'ERR_INVALID_ARG_VALUE', 'Unable to open file as blob');
    }
  }, 'openAsBlob', 1);
}

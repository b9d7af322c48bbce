import { Buffer } from 'node:buffer';
import { constants } from 'node:fs';
import { pathName, validateObject } from './arguments.ts';
import type { contentCalls } from './contents.ts';
import type { descriptorCalls } from './descriptors.ts';
import { codedError, invalidType } from './errors.ts';
import { FileHandle, type HandleCalls } from './handle.ts';
import { named, promiseOf, type Body, type Call } from './lift.ts';
import type { StreamClasses } from './streams.ts';
import { isView, READ_BUFFER_BYTES, readRequest, validateViews, writeRequest } from './transfer.ts';

type Descriptors = ReturnType<typeof descriptorCalls>;
type Contents = ReturnType<typeof contentCalls>;

/** The bodies behind a FileHandle: those of the descriptor calls, their results as node's FileHandle gives them. */
export function handleCalls(
  { calls, readLifted, readvSync, write, writevSync }: Descriptors, contents: Contents, streams: StreamClasses,
): HandleCalls {
  const read: Body = (fd, ...given) => {
    const { buffer, offset, length, position } = readParameters(given);
    const bytes = (buffer as { byteLength?: number }).byteLength ?? 0;
    const request = readRequest(fd as number, buffer, [offset ?? 0, length ?? bytes - Number(offset ?? 0), lenient(position)]);
    return Promise.resolve(readLifted(request)).then((bytesRead) => result({ bytesRead, buffer }));
  };
  const bodies: HandleCalls['bodies'] = {
    fchmod: calls.fchmod.sync,
    fchown: calls.fchown.sync,
    fdatasync: calls.fdatasync.sync,
    fsync: calls.fsync.sync,
    fstat: calls.fstat.sync,
    ftruncate: calls.ftruncate.sync,
    futimes: calls.futimes.sync,
    read,
    readv(fd, buffers, position) {
      return result({ bytesRead: readvSync(fd, buffers, position), buffers });
    },
    write(fd, data, ...range) {
      if ((data as { byteLength?: unknown } | null | undefined)?.byteLength === 0) return result({ bytesWritten: 0, buffer: data });
      return result({ bytesWritten: write(writeRequest(fd as number, data, range)), buffer: data });
    },
    writev(fd, buffers, position) {
      validateViews(buffers);
      return result({ bytesWritten: writevSync(fd, buffers, position), buffers });
    },
    readFile: contents.readFile.lifted,
    writeFile: contents.writeFile.promised,
    appendFile: contents.appendFile.promised,
  };
  return {
    bodies,
    close: (fd) => calls.close.sync(fd),
    createReadStream: (options) => new streams.ReadStream(undefined, options),
    createWriteStream: (options) => new streams.WriteStream(undefined, options),
  };
}

interface ReadParameters {
  readonly buffer: unknown;
  readonly offset?: unknown;
  readonly length?: unknown;
  readonly position?: unknown;
}

/** `(buffer, offset, length, position)`, `(buffer, options)`, `(options)` or nothing. */
function readParameters([first, second, length, position]: readonly unknown[]): ReadParameters {
  if (isView(first)) {
    if (typeof second === 'object' && second !== null) return { ...second, buffer: first };
    return { buffer: first, offset: second, length, position };
  }
  if (first !== undefined) validateObject(first, 'options', 'nullable');
  const { buffer = Buffer.alloc(READ_BUFFER_BYTES), ...range } = (first ?? {}) as Partial<ReadParameters>;
  if (!isView(buffer)) throw invalidType('buffer', ['Buffer', 'TypedArray', 'DataView'], buffer);
  return { buffer, ...range };
}

/** Of a position that is none, a FileHandle takes its own. */
function lenient(position: unknown): unknown {
  return Number.isSafeInteger(position) || typeof position === 'bigint' ? position : null;
}

/** Without a prototype, as node's are. */
function result(fields: object): object {
  return Object.assign(Object.create(null) as object, fields);
}

/** `fs.promises`: every call that has a promise, lifted; a FileHandle may stand for a path where node takes one. */
export function promiseCalls(calls: Readonly<Record<string, Call>>, open: Body, handles: HandleCalls): Record<string, unknown> {
  const promises: Record<string, unknown> = {};
  for (const [name, call] of Object.entries(calls)) {
    if (!call.promise) continue;
    const body = call.promised ?? call.lifted ?? call.sync;
    promises[name] = named(promiseOf(HANDLE_CALLS.has(name) ? orHandle(name as 'readFile', body) : body), name, body.length);
  }
  promises['open'] = named(promiseOf((...args) => new FileHandle(handles, open(...args) as number)), 'open', 3);
  promises['lchmod'] = async function lchmod(): Promise<never> {
    throw codedError(Error, 'ERR_METHOD_NOT_IMPLEMENTED', 'The lchmod() method is not implemented');
  };
  promises['constants'] = constants;
  return promises;
}

const HANDLE_CALLS = new Set(['readFile', 'writeFile', 'appendFile']);

function orHandle(name: 'readFile' | 'writeFile' | 'appendFile', body: Body): Body {
  return (path, ...rest) => {
    if (path instanceof FileHandle) return (path[name] as Body).apply(path, rest);
    // A promise takes no descriptor where a callback does.
    return body(typeof path === 'number' ? pathName(path) : path, ...rest);
  };
}

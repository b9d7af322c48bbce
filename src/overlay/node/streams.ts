import * as fs from 'node:fs';
import { codedError } from './errors.ts';
import { FileHandle } from './handle.ts';
import { conclude, type Body } from './lift.ts';

/**
 * ReadStream and WriteStream: node's own, told to go through this face. They look its methods up at each call, so
 * whoever patches `open`, `read`, `write` or `close` of the face sees the streams use them.
 */
type StreamClass<T> = { new (path: unknown, options?: unknown): T; (path: unknown, options?: unknown): T; prototype: T };

export interface StreamClasses {
  ReadStream: StreamClass<fs.ReadStream>;
  WriteStream: StreamClass<fs.WriteStream>;
}

/** `ReadStream` and `WriteStream` that make their calls through `face`, whatever stands there then. */
export function streamClasses(face: object): StreamClasses {
  return {
    ReadStream: over(fs.ReadStream as unknown as StreamClass<fs.ReadStream>, 'ReadStream', face),
    WriteStream: over(fs.WriteStream as unknown as StreamClass<fs.WriteStream>, 'WriteStream', face),
  };
}

/** A function and no class: old code calls it without `new`, or applies it to an object that inherits from it. */
function over<T extends fs.ReadStream | fs.WriteStream>(NodeStream: StreamClass<T>, name: string, face: object): StreamClass<T> {
  const Stream = function (this: unknown, path: unknown, options?: unknown) {
    if (!(this instanceof Stream)) return new Stream(path, options);
    const handle = (options as { fd?: unknown } | null | undefined)?.fd;
    if (!(handle instanceof FileHandle)) {
      Reflect.apply(NodeStream, this, [path, through(options, face)]);
      return this;
    }
    if ((options as { fs?: unknown }).fs) {
      throw codedError(Error, 'ERR_METHOD_NOT_IMPLEMENTED', 'The FileHandle with fs method is not implemented');
    }
    Reflect.apply(NodeStream, this, [path, { ...(options as object), fd: handle.fd, fs: operations(handle) }]);
    handle.retain();
    handle.on('close', () => this.close());
    return this;
  } as unknown as StreamClass<T>;
  Object.defineProperty(Stream, 'name', { value: name });
  Object.setPrototypeOf(Stream, NodeStream);
  Stream.prototype = Object.create(NodeStream.prototype, {
    constructor: { value: Stream, writable: true, configurable: true },
  }) as T;
  return Stream;
}

/** `options` with this face where they name none; what is no options at all is left for node to refuse. */
function through(options: unknown, face: object): unknown {
  if (options === undefined || options === null) return { fs: face };
  if (typeof options === 'string') return { encoding: options, fs: face };
  if (typeof options !== 'object') return options;
  const own: Record<string, unknown> = {};
  // Inherited options count, as they do for node.
  for (const key in options) own[key] = (options as Record<string, unknown>)[key];
  own['fs'] ||= face;
  return own;
}

/** A FileHandle in the shape of the functions that a stream calls. */
function operations(handle: FileHandle): Record<string, Body> {
  /** A call of the handle that moves bytes, told as the callbacks of `fs.read` and `fs.write` are. */
  const moved = (promise: Promise<unknown>, count: 'bytesRead' | 'bytesWritten', buffer: unknown, done: unknown): void => {
    conclude(() => promise, [], (error, result) => {
      (done as Body)(error, error ? 0 : (result as Record<typeof count, number>)[count], buffer);
    });
  };
  return {
    open: (_path, _flags, _mode, done) => (done as Body)(null, handle.fd),
    close(_fd, done) {
      handle.release();
      conclude(handle.close, [], done as Body);
    },
    fsync: (_fd, done) => conclude(() => handle.sync(), [], done as Body),
    read: (_fd, buffer, offset, length, position, done) =>
      moved(handle.read(buffer, offset, length, position), 'bytesRead', buffer, done),
    write: (_fd, buffer, offset, length, position, done) =>
      moved(handle.write(buffer, offset, length, position), 'bytesWritten', buffer, done),
    writev: (_fd, buffers, position, done) => moved(handle.writev(buffers, position), 'bytesWritten', buffers, done),
  };
}

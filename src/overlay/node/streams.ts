import * as fs from 'node:fs';
import { codedError } from './errors.ts';
import { FileHandle } from './handle.ts';

/**
 * ReadStream and WriteStream: node's own, told to go through this face. They look its methods up at each call, so
 * whoever patches `open`, `read`, `write` or `close` of the face sees the streams use them.
 */
type StreamClass<T> = { new (path: unknown, options?: unknown): T; (path: unknown, options?: unknown): T; prototype: T };

export interface StreamClasses {
  ReadStream: StreamClass<fs.ReadStream>;
  WriteStream: StreamClass<fs.WriteStream>;
}

export function streamClasses(face: object): StreamClasses {
  return {
    ReadStream: over(fs.ReadStream as unknown as StreamClass<fs.ReadStream>, 'ReadStream', face),
    WriteStream: over(fs.WriteStream as unknown as StreamClass<fs.WriteStream>, 'WriteStream', face),
  };
}

/** A function and no class: old code calls it without `new`, or applies it to an object that inherits from it. */
function over<T extends fs.ReadStream | fs.WriteStream>(NodeStream: StreamClass<T>, name: string, face: object): StreamClass<T> {
  const Stream = function (this: unknown, path: unknown, options?: unknown) {
    if (!(this instanceof Stream)) return new (Stream as StreamClass<T>)(path, options);
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
    const stream = this as unknown as T;
    handle.on('close', () => stream.close());
    return this;
  } as unknown as StreamClass<T>;
  Object.defineProperty(Stream, 'name', { value: name });
  Object.setPrototypeOf(Stream, NodeStream);
  Stream.prototype = Object.create(NodeStream.prototype as object, {
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

type Done = (error: unknown, ...results: unknown[]) => void;

/** A FileHandle in the shape of the functions that a stream calls. */
function operations(handle: FileHandle): object {
  return {
    open: (_path: unknown, _flags: unknown, _mode: unknown, done: Done) => done(null, handle.fd),
    close: (_fd: number, done: Done) => {
      handle.release();
      handle.close().then(() => done(null), done);
    },
    fsync: (_fd: number, done: Done) => {
      handle.sync().then(() => done(null), done);
    },
    read: (_fd: number, buffer: Uint8Array, offset: number, length: number, position: unknown, done: Done) => {
      handle.read(buffer, offset, length, position).then(
        (result) => done(null, (result as { bytesRead: number }).bytesRead, buffer), (error) => done(error, 0, buffer));
    },
    write: (_fd: number, buffer: Uint8Array, offset: number, length: number, position: unknown, done: Done) => {
      handle.write(buffer, offset, length, position).then(
        (result) => done(null, (result as { bytesWritten: number }).bytesWritten, buffer), (error) => done(error, 0, buffer));
    },
    writev: (_fd: number, buffers: Uint8Array[], position: unknown, done: Done) => {
      handle.writev(buffers, position).then(
        (result) => done(null, (result as { bytesWritten: number }).bytesWritten, buffers), (error) => done(error, 0, buffers));
    },
  };
}

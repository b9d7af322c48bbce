import { Buffer } from 'node:buffer';
import { constants } from 'node:fs';
import type { PathName } from '../../core/path.ts';
import { Refusal } from '../../core/refusal.ts';
import { FIRST_DESCRIPTOR, type System } from '../system.ts';
import {
  bitMode, checkAborted, descriptor, fileMode, getOptions, isDescriptor, openFlags, pathName, validateBoolean,
  validateInteger, type CommonOptions,
} from './arguments.ts';
import { BULK_BYTES } from './descriptors.ts';
import { bothErrors, failure, invalidType, tooLarge } from './errors.ts';
import { laterTurn, type Call } from './lift.ts';
import { bytesOf, isView } from './transfer.ts';

/** What of the exported face these calls go through, so that a patched `fsync` is seen. */
export interface Flushing {
  fsyncSync(fd: number): void;
  fsync(fd: number, callback: (error: Error | null) => void): void;
}

/** Calls on whole contents: readFile, writeFile, appendFile, copyFile, truncate. */
export function contentCalls(system: System, face: Flushing) {
  function readWhole(name: PathName, flags: number, limit: number): Uint8Array | number {
    let content;
    try {
      content = system.readFile(name, flags, limit);
    } catch (error) {
      throw readFailure(error, name, flags);
    }
    // A System may give more than was asked for; node's callers never get it.
    if (typeof content !== 'number' && content.length > READ_LIMIT) throw tooLarge(content.length);
    return content;
  }

  function readFileSync(path: unknown, options?: unknown): unknown {
    const { encoding, flag } = getOptions<ReadOptions>(options, READ_DEFAULTS);
    if (isDescriptor(path)) return decoded(readRest(descriptor(path)), encoding);
    const flags = openFlags(flag, 'options.flag');
    const content = readWhole(pathName(path), flags, READ_LIMIT);
    return decoded(typeof content === 'number' ? refuseLarge(content) : content, encoding);
  }

  function refuseLarge(fd: number): never {
    try {
      throw tooLarge(system.fstat(fd).size);
    } finally {
      system.close(fd);
    }
  }

  function readFile(path: unknown, options?: unknown): unknown {
    const { encoding, flag, signal } = getOptions<ReadOptions>(options, READ_DEFAULTS);
    if (isDescriptor(path)) {
      const fd = descriptor(path);
      return readRestLater(fd, signal).then((bytes) => decoded(bytes, encoding));
    }
    const flags = openFlags(flag, 'options.flag');
    const name = pathName(path);
    checkAborted(signal);
    if (signal) {
      return laterTurn().then(() => {
        checkAborted(signal);
        return contentLater(readWhole(name, flags, BULK_BYTES), signal);
      }).then((bytes) => decoded(bytes, encoding));
    }
    const content = readWhole(name, flags, BULK_BYTES);
    if (typeof content !== 'number') return decoded(content, encoding);
    return contentLater(content, signal).then((bytes) => decoded(bytes, encoding));
  }

  /** The content, read through and closing the descriptor where it was too much to be read at once. */
  async function contentLater(content: Uint8Array | number, signal: AbortSignal | undefined): Promise<Uint8Array> {
    if (typeof content !== 'number') return content;
    try {
      checkSize(content);
      return await readRestLater(content, signal, system.fstat(content).size);
    } finally {
      system.close(content);
    }
  }

  /** From the descriptor's position to the end. */
  function readRest(fd: number): Uint8Array {
    const parts: Uint8Array[] = [];
    try {
      for (let size = FIRST_CHUNK_BYTES; ; size = BULK_BYTES) {
        const part = Buffer.allocUnsafeSlow(size);
        const count = system.read(fd, part, 0, size, null);
        if (count === 0) break;
        if (size === BULK_BYTES) checkSize(fd);
        parts.push(part.subarray(0, count));
      }
    } catch (error) {
      throw error instanceof Refusal ? failure(error, 'read') : error;
    }
    return parts.length === 1 ? parts[0] as Uint8Array : Buffer.concat(parts);
  }

  /** The same beside the thread where it is much or may block; `expected` bytes are allocated at once. */
  async function readRestLater(fd: number, signal: AbortSignal | undefined, expected = 0): Promise<Uint8Array> {
    checkAborted(signal);
    const parts: Uint8Array[] = [];
    const blocks = fd < FIRST_DESCRIPTOR;
    let part = Buffer.allocUnsafeSlow(expected || FIRST_CHUNK_BYTES), filled = 0, total = 0;
    try {
      for (;;) {
        if (filled === part.length) {
          if (total >= BULK_BYTES && expected === 0) checkSize(fd);
          parts.push(part);
          part = Buffer.allocUnsafeSlow(expected ? FIRST_CHUNK_BYTES : BULK_BYTES);
          filled = 0;
        }
        const wanted = Math.min(part.length - filled, BULK_BYTES);
        const count = total < BULK_BYTES && !blocks && expected === 0
          ? system.read(fd, part, filled, wanted, null)
          : await system.readLater(fd, part, filled, wanted, null);
        if (signal) {
          await laterTurn();
          checkAborted(signal);
        }
        if (count === 0) break;
        filled += count;
        total += count;
      }
    } catch (error) {
      throw error instanceof Refusal ? failure(error, 'read') : error;
    }
    if (filled > 0) parts.push(part.subarray(0, filled));
    return parts.length === 1 ? parts[0] as Uint8Array : Buffer.concat(parts);
  }

  function checkSize(fd: number): void {
    const { size } = system.fstat(fd);
    if (size > READ_LIMIT) throw tooLarge(size);
  }

  function writeAll(fd: number, bytes: Uint8Array): void {
    try {
      for (let at = 0; at < bytes.length;) at += system.write(fd, bytes, at, bytes.length - at, null);
    } catch (error) {
      throw failure(error, 'write');
    }
  }

  function writeNothing(fd: number): void {
    try {
      system.write(fd, new Uint8Array(0), 0, 0, null);
    } catch (error) {
      throw failure(error, 'write');
    }
  }

  function opened(name: PathName, flags: number, mode: number): number {
    try {
      return system.open(name, flags, mode);
    } catch (error) {
      throw failure(error, 'open', name);
    }
  }

  function closed(fd: number): void {
    try {
      system.close(fd);
    } catch (error) {
      throw failure(error, 'close');
    }
  }

  function writeWhole(name: PathName, bytes: Uint8Array, flags: number, mode: number): void {
    try {
      system.writeFile(name, bytes, flags, mode);
    } catch (error) {
      throw writeFailure(error, name);
    }
  }

  function writeNow(path: unknown, data: unknown, options: WriteOptions): void {
    const { flush, flag, encoding, mode } = checkedWrite(options);
    const bytes = dataBytes(data, encoding);
    if (isDescriptor(path)) {
      writeAll(path, bytes);
      if (flush) face.fsyncSync(path);
      return;
    }
    const name = pathName(path), flags = openFlags(flag), permissions = fileMode(mode, 'mode', 0o666);
    if (!flush) return writeWhole(name, bytes, flags, permissions);
    const fd = opened(name, flags, permissions);
    try {
      writeAll(fd, bytes);
      face.fsyncSync(fd);
    } finally {
      closed(fd);
    }
  }

  function writeLater(path: unknown, data: unknown, options: WriteOptions, parts: 'parts' | 'whole'): unknown {
    const { signal } = options;
    const { flush, flag, encoding, mode } = checkedWrite(options);
    const content = parts === 'parts' && isParts(data) ? data : dataBytes(data, encoding);
    if (isDescriptor(path)) {
      // Node's callbacks make one call even for nothing, which a descriptor of the wrong kind refuses; its promises do not.
      if (parts === 'whole' && content instanceof Uint8Array && content.length === 0) writeNothing(path);
      return writeOpen(path, content, { flush, encoding, signal });
    }
    checkAborted(signal);
    const name = pathName(path), flags = openFlags(flag), permissions = fileMode(mode, 'mode', 0o666);
    if (content instanceof Uint8Array && !flush && !signal) return writeWhole(name, content, flags, permissions);
    return writeOpening(name, content, flags, permissions, { flush, encoding, signal });
  }

  async function writeOpening(
    name: PathName, content: Uint8Array | Parts, flags: number, mode: number, how: WriteManner,
  ): Promise<void> {
    // The file is opened at once, as a call without a signal does it; the signal can still stop the bytes.
    const fd = opened(name, flags, mode);
    let fault: unknown;
    try {
      await writeOpen(fd, content, how);
    } catch (error) {
      fault = error;
    }
    try {
      closed(fd);
    } catch (error) {
      fault = bothErrors(error, fault);
    }
    if (fault !== undefined) throw fault;
  }

  async function writeOpen(fd: number, content: Uint8Array | Parts, { flush, encoding, signal }: WriteManner): Promise<void> {
    if (signal) await laterTurn();
    checkAborted(signal);
    if (content instanceof Uint8Array) writeAll(fd, content);
    else {
      for await (const part of content) {
        checkAborted(signal);
        writeAll(fd, isView(part) ? bytesOf(part) : Buffer.from(part as string, (encoding || 'utf8') as BufferEncoding));
        if (signal) await laterTurn();
        checkAborted(signal);
      }
    }
    if (!flush) return;
    await new Promise<void>((resolve, reject) => {
      face.fsync(fd, (error) => error ? reject(error) : resolve());
    });
  }

  function writeFileSync(path: unknown, data: unknown, options?: unknown): void {
    writeNow(path, data, getOptions<WriteOptions>(options, WRITE_DEFAULTS));
  }

  function appendFileSync(path: unknown, data: unknown, options?: unknown): void {
    writeNow(path, data, appending(path, options));
  }

  function writeFile(parts: 'parts' | 'whole'): Call['sync'] {
    return (path, data, options) => writeLater(path, data, getOptions<WriteOptions>(options, WRITE_DEFAULTS), parts);
  }

  function appendFile(parts: 'parts' | 'whole'): Call['sync'] {
    return (path, data, options) => writeLater(path, data, appending(path, options), parts);
  }

  function copyFileSync(source: unknown, target: unknown, mode?: unknown): void {
    const from = pathName(source, 'src'), to = pathName(target, 'dest');
    const bits = bitMode(mode, COPY_BITS);
    try {
      system.copyFile(from, to, { exclusive: (bits & constants.COPYFILE_EXCL) !== 0 });
    } catch (error) {
      throw failure(error, 'copyfile', from, to);
    }
  }

  function truncatePath(path: unknown, length: unknown = 0): void {
    validateInteger(length, 'len');
    const name = pathName(path);
    try {
      system.truncate(name, Math.max(0, length));
    } catch (error) {
      throw failure(error, 'open', name);
    }
  }

  return {
    readFile: { sync: readFileSync, lifted: readFile, callback: [1, 2], promise: true },
    writeFile: { sync: writeFileSync, lifted: writeFile('whole'), promised: writeFile('parts'), callback: [2, 3], promise: true },
    appendFile: { sync: appendFileSync, lifted: appendFile('whole'), promised: appendFile('parts'), callback: [2, 3], promise: true },
    copyFile: { sync: copyFileSync, callback: [2, 3], promise: true },
    truncate: { sync: truncatePath, check: (_path, length = 0) => validateInteger(length, 'len'), callback: [1, 2], promise: true },
  } satisfies Record<string, Call>;
}

interface ReadOptions extends CommonOptions {
  readonly flag?: unknown;
}

interface WriteOptions extends ReadOptions {
  readonly mode?: unknown;
  readonly flush?: unknown;
}

type Parts = AsyncIterable<unknown> | Iterable<unknown>;

interface WriteManner {
  readonly flush: boolean;
  readonly encoding: CommonOptions['encoding'];
  readonly signal: AbortSignal | undefined;
}

const READ_DEFAULTS: ReadOptions = { flag: 'r' };
const WRITE_DEFAULTS: WriteOptions = { encoding: 'utf8', mode: 0o666, flag: 'w', flush: false };
const APPEND_DEFAULTS: WriteOptions = { encoding: 'utf8', mode: 0o666, flag: 'a' };
const COPY_BITS = constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE | constants.COPYFILE_FICLONE_FORCE;
const FIRST_CHUNK_BYTES = 64 * 1024;
/** Node's limit of one read, which is also what its error says. */
const READ_LIMIT = 2 ** 31 - 1;

function decoded(content: Uint8Array, encoding: CommonOptions['encoding']): string | Buffer {
  const buffer = Buffer.isBuffer(content) ? content : Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  return encoding ? buffer.toString(encoding as BufferEncoding) : buffer;
}

function dataBytes(data: unknown, encoding: CommonOptions['encoding']): Uint8Array {
  if (isView(data)) return bytesOf(data);
  if (typeof data !== 'string') throw invalidType('data', ['string', 'Buffer', 'TypedArray', 'DataView'], data);
  return Buffer.from(data, (encoding || 'utf8') as BufferEncoding);
}

function isParts(data: unknown): data is Parts {
  return typeof data === 'object' && data !== null && !isView(data) && (Symbol.asyncIterator in data || Symbol.iterator in data);
}

function checkedWrite(options: WriteOptions) {
  const { encoding, mode, flag } = options;
  const flush = options.flush ?? false;
  validateBoolean(flush, 'options.flush');
  return { encoding, mode, flush, flag: flag || 'w' };
}

function appending(path: unknown, options: unknown): WriteOptions {
  const given = getOptions<WriteOptions>(options, APPEND_DEFAULTS);
  return given.flag && !isDescriptor(path) ? given : { ...given, flag: 'a' };
}

/** Opening and reading fail under different names; what a directory says, it says to the read. */
function readFailure(error: unknown, name: PathName, flags: number): Error {
  const code = error instanceof Refusal ? error.code : '';
  const writing = (flags & (constants.O_WRONLY | constants.O_RDWR)) !== 0;
  if (code === 'EIO' || code === 'EBADF' || (code === 'EISDIR' && !writing)) return failure(error, 'read');
  return failure(error, 'open', name);
}

const WRITE_FAULTS = new Set(['EBADF', 'EDQUOT', 'EFBIG', 'EIO', 'ENOSPC']);

function writeFailure(error: unknown, name: PathName): Error {
  if (error instanceof Refusal && WRITE_FAULTS.has(error.code)) return failure(error, 'write');
  return failure(error, 'open', name);
}

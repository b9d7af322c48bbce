import {
  closeSync, constants, existsSync, fchmodSync, fstatSync, openSync, readdirSync, renameSync, rmSync, rmdirSync, statSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { Version } from '../core/version.ts';
import { DiskBytes } from './bytes.ts';
import { SessionError } from './fault.ts';
import { hasCode, makePrivate, readFully, writeSome } from './file.ts';
import { readHeader } from './header.ts';
import { BLOBS_NAME, LOG_NAME } from './open.ts';
import { PACK_MAGIC, RECORD_BYTES, scanPack } from './pack.ts';
import { BLOCK_BYTES, padding, readTarHeader, tarEnd, tarHeader } from './tar.ts';

/**
 * A session as one file: an archive (tar.ts) whose first entry, `palimpsest-session.json`, says what it is and names every other with its size:
 *
 *     {"palimpsest-session":1,"session":…,"files":[["log.jsonl",1234],["blobs/000000.pack",5678],…]}
 *
 * The log is in it up to its last whole line, and blobs as they are there: what a live session's log speaks of is in its blobs already.
 */
const MANIFEST_NAME = 'palimpsest-session.json';
const MANIFEST_VERSION = 1;
/** A manifest names some files; a session has one for every blob of 64 KiB or more. */
const MANIFEST_LIMIT_BYTES = 256 * 1024 * 1024;
const STEP_BYTES = 1 << 20;
/** The end of a log in which its last whole line is looked for, at first. */
const TAIL_BYTES = 64 * 1024;
const NEWLINE = 10;

/** What a session's files may be called, and nothing else may. */
const NAMES = /^(?:log\.jsonl|checkpoint|blobs\/(?:[0-9]{6,}\.pack|catalog|[0-9a-f]{64}))$/;

interface Part {
  readonly name: string;
  readonly size: number;
}

/**
 * The session in `directory` as one file, a piece at a time; beside its live writer, too. `harmless`: asked once for the blobs that may be in it, where not
 * all may. Throws `SessionError` where none is there, or where it is a fork: that is not whole without its parent.
 */
export function* packedSession(directory: string, harmless?: () => ReadonlySet<Version>): Generator<Uint8Array> {
  const log = openLog(directory);
  let parts: Part[], session: string, kept: ReadonlySet<Version> | undefined;
  try {
    const source = new DiskBytes(log, fstatSync(log).size), { header } = readHeader(source, directory, LOG_NAME);
    if (header.parent !== undefined) {
      throw new SessionError('ERR_SESSION_FORMAT', directory, `not supported: a fork of session ${header.parent.session} cannot be packed without it`);
    }
    session = header.session;
    // The log first: what it speaks of up to here is in the blobs by now.
    const size = wholeLines(source);
    kept = harmless?.();
    parts = [{ name: LOG_NAME, size }, ...partsIn(directory).filter(({ name }) => kept === undefined || isKept(name, kept))];
  } finally {
    closeSync(log);
  }
  const manifest = Buffer.from(JSON.stringify({ 'palimpsest-session': MANIFEST_VERSION, session, files: parts.map(({ name, size }) => [name, size]) }) + '\n');
  yield* entry(MANIFEST_NAME, manifest.length, [manifest]);
  for (const { name, size } of parts) {
    const path = join(directory, name), content = contentOf(path, size);
    yield* entry(name, size, kept !== undefined && name.endsWith('.pack') ? blanked(content, placesIn(path, size, kept)) : content);
  }
  yield tarEnd();
}

/**
 * Makes a session in `directory`, which must not be there yet, from the file that `packedSession` made. Throws `SessionError` for a file that is none of
 * those, is damaged or cut short; nothing is left then.
 */
export function unpackSession(file: string, directory: string): void {
  if (existsSync(directory)) throw new SessionError('ERR_SESSION_DIRECTORY', directory, 'is there already');
  const whole = resolve(directory), making = join(dirname(whole), `.${basename(whole)}.${process.pid}.part`), fd = openParcel(file);
  try {
    rmSync(making, { recursive: true, force: true });
    makePrivate(making);
    unpack(new Parcel(file, fd), making);
    renameSync(making, whole);
  } catch (error) {
    rmSync(making, { recursive: true, force: true });
    throw error;
  } finally {
    closeSync(fd);
  }
}

/** Whether a path is a file, which may be a packed session. */
export function isParcel(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

function unpack(parcel: Parcel, directory: string): void {
  const sizes = parcel.manifest();
  makePrivate(join(directory, BLOBS_NAME));
  let blobs = 0;
  for (let left = sizes.size; left > 0; left--) {
    const name = parcel.next(), size = sizes.get(name);
    if (size === undefined) throw parcel.fault(`it holds "${name}", which is not in its list`);
    sizes.delete(name);
    if (name.startsWith(BLOBS_NAME)) blobs++;
    writeNew(join(directory, name), parcel, size);
  }
  parcel.end();
  if (blobs === 0) rmdirSync(join(directory, BLOBS_NAME));
}

/** The file, read from its start to its end. */
class Parcel {
  private readonly file: string;
  private readonly fd: number;
  private at = 0;

  constructor(file: string, fd: number) {
    this.file = file;
    this.fd = fd;
  }

  fault(words: string): SessionError {
    return new SessionError('ERR_NOT_A_SESSION', this.file, words);
  }

  /** Sizes by name, as the first entry has them. */
  manifest(): Map<string, number> {
    const block = Buffer.alloc(BLOCK_BYTES), got = readFully(this.fd, block, 0, BLOCK_BYTES, 0);
    const head = got === BLOCK_BYTES ? readTarHeader(block) : 'damaged';
    if (head === undefined || head === 'damaged' || head.name !== MANIFEST_NAME || head.flag !== '0' || head.size > MANIFEST_LIMIT_BYTES) {
      throw this.fault('is no packed session, which palimpsest export session makes');
    }
    this.at = BLOCK_BYTES;
    const bytes = Buffer.alloc(head.size);
    this.read(bytes, head.size);
    this.skipPadding(head.size);
    return this.listed(bytes.toString());
  }

  /** The name of the next entry; its content is what is read next. */
  next(): string {
    for (;;) {
      const block = Buffer.alloc(BLOCK_BYTES);
      this.read(block, BLOCK_BYTES);
      const head = readTarHeader(block);
      if (head === undefined) throw this.fault('is cut short: files of its list are missing');
      if (head === 'damaged') throw this.fault(`is damaged at byte ${this.at - BLOCK_BYTES}`);
      if (head.flag === '0') return head.name;
      // Only what is too large for a plain header has another before it; the list has that size as well.
      if (head.flag !== 'x') throw this.fault(`it holds "${head.name}", which is no file`);
      this.at += head.size + padding(head.size).length;
    }
  }

  /** Fills `into` with the next `length` bytes. */
  read(into: Uint8Array, length: number): void {
    if (readFully(this.fd, into, 0, length, this.at) !== length) throw this.fault('is cut short');
    this.at += length;
  }

  skipPadding(size: number): void {
    this.at += padding(size).length;
  }

  end(): void {
    const end = tarEnd();
    this.read(end, end.length);
    if (end.some((byte) => byte !== 0)) throw this.fault('holds more than its list says');
  }

  private listed(text: string): Map<string, number> {
    let found: unknown;
    try {
      found = JSON.parse(text);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
    const { 'palimpsest-session': version, files } = (found ?? {}) as { 'palimpsest-session'?: unknown; files?: unknown };
    if (version !== MANIFEST_VERSION) throw this.fault(`is a packed session of format ${String(version)}; ${MANIFEST_VERSION} is known here`);
    const sizes = new Map<string, number>();
    for (const each of Array.isArray(files) ? files as unknown[] : []) {
      const [name, size] = Array.isArray(each) ? each as unknown[] : [];
      if (typeof name !== 'string' || !NAMES.test(name)) throw this.fault(`its list names ${JSON.stringify(name)}, which no session has`);
      if (!Number.isSafeInteger(size) || (size as number) < 0 || sizes.has(name)) throw this.fault(`its list is damaged at "${name}"`);
      sizes.set(name, size as number);
    }
    if (!sizes.has(LOG_NAME)) throw this.fault(`has no ${LOG_NAME}`);
    return sizes;
  }
}

function openLog(directory: string): number {
  try {
    return openSync(join(directory, LOG_NAME), constants.O_RDONLY);
  } catch (error) {
    if (!hasCode(error, 'ENOENT') && !hasCode(error, 'ENOTDIR')) throw error;
    throw new SessionError('ERR_NO_SESSION', directory, 'no session is there', { cause: error });
  }
}

function openParcel(file: string): number {
  try {
    return openSync(file, constants.O_RDONLY);
  } catch (error) {
    throw new SessionError('ERR_NO_SESSION', file, `cannot be opened (${(error as NodeJS.ErrnoException).code})`, { cause: error });
  }
}

/** Bytes of a log up to the end of its last whole line. */
function wholeLines(log: DiskBytes): number {
  for (let length = TAIL_BYTES; ; length *= 16) {
    const from = Math.max(0, log.size - length), bytes = Buffer.alloc(log.size - from);
    log.read(bytes, 0, bytes.length, from);
    const end = bytes.lastIndexOf(NEWLINE);
    if (end >= 0 || from === 0) return from + end + 1;
  }
}

function partsIn(directory: string): Part[] {
  const blobs = join(directory, BLOBS_NAME), names = existsSync(blobs) ? readdirSync(blobs).sort().map((name) => `${BLOBS_NAME}/${name}`) : [];
  return [...names, 'checkpoint'].filter((name) => NAMES.test(name)).flatMap((name) => {
    const stats = statSync(join(directory, name), { throwIfNoEntry: false });
    return stats?.isFile() === true ? [{ name, size: stats.size }] : [];
  });
}

/** Whether a file may be handed on; the catalog would tell of blobs that are not in the packs any more. */
function isKept(name: string, kept: ReadonlySet<Version>): boolean {
  const digest = /^blobs\/([0-9a-f]{64})$/.exec(name)?.[1];
  return digest === undefined ? name !== `${BLOBS_NAME}/catalog` : kept.has(`sha256:${digest}` as Version);
}

/** Where the first `size` bytes of a pack hold blobs of `kept`, from their records' heads on; sorted. */
function placesIn(path: string, size: number, kept: ReadonlySet<Version>): [start: number, end: number][] {
  const fd = openSync(path, constants.O_RDONLY), places: [number, number][] = [[0, PACK_MAGIC.length]];
  try {
    scanPack(new DiskBytes(fd, size), PACK_MAGIC.length, (digest, at, length) => {
      if (kept.has(digest)) places.push([at - RECORD_BYTES, at + length]);
    });
    return places;
  } finally {
    closeSync(fd);
  }
}

/** The same bytes with zeros for all that is in none of `places`: a pack's reader goes on to the next record. */
function* blanked(pieces: Iterable<Buffer>, places: readonly (readonly [start: number, end: number])[]): Generator<Buffer> {
  let at = 0, first = 0;
  for (const piece of pieces) {
    const blank = Buffer.alloc(piece.length), end = at + piece.length;
    while (first < places.length && (places[first] as readonly [number, number])[1] <= at) first++;
    for (let i = first; i < places.length; i++) {
      const [from, to] = places[i] as readonly [number, number];
      if (from >= end) break;
      const start = Math.max(from, at);
      piece.copy(blank, start - at, start - at, Math.min(to, end) - at);
    }
    yield blank;
    at = end;
  }
}

function* entry(name: string, size: number, pieces: Iterable<Uint8Array>): Generator<Uint8Array> {
  yield tarHeader({ name: Buffer.from(name), type: 'file', mode: 0o600, uid: 0, gid: 0, size, mtime: 0n });
  yield* pieces;
  yield padding(size);
}

/** `size` bytes of a file. What is replaced meanwhile (checkpoint, catalog) is only a cache: one that is too short is filled up, and is none. */
function* contentOf(path: string, size: number): Generator<Buffer> {
  const fd = openSync(path, constants.O_RDONLY);
  try {
    for (let at = 0; at < size;) {
      const piece = Buffer.alloc(Math.min(STEP_BYTES, size - at));
      readFully(fd, piece, 0, piece.length, at);
      yield piece;
      at += piece.length;
    }
  } finally {
    closeSync(fd);
  }
}

function writeNew(path: string, parcel: Parcel, size: number): void {
  const fd = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
  try {
    fchmodSync(fd, 0o600);
    for (let at = 0; at < size;) {
      const piece = Buffer.allocUnsafe(Math.min(STEP_BYTES, size - at));
      parcel.read(piece, piece.length);
      for (let done = 0; done < piece.length;) done += writeSome(fd, piece, done, at + done);
      at += piece.length;
    }
  } finally {
    closeSync(fd);
  }
  parcel.skipPadding(size);
}

import {
  chmodSync, constants, existsSync, fstatSync, mkdirSync, openSync, readdirSync, renameSync, rmdirSync, statSync, unlinkSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { Refusal } from '../core/refusal.ts';
import { MemoryBlobs } from './blob.ts';
import { DiskBytes, MemoryBytes } from './bytes.ts';
import { belongs, readCheckpoint, readCheckpointData, writeCheckpoint } from './checkpoint.ts';
import { CorruptLogError, LockedSessionError, SessionError } from './fault.ts';
import { hasCode, syncDirectory, writeNew } from './file.ts';
import { readHeader } from './header.ts';
import { LiveStore } from './live.ts';
import { takeLock } from './lock.ts';
import type { Lock } from './lock.ts';
import { Log, baseSeq, headerLine } from './log.ts';
import type { Header } from '../core/format.ts';
import type { Durability, StoreLimits } from './store.ts';
import { Vault } from './vault.ts';

/**
 * A session directory (mode 0700, files 0600):
 *
 *     log.jsonl     the log            lock          who writes (lock.ts)
 *     blobs/        vault.ts           checkpoint    a cache of the folded state (checkpoint.ts)
 *     control       a socket of whoever serves the session to others, while it does
 */
export const LOG_NAME = 'log.jsonl';
export const BLOBS_NAME = 'blobs';
export const CHECKPOINT_NAME = 'checkpoint';
/** The names that a session gives to what it keeps. */
/** Where whoever commits notes what the log is to say once that is done: not the store's, but part of a session. */
export const INTENT_FILE = 'commit.json';

export const OWN_NAMES = /^(lock|log\.jsonl|blobs|checkpoint|control|commit)(\.|$)/;
/** Logs up to this size are checked line by line at each opening, which takes up to 50 ms; larger ones from their checkpoint on. */
const CHECKED_WHOLE_BYTES = 8 * 1024 * 1024;

/** Some 40 million events, and what a long build may write; a runaway program ends here before the disk does. */
export const DIRECTORY_LIMITS: StoreLimits = { logBytes: 8 * 1024 ** 3, blobBytes: 256 * 1024 ** 3 };
/** What a process may hold of a session in memory. */
export const MEMORY_LIMITS: StoreLimits = { logBytes: 1024 ** 3, blobBytes: 4 * 1024 ** 3 };

/** A store that lives as long as the process. */
export function createMemoryStore(options: { header: Header; limits?: Partial<StoreLimits> }): LiveStore {
  const limits = { ...MEMORY_LIMITS, ...options.limits };
  const log = Log.create(LOG_NAME, options.header, new MemoryBytes(), limits.logBytes);
  return new LiveStore(log, new MemoryBlobs(limits.blobBytes), { durability: 'memory', readOnly: false });
}

export interface DirectoryStoreOptions {
  readonly directory: string;
  /** Line 1 of the log if the session is new. An existing one must have the same `root`. Without: it must exist. */
  readonly header?: Header;
  /** Default `flush`. */
  readonly durability?: Durability;
  readonly limits?: Partial<StoreLimits>;
  /** Logs larger than this many bytes are checked from their checkpoint on only. Default 8 MiB. */
  readonly checkedWholeBytes?: number;
  /** Takes no lock and writes nothing: for reading beside a live writer. */
  readonly readOnly?: boolean;
}

/**
 * Opens the session in a directory, or makes it. Throws `LockedSessionError` where a live process writes it,
 * `CorruptLogError` where its log is damaged, `SessionError` where the directory is not what was asked for. Where it
 * throws, the directory is as it was.
 */
export function openDirectoryStore(options: DirectoryStoreOptions): LiveStore {
  try {
    return options.readOnly === true ? openReader(options) : openOrMake(options);
  } catch (error) {
    throw nameDirectory(error, options.directory);
  }
}

function openOrMake(options: DirectoryStoreOptions): LiveStore {
  const { directory } = options;
  if (options.header === undefined && !existsSync(directory)) throw noSession(directory);
  const made: string[] = [];
  let lock: Lock | undefined;
  try {
    makeDirectories(resolve(directory), made);
    lock = takeLock(directory);
    return openWriter(options, lock);
  } catch (error) {
    lock?.release();
    removeMade(made);
    throw error;
  }
}

function openReader(options: DirectoryStoreOptions): LiveStore {
  if (!existsSync(join(options.directory, LOG_NAME))) throw noSession(options.directory);
  return openParts(options, { writable: false, release: () => undefined });
}

function openWriter(options: DirectoryStoreOptions, lock: Lock): LiveStore {
  const { directory, header } = options, path = join(directory, LOG_NAME);
  const isNew = !existsSync(path) || (header !== undefined && statSync(path).size === 0 && !holdsSession(directory));
  if (isNew) {
    if (header === undefined) throw noSession(directory);
    refuseForeign(directory);
    writeNew(path + '.part', headerLine(header), { through: options.durability === 'fsync' });
    renameSync(path + '.part', path);
  }
  try {
    return openParts(options, { writable: true, release: () => lock.release() });
  } catch (error) {
    if (isNew) unlinkSync(path);
    throw error;
  }
}

function openParts(options: DirectoryStoreOptions, access: { writable: boolean; release: () => void }): LiveStore {
  const { directory } = options, { writable } = access;
  const limits = { ...DIRECTORY_LIMITS, ...options.limits };
  const checkpointPath = join(directory, CHECKPOINT_NAME);
  const sink = openLog(directory, writable);
  let vault: Vault | undefined;
  try {
    const { header, end } = readHeader(sink, directory, join(directory, LOG_NAME));
    const expected = options.header?.root;
    if (expected !== undefined && header.root !== expected) {
      throw new SessionError('ERR_SESSION_ROOT', directory, `belongs to root ${header.root}, not ${expected}`);
    }
    const path = join(directory, LOG_NAME);
    const found = readCheckpoint(checkpointPath);
    const checkpoint = found !== undefined && belongs(found, header, sink) ? found : undefined;
    // A log that is read in no time is read whole, so that damage before the checkpoint is found as well.
    const from = checkpoint !== undefined && sink.size > (options.checkedWholeBytes ?? CHECKED_WHOLE_BYTES) ? checkpoint : undefined;
    const log = Log.open(path, sink, { header, end, limit: limits.logBytes, ...(from && { from }) });
    const blobs = vault = new Vault(join(directory, BLOBS_NAME), { limit: limits.blobBytes, writable });
    if (writable) log.cutTorn();
    let saved = checkpoint?.seq;
    return new LiveStore(log, blobs, {
      durability: options.durability ?? 'flush', readOnly: !writable,
      surroundings: {
        directory,
        saveCheckpoint(seq, data) {
          if (seq <= baseSeq(header) || seq > log.lastSeq) throw new RangeError(`no event ${seq} to keep the state of`);
          const { end, crc } = log.placeAfter(seq);
          writeCheckpoint(checkpointPath, { session: header.session, seq, end, line: crc, offsets: log.offsets }, data);
          blobs.saveCatalog();
          saved = seq;
        },
        loadCheckpoint(upTo) {
          if (saved === undefined || saved > upTo) return undefined;
          const data = readCheckpointData(checkpointPath, saved);
          return data === undefined ? undefined : { seq: saved, data };
        },
        release: access.release,
      },
    });
  } catch (error) {
    sink.close();
    vault?.close();
    throw error;
  }
}

function openLog(directory: string, writable: boolean): DiskBytes {
  const fd = openSync(join(directory, LOG_NAME), writable ? constants.O_RDWR : constants.O_RDONLY);
  return new LogFile(directory, fd, fstatSync(fd).size);
}

/** The first barrier reaches the log's name and its directory's too. */
class LogFile extends DiskBytes {
  #named = false;
  readonly #directory: string;

  constructor(directory: string, fd: number, size: number) {
    super(fd, size);
    this.#directory = directory;
  }

  override sync(): void {
    super.sync();
    if (this.#named) return;
    syncDirectory(this.#directory);
    syncDirectory(dirname(resolve(this.#directory)));
    this.#named = true;
  }
}

/** Whether there is more of a session than its log: then an empty log is damage, not a beginning. */
function holdsSession(directory: string): boolean {
  return existsSync(join(directory, BLOBS_NAME)) || existsSync(join(directory, CHECKPOINT_NAME));
}

/** A new session is made in an empty directory only, never among somebody's files. */
function refuseForeign(directory: string): void {
  const foreign = readdirSync(directory).find((name) => !OWN_NAMES.test(name));
  if (foreign === undefined) return;
  throw new SessionError('ERR_NOT_A_SESSION', directory, `holds other files (${foreign}) and no ${LOG_NAME}`);
}

/** Makes a directory and what is missing above it, and notes in `made` what it made. (Node's own hides EROFS.) */
function makeDirectories(path: string, made: string[]): void {
  if (existsSync(path)) return;
  if (dirname(path) !== path) makeDirectories(dirname(path), made);
  try {
    mkdirSync(path);
    chmodSync(path, 0o700);
    made.push(path);
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
  }
}

/** Removes the directories that were made for a session which could not be; those with others' files in them stay. */
function removeMade(made: readonly string[]): void {
  for (const path of made.toReversed()) {
    try {
      rmdirSync(path);
    } catch (error) {
      if (!hasCode(error, 'ENOTEMPTY') && !hasCode(error, 'ENOENT')) throw error;
    }
  }
}

function noSession(directory: string): SessionError {
  return new SessionError('ERR_NO_SESSION', directory, 'no session is there');
}

const WORDS: Readonly<Record<string, string>> = {
  EEXIST: 'is not a directory', EISDIR: 'its log is a directory', ENOTDIR: 'is not a directory', EACCES: 'permission denied', EPERM: 'permission denied',
  EROFS: 'is on a read-only file system', ENOSPC: 'no space left for it', EDQUOT: 'quota exceeded',
};

/** A fault of the system while opening, as an error that says for which session. */
export function nameDirectory(error: unknown, directory: string): unknown {
  const isNamed = [SessionError, CorruptLogError, LockedSessionError].some((kind) => error instanceof kind);
  if (isNamed) return error;
  const { code } = Refusal.of(error);
  return new SessionError('ERR_SESSION_DIRECTORY', directory, `${WORDS[code] ?? 'cannot be used'} (${code})`, {
    cause: error,
  });
}

import { closeSync, constants, existsSync, fstatSync, mkdirSync, openSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Refusal } from '../core/refusal.ts';
import type { Header } from '../core/format.ts';
import type { Version } from '../core/version.ts';
import { DiskBytes } from './bytes.ts';
import { belongs, readCheckpoint, readCheckpointData } from './checkpoint.ts';
import { CorruptLogError, SessionError } from './fault.ts';
import { hasCode, writeNew } from './file.ts';
import { readHeader } from './header.ts';
import { Log, isJson, type Flaw } from './log.ts';
import { BLOBS_NAME, CHECKPOINT_NAME, LOG_NAME } from './open.ts';
import { Vault } from './vault.ts';

/** Full checks of a session directory, which opening leaves out where a checkpoint vouches for the past. */

export interface LogVerdict {
  /** Last event that is good; `undefined` where not even the header is. */
  readonly goodSeq: number | undefined;
  readonly goodBytes: number | undefined;
  /** A torn last line, in bytes: not damage, the next writer cuts it. */
  readonly tornBytes: number;
  /** The first damage. What lies behind it was not looked at. */
  readonly damage: CorruptLogError | undefined;
  /** Of a log without damage: the hash over all of it. */
  readonly seal: Version | undefined;
  /** The event after which the log had the seal that was sought. */
  readonly soughtSeq: number | undefined;
}

/** What else a log is checked for. */
export interface LogInspection {
  /** Shown every line that has a right crc, number and seal; gives what is wrong with it, which counts as damage. */
  readonly inspect?: (line: string, seq: number) => Flaw | undefined;
  /** A seal that the log is to have had after some event. */
  readonly sought?: string;
}

/** Checks every line's crc, the sequence, every seal, and what `inspect` does. Throws `SessionError` where there is no such log. */
export function verifyLog(directory: string, inspection: LogInspection = {}): LogVerdict {
  const path = join(directory, LOG_NAME), fd = openLog(directory, path);
  try {
    const sink = new DiskBytes(fd, fstatSync(fd).size);
    const log = Log.open(path, sink, { ...readHeader(sink, directory, path), limit: Infinity, inspect: onlyJson, ...inspection });
    return { goodSeq: log.lastSeq, goodBytes: log.size, tornBytes: log.tornBytes, damage: undefined, seal: log.seal(), soughtSeq: log.soughtSeq };
  } catch (error) {
    if (!(error instanceof CorruptLogError)) throw error;
    return { goodSeq: error.goodSeq, goodBytes: error.goodBytes, tornBytes: 0, damage: error, seal: undefined, soughtSeq: undefined };
  } finally {
    closeSync(fd);
  }
}

function onlyJson(line: string): Flaw | undefined {
  return isJson(line) ? undefined : { reason: 'not JSON' };
}

function openLog(directory: string, path: string): number {
  try {
    return openSync(path, constants.O_RDONLY);
  } catch (error) {
    if (!hasCode(error, 'ENOENT') && !hasCode(error, 'ENOTDIR')) throw error;
    throw new SessionError('ERR_NO_SESSION', directory, 'no session is there', { cause: error });
  }
}

/** The checkpoint of a session, if it is whole and belongs to its log. Its data is only as good as whoever wrote it. */
export function checkpointOf(directory: string, header: Header): { readonly seq: number; readonly data: string } | undefined {
  const path = join(directory, CHECKPOINT_NAME), found = readCheckpoint(path), fd = openLog(directory, join(directory, LOG_NAME));
  try {
    if (found === undefined || !belongs(found, header, new DiskBytes(fd, fstatSync(fd).size))) return undefined;
    const data = readCheckpointData(path, found.seq);
    return data === undefined ? undefined : { seq: found.seq, data };
  } finally {
    closeSync(fd);
  }
}

/** Reads every stored blob against its digest. Gives those that are good, and what is wrong with the others. */
export function verifyBlobs(directory: string): { readonly good: ReadonlySet<Version>; readonly bad: ReadonlyMap<Version, Refusal> } {
  const good = new Set<Version>(), bad = new Map<Version, Refusal>(), path = join(directory, BLOBS_NAME);
  if (!existsSync(path)) return { good, bad };
  const vault = new Vault(path, { limit: Infinity, writable: false }), first = new Uint8Array(1);
  try {
    for (const digest of vault.digests()) {
      try {
        vault.read(digest, first, 0, 1, 0);
        good.add(digest);
      } catch (error) {
        bad.set(digest, Refusal.of(error));
      }
    }
  } finally {
    vault.close();
  }
  return { good, bad };
}

/**
 * Makes a session in the new or empty directory `to` of the first `bytes` bytes of the log in `from` and the blobs that are good. Throws
 * `SessionError` where there is something already.
 */
export function salvage(from: string, to: string, bytes: number): void {
  if (existsSync(to) && readdirSync(to).length > 0) throw new SessionError('ERR_NOT_A_SESSION', to, 'a session is only saved into a directory that is new or empty');
  const { good } = verifyBlobs(from);
  mkdirSync(to, { recursive: true, mode: 0o700 });
  if (good.size > 0) {
    const source = new Vault(join(from, BLOBS_NAME), { limit: Infinity, writable: false });
    const target = new Vault(join(to, BLOBS_NAME), { limit: Infinity, writable: true });
    try {
      for (const digest of good) target.put(digest, source.get(digest));
      target.write({ through: true });
    } finally {
      target.close();
      source.close();
    }
  }
  // The log last: until it is there, there is no session.
  writeNew(join(to, LOG_NAME), readFileSync(join(from, LOG_NAME)).subarray(0, bytes), { through: true });
}

import { closeSync, constants, existsSync, fstatSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { Refusal } from '../core/refusal.ts';
import type { Version } from '../core/version.ts';
import { DiskBytes } from './bytes.ts';
import { CorruptLogError } from './fault.ts';
import { readHeader } from './header.ts';
import { Log } from './log.ts';
import { BLOBS_NAME, LOG_NAME } from './open.ts';
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
}

/** Checks every line's crc, its JSON, the sequence and every seal. Throws `SessionError` where there is no such log. */
export function verifyLog(directory: string): LogVerdict {
  const path = join(directory, LOG_NAME);
  const fd = openSync(path, constants.O_RDONLY);
  try {
    const sink = new DiskBytes(fd, fstatSync(fd).size);
    const log = Log.open(path, sink, { ...readHeader(sink, directory, path), limit: Infinity, parse: true });
    return { goodSeq: log.lastSeq, goodBytes: log.size, tornBytes: log.tornBytes, damage: undefined };
  } catch (error) {
    if (!(error instanceof CorruptLogError)) throw error;
    return { goodSeq: error.goodSeq, goodBytes: error.goodBytes, tornBytes: 0, damage: error };
  } finally {
    closeSync(fd);
  }
}

/** Reads every stored blob against its digest; yields those with other bytes. One named by an event may still be gone. */
export function* verifyBlobs(directory: string): IterableIterator<{ digest: Version; fault: Refusal }> {
  const path = join(directory, BLOBS_NAME);
  if (!existsSync(path)) return;
  const vault = new Vault(path, { limit: Infinity, writable: false });
  try {
    for (const digest of vault.digests()) {
      try {
        vault.read(digest, new Uint8Array(1), 0, 1, 0);
      } catch (error) {
        yield { digest, fault: Refusal.of(error) };
      }
    }
  } finally {
    vault.close();
  }
}

import type { Header } from '../core/format.ts';
import type { Version } from '../core/version.ts';

/**
 * Where a session's bytes live: its log, its blobs, its checkpoint. A store knows bytes and order, nothing of files.
 * The same interface serves memory and a session directory.
 *
 * Faults (ENOSPC, EROFS, EACCES, EDQUOT, EIO …) are thrown as `Refusal`. After a failed write to the log the store is
 * poisoned: that call or the next one throws the cause, and every later one does, so nothing is acknowledged falsely.
 */
export interface Store {
  /** Line 1 of the log, parsed. */
  readonly header: Header;
  /** Directory of the session; `undefined` in memory. */
  readonly directory: string | undefined;
  /** Sequence number of the last appended event; 0 in a new log (or the fork point of a forked one). */
  readonly lastSeq: number;
  /** What opening had to cut off the end of the log: a torn last line, in bytes; 0 when it was whole. */
  readonly tornBytes: number;

  /**
   * Appends one event. `json` is the event's JSON object without its final `}` and without `crc`, and begins with
   * `{"seq":<lastSeq + 1>,`; the store adds `,"crc":"…"}` and the newline. Durable as `durability` says.
   * Refused with EFBIG `log limit …` when the log would exceed its limit.
   */
  append(json: string): void;

  /**
   * Throws EFBIG where a line of `lineBytes`, or blobs of `blobBytes` more, would exceed a limit: for a caller that has to
   * know before it acknowledges what it will append later.
   */
  demandRoom(lineBytes: number, blobBytes: number): void;

  /** JSON texts (whole lines, crc included, checked) of the events from `from` to `to`, both inclusive. */
  read(from?: number, to?: number): IterableIterator<string>;

  /** Stores bytes under their digest; the bytes must not be changed by the caller afterwards. Known digests cost nothing. */
  putBlob(digest: Version, bytes: Uint8Array): void;
  hasBlob(digest: Version): boolean;
  /** The whole blob, checked against its digest the first time. Throws EIO naming the digest when it is gone or differs. */
  getBlob(digest: Version): Uint8Array;
  /** Part of a blob: bytes read into `into`, fewer at its end. */
  readBlob(digest: Version, into: Uint8Array, offset: number, length: number, position: number): number;

  /** `sha256:…` over all bytes of the log so far (up to event `seq`), as a seal record at this point would hold it. */
  sealHash(seq?: number): Version;

  /** Keeps `data` (JSON text) as the state after event `seq`. Replaces the last one atomically. A no-op in memory. */
  saveCheckpoint(seq: number, data: string): void;
  /** The last checkpoint (at or before event `upTo`) that belongs to this very log, or `undefined` (none, damaged, or of another log). */
  loadCheckpoint(upTo?: number): { seq: number; data: string } | undefined;

  /** Makes everything appended so far as durable as `durability` says (`memory` and `flush`: written to the file). */
  flush(): void;
  /** Everything so far survives a power cut, whatever the durability (fsync of blobs, then log). */
  sync(): void;
  /** Flushes and gives up the lock. Idempotent. */
  close(): void;
}

export type Durability = 'memory' | 'flush' | 'write' | 'fsync';

export interface StoreLimits {
  /** Most bytes of `log.jsonl`. */
  readonly logBytes: number;
  /** Most bytes of all blobs together. */
  readonly blobBytes: number;
}

/** The ways in which a session directory can be wrong. Faults of single operations are `Refusal`s instead. */

/** What is wrong with a line of a log, as one of these words; `detail` in the message says the rest. */
export type DamageReason =
  | 'bad header' | 'bad crc' | 'not JSON' | 'no crc' | 'no seq' | 'seq gap' | 'seq repeated' | 'seal mismatch' | 'bad event';

export interface Damage {
  readonly file: string;
  /** From 1; line 1 is the header. */
  readonly line: number;
  readonly reason: DamageReason;
  readonly detail?: string;
  /** Last event before the damage; what `head -n <line - 1>` keeps. `undefined`: not even the header is good. */
  readonly goodSeq: number | undefined;
  /** Bytes of the file before the damaged line, where its reader counts them. */
  readonly goodBytes: number | undefined;
}

/** A log has a line that was changed, dropped, repeated, swapped or inserted. Nothing was changed on disk. */
export class CorruptLogError extends Error implements Damage {
  override readonly name = 'CorruptLogError';
  readonly code = 'ERR_CORRUPT_LOG';
  readonly file: string;
  readonly line: number;
  readonly reason: DamageReason;
  readonly goodSeq: number | undefined;
  readonly goodBytes: number | undefined;

  constructor(damage: Damage) {
    const { file, line, reason, detail, goodSeq, goodBytes } = damage;
    const salvage = goodSeq === undefined
      ? 'nothing before it can be used'
      : `good up to line ${line - 1} (seq ${goodSeq}${goodBytes === undefined ? '' : `, ${goodBytes} bytes`}): ` +
        `to salvage that much, copy the session and keep \`head -n ${line - 1}\` of its log`;
    super(`${file} line ${line}: ${reason}${detail === undefined ? '' : ` (${detail})`}; ${salvage}`);
    this.file = file;
    this.line = line;
    this.reason = reason;
    this.goodSeq = goodSeq;
    this.goodBytes = goodBytes;
  }
}

/** The session is open in a live process (or in one that cannot be told to be dead). */
export class LockedSessionError extends Error {
  override readonly name = 'LockedSessionError';
  readonly code = 'ERR_SESSION_LOCKED';
  readonly directory: string;
  readonly pid: number;

  constructor(directory: string, pid: number, more: string) {
    super(`session ${directory} is open in process ${pid}${more}`);
    this.directory = directory;
    this.pid = pid;
  }
}

export type SessionErrorCode =
  | 'ERR_NO_SESSION' | 'ERR_NOT_A_SESSION' | 'ERR_SESSION_FORMAT' | 'ERR_SESSION_ROOT' | 'ERR_SESSION_DIRECTORY';

/**
 * A directory that cannot serve as the session asked for: none there (NO_SESSION), something else (NOT_A_SESSION),
 * of another format (FORMAT) or root (ROOT), or not usable as a directory at all (DIRECTORY; `cause` has the errno).
 */
export class SessionError extends Error {
  override readonly name = 'SessionError';
  readonly code: SessionErrorCode;
  readonly directory: string;

  constructor(code: SessionErrorCode, directory: string, message: string, options?: { cause: unknown }) {
    super(`session ${directory}: ${message}`, options);
    this.code = code;
    this.directory = directory;
  }
}

/**
 * How an operation says no. Deep down a refusal is a value without a stack; the face that knows its caller's
 * convention turns it into an error once.
 */

/** Codes of OBSERVATION.md's error model; they travel as `fsCode` beside the errno code. */
export type FsCode =
  | 'FS_NOT_FOUND' | 'FS_NOT_DIRECTORY' | 'FS_NOT_TEXT' | 'FS_NOT_REGULAR_FILE' | 'FS_TOO_LARGE'
  | 'FS_PERMISSION_DENIED' | 'FS_SANDBOX_DENIED' | 'FS_IO_ERROR' | 'FS_STALE_VERSION' | 'FS_NOT_OBSERVED'
  | 'FS_AMBIGUOUS_EDIT' | 'FS_EDIT_NOT_FOUND' | 'FS_ABORTED';

/** Errno names that the overlay itself may give; faults of the lower or the store pass on whatever they were. */
export type ErrnoCode =
  | 'E2BIG' | 'EACCES' | 'EBADF' | 'EBUSY' | 'EEXIST' | 'EFBIG' | 'EINVAL' | 'EIO' | 'EISDIR' | 'ELOOP' | 'EMFILE' | 'EMLINK'
  | 'ENAMETOOLONG' | 'ENODATA' | 'ENODEV' | 'ENOENT' | 'ENOSPC' | 'ENOTDIR' | 'ENOTEMPTY' | 'ENOTSUP' | 'ENXIO'
  | 'EOVERFLOW' | 'EPERM' | 'ERANGE' | 'EROFS' | 'ESPIPE' | 'EXDEV' | 'EDQUOT' | 'ETXTBSY';

/** A refused operation: errno code, and where it applies the FS_ code, words for a human, and the fault beneath. */
export class Refusal {
  readonly code: string;
  readonly fsCode: FsCode | undefined;
  readonly reason: string | undefined;
  readonly cause: unknown;
  /** A session is asked for what it has not recorded. */
  readonly unrecorded: boolean;

  constructor(code: ErrnoCode, more: { fsCode?: FsCode; reason?: string; unrecorded?: boolean } = {}) {
    this.code = code;
    this.fsCode = more.fsCode;
    this.reason = more.reason;
    this.cause = undefined;
    this.unrecorded = more.unrecorded === true;
  }

  /** The refusal for an error that the system beneath gave (`code` as `node:fs` names it); anything else is a bug. */
  static of(error: unknown): Refusal {
    if (error instanceof Refusal) return error;
    const { cause } = (error ?? {}) as { cause?: unknown };
    // Another overlay, as a lower, has said what this one cannot say better.
    if (cause instanceof Refusal && cause.unrecorded) return cause;
    const { code: given, errno } = (error ?? {}) as { code?: unknown; errno?: unknown };
    // Node 20 has no name for EDQUOT.
    const code = given === 'UNKNOWN' && errno === -122 ? 'EDQUOT' : given;
    if (typeof code !== 'string' || !/^E[A-Z0-9]+$/.test(code)) throw error;
    const refusal = new Refusal(code as ErrnoCode);
    (refusal as { cause: unknown }).cause = error;
    return refusal;
  }
}

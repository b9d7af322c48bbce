import { Refusal, type FsCode } from '../core/refusal.ts';

/** An error of the layer on which tools stand: a code a program can act on, and words for whoever asked, with the path as it was given. */
export class FsError extends Error {
  override readonly name: string = 'FsError';
  readonly code: FsCode;
  /** What it is about, as it was given. */
  readonly path: string | undefined;
  /** More than the message says, where there is more. */
  readonly detail: string | undefined;

  constructor(code: FsCode, message: string, more: { cause?: unknown; detail?: string | undefined; path?: string | undefined } = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.code = code;
    this.path = more.path;
    this.detail = more.detail;
  }
}

/** What an errno of the overlay is called here, and in which words. */
const ERRNOS: ReadonlyMap<string, readonly [FsCode, string]> = new Map([
  ['ENOENT', ['FS_NOT_FOUND', 'not found']],
  ['ENOTDIR', ['FS_NOT_DIRECTORY', 'not a directory']],
  ['EISDIR', ['FS_NOT_REGULAR_FILE', 'not a regular file']],
  ['ENXIO', ['FS_NOT_REGULAR_FILE', 'not a regular file']],
  ['EACCES', ['FS_PERMISSION_DENIED', 'permission denied']],
  ['EPERM', ['FS_PERMISSION_DENIED', 'not permitted']],
  ['EROFS', ['FS_PERMISSION_DENIED', 'the session is read-only']],
  ['EFBIG', ['FS_TOO_LARGE', 'too large']],
  ['EEXIST', ['FS_IO_ERROR', 'already exists']],
  ['ENOTEMPTY', ['FS_IO_ERROR', 'directory is not empty']],
  ['EBUSY', ['FS_IO_ERROR', 'in use']],
  ['EINVAL', ['FS_IO_ERROR', 'not possible']],
  ['ELOOP', ['FS_IO_ERROR', 'too many levels of symbolic links']],
  ['ENAMETOOLONG', ['FS_IO_ERROR', 'name too long']],
  ['ENOSPC', ['FS_IO_ERROR', 'no space left']],
  ['EDQUOT', ['FS_IO_ERROR', 'no space left']],
  ['EMLINK', ['FS_IO_ERROR', 'too many links']],
  ['EXDEV', ['FS_IO_ERROR', 'not on the same file system']],
]);

/**
 * What an operation threw, as an `FsError` about `path`: `cannot write "…": …`. Neither errno nor any path but this is in it. What is
 * no refusal is given back as it is.
 */
export function fsErrorOf(error: unknown, verb: string, path: string): unknown {
  if (!(error instanceof Refusal)) return error;
  const [code, words] = known(error);
  if (code === 'FS_NOT_OBSERVED') {
    const message = verb === 'write' ? `cannot overwrite existing "${path}" without reading it first` : `${verb} requires reading "${path}" first`;
    return new FsError(code, message, { detail: error.reason, path });
  }
  return new FsError(code, `cannot ${verb} "${path}": ${words}`, { path });
}

/** Does `act`, and lets its refusals out as `FsError`s about `path`. */
export function asFsError<T>(verb: string, path: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw fsErrorOf(error, verb, path);
  }
}

function known({ code, fsCode, reason }: Refusal): readonly [FsCode, string] {
  const [byErrno, words] = ERRNOS.get(code) ?? ['FS_IO_ERROR' as const, 'input/output error'];
  switch (fsCode) {
    case 'FS_STALE_VERSION': case 'FS_NOT_OBSERVED': case 'FS_SANDBOX_DENIED': case 'FS_NOT_TEXT': case 'FS_NOT_REGULAR_FILE': case 'FS_TOO_LARGE':
      return [fsCode, reason ?? words];
    // As a rule, and what it is about, is none of the model's business.
    case 'FS_NOT_FOUND': return [fsCode, 'not found'];
    default: return [fsCode ?? byErrno, words];
  }
}

/**
 * The error as a model gets it, with what to do about it: a stale version gains ` — re-read the file, then retry`, what was not
 * observed is said in one way from whichever source. The code stays, and the error given is the `cause`; any other error is given back
 * as it is, the very object.
 */
export function remediateFsError(error: unknown, displayPath: string): unknown {
  const { code, message, detail, path = displayPath } = (error instanceof Error ? error : {}) as { code?: unknown; message?: string; detail?: string; path?: string };
  if (code === 'FS_STALE_VERSION') return new FsError(code, `${message} — re-read the file, then retry`, { cause: error, detail, path });
  if (code === 'FS_NOT_OBSERVED') {
    return new FsError(code, `cannot modify "${displayPath}": file has not been read — read the file, then retry`, { cause: error, detail, path });
  }
  return error;
}

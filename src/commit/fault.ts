import { constants } from 'node:os';
import { getSystemErrorMap } from 'node:util';
import type { TreePath } from '../core/path.ts';
import type { Conflict } from '../core/plan.ts';
import { Refusal } from '../core/refusal.ts';

/** The disk is not as a commit expects it, in each of these. What the commit had changed is as before. */
export class ConflictError extends Error {
  override readonly name = 'ConflictError';
  readonly code = 'ERR_CONFLICT';
  readonly conflicts: readonly Conflict[];

  constructor(root: string, conflicts: readonly Conflict[], cause?: unknown) {
    const [first] = conflicts;
    const more = conflicts.length > 1 ? ` (and ${conflicts.length - 1} more)` : '';
    super(first === undefined ? `${root}: conflict`
      : `${JSON.stringify(first.path)} in ${root} is ${first.actual}, expected was ${first.expected}${more}`, cause === undefined ? {} : { cause });
    this.conflicts = conflicts;
  }
}

/**
 * The system refused something. The disk is as before; where even going back was refused the message says so, and
 * `recover` goes on with that.
 */
export class CommitError extends Error {
  override readonly name = 'CommitError';
  /** Name of the errno. */
  readonly code: string;
  readonly path: TreePath;

  private constructor(code: string, path: TreePath, message: string, cause: unknown) {
    super(message, { cause });
    this.code = code;
    this.path = path;
  }

  /** `error` as one about `path`. Anything that the system did not give is a bug, and thrown as it is. */
  static of(root: string, path: TreePath, error: unknown): CommitError {
    if (error instanceof CommitError) return error;
    const refusal = Refusal.of(error);
    return new CommitError(refusal.code, path, `${placed(root, path)}: ${refusal.reason ?? wordsOf(refusal.code)} (${refusal.code})`, error);
  }

  /** The same error when not even the way back was open. */
  strandedBy(error: unknown): CommitError {
    const { code } = Refusal.of(error);
    return new CommitError(this.code, this.path, `${this.message}; going back failed too (${code}): recover has to finish it`, this.cause);
  }
}

/** Another committer is at work on the root, or none can be told to be dead. */
export class LockedRootError extends Error {
  override readonly name = 'LockedRootError';
  readonly code = 'ERR_ROOT_LOCKED';
  readonly root: string;
  readonly pid: number;

  constructor(root: string, pid: number, more: string) {
    super(`process ${pid} is committing to ${root}${more}`);
    this.root = root;
    this.pid = pid;
  }
}

/** A journal that cannot be acted upon. Nothing was touched. */
export class JournalError extends Error {
  override readonly name = 'JournalError';
  readonly code: 'ERR_JOURNAL_DAMAGED' | 'ERR_JOURNAL_NEWER';
  readonly file: string;

  constructor(code: JournalError['code'], file: string, what: string) {
    super(`the journal of an interrupted commit, ${file}, ${what}`);
    this.code = code;
    this.file = file;
  }
}

function placed(root: string, path: TreePath): string {
  const whole = path === '' ? root : `${root === '/' ? '' : root}/${path}`;
  return /^[\p{L}\p{N}\p{P}\p{S} ]*$/u.test(whole) ? whole : JSON.stringify(whole);
}

function wordsOf(code: string): string {
  const errno = (constants.errno as Record<string, number>)[code];
  return (errno === undefined ? undefined : getSystemErrorMap().get(-errno)?.[1]) ?? 'refused by the system';
}

/** Whether the system, or somebody in its place, has refused something; anything else that is thrown is a bug. */
export function isFault(error: unknown): boolean {
  return error instanceof Refusal || typeof (error as { code?: unknown } | null)?.code === 'string';
}

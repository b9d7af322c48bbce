import { constants } from 'node:os';
import { codedError, type NodeError } from './errors.ts';

/** ERR_FS_… codes of node's `SystemError`, with the words each begins with. */
const WORDS = {
  ERR_FS_EISDIR: 'Path is a directory',
  ERR_FS_CP_DIR_TO_NON_DIR: 'Cannot overwrite non-directory with directory',
  ERR_FS_CP_EEXIST: 'Target already exists',
  ERR_FS_CP_EINVAL: 'Invalid src or dest',
  ERR_FS_CP_FIFO_PIPE: 'Cannot copy a FIFO pipe',
  ERR_FS_CP_NON_DIR_TO_DIR: 'Cannot overwrite directory with non-directory',
  ERR_FS_CP_SOCKET: 'Cannot copy a socket file',
  ERR_FS_CP_SYMLINK_TO_SUBDIRECTORY: 'Cannot overwrite symlink in subdirectory of self',
} as const;

export type SystemErrorCode = keyof typeof WORDS;

/** An error of node's class of this name: `info` holds the details, `errno`, `syscall` and `path` speak for it. */
class SystemError extends Error {
  override toString(): string {
    return `${this.name} [${(this as unknown as NodeError).code}]: ${this.message}`;
  }
}

/** A call refused by its own rules. `errno` where node gives another than that of `code`. */
export function systemError(
  key: SystemErrorCode, syscall: 'cp' | 'rm', code: 'EEXIST' | 'EINVAL' | 'EISDIR' | 'ENOTDIR',
  message: string, path: string, errno: number = constants.errno[code],
): NodeError {
  const info = { code, message, path: path.toWellFormed(), syscall, errno };
  const error = codedError(SystemError, key, `${WORDS[key]}: ${syscall} returned ${code} (${message}) ${info.path}`);
  Object.defineProperties(error, {
    name: { value: 'SystemError', writable: true, configurable: true },
    info: { value: info, enumerable: true, configurable: true },
    errno: { get: () => info.errno, set: (to: number) => { info.errno = to; }, enumerable: true, configurable: true },
    syscall: {
      get: () => info.syscall, set: (to: 'cp' | 'rm') => { info.syscall = to; }, enumerable: true, configurable: true,
    },
    path: { get: () => info.path, set: (to: string) => { info.path = to; }, enumerable: true, configurable: true },
  });
  return error;
}

import type { Attr } from '../core/attr.ts';
import type { TreePath } from '../core/path.ts';
import type { Absence, LowerEntry, Vacancy } from './lower.ts';

/**
 * How a directory lower gets at a path without ever leaving its root. Two ways: by directory descriptors
 * (`HeldWalker`, where there is /proc), and by looking again at what was opened (`CheckedWalker`).
 */
export interface Walker {
  lstat(path: TreePath): Attr | Absence;
  vacancy(path: TreePath): Attr | Vacancy | 'unwalkable';
  readlink(path: TreePath): string;
  list(path: TreePath): readonly LowerEntry[];
  /**
   * A descriptor of a regular file, open for reading and checked to be regular; anything else stays unopened.
   */
  open(path: TreePath): Opened | Attr | Absence;
  /**
   * Calls `use` with a name, `/.` at its end, under which the system finds the directory `path` during that
   * call.
   */
  withDirectory<T>(path: TreePath, use: (name: string | Buffer) => T): T | Absence;
  close(): void;
}

export interface Opened {
  readonly fd: number;
  readonly attr: Attr;
}

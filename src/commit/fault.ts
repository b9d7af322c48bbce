import type { Conflict } from '../core/plan.ts';

/** The disk is not as a commit expects it. Nothing was changed. */
export class ConflictError extends Error {
  override readonly name = 'ConflictError';
  readonly code = 'ERR_CONFLICT';
  readonly conflicts: readonly Conflict[];

  constructor(root: string, conflicts: readonly Conflict[]) {
    const [first] = conflicts;
    const more = conflicts.length > 1 ? ` (and ${conflicts.length - 1} more)` : '';
    super(first === undefined ? `${root}: conflict`
      : `${JSON.stringify(first.path)} in ${root} is ${first.actual}, expected was ${first.expected}${more}`);
    this.conflicts = conflicts;
  }
}

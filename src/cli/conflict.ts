import type { ConflictError } from '../index.ts';
import { say } from './output.ts';
import { quoted, visible } from './text.ts';

/** Tells every conflict, a line each, and what that means. */
export function tellConflicts({ conflicts }: ConflictError, outcome: string): void {
  for (const { path, expected, actual, actor, seq, time } of conflicts) {
    const whose = actor === undefined ? '' : ` (${visible(actor)} saw that in event ${seq}${time === undefined ? '' : `, ${time}`})`;
    say(`conflict: ${quoted(path)} is ${visible(actual)}, expected was ${visible(expected)}${whose}`);
  }
  say(`palimpsest: ${conflicts.length} ${conflicts.length === 1 ? 'conflict' : 'conflicts'}: ${outcome}`);
}

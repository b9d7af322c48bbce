import { structuredPatch } from 'diff';

/** Lines around a change that are shown with it. */
const CONTEXT_LINES = 3;
/** A comparison that takes longer is given up: then all lines are old on one side and new on the other. */
const COMPARE_MS = 2000;

/** Adjacent lines that differ, as a unified diff shows them. */
export interface Hunk {
  readonly head: string;
  /** Each begins with a space, `-`, `+` or `\`. */
  readonly lines: readonly string[];
}

/** What differs between two texts, line by line. */
export function hunksOf(before: string, after: string): readonly Hunk[] {
  if (before === after) return [];
  if (before === '' || after === '') return [whole(before, after)];
  const patch = structuredPatch('', '', before, after, '', '', { context: CONTEXT_LINES, timeout: COMPARE_MS });
  if (patch === undefined) return [whole(before, after)];
  return patch.hunks.map(({ oldStart, oldLines, newStart, newLines, lines }) =>
    ({ head: `@@ -${range(oldStart, oldLines)} +${range(newStart, newLines)} @@`, lines }));
}

/** Lines that hunks add and take away. */
export function countLines(hunks: readonly Hunk[]): { added: number; removed: number } {
  let added = 0, removed = 0;
  for (const { lines } of hunks) {
    for (const line of lines) {
      if (line.startsWith('+')) added++;
      else if (line.startsWith('-')) removed++;
    }
  }
  return { added, removed };
}

function whole(before: string, after: string): Hunk {
  const old = linesOf(before, '-'), now = linesOf(after, '+');
  return { head: `@@ -${range(1, old.count)} +${range(1, now.count)} @@`, lines: [...old.lines, ...now.lines] };
}

function linesOf(text: string, sign: string): { lines: string[]; count: number } {
  if (text === '') return { lines: [], count: 0 };
  const lines = text.split('\n'), ends = lines.at(-1) === '';
  if (ends) lines.pop();
  const count = lines.length, signed = lines.map((line) => sign + line);
  return { lines: ends ? signed : [...signed, '\\ No newline at end of file'], count };
}

/** A range of lines as diff writes it: an empty one names the line before it, the count 1 is left out. */
function range(start: number, count: number): string {
  return count === 1 ? String(start) : `${count === 0 ? start - 1 : start},${count}`;
}

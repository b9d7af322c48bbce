import type { Difference } from '../index.ts';
import { paint } from './paint.ts';
import { quoted } from './text.ts';

/** Columns of a line, and how many of them the bar may take. */
const WIDTH = 100;
const BAR_WIDTH = 30;

/** The lines of `diff --stat`: files with their counts and a bar, then the sum. */
export function diffStat(found: readonly Difference[]): string[] {
  if (found.length === 0) return [];
  const most = Math.max(1, ...found.map(({ added, removed }) => added + removed));
  const counts = found.map(({ added, removed, unshown }) => unshown === undefined ? String(added + removed) : unshown.reason === 'binary' ? 'Bin' : unshown.reason);
  const countWidth = Math.max(...counts.map(({ length }) => length));
  const names = found.map((difference) => nameOf(difference));
  const room = WIDTH - countWidth - 5, longest = Math.max(...names.map(({ length }) => length));
  const nameWidth = Math.min(longest, Math.max(20, room - Math.min(most, BAR_WIDTH)));
  const barWidth = Math.min(most, BAR_WIDTH);
  const lines = found.map((difference, at) => {
    const name = shortened(names[at] as string, nameWidth).padEnd(nameWidth), { unshown } = difference;
    const rest = unshown === undefined ? bar(difference, most, barWidth) : `${unshown.before} -> ${unshown.after} bytes`;
    return ` ${name} | ${(counts[at] as string).padStart(countWidth)} ${rest}`.trimEnd();
  });
  return [...lines, sum(found)];
}

function nameOf({ path, from, type }: Difference): string {
  const slash = type === 'directory' ? '/' : '';
  return from !== undefined ? `${quoted(from + slash)} => ${quoted(path + slash)}` : quoted(path + slash);
}

/** The end of a name that is too long, as git does it. */
function shortened(name: string, width: number): string {
  return name.length <= width ? name : '...' + name.slice(name.length - width + 3);
}

function bar({ added, removed }: Difference, most: number, width: number): string {
  const scaled = (lines: number): number => lines === 0 ? 0 : Math.max(1, Math.round(lines * width / Math.max(most, width)));
  return paint.green('+'.repeat(scaled(added))) + paint.red('-'.repeat(scaled(removed)));
}

function sum(found: readonly Difference[]): string {
  const paths = new Set(found.map(({ path }) => path)).size;
  const added = found.reduce((total, difference) => total + difference.added, 0);
  const removed = found.reduce((total, difference) => total + difference.removed, 0);
  return ` ${paths} path${paths === 1 ? '' : 's'} changed` +
    (added === 0 ? '' : `, ${added} insertion${added === 1 ? '' : 's'}(+)`) + (removed === 0 ? '' : `, ${removed} deletion${removed === 1 ? '' : 's'}(-)`);
}

import { figureOf, MOUNTED, type MountedName, type MountResult, type Timed } from './mounted.ts';
import { median } from './result.ts';
import { aligned, ratio } from './table.ts';

/** Results of work on mounts as a Markdown table: times, and what ours is judged by. */
export function mountedTableOf(results: readonly MountResult[]): string {
  const names = (Object.keys(MOUNTED) as MountedName[]).filter((name) => results.some(({ subjects }) => subjects[name] !== undefined));
  const head = ['work on a mount', ...names, 'ours to fuse-overlayfs', 'target'];
  return aligned([head, ...results.map((result) => {
    const figure = figureOf(result), most = result.limit[result.place], over = result.limit.of === 'ms over raw';
    const met = Number.isNaN(figure) ? '' : figure <= most ? ' ✓' : ' ✗';
    return [
      `${result.work}, ${result.place}`, ...names.map((name) => cell(result.subjects[name])),
      Number.isNaN(figure) ? '' : (over ? `${figure.toFixed(0)} ms more than raw` : ratio(figure)) + met,
      over ? `≤ ${most} ms` : `≤ ${most}`,
    ];
  })]);
}

function cell(timed: Timed | undefined): string {
  if (timed === undefined) return '';
  if (timed.failure !== undefined) return timed.failure.startsWith('wrong') ? 'wrong' : 'fails';
  const { millis } = timed, show = (value: number): string => value.toFixed(0);
  return `${show(median(millis))} ms` + (millis.length < 2 ? '' : ` (${show(Math.min(...millis))}–${show(Math.max(...millis))})`);
}

import { median, type Figures, type Result } from './result.ts';
import type { Limit } from './row.ts';
import { SUBJECTS, type SubjectName } from './subject.ts';

/** Results as a Markdown table: raw as it is, ours with its spread, the peers as ratios to raw. */
export function tableOf(results: readonly Result[]): string {
  const columns = SUBJECTS.filter((name) => results.some(({ subjects }) => subjects[name] !== undefined));
  const head = ['work', ...columns.flatMap((name) => (name === 'ours on disk' ? [name, 'target'] : [titleOf(name)]))];
  if (!columns.includes('ours on disk')) head.push('target');
  const lines = results.flatMap((result) => [
    [result.work, ...cells(result, columns, timeCell)],
    ...(shownMemory(result) ? [['— its memory', ...cells(result, columns, memoryCell, 'bytes')]] : []),
  ]);
  return aligned([head, ...lines]);
}

type Cell = (figures: Figures, name: SubjectName) => string;

function cells(result: Result, columns: readonly SubjectName[], cell: Cell, of: 'time' | 'bytes' = 'time'): string[] {
  const row: string[] = [];
  const target = targetCell(result, of);
  for (const name of columns) {
    const figures = result.subjects[name];
    row.push(figures === undefined ? '' : figures.failure === undefined ? cell(figures, name) : failureCell(figures.failure));
    if (name === 'ours on disk') row.push(target);
  }
  if (!columns.includes('ours on disk')) row.push(target);
  return row;
}

function titleOf(name: SubjectName): string {
  return name === 'raw again' ? 'noise' : name;
}

const timeCell: Cell = (figures, name) => {
  const absolute = figures.limit?.micros !== undefined;
  if (name === 'raw') return time(median(figures.micros));
  if (name === 'raw again') return spread(figures.ratios);
  const ours = name === 'ours' || name === 'ours on disk';
  const value = absolute ? time(median(figures.micros)) + rangeOf(figures.micros, time)
    : ratio(median(figures.ratios)) + (ours ? rangeOf(figures.ratios, ratio) : '');
  return value + (figures.met === false ? ' ✗' : figures.met === true ? ' ✓' : '');
};

const memoryCell: Cell = (figures) => mebibytes(median(figures.bytes ?? []));

function failureCell(failure: string): string {
  return failure.startsWith('wrong') ? 'wrong' : 'fails';
}

function shownMemory(result: Result): boolean {
  return Object.values(result.subjects).some(({ limit }) => limit?.bytes !== undefined);
}

function targetCell(result: Result, of: 'time' | 'bytes'): string {
  const text = ({ ratio: most, micros, bytes }: Limit): string =>
    of === 'bytes' ? '≤ ' + mebibytes(bytes ?? NaN) : micros === undefined ? '≤ ' + String(most) : '≤ ' + time(micros);
  const all = (['ours', 'ours on disk'] as const).flatMap((name) => {
    const limit = result.subjects[name]?.limit;
    return limit === undefined ? [] : [text(limit)];
  });
  return [...new Set(all)].join(' / ');
}

function spread(ratios: readonly number[]): string {
  return ratio(Math.min(...ratios)) + '–' + ratio(Math.max(...ratios));
}

function rangeOf(samples: readonly number[], show: (value: number) => string): string {
  return samples.length < 2 ? '' : ` (${show(Math.min(...samples))}–${show(Math.max(...samples))})`;
}

/** A ratio, with as many digits as say something. */
export function ratio(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : value >= 10 ? value.toFixed(0)
    : value >= 1 ? value.toFixed(2) : value.toFixed(3);
}

function time(micros: number): string {
  return micros >= 1e6 ? (micros / 1e6).toFixed(1) + ' s' : micros >= 1e4 ? (micros / 1e3).toFixed(0) + ' ms'
    : micros >= 1e3 ? (micros / 1e3).toFixed(1) + ' ms' : micros >= 100 ? micros.toFixed(0) + ' µs' : micros.toFixed(2) + ' µs';
}

function mebibytes(bytes: number): string {
  const value = bytes / (1 << 20);
  return (value >= 100 ? value.toFixed(0) : value.toFixed(1).replace(/\.0$/, '')) + ' MiB';
}

/** Rows as a Markdown table; the first is its head, the first column words. */
export function aligned(rows: readonly (readonly string[])[]): string {
  const head = rows[0] as readonly string[];
  const widths = head.map((_, i) => Math.max(...rows.map((row) => (row[i] ?? '').length)));
  const line = (row: readonly string[]): string => '| ' + row.map((cell, i) =>
    (i === 0 ? cell.padEnd(widths[i] as number) : cell.padStart(widths[i] as number))).join(' | ') + ' |';
  const rule = '|' + widths.map((width, i) => (i === 0 ? '-'.repeat(width + 2) : '-'.repeat(width + 1) + ':')).join('|') + '|';
  return [line(head), rule, ...rows.slice(1).map(line)].join('\n');
}

import type { Written } from '../index.ts';
import { fromBytes, hunksOf } from '../index/front-end.ts';

/** What a change did, as data: versions, and a unified diff where it is text. */
export function changeData(written: Written): Readonly<Record<string, unknown>> {
  const { operation, path, version, before, after } = written;
  return {
    path: path.toWellFormed(), operation, version, ...(before === undefined ? undefined : { before: before.version }),
    ...(operation === 'update' && before === undefined ? undefined : diffOf(path, before?.bytes, after)),
  };
}

/** The difference between two contents, as `git diff` names and shows it; `binary` where one is no text. */
export function diffOf(path: string, before: Uint8Array | undefined, after: Uint8Array | undefined): { diff: string } | { binary: true } {
  if (before?.includes(0) === true || after?.includes(0) === true) return { binary: true };
  const hunks = hunksOf(fromBytes(before ?? new Uint8Array(0)), fromBytes(after ?? new Uint8Array(0)));
  if (hunks.length === 0) return { diff: '' };
  const lines = [`--- ${before === undefined ? '/dev/null' : `a/${path}`}`, `+++ ${after === undefined ? '/dev/null' : `b/${path}`}`];
  for (const { head, lines: changed } of hunks) lines.push(head, ...changed);
  return { diff: (lines.join('\n') + '\n').toWellFormed() };
}

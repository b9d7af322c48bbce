/**
 * Which bytes of a file an actor has really been shown: all of them, or sorted ranges [start, end) that neither touch nor
 * overlap; none is the empty list.
 */
export type Shown = 'whole' | readonly (readonly [number, number])[];

export const NOTHING_SHOWN: Shown = Object.freeze([]);

/** Most ranges kept for a path. Beyond it the shortest are forgotten: less is claimed than was shown, never more. */
export const SHOWN_RANGES = 256;

/** What is shown of a file of `size` bytes after `ranges` (in any order) were shown too. */
export function showing(shown: Shown, ranges: readonly (readonly [number, number])[], size: number): Shown {
  if (shown === 'whole') return shown;
  const sorted = [...shown, ...ranges].sort((a, b) => a[0] - b[0]);
  const merged: [number, number][] = [];
  for (const [start, end] of sorted) {
    const last = merged.at(-1), to = Math.min(end, size);
    if (last !== undefined && start <= last[1]) last[1] = Math.max(last[1], to);
    else if (start < to) merged.push([start, to]);
  }
  const [first] = merged;
  if (size === 0 || (first !== undefined && first[0] === 0 && first[1] === size)) return 'whole';
  if (merged.length === 0) return NOTHING_SHOWN;
  return merged.length > SHOWN_RANGES ? longest(merged) : merged;
}

/** Whether bytes `start … end` have been shown. */
export function wasShown(shown: Shown, start: number, end: number): boolean {
  return shown === 'whole' || start >= end || shown.some(([from, to]) => from <= start && end <= to);
}

/**
 * What is shown of a file after `splices`, one after the other: what was shown before, where it has got to, and what was put in. Bytes that
 * were taken out and put back within one splice are those that were put in.
 */
export function splicedShown(shown: Shown, splices: readonly (readonly [number, number, number])[], size: number): Shown {
  if (shown === 'whole') return shown;
  let ranges: (readonly [number, number])[] = [...shown];
  for (const [at, removed, added] of splices) {
    const end = at + removed, moved = added - removed, next: (readonly [number, number])[] = [];
    for (const [from, to] of ranges) {
      if (from < at) next.push([from, Math.min(to, at)]);
      if (to > end) next.push([Math.max(from, end) + moved, to + moved]);
    }
    if (added > 0) next.push([at, at + added]);
    ranges = next;
  }
  return showing(NOTHING_SHOWN, ranges, size);
}

function longest(ranges: readonly [number, number][]): [number, number][] {
  const kept = new Set([...ranges].sort((a, b) => (b[1] - b[0]) - (a[1] - a[0])).slice(0, SHOWN_RANGES));
  return ranges.filter((range) => kept.has(range));
}

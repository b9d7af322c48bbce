import { enableMapSet, produce } from 'immer';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Event, EventBody, ProcessInfo } from '../../src/core/event.ts';
import { forkObservations, initialObservations, observationOf, observe, readSet } from '../../src/core/observation.ts';
import type { Observation, Observations, Present } from '../../src/core/observation.ts';
import { isWithin, parentOf, rebase } from '../../src/core/path.ts';
import type { TreePath } from '../../src/core/path.ts';
import { observationsFromJson, observationsToJson } from '../../src/core/recollection.ts';
import { SHOWN_RANGES, showing, wasShown } from '../../src/core/shown.ts';
import type { Version } from '../../src/core/version.ts';
import { anyEvent } from '../support/event-arbitrary.ts';

enableMapSet();

const p = (path: string): TreePath => path as TreePath;
const v = (digit: number): Version => `sha256:${String(digit).repeat(64)}` as Version;
const lowerPrint = (size: number, mtime: string) => ({ dev: 1, ino: 7, size, mtime, ctime: mtime });

/** A history: bodies in order, each by `main` unless it says otherwise. */
type Told = EventBody & { readonly by?: string; readonly process?: ProcessInfo };
function history(...told: readonly Told[]): Event[] {
  return told.map(({ by, ...body }, index): Event =>
    Object.assign({ seq: index + 1, time: '2026-11-30T20:00:00.000Z', actor: by ?? 'main' }, body));
}

function after(...told: readonly Told[]): (path: string, actor?: string) => Observation {
  const state = observed(history(...told));
  return (path, actor = 'main') => observationOf(state, actor, p(path));
}

function observed(events: readonly Event[], state = initialObservations()): Observations {
  for (const event of events) observe(state, event);
  return state;
}

const read = (path: string, more: object = {}): Told => ({ op: 'read', path: p(path), size: 100, version: v(1), ...more });
const write = (path: string, more: object = {}): Told =>
  ({ op: 'write', path: p(path), size: 100, mode: 0o100644, ino: 9, mtime: '5', ...more });
const miss = (path: string, more: object = {}): Told => ({ op: 'miss', path: p(path), call: 'open', ...more });
const rename = (path: string, to: string, more: object = {}): Told => ({ op: 'rename', path: p(path), to: p(to), mtime: '5', ...more });
const remove = (path: string, more: object = {}): Told => ({ op: 'delete', path: p(path), mtime: '5', ...more });
const stat = (path: string): Told => ({
  op: 'stat', path: p(path), exists: 'file', mode: 0o100644, uid: 0, gid: 0, size: 3, nlink: 1, ino: 7, rdev: 0, mtime: '1', ctime: '2',
});
const shownOf = (observation: Observation): unknown => (observation as Present).shown;

describe('an observation', () => {
  it('is unseen without an event of that actor about that path', () => {
    const seen = after(read('a', { by: 'other' }), read('b/c'), { op: 'mark', label: 'x' });
    expect(seen('a')).toEqual({ kind: 'unseen' });
    expect(seen('b')).toEqual({ kind: 'unseen' });
    expect(seen('')).toEqual({ kind: 'unseen' });
    expect(seen('a', 'nobody')).toEqual({ kind: 'unseen' });
    expect(seen('a', 'other')).toMatchObject({ kind: 'present', version: v(1), seq: 1 });
  });

  it('is the version of the last read, and a list is seeing too', () => {
    const seen = after(read('a'), read('a', { version: v(2) }), { op: 'list', path: p(''), version: v(3), count: 1 });
    expect(seen('a')).toMatchObject({ kind: 'present', version: v(2), seq: 2, contentSeq: 2, shown: 'whole' });
    expect(seen('')).toMatchObject({ kind: 'present', version: v(3), seq: 3, shown: 'whole' });
  });

  it('is absent after a miss, and present again after a read', () => {
    expect(after(read('a'), miss('a'))('a')).toEqual({ kind: 'absent', seq: 2 });
    expect(after(miss('a'), read('a'))('a')).toMatchObject({ kind: 'present', seq: 2 });
  });

  it('is left as it was by stat, readlink, flags and refusals, which the read set holds where they looked', () => {
    const told = [read('a'), stat('a'), stat('b'), { op: 'readlink', path: p('l'), target: 'a' } as const, miss('m'),
      { op: 'flag', path: p('f'), rule: 'f', call: 'open' } as const, { op: 'refuse', path: p('f'), call: 'edit', code: 'FS_NOT_OBSERVED' } as const];
    const seen = after(...told);
    expect(seen('a')).toMatchObject({ kind: 'present', seq: 1 });
    for (const path of ['b', 'l', 'f']) expect(seen(path)).toEqual({ kind: 'unseen' });
    expect([...readSet(observed(history(...told)))].map(({ actor, path, observation, stat: look, link }) =>
      [actor, path, observation.kind, look?.seq, link?.target])).toEqual([
      ['main', 'a', 'present', 2, undefined], ['main', 'b', 'unseen', 3, undefined], ['main', 'l', 'unseen', undefined, 'a'],
      ['main', 'm', 'absent', undefined, undefined],
    ]);
  });

  it('advances with own changes, so that two edits pass after one read', () => {
    const seen = after(read('a'), write('a', { version: v(2), blob: v(2), before: v(1) }), write('a', { version: v(3), blob: v(3), before: v(2) }));
    expect(seen('a')).toMatchObject({ kind: 'present', version: v(3), seq: 3, contentSeq: 3, shown: 'whole' });
  });

  it('stays where others change the file', () => {
    const seen = after(read('a'), write('a', { version: v(2), blob: v(2), by: 'other' }), remove('a', { by: 'other' }));
    expect(seen('a')).toMatchObject({ kind: 'present', version: v(1), seq: 1 });
    expect(seen('a', 'other')).toEqual({ kind: 'absent', seq: 3 });
  });

  it('keeps its content when only mode, owner or times change, and has none where there was nothing seen', () => {
    const chmod = (path: string): Told => ({ op: 'chmod', path: p(path), mode: 0o100755, mtime: '5' });
    const seen = after(read('a'), chmod('a'), chmod('b'));
    expect(seen('a')).toMatchObject({ kind: 'present', version: v(1), seq: 2, contentSeq: 1, shown: 'whole' });
    expect(seen('b')).toMatchObject({ kind: 'present', seq: 3, contentSeq: undefined, version: undefined, shown: [] });
  });

  it('is recorded for what is made, under both names of a link', () => {
    const seen = after(
      { op: 'mkdir', path: p('d'), mode: 0o40755, ino: 3, uid: 0, gid: 0, mtime: '1' },
      { op: 'symlink', path: p('l'), target: 'd', ino: 4, uid: 0, gid: 0, mtime: '1' },
      read('a'), { op: 'link', path: p('a'), to: p('d/b'), ino: 7, mtime: '1' },
    );
    expect(seen('d')).toMatchObject({ kind: 'present', seq: 4, contentSeq: 4, shown: 'whole' });
    expect(seen('l')).toMatchObject({ kind: 'present', seq: 2, shown: 'whole' });
    expect(seen('a')).toMatchObject({ kind: 'present', seq: 4, contentSeq: 3, version: v(1) });
    expect(seen('d/b')).toEqual(seen('a'));
  });

  it('is none of a file that has no name any more', () => {
    expect(after(write('a', { blob: v(2), unlinked: true }))('a')).toEqual({ kind: 'unseen' });
  });
});

describe('a rename', () => {
  it('moves what its actor has seen below, and leaves absence', () => {
    const seen = after(read('a/x'), miss('a/y'), read('a/d/z', { version: v(2) }), rename('a', 'b'));
    expect(seen('b/x')).toMatchObject({ kind: 'present', version: v(1), seq: 1 });
    expect(seen('b/y')).toEqual({ kind: 'absent', seq: 2 });
    expect(seen('b/d/z')).toMatchObject({ version: v(2), seq: 3 });
    expect(seen('b')).toMatchObject({ kind: 'present', seq: 4, contentSeq: undefined });
    for (const gone of ['a', 'a/x', 'a/d/z', 'a/never']) expect(seen(gone)).toEqual({ kind: 'absent', seq: 4 });
  });

  it('moves nothing of another actor', () => {
    const seen = after(read('a/x', { by: 'other' }), rename('a', 'b'));
    expect(seen('a/x', 'other')).toMatchObject({ kind: 'present', seq: 1 });
    expect(seen('b/x', 'other')).toEqual({ kind: 'unseen' });
  });

  it('forgets what was seen of what it replaces', () => {
    const seen = after(read('a'), read('b', { version: v(2) }), read('c/x'), rename('a', 'b'), rename('d', 'c'));
    expect(seen('b')).toMatchObject({ version: v(1), seq: 4, contentSeq: 1 });
    expect(seen('c/x')).toEqual({ kind: 'unseen' });
  });

  it('swaps two trees where it exchanges', () => {
    const seen = after(read('a/x'), read('b/y', { version: v(2) }), rename('a', 'b', { exchange: true }));
    expect(seen('b/x')).toMatchObject({ version: v(1) });
    expect(seen('a/y')).toMatchObject({ version: v(2) });
    expect(seen('a/x')).toEqual({ kind: 'unseen' });
  });

  it('keeps a new file under the old name apart from the one that moved on', () => {
    const seen = after(read('a'), rename('a', 'b'), write('a', { version: v(2), blob: v(2), created: { uid: 0, gid: 0 } }), rename('b', 'c'));
    expect(seen('a')).toMatchObject({ version: v(2), seq: 3 });
    expect(seen('c')).toMatchObject({ version: v(1), contentSeq: 1 });
    expect(seen('b')).toEqual({ kind: 'absent', seq: 4 });
  });

  it('leaves a directory made anew empty until it is listed', () => {
    const told = [rename('d', 'e'), { op: 'mkdir', path: p('d'), mode: 0o40755, ino: 3, uid: 0, gid: 0, mtime: '1' } as const];
    expect(after(...told)('d/x')).toEqual({ kind: 'absent', seq: 1 });
    expect(after(...told, { op: 'list', path: p('d'), version: v(1), count: 1 })('d/x')).toEqual({ kind: 'unseen' });
  });

  type Row = { path: TreePath; seen: Observation };
  /** Moves rows eagerly, path by path: the slow rule that the tree of names must agree with. */
  function renameRows(rows: readonly Row[], from: TreePath, to: TreePath, seq: number): Row[] {
    const touched = { kind: 'present', seq, contentSeq: undefined, version: undefined, fingerprint: undefined, shown: [] } as const;
    const root = rows.find(({ path }) => path === from)?.seen;
    const moved: Row[] = [
      ...rows.filter(({ path }) => !isWithin(path, from) && !isWithin(path, to)),
      ...rows.filter(({ path }) => path !== from && isWithin(path, from)).map(({ path, seen }) => ({ path: rebase(path, from, to), seen })),
      { path: to, seen: root?.kind === 'present' ? { ...root, seq } : touched },
      { path: from, seen: { kind: 'absent', seq } },
    ];
    const holders = [parentOf(from), parentOf(to)];
    return moved.map((row) => holders.includes(row.path) && row.seen.kind === 'present' && row.seen.contentSeq !== undefined
      ? { path: row.path, seen: { ...touched, contentSeq: seq, shown: 'whole' } } : row);
  }

  it('agrees with moving every path by itself, for any sequence of reads, misses and renames', () => {
    const path = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 3 }).map((names) => p(names.join('/')));
    const step = fc.oneof(
      path.map((at) => read(at)), path.map((at) => miss(at)),
      fc.tuple(path, path).filter(([a, b]) => !isWithin(a, b) && !isWithin(b, a)).map(([a, b]) => rename(a, b)),
    );
    fc.assert(fc.property(fc.array(step, { maxLength: 30 }), (told) => {
      let rows: Row[] = [];
      for (const event of history(...told)) {
        if (event.op === 'rename') rows = renameRows(rows, event.path, event.to, event.seq);
        else if (event.op === 'read' || event.op === 'miss') {
          const seen = observationOf(observed([event]), 'main', event.path);
          rows = [...rows.filter(({ path: at }) => at !== event.path), { path: event.path, seen }];
        }
      }
      const state = observed(history(...told));
      for (const row of rows) expect(observationOf(state, 'main', row.path)).toEqual(row.seen);
      expect([...readSet(state)].map(({ path: at }) => at).sort()).toEqual(rows.map(({ path: at }) => at).sort());
    }), { numRuns: 500 });
  });
});

describe('what was shown', () => {
  it('is the whole of a file read without ranges, and joined ranges else', () => {
    expect(shownOf(after(read('a'))('a'))).toBe('whole');
    expect(shownOf(after(read('a', { ranges: [[0, 10], [40, 50]] }), read('a', { ranges: [[5, 20]] }))('a'))).toEqual([[0, 20], [40, 50]]);
    expect(shownOf(after(read('a', { ranges: [[0, 60]] }), read('a', { ranges: [[60, 100]] }))('a'))).toBe('whole');
  });

  it('starts over with another version or fingerprint, and goes on with the same', () => {
    const other = read('a', { version: v(2), ranges: [[50, 60]] });
    expect(shownOf(after(read('a', { ranges: [[0, 10]] }), other)('a'))).toEqual([[50, 60]]);
    const big = (mtime: string, ...range: number[]): Told =>
      ({ op: 'read', path: p('a'), size: 100, fingerprint: lowerPrint(100, mtime), ranges: [range as [number, number]] });
    expect(shownOf(after(big('1', 0, 10), big('1', 10, 20))('a'))).toEqual([[0, 20]]);
    expect(shownOf(after(big('1', 0, 10), big('2', 10, 20))('a'))).toEqual([[10, 20]]);
  });

  it('starts over for a file without version when anybody else has changed anything since', () => {
    const part = (start: number, end: number): Told => ({ op: 'read', path: p('a'), size: 100, ranges: [[start, end]] });
    expect(shownOf(after(part(0, 10), write('b', { blob: v(1) }), part(10, 20))('a'))).toEqual([[0, 20]]);
    expect(shownOf(after(part(0, 10), write('a', { by: 'other', blob: v(1) }), write('b', { blob: v(1) }), part(10, 20))('a'))).toEqual([[10, 20]]);
    expect(shownOf(after(part(0, 10), { op: 'discard' }, part(10, 20))('a'))).toEqual([[10, 20]]);
  });

  it('is nothing new for a read on a mount, whose ranges nobody knows', () => {
    const process = { pid: 1, name: 'cat' };
    expect(shownOf(after(read('a', { process }))('a'))).toEqual([]);
    expect(shownOf(after(read('a'), read('a', { process }))('a'))).toBe('whole');
  });

  it('grows by own writes, and is whole for what the actor wrote or made itself', () => {
    const extents = [{ at: 20, length: 10, blob: v(5) }];
    expect(shownOf(after(write('a', { blob: v(2) }))('a'))).toBe('whole');
    expect(shownOf(after(write('a', { created: { uid: 0, gid: 0 }, extents }))('a'))).toBe('whole');
    expect(shownOf(after(write('a', { extents }))('a'))).toEqual([[20, 30]]);
    expect(shownOf(after(read('a', { ranges: [[0, 20]] }), write('a', { extents, before: v(1) }))('a'))).toEqual([[0, 30]]);
    expect(shownOf(after(read('a'), write('a', { extents, before: v(1) }))('a'))).toBe('whole');
    expect(shownOf(after(read('a'), write('a', { extents, before: v(2) }))('a'))).toEqual([[20, 30]]);
    const lower = { type: 'file', mode: 0o100644, uid: 0, gid: 0, nlink: 1, ...lowerPrint(100, '1') } as const;
    const print = { version: undefined, fingerprint: lowerPrint(100, '1'), ranges: [[0, 20]] };
    expect(shownOf(after(read('a', print), write('a', { extents, lower }))('a'))).toEqual([[0, 30]]);
    expect(shownOf(after(read('a', print), write('a', { extents, lower: { ...lower, ctime: '2' } }))('a'))).toEqual([[20, 30]]);
  });

  it('is cut by a truncation, and all of an empty file', () => {
    const truncate = (size: number): Told => ({ op: 'truncate', path: p('a'), size, ino: 7, mtime: '5' });
    expect(shownOf(after(write('a', { blob: v(2) }), truncate(10))('a'))).toBe('whole');
    expect(shownOf(after(truncate(0))('a'))).toBe('whole');
    expect(shownOf(after(truncate(10))('a'))).toEqual([]);
    expect(shownOf(after(write('a', { extents: [{ at: 20, length: 10 }] }), truncate(25))('a'))).toEqual([[20, 25]]);
  });

  it('is kept in a bounded number of ranges, and never claims more than was shown', () => {
    const range = fc.tuple(fc.nat({ max: 400 }), fc.nat({ max: 5 })).map(([start, length]): [number, number] => [start, start + length]);
    fc.assert(fc.property(fc.array(range, { maxLength: 40 }), fc.nat({ max: 400 }), (ranges, size) => {
      const bytes = new Set(ranges.flatMap(([start, end]) => Array.from({ length: end - start }, (_, i) => start + i)).filter((at) => at < size));
      const shown = ranges.reduce<ReturnType<typeof showing>>((so, one) => showing(so, [one], size), []);
      for (let at = 0; at < size; at++) expect(wasShown(shown, at, at + 1)).toBe(bytes.has(at));
      expect(shown === 'whole').toBe(ranges.length > 0 && bytes.size === size);
    }), { numRuns: 100 });
    const scattered = Array.from({ length: 2 * SHOWN_RANGES }, (_, i): [number, number] => [10 * i, 10 * i + 1 + i % 5]);
    const shown = showing([], scattered, 10 ** 6);
    expect(shown).toHaveLength(SHOWN_RANGES);
    expect(scattered).toEqual(expect.arrayContaining(shown as [number, number][]));
    expect(wasShown(shown, 40, 45)).toBe(true);
    expect(wasShown(shown, 0, 1)).toBe(false);
  });
});

describe('the fold of observations', () => {
  const events = fc.array(anyEvent(), { maxLength: 25 })
    .map((list) => list.map((event, index): Event => Object.assign(event, { seq: index + 1, actor: index % 3 === 0 ? 'other' : 'main' })))
    .filter((list) => list.every((event) => event.op !== 'rename' || (event.path !== '' && event.to !== '')));

  it('gives the same for all events as for a prefix and then the rest, through a checkpoint too', () => {
    fc.assert(fc.property(events, fc.nat({ max: 25 }), (list, cut) => {
      const all = observationsToJson(observed(list));
      const prefix = observed(list.slice(0, cut));
      const restored = observationsFromJson(JSON.parse(observationsToJson(prefix)));
      expect(observationsToJson(restored)).toBe(observationsToJson(prefix));
      expect([...readSet(restored)]).toEqual([...readSet(prefix)]);
      expect(observationsToJson(observed(list.slice(cut), prefix))).toBe(all);
      expect(observationsToJson(observed(list.slice(cut), restored))).toBe(all);
    }), { numRuns: 300 });
  });

  it('is the same under produce as in place, and leaves the state before it alone', () => {
    fc.assert(fc.property(events, fc.nat({ max: 25 }), (list, cut) => {
      const before = produce(initialObservations(), (draft) => void observed(list.slice(0, cut), draft as Observations));
      const text = observationsToJson(before);
      const then = produce(before, (draft) => void observed(list.slice(cut), draft as Observations));
      expect(observationsToJson(before)).toBe(text);
      expect(observationsToJson(then)).toBe(observationsToJson(observed(list)));
    }), { numRuns: 200 });
  });

  it('is the very same object after events that nobody observed anything by', () => {
    fc.assert(fc.property(anyEvent('run', 'exit', 'mark', 'refuse', 'flag', 'fork', 'merge', 'commit', 'revert', 'seal'), (event) => {
      const state = produce(observed(history(read('a'))), () => {});
      expect(produce(state, (draft) => observe(draft as Observations, event))).toBe(state);
    }));
  });

  it('does not tell an event that came in pieces from one that came at once', () => {
    const growing = fc.tuple(events, anyEvent('read', 'list', 'stat', 'miss', 'write'), anyEvent('read', 'list', 'stat', 'miss', 'write'), fc.boolean());
    fc.assert(fc.property(growing, ([list, first, second, isKnown]) => {
      const stamp = { seq: list.length + 1, actor: 'main', path: isKnown ? pathIn(list) : p('fresh') };
      const grown = { ...second, ...stamp } as Event, small = { ...grown, ...smaller(grown, first), ...stamp } as Event;
      const live = observed(list);
      observe(live, small);
      observe(live, grown);
      expect(observationsToJson(live)).toBe(observationsToJson(observed([...list, grown])));
    }), { numRuns: 300 });
  });

  function pathIn(list: readonly Event[]): TreePath {
    const placed = list.find((event) => 'path' in event && event.path !== undefined);
    return (placed as { path?: TreePath } | undefined)?.path ?? p('fresh');
  }

  /** What of `event` may still have been otherwise before it grew. */
  function smaller(event: Event, other: Event): object {
    if (event.op === 'read') return { version: undefined, ranges: [[0, 1]] };
    if (event.op === 'write') return { version: undefined, blob: undefined, extents: undefined, before: undefined, size: 1 };
    return other.op === event.op ? other : {};
  }

  it('lets a fork and its origin go their own ways', () => {
    fc.assert(fc.property(events, events, events, (shared, ours, theirs) => {
      const origin = observed(shared), fork = forkObservations(origin);
      observed(ours, origin);
      observed(theirs, fork);
      expect(observationsToJson(origin)).toBe(observationsToJson(observed([...shared, ...ours])));
      expect(observationsToJson(fork)).toBe(observationsToJson(observed([...shared, ...theirs])));
    }), { numRuns: 200 });
  });

  it('refuses a checkpoint that it cannot have written', () => {
    for (const json of [{}, null, 3, [], [[1], 'a', 3], [['a', 1, 1], 'a', [[1, 2], 7]]]) {
      expect(() => observationsFromJson(json)).toThrow(TypeError);
    }
  });
});

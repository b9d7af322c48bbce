import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Event } from '../../src/core/event.ts';
import { fold, patched, projection } from '../../src/core/fold.ts';
import type { Reducer } from '../../src/core/fold.ts';
import type { TreePath } from '../../src/core/path.ts';
import { count, initialStatistics } from '../../src/core/statistics.ts';
import type { Statistics } from '../../src/core/statistics.ts';
import { anyEvent } from '../support/event-arbitrary.ts';

const numbered = (events: readonly Event[]): Event[] => events.map((event, index) => ({ ...event, seq: index + 1 }));
const anyHistory = fc.array(anyEvent(), { maxLength: 40 }).map(numbered);

const miss = (seq: number, path: string): Event =>
  ({ seq, time: '2026-11-30T20:00:00.000Z', actor: 'main', op: 'miss', path: path as TreePath, call: 'open' });
const misses = (length: number): Event[] => Array.from({ length }, (_, index) => miss(index + 1, `f${index % 7}`));

interface Missed {
  paths: string[];
  readonly never: { readonly touched: boolean };
}
const initial: Missed = { paths: [], never: { touched: false } };
const missed: Reducer<Missed> = (draft, event) => {
  if (event.op === 'miss') draft.paths.push(event.path);
};

describe('fold', () => {
  it('is the reducer over all events, frozen, the initial state left alone and the untouched part shared', () => {
    const state = fold(misses(3), missed, initial);
    expect(state.paths).toEqual(['f0', 'f1', 'f2']);
    expect(initial.paths).toEqual([]);
    expect(state.never).toBe(initial.never);
    expect(Object.isFrozen(state.paths)).toBe(true);
  });

  it('is the very same object where nothing changed, frozen all the same', () => {
    const start = { paths: [] as string[], never: { touched: false } };
    const marks = Array.from({ length: 3 }, (_, index): Event =>
      ({ seq: index + 1, time: '2026-11-30T20:00:00.000Z', actor: 'main', op: 'mark', label: 'x' }));
    expect(fold(marks, missed, start)).toBe(start);
    expect(fold([], missed, start)).toBe(start);
    expect(Object.isFrozen(start.paths)).toBe(true);
  });

  it('of all events is the fold of a prefix and then of the rest', () => {
    fc.assert(fc.property(anyHistory, fc.nat({ max: 40 }), (events, cut) => {
      const prefix = fold(events.slice(0, cut), count, initialStatistics());
      expect(fold(events.slice(cut), count, prefix)).toEqual(fold(events, count, initialStatistics()));
    }), { numRuns: 150 });
  });

  it('is what the reducer makes in place', () => {
    fc.assert(fc.property(anyHistory, (events) => {
      const live = initialStatistics();
      for (const event of events) count(live, event);
      expect(fold(events, count, initialStatistics())).toEqual(live);
    }), { numRuns: 150 });
  });

  it('takes any iterable and any number of batches', () => {
    function* stream(): Generator<Event> {
      for (let seq = 1; seq <= 10_000; seq++) yield miss(seq, 'a');
    }
    expect(fold(stream(), missed, initial).paths).toHaveLength(10_000);
  });

  it('refuses a state that cannot be drafted, and passes on what the reducer throws', () => {
    expect(() => fold([], () => {}, 3)).toThrow(TypeError);
    expect(() => projection(() => {}, 'x')).toThrow(TypeError);
    expect(() => fold(misses(1), () => { throw new RangeError('no'); }, initial)).toThrow(RangeError);
  });
});

describe('a projection', () => {
  it('follows, and tells by patches what changed and how to go back', () => {
    fc.assert(fc.property(anyHistory, fc.nat({ max: 40 }), (events, cut) => {
      const following = projection(count, initialStatistics());
      following.apply(events.slice(0, cut));
      const before = following.state;
      const { patches, inverse } = following.apply(events.slice(cut));
      expect(following.state).toEqual(fold(events, count, initialStatistics()));
      expect(patched(before, patches)).toEqual(following.state);
      expect(patched(following.state, inverse)).toEqual(before);
    }), { numRuns: 150 });
  });

  it('keeps patches and their inverse right over many batches', () => {
    const following = projection(missed, initial), { patches, inverse } = following.apply(misses(5000));
    expect(following.state.paths).toHaveLength(5000);
    expect(patched(initial, patches)).toEqual(following.state);
    expect(patched(following.state, inverse)).toEqual(initial);
  });

  it('is the same object, with no patches, after events that change nothing', () => {
    const following = projection(missed, initial), { state } = following;
    expect(following.apply([])).toEqual({ patches: [], inverse: [] });
    expect(following.apply([{ seq: 1, time: '2026-11-30T20:00:00.000Z', actor: 'main', op: 'mark', label: 'x' }])).toEqual({ patches: [], inverse: [] });
    expect(following.state).toBe(state);
  });

  it('stays at the last whole batch where the reducer throws', () => {
    const picky: Reducer<Missed> = (draft, event) => {
      if (event.op !== 'miss') throw new Error('only misses');
      draft.paths.push(event.path);
    };
    const following = projection(picky, initial);
    following.apply(misses(2));
    const { state } = following;
    expect(() => following.apply([miss(3, 'x'), { ...miss(4, 'y'), op: 'seal', hash: 'x' } as unknown as Event])).toThrow('only misses');
    expect(following.state).toBe(state);
  });
});

describe('statistics', () => {
  it('count by op, actor and path, a rename at both of its names', () => {
    const time = '2026-11-30T20:00:00.000Z', path = (name: string) => name as TreePath;
    const events: Event[] = [
      { seq: 1, time, actor: 'a', op: 'read', path: path('x'), size: 1 },
      { seq: 2, time, actor: 'b', op: 'miss', path: path('y'), call: 'stat' },
      { seq: 3, time, actor: 'a', op: 'rename', path: path('x'), to: path('y'), mtime: '1' },
      { seq: 4, time, actor: 'a', op: 'refuse', call: 'open', code: 'EACCES' },
      { seq: 5, time: '2026-11-30T20:00:01.000Z', actor: 'a', op: 'flag', path: path('x'), rule: '*', call: 'open' },
      { seq: 6, time: '2026-11-30T20:00:02.000Z', actor: 'a', op: 'mark', label: 'end' },
    ];
    const statistics: Statistics = fold(events, count, initialStatistics());
    const none = { reads: 0, lists: 0, looks: 0, misses: 0, mutations: 0, refusals: 0, flags: 0 };
    expect(statistics).toMatchObject({ events: 6, first: time, last: '2026-11-30T20:00:02.000Z' });
    expect(statistics.total).toEqual({ ...none, reads: 1, misses: 1, mutations: 1, refusals: 1, flags: 1 });
    expect(statistics.ops.get('mark')).toBe(1);
    expect(statistics.actors).toEqual(new Map([
      ['a', { ...none, reads: 1, mutations: 1, refusals: 1, flags: 1 }], ['b', { ...none, misses: 1 }],
    ]));
    expect(statistics.paths).toEqual(new Map([
      ['x', { ...none, reads: 1, mutations: 1, flags: 1 }], ['y', { ...none, misses: 1, mutations: 1 }],
    ]));
  });

  it('add up, whatever happened', () => {
    fc.assert(fc.property(anyHistory, (events) => {
      const { total, ops, actors } = fold(events, count, initialStatistics());
      expect([...ops.values()].reduce((sum, n) => sum + n, 0)).toBe(events.length);
      for (const column of Object.keys(total) as (keyof typeof total)[]) {
        expect([...actors.values()].reduce((sum, counts) => sum + counts[column], 0)).toBe(total[column]);
      }
    }), { numRuns: 100 });
  });
});

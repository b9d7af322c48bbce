import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Event } from '../../src/core/event.ts';
import { compareNames, type TreePath } from '../../src/core/path.ts';
import { count, initialStatistics } from '../../src/core/statistics.ts';
import { summaryOf } from '../../src/core/summary.ts';
import { anyEvent } from '../support/event-arbitrary.ts';

const path = (name: string): TreePath => name as TreePath;
const sh = { pid: 2, name: 'sh', parent: 1 }, cat = { pid: 2, name: 'cat', parent: 1 };
const time = (seconds: number): string => `2026-11-30T20:00:0${seconds}.000Z`;

/** One run that looks about, and another with the same numbers. */
const HISTORY: Event[] = [
  { seq: 1, time: time(0), actor: 'main', op: 'rules', rules: [{ match: 'h', effect: 'hide' }] },
  { seq: 2, time: time(0), actor: 'main', op: 'run', argv: ['sh'], cwd: '/' },
  { seq: 3, time: time(1), actor: 'main', process: sh, op: 'list', path: path(''), version: 'sha256:0' as never, count: 1 },
  { seq: 4, time: time(1), actor: 'main', process: cat, op: 'read', path: path('b'), size: 1 },
  { seq: 5, time: time(1), actor: 'main', process: cat, op: 'read', path: path('a'), size: 1 },
  { seq: 6, time: time(1), actor: 'main', process: cat, op: 'read', path: path('b'), size: 1 },
  { seq: 7, time: time(2), actor: 'main', process: cat, op: 'miss', path: path('z'), call: 'lookup' },
  { seq: 8, time: time(2), actor: 'main', process: cat, op: 'flag', path: path('h'), rule: 'h', call: 'lookup' },
  { seq: 9, time: time(2), actor: 'main', process: sh, op: 'flag', path: path('h'), rule: 'h', call: 'lookup' },
  { seq: 10, time: time(3), actor: 'eve', op: 'refuse', outside: '/etc/passwd', call: 'open', code: 'EACCES' },
  { seq: 11, time: time(3), actor: 'eve', op: 'refuse', path: path('d'), call: 'open', code: 'EACCES', rule: 'd' },
  { seq: 12, time: time(4), actor: 'main', op: 'run', argv: ['sh'], cwd: '/' },
  { seq: 13, time: time(4), actor: 'main', process: sh, op: 'readlink', path: path('l'), target: 'a' },
];
const none = { reads: 0, lists: 0, looks: 0, misses: 0, mutations: 0, refusals: 0, flags: 0 };

describe('a summary', () => {
  it('has each path once, what each actor and process did, and what rules had to say', () => {
    expect(summaryOf(HISTORY)).toEqual({
      from: 1, to: 13, events: 13, first: time(0), last: time(4),
      total: { reads: 3, lists: 1, looks: 1, misses: 1, mutations: 0, refusals: 2, flags: 2 },
      actors: [{ actor: 'main', ...none, reads: 3, lists: 1, looks: 1, misses: 1, flags: 2 }, { actor: 'eve', ...none, refusals: 2 }],
      processes: [
        { ...sh, run: 2, ...none, lists: 1, flags: 1 }, { ...cat, run: 2, ...none, reads: 3, misses: 1, flags: 1 },
        { ...sh, run: 12, ...none, looks: 1 },
      ],
      read: ['a', 'b'], listed: [''], looked: ['l'], missed: ['z'],
      flags: [{ op: 'flag', actor: 'main', call: 'lookup', path: 'h', rule: 'h', programs: ['cat', 'sh'], count: 2, seq: 8 }],
      refusals: [
        { op: 'refuse', actor: 'eve', call: 'open', outside: '/etc/passwd', code: 'EACCES', programs: [], count: 1, seq: 10 },
        { op: 'refuse', actor: 'eve', call: 'open', path: 'd', code: 'EACCES', rule: 'd', programs: [], count: 1, seq: 11 },
      ],
      rules: [{ match: 'h', effect: 'hide' }],
    });
  });

  it('of nothing is nothing', () => {
    expect(summaryOf([])).toMatchObject({ from: 0, to: 0, events: 0, total: none, actors: [], read: [], flags: [] });
  });

  it('adds up, whatever happened, and survives JSON', () => {
    fc.assert(fc.property(fc.array(anyEvent(), { maxLength: 40 }), (events) => {
      const summary = summaryOf(events), statistics = initialStatistics();
      for (const event of events) count(statistics, event);
      expect(summary.total).toEqual(statistics.total);
      expect(summary.flags.reduce((sum, { count: times }) => sum + times, 0)).toBe(summary.total.flags);
      expect(summary.refusals.reduce((sum, { count: times }) => sum + times, 0)).toBe(summary.total.refusals);
      expect(summary.read).toEqual([...new Set(summary.read)].sort(compareNames));
      expect(summary.read.length).toBeLessThanOrEqual(summary.total.reads);
      const told = events.filter(({ process, op }) => process !== undefined && op === 'read').length;
      expect(summary.processes.reduce((sum, { reads }) => sum + reads, 0)).toBe(told);
      expect(JSON.parse(JSON.stringify(summary))).toMatchObject({ events: events.length, processes: summary.processes });
    }), { numRuns: 100 });
  });
});

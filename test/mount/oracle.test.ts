import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { SessionLog, type Event } from '../../src/index.ts';
import { balance } from './ledger.ts';
import { lack } from './union.ts';
import { benchOf, doneInRun, lacking, witnessed } from './workbench.ts';
import { WORKS } from './works.ts';

/** By default a part of it, all of it with `WORK=all` (`npm run work`). */
const ALL = process.env['WORK'] === 'all';

/** A work is done three times, once traced, and machines are busy; in ms. */
const PATIENCE = 1_800_000;
/** Those that are also quick when every call is traced. */
const QUICK = new Set(['make', 'editors', 'npm install and test']);

describe('the log of a run, held against what strace saw', () => {
  for (const work of WORKS.filter(({ name }) => ALL || QUICK.has(name))) {
    it(`has all that was read, listed, missed and changed, and nothing else: ${work.name}`, { timeout: PATIENCE }, async (context) => {
      const missing = [lack('palimpsest'), ...lacking({ ...work, programs: [...work.programs, 'strace'] })].filter((each) => each !== undefined);
      if (spawnSync('strace', ['-o', '/dev/null', 'true']).status !== 0) missing.push('leave to trace');
      if (missing.length > 0) {
        if (process.env['CI'] === 'true') throw new Error(`CI must have what ${work.name} needs: ${missing.join(', ')}`);
        context.skip(missing.join(', '));
        return;
      }
      const bench = benchOf(work);
      try {
        const deeds = witnessed(work, bench);
        await doneInRun(work, bench);
        const log = SessionLog.openSync(bench.session), exit = [...log.events({ op: 'exit' })].at(-1);
        expect(exit).toMatchObject({ status: 0 });
        // What came after is our own look at the result.
        const events = [...log.events({ to: exit?.seq ?? 0 })], chance = work.chance ?? /(?!)/g, balances = balance(deeds, events, chance);
        expect(balances.map(({ kind, done }) => `${kind} ${done > 0}`)).toEqual(['read true', 'list true', 'miss true', 'change true']);
        expect(balances.map(({ kind, lost, extra }) => ({ kind, lost, extra })))
          .toEqual(balances.map(({ kind }) => ({ kind, lost: [], extra: [] })));
        // The scales move: a change that is left out is missed, an invented one is one too many.
        const written = events.findLast(({ op }) => op === 'write') as Extract<Event, { op: 'write' }>;
        const others = events.filter((event) => !('path' in event && event.path === written.path) && !('to' in event && event.to === written.path));
        const found = balance(deeds, [...others, { ...written, path: 'invented' as typeof written.path }], chance).at(-1);
        expect([found?.lost, found?.extra]).toEqual([expect.arrayContaining([written.path.replaceAll(chance, '*')]), ['invented']]);
      } finally {
        bench.clear();
      }
    });
  }
});

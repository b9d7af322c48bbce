import { describe, expect, it } from 'vitest';
import { lack } from './union.ts';
import { benchOf, doneInRun, lacking } from './workbench.ts';
import { WORKS } from './works.ts';

/** By default a part of it, all of it with `WORK=all` (`npm run work`). */
const ALL = process.env['WORK'] === 'all';

/** A work is done twice, and machines are busy; in ms. */
const PATIENCE = 900_000;

describe('real work inside run', () => {
  for (const work of WORKS.filter(({ short }) => short || ALL)) {
    it(`says and leaves the same as without us: ${work.name}`, { timeout: PATIENCE }, async (context) => {
      const missing = [lack('palimpsest'), ...lacking(work)].filter((each) => each !== undefined);
      if (missing.length > 0) {
        if (process.env['CI'] === 'true') throw new Error(`CI must have what ${work.name} needs: ${missing.join(', ')}`);
        context.skip(missing.join(', '));
        return;
      }
      const bench = benchOf(work);
      try {
        expect(bench.plain.status, bench.plain.output).toBe(0);
        const lower = bench.lower();
        const done = await doneInRun(work, bench);
        expect({ status: done.status, output: done.output }).toEqual({ status: 0, output: bench.plain.output });
        expect(done.tree).toEqual(bench.plain.tree);
        expect(bench.lower()).toBe(lower);
      } finally {
        bench.clear();
      }
    });
  }
});

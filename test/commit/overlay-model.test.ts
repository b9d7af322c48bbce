import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { program } from '../model/arbitrary.ts';
import { CI_SEED } from '../support/seed.ts';
import { played, untimed } from './played.ts';

/** `COMMIT_RUNS` programs, the same each time unless `COMMIT_SEED` says otherwise; a failure prints seed and path. */
const runs = Number(process.env['COMMIT_RUNS'] ?? 60);
const seed = Number(process.env['COMMIT_SEED'] ?? CI_SEED) | 0;
const replay = process.env['COMMIT_PATH'];

describe('a committed program', () => {
  it(`leaves what it would have left if done directly, and taken back what was there before (seed ${seed})`, { timeout: 600_000 }, async () => {
    await fc.assert(fc.asyncProperty(program(25), fc.array(fc.nat({ max: 24 }), { maxLength: 2 }), async (each, at) => {
      const { before, after, oracle, reverted, receipts, left } = await played(each, at);
      expect(left).toBe(0);
      // Where a file had names that the overlay never met, these keep what they had, and the receipt says so.
      const isWhole = !receipts.some(({ losses }) => losses.some(({ what }) => what === 'links'));
      expect(isWhole ? untimed(after, oracle) : []).toEqual(isWhole ? oracle : []);
      expect(reverted).toEqual(before);
    }), { numRuns: runs, seed, ...(replay === undefined ? {} : { path: replay }) });
  });
});

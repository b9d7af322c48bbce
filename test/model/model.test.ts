import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { program } from './arbitrary.ts';
import { contentProgram } from './content-arbitrary.ts';
import { playground } from './playground.ts';
import type { Playground } from './playground.ts';
import { duel } from './duel.ts';
import { realWorld } from './world.ts';
import type { NodeFs } from './world.ts';
import { CI_SEED } from '../support/seed.ts';

/**
 * Random programs behave over an overlay as in a real directory. `FUZZ_RUNS` programs (400), at most `FUZZ_SECONDS`
 * long; a failure prints seed and path, which `FUZZ_SEED` and `FUZZ_PATH` take to play it again. `FUZZ_STEPS` is the
 * most steps of a program.
 */
const number = (name: string): number | undefined => {
  const text = process.env[name];
  if (text === undefined || text === '') return undefined;
  const value = Number(text);
  if (!Number.isFinite(value)) throw new RangeError(`${name} must be a number, not "${text}"`);
  return value;
};
const runs = number('FUZZ_RUNS') ?? 400;
const seconds = number('FUZZ_SECONDS');
// In CI the same programs each time: a change is judged by itself, not by the luck of the day; hunting is what `npm run fuzz` is for.
const seed = (number('FUZZ_SEED') ?? (process.env['CI'] === undefined ? Date.now() ^ (process.pid << 8) : CI_SEED)) | 0;
const replay = process.env['FUZZ_PATH'];
const steps = number('FUZZ_STEPS') ?? 40;
/** Of so many programs one is about the bytes of large files, which take ten times as long. */
const CONTENT_SHARE = 16;

describe('model', () => {
  let ground: Playground;
  beforeAll(() => { ground = playground(); });
  afterAll(() => ground.clear());

  it(`plays random programs as a real directory does (seed ${seed})`, { timeout: ((seconds ?? 600) + 120) * 1000 }, async () => {
    await fc.assert(fc.asyncProperty(program(steps), (each) => ground.play(each)), options(runs, 0.75));
  });

  it(`keeps the bytes of large files as a real directory does (seed ${seed})`, { timeout: ((seconds ?? 600) + 120) * 1000 }, async () => {
    await fc.assert(fc.asyncProperty(contentProgram(steps), (each) => ground.play(each)), options(Math.ceil(runs / CONTENT_SHARE), 0.25));
  });

  /** A path belongs to one of the two: the other is to be left out by vitest's `-t`. */
  function options(numRuns: number, share: number): fc.Parameters<unknown> {
    return {
      numRuns, seed,
      ...(replay === undefined ? {} : { path: replay }),
      ...(seconds === undefined ? {} : { interruptAfterTimeLimit: seconds * share * 1000 }),
    };
  }

  // What follows tests the test: it passes a true file system, and finds a lie in an untrue one.
  describe('oracle', () => {
    let scratch: string;
    beforeAll(() => { scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'palimpsest-oracle-')); });
    afterAll(() => fs.rmSync(scratch, { recursive: true, force: true }));
    const against = (face: NodeFs, numRuns: number): Promise<void> => fc.assert(fc.asyncProperty(program(30), async (each) => {
      await duel(each, realWorld(path.join(scratch, 'real'), each.lower), realWorld(path.join(scratch, 'over'), each.lower, face));
    }), { numRuns, endOnFailure: true, seed: 1 });

    it('finds no difference between two real directories', () => against(fs, 20));

    it.each<[string, Partial<NodeFs>]>([
      ['forgets a mode', { chmodSync: () => undefined }],
      ['appends at the start', { appendFileSync: (at, data) => fs.writeFileSync(at, data, { flag: 'r+' }) }],
      ['gives another error', { rmdirSync: (at: fs.PathLike) => fs.unlinkSync(at) }],
    ])('finds a file system that %s', async (_, lie) => {
      const liar = { ...fs, ...lie } as NodeFs;
      await expect(against(liar, 300)).rejects.toThrow(/Property failed/);
    });
  });
});

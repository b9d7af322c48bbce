import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Overlay } from '../../src/index.ts';
import { anyStep, fitsNobody, LACKS_ORACLE, NOBODY, plant, playReal } from '../model/kernel-program.ts';
import { checkLaws } from '../support/laws.ts';
import { CI_SEED } from '../support/seed.ts';
import { lack, mountUnion } from './union.ts';

/** Programs played over one mount, each in a tree of its own. */
const PROGRAMS = Number(process.env['FUZZ_RUNS'] ?? 6);
const isLacking = (lack('palimpsest') !== undefined || LACKS_ORACLE) && process.env['CI'] === undefined;
const seed = Number(process.env['FUZZ_SEED'] ?? (process.env['CI'] === undefined ? Date.now() : CI_SEED)) | 0;

describe.skipIf(isLacking)('system calls through a mount', () => {
  it('give what a real directory gives where programs are at their oddest', { timeout: 120_000 }, () => {
    const scratch = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'palimpsest-odd-'))), lower = path.join(scratch, 'lower'), real = path.join(scratch, 'real');
    for (const top of [lower, real]) fs.mkdirSync(top);
    const union = mountUnion('palimpsest', lower, scratch);
    try {
      const [expected, got] = [real, union.path].map((directory) =>
        execFileSync('python3', [path.join(import.meta.dirname, 'odd.py'), directory], { encoding: 'utf8', timeout: 60_000 }).split('\n')) as [string[], string[]];
      expect(expected.length).toBeGreaterThan(50);
      expect(got).toEqual(expected);
    } finally {
      union.unmount();
      fs.rmSync(scratch, { recursive: true, force: true });
    }
  });

  it(`give what a real directory gives (seed ${seed})`, { timeout: 600_000 }, async () => {
    const scratch = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'palimpsest-calls-'))), since = BigInt(Date.now()) * 1_000_000n - 1_000_000_000n;
    const lower = path.join(scratch, 'lower'), real = path.join(scratch, 'real');
    fs.chmodSync(scratch, 0o755);
    const programs = fc.sample(fc.array(anyStep, { maxLength: 30, size: 'max' }), { numRuns: PROGRAMS, seed });
    for (const top of [lower, real]) {
      for (const index of programs.keys()) {
        fs.mkdirSync(path.join(top, String(index)), { recursive: true });
        plant(path.join(top, String(index)));
      }
    }
    const union = mountUnion('palimpsest', lower, scratch), censuses: unknown[][] = [];
    try {
      for (const [index, program] of programs.entries()) {
        const user = index % 2 === 0 ? undefined : NOBODY, played = user === undefined ? program : program.filter(fitsNobody);
        const expected = playReal(path.join(real, String(index)), played, since, user), got = playReal(path.join(union.path, String(index)), played, since, user);
        // Not every file system can make holes: a program is compared up to where the real one refuses to.
        const refused = played.findIndex((step, at) => step.op === 'fallocate' && expected.outcomes[at] === 'ENOTSUP' && got.outcomes[at] !== 'ENOTSUP');
        const upTo = refused < 0 ? played.length : refused, steps = played.slice(0, upTo);
        expect({ index, steps, outcomes: got.outcomes.slice(0, upTo) }).toEqual({ index, steps, outcomes: expected.outcomes.slice(0, upTo) });
        expect({ index, steps, tree: got.census }).toEqual({ index, steps, tree: refused < 0 ? expected.census : got.census });
        censuses.push(playReal(path.join(union.path, String(index)), [], since).census);
      }
      union.unmount();
      const overlay = await Overlay.open({ root: lower, session: union.session as string });
      checkLaws(overlay);
      await overlay.close();
      const again = mountUnion('palimpsest', lower, scratch);
      try {
        for (const index of programs.keys()) expect({ index, tree: playReal(path.join(again.path, String(index)), [], since).census }).toEqual({ index, tree: censuses[index] });
      } finally {
        again.unmount();
      }
    } finally {
      if (fs.readdirSync(union.path).length > 0) union.unmount();
      fs.rmSync(scratch, { recursive: true, force: true });
    }
  });
});

import fs from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { measure, Trees, type Options } from '../bench/harness.ts';
import { mountedTableOf } from '../bench/mounted-table.ts';
import { measureMounted, type MountResult } from '../bench/mounted.ts';
import { judged, median, type Figures } from '../bench/result.ts';
import { MOUNT_ROWS } from '../bench/rows/mount.ts';
import { ROWS } from '../bench/rows/rows.ts';
import { SUBJECTS } from '../bench/subject.ts';
import { tableOf } from '../bench/table.ts';
import { lack } from './mount/union.ts';

/** Enough for every row to do its work; the figures mean nothing. */
const FILES = 30;

/** What a peer cannot do, or does wrongly: a finding of the benchmark, and no fault of ours. */
const WEAK: Record<string, readonly string[]> = {
  unionfs: ['append-lower', 'byte-in-gib', 'rename-dir', 'rename-small'],
};

const scratch = fs.mkdtempSync(join(os.tmpdir(), 'palimpsest-bench-test-'));
afterAll(() => fs.rmSync(scratch, { recursive: true, force: true }));

const options: Options = {
  n: FILES, rounds: 1, peerRounds: 1, peerMillis: 10_000, clock: 'wall', order: 'shuffled', scratch,
  // The peers that are not installed with the rest are left to those who install them.
  subjects: SUBJECTS.slice(0, SUBJECTS.indexOf('just-bash')),
};
const trees = new Trees(options);

describe('the benchmark', () => {
  it.each(ROWS.map((row) => [row.name, row] as const))('does the work of %s with every subject that can', async (name, row) => {
    const result = await measure(row, options, trees);
    expect(result.subjects.raw?.failure).toBeUndefined();
    expect(result.subjects['ours on disk']).toBeDefined();
    for (const [subject, figures] of Object.entries(result.subjects)) {
      if (WEAK[subject]?.includes(name) === true) continue;
      expect([subject, figures.failure]).toEqual([subject, undefined]);
      expect(median(figures.micros)).toBeGreaterThan(0);
      expect(median(figures.ratios)).toBeGreaterThan(0);
      expect(median(figures.ratios)).toBeLessThan(Infinity);
    }
    expect(tableOf([result])).toContain(row.work);
  }, 60_000);

  it('leaves the lower as it was planted', () => {
    const lowers = fs.readdirSync(scratch).filter((name) => name.endsWith('-lower'));
    expect(lowers.length).toBeGreaterThan(2);
    const twin = new Trees({ ...options, scratch: fs.mkdtempSync(join(scratch, 'twin-')) });
    for (const shape of new Set(ROWS.flatMap((row) => (row.kind === 'warm' ? [row.shape] : [])))) {
      expect(contents(trees.of(shape, 'lower').root)).toEqual(contents(twin.of(shape, 'lower').root));
      // And what raw changed, it took back: else its next round would do other work.
      expect(names(trees.of(shape, 'raw').root)).toEqual(names(twin.of(shape, 'lower').root));
    }
  });
});

describe('the benchmark on mounts', () => {
  const missing = lack('palimpsest');
  // npm's row asks a registry; it is left to the benchmark.
  it.each(MOUNT_ROWS.filter(({ name }) => name !== 'mount-npm').map((row) => [row.name, row] as const))('does the work of %s', (_, row) => {
    if (missing !== undefined && process.env['CI'] !== 'true') return;
    const result = measureMounted(row, 'free', { n: FILES, rounds: 1, scratch, only: undefined });
    for (const [subject, { failure, millis }] of Object.entries(result.subjects)) {
      expect([subject, failure]).toEqual([subject, undefined]);
      expect(median(millis)).toBeGreaterThan(0);
    }
    expect(result.subjects.ours).toBeDefined();
    expect(mountedTableOf([result])).toContain(row.work);
  }, 60_000);

  it('shows what ours is judged by', () => {
    const result: MountResult = {
      name: 'a', work: 'some work', kind: 'mount', place: 'pinned', limit: { free: 2, pinned: 1.1, of: 'fuse-overlayfs' },
      subjects: { raw: { millis: [1] }, 'fuse-overlayfs': { millis: [10, 30, 20] }, ours: { millis: [20, 24] } },
    };
    expect(mountedTableOf([result]).split('\n')[2]).toMatch(/\| some work, pinned \| 1 ms \| +20 ms \(10–30\) \| 22 ms \(20–24\) \| +1\.10 ✓ \| +≤ 1\.1 \|/);
    const start: MountResult = { ...result, limit: { free: 9, pinned: 20, of: 'ms over raw' } };
    expect(mountedTableOf([start])).toContain('21 ms more than raw ✗');
    expect(mountedTableOf([{ ...result, subjects: { ours: { millis: [], failure: 'wrong: x' } } }])).toContain('wrong');
  });
});

describe('a figure', () => {
  const figures: Figures = { micros: [3, 1, 2], ratios: [0.3, 0.1, 0.2], bytes: [10, 30, 20] };

  it('is the median of its samples', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
  });

  it('keeps its limit only if all of it is kept', () => {
    expect(judged(figures, undefined).met).toBeUndefined();
    expect(judged(figures, { ratio: 0.2, micros: 2, bytes: 20 }).met).toBe(true);
    expect(judged(figures, { ratio: 0.19 }).met).toBe(false);
    expect(judged(figures, { ratio: 0.2, bytes: 19 }).met).toBe(false);
  });

  it('never keeps its limit where the work failed', () => {
    expect(judged({ ...figures, failure: 'wrong' }, { ratio: 1 }).met).toBe(false);
  });

  it('shows in its column', () => {
    const text = tableOf([{
      name: 'a', work: 'some work', kind: 'warm', operations: 3,
      subjects: { raw: { micros: [4], ratios: [1] }, ours: judged(figures, { ratio: 0.5 }), memfs: { micros: [], ratios: [], failure: 'x' } },
    }]);
    expect(text.split('\n')[2]).toMatch(/\| some work \| +4\.00 µs \| +0\.200 \(0\.100–0\.300\) ✓ \| +fails \| +≤ 0\.5 \|/);
  });
});

function names(root: string): string[] {
  return fs.readdirSync(root, { recursive: true, encoding: 'utf8' }).sort();
}

function contents(root: string): string[] {
  return names(root).map((name) => {
    const path = join(root, name);
    return fs.statSync(path).isDirectory() ? name : `${name} ${fs.readFileSync(path).subarray(0, 100).toString('base64')}`;
  });
}

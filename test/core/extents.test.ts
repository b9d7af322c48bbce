import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dataBytes, emptyExtents, overwrite, slices, truncateTo } from '../../src/core/extents.ts';
import type { Extent, ExtentMap, ExtentSource } from '../../src/core/extents.ts';
import { unreachable } from '../../src/core/unreachable.ts';
import type { Version } from '../../src/core/version.ts';

const blobs = ['sha256:a', 'sha256:b'] as Version[];
const buffers = [Uint8Array.from({ length: 400 }, (_, i) => i % 251), Uint8Array.from({ length: 400 }, (_, i) => i % 83)];

/** The byte that a source holds `at` bytes after its start. */
function byteOf(source: ExtentSource, at: number): number {
  switch (source.kind) {
    case 'zeros': return 0;
    case 'lower': return (source.from + at) % 241 + 1;
    case 'blob': return ((source.from + at) * 7 + blobs.indexOf(source.digest)) % 239 + 1;
    case 'bytes': return source.bytes[source.from + at] as number;
    default: return unreachable(source);
  }
}

const from = fc.nat({ max: 200 });
const anySource: fc.Arbitrary<ExtentSource> = fc.oneof(
  from.map((start): ExtentSource => ({ kind: 'lower', from: start })),
  fc.record({ kind: fc.constant('blob' as const), digest: fc.constantFrom(...blobs), from }),
  fc.record({ kind: fc.constant('bytes' as const), bytes: fc.constantFrom(...buffers), from }),
  fc.constant<ExtentSource>({ kind: 'zeros' }),
);

type Step =
  | { do: 'write'; at: number; length: number; source: ExtentSource }
  | { do: 'truncate'; size: number }
  /** Writes on at the end of the last write, from a source that goes on too. */
  | { do: 'continue'; length: number };
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({
    do: fc.constant('write' as const), at: fc.nat({ max: 300 }), length: fc.nat({ max: 60 }), source: anySource,
  }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('truncate' as const), size: fc.nat({ max: 300 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('continue' as const), length: fc.nat({ max: 40 }) }) },
);

function run(steps: readonly Step[], begin: ExtentMap, bytes: number[]): ExtentMap {
  let map = begin, end = 0, source: ExtentSource = { kind: 'lower', from: 0 };
  for (const step of steps) {
    if (step.do === 'truncate') {
      map = truncateTo(map, step.size);
      while (bytes.length < step.size) bytes.push(0);
      bytes.length = step.size;
      continue;
    }
    const at: number = step.do === 'write' ? step.at : end;
    if (step.do === 'write') source = step.source;
    map = overwrite(map, at, step.length, source);
    if (step.length > 0) while (bytes.length < at) bytes.push(0);
    for (let i = 0; i < step.length; i++) bytes[at + i] = byteOf(source, i);
    end = at + step.length;
    if (source.kind !== 'zeros') source = { ...source, from: source.from + step.length };
  }
  return map;
}

function bytesOf(extents: readonly Extent[]): number[] {
  return extents.flatMap(({ length, source }) => Array.from({ length }, (_, i) => byteOf(source, i)));
}

/** The extents of a map, after checking that they tile it and that none could be one with its neighbour. */
function tiling(map: ExtentMap): Extent[] {
  const extents = slices(map, 0, map.size);
  let at = 0;
  for (const [i, extent] of extents.entries()) {
    if (extent.at !== at || extent.length <= 0) throw new Error(`extent ${i} begins at ${extent.at}, not ${at}`);
    const before = extents[i - 1];
    if (before && before.source.kind === extent.source.kind) {
      const joined = overwrite(overwrite(emptyExtents(0), 0, before.length, before.source), before.length, extent.length, extent.source);
      if (slices(joined, 0, joined.size).length !== 2) throw new Error(`extents ${i - 1} and ${i} are one`);
    }
    at += extent.length;
  }
  expect(at).toBe(map.size);
  expect(dataBytes(map)).toBe(extents.reduce((sum, { length, source }) => source.kind === 'zeros' ? sum : sum + length, 0));
  return extents;
}

const steps = fc.array(anyStep, { maxLength: 60, size: 'max' });

describe('an extent map', () => {
  it('holds what the same writes and truncations make of an array of bytes', () => {
    fc.assert(fc.property(steps, fc.nat({ max: 350 }), fc.nat({ max: 350 }), (program, a, b) => {
      const bytes: number[] = [], map = run(program, emptyExtents(0), bytes);
      expect(map.size).toBe(bytes.length);
      expect(bytesOf(tiling(map))).toEqual(bytes);
      expect(bytesOf(slices(map, a, b))).toEqual(bytes.slice(a, Math.max(a, b)));
    }), { numRuns: 400 });
  });

  it('never changes, whatever is made of it, on however many branches', () => {
    fc.assert(fc.property(steps, fc.array(steps, { minLength: 2, maxLength: 4 }), (prefix, branches) => {
      const bytes: number[] = [], base = run(prefix, emptyExtents(0), bytes);
      const grown = branches.map((branch) => {
        const own = [...bytes];
        return { map: run(branch, base, own), own };
      });
      expect(bytesOf(tiling(base))).toEqual(bytes);
      for (const { map, own } of grown) expect(bytesOf(tiling(map))).toEqual(own);
    }), { numRuns: 200 });
  });

  it('keeps every one of many small appended, scattered and overlapping writes, over block borders', () => {
    fc.assert(fc.property(fc.infiniteStream(fc.nat({ max: 5999 })), fc.constantFrom(1, 3, 700), (stream, width) => {
      const bytes = Array.from({ length: 6000 }, () => 0);
      let map = emptyExtents(0);
      for (let at = 0; at < 6000; at += 2) {
        const source: ExtentSource = { kind: 'lower', from: at * 5 };
        map = overwrite(map, at, 2, source);
        for (let i = 0; i < 2; i++) bytes[at + i] = byteOf(source, i);
      }
      for (const at of stream.take(300)) {
        const length = Math.min(width, 6000 - at), source: ExtentSource = { kind: 'blob', digest: blobs[0] as Version, from: at * 3 };
        map = overwrite(map, at, length, source);
        for (let i = 0; i < length; i++) bytes[at + i] = byteOf(source, i);
      }
      expect(bytesOf(tiling(map))).toEqual(bytes);
      expect(bytesOf(slices(map, 2500, 3100))).toEqual(bytes.slice(2500, 3100));
      const small = truncateTo(map, 1001);
      expect(bytesOf(tiling(truncateTo(small, 1500)))).toEqual([...bytes.slice(0, 1001), ...Array.from({ length: 499 }, () => 0)]);
      expect(bytesOf(tiling(map))).toEqual(bytes);
    }), { numRuns: 20 });
  });

  it('shows zeros where a file was cut and grew again, never the old bytes', () => {
    const map = truncateTo(truncateTo(overwrite(emptyExtents(0), 0, 100, { kind: 'lower', from: 0 }), 10), 50);
    expect(slices(map, 0, 50)).toEqual([
      { at: 0, length: 10, source: { kind: 'lower', from: 0 } }, { at: 10, length: 40, source: { kind: 'zeros' } },
    ]);
  });

  it('is one extent where sources go on', () => {
    const digest = blobs[0] as Version;
    let map = overwrite(emptyExtents(0), 0, 10, { kind: 'blob', digest, from: 0 });
    map = overwrite(map, 20, 10, { kind: 'blob', digest, from: 20 });
    map = overwrite(map, 10, 10, { kind: 'blob', digest, from: 10 });
    expect(slices(map, 0, 30)).toEqual([{ at: 0, length: 30, source: { kind: 'blob', digest, from: 0 } }]);
  });

  it('counts beyond 4 GiB, and up to 2^53 - 1', () => {
    const far = 5 * 2 ** 30;
    let map = overwrite(emptyExtents(2 ** 40), far, 1, { kind: 'blob', digest: blobs[0] as Version, from: 0 });
    expect(map.size).toBe(2 ** 40);
    expect(slices(map, far - 1, far + 2).map(({ at, length }) => [at, length])).toEqual([[far - 1, 1], [far, 1], [far + 1, 1]]);
    map = overwrite(map, Number.MAX_SAFE_INTEGER - 1, 1, { kind: 'lower', from: 2 ** 52 });
    expect(map.size).toBe(Number.MAX_SAFE_INTEGER);
    expect(() => overwrite(map, Number.MAX_SAFE_INTEGER, 1, { kind: 'zeros' })).toThrow(RangeError);
    expect(() => truncateTo(map, -1)).toThrow(RangeError);
    expect(() => truncateTo(map, 0.5)).toThrow(RangeError);
  });

  it('is the same object after a write of nothing and a truncation to its size', () => {
    const map = overwrite(emptyExtents(7), 3, 2, { kind: 'lower', from: 0 });
    expect(overwrite(map, 100, 0, { kind: 'zeros' })).toBe(map);
    expect(truncateTo(map, 7)).toBe(map);
  });
});

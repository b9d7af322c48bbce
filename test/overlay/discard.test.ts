import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Overlay } from '../../src/index.ts';
import { lowerWith, opened } from './ground.ts';

type Step =
  | { readonly op: 'write' | 'remove' | 'mkdir' | 'discard' | 'hold'; readonly path: string }
  | { readonly op: 'rename' | 'link'; readonly path: string; readonly to: string };

const anyPath = fc.constantFrom('a', 'd', 'd/a', 'd/b', 'd/e', 'd/e/c', 'new', 'n', 'n/a', 'n/e/c');
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ op: fc.constantFrom('write', 'remove', 'mkdir', 'discard', 'discard', 'hold'), path: anyPath }),
  fc.record({ op: fc.constantFrom('rename', 'link'), path: anyPath, to: anyPath }),
) as fc.Arbitrary<Step>;

/** Plays steps; what the file system or the discard refuses is no matter here. */
function play(overlay: Overlay, root: string, steps: readonly Step[]): void {
  const held: number[] = [], at = (name: string): string => path.join(root, name);
  for (const [index, step] of steps.entries()) {
    try {
      switch (step.op) {
        case 'write': overlay.fs.writeFileSync(at(step.path), `written ${index}`); break;
        case 'remove': overlay.fs.rmSync(at(step.path), { recursive: true }); break;
        case 'mkdir': overlay.fs.mkdirSync(at(step.path)); break;
        case 'rename': overlay.fs.renameSync(at(step.path), at(step.to)); break;
        case 'link': overlay.fs.linkSync(at(step.path), at(step.to)); break;
        case 'hold': held.push(overlay.fs.openSync(at(step.path), 'a')); break;
        case 'discard': overlay.discard({ paths: [step.path] }); break;
      }
    } catch (error) {
      if (!/^E[A-Z]+$/.test(String((error as NodeJS.ErrnoException).code))) throw error;
    }
    for (const fd of held) overlay.fs.writeSync(fd, String(index));
  }
}

/** Whether a path could be discarded; false where its change is part of another's. */
function discards(overlay: Overlay, name: string): boolean {
  try {
    overlay.discard({ paths: [name] });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EBUSY') throw error;
    return false;
  }
}

function treeOf(fsOf: typeof fs, root: string): unknown[][] {
  return fsOf.readdirSync(root, { recursive: true, withFileTypes: true }).map((entry) => {
    const file = path.join(entry.parentPath, entry.name);
    return [path.relative(root, file), entry.isDirectory() ? 'directory' : fsOf.readFileSync(file, 'utf8'), fsOf.statSync(file).nlink];
  }).sort((a, b) => (String(a[0]) < String(b[0]) ? -1 : 1));
}

describe('discard', () => {
  it('leaves a state that the log alone gives again, whatever was discarded and whatever is open', () => {
    fc.assert(fc.property(fc.array(anyStep, { maxLength: 25 }), (steps) => {
      const root = lowerWith({ a: 'a', 'd/a': 'da', 'd/b': 'db', 'd/e/c': 'dec' }), session = path.join(root, '../session');
      const overlay = opened({ root, session });
      play(overlay, root, steps);
      const live = { tree: treeOf(overlay.fs, root), changes: overlay.changes(), version: overlay.treeVersion() };
      overlay.closeSync();
      fs.rmSync(path.join(session, 'checkpoint'), { force: true });
      const again = opened({ root, session });
      expect({ tree: treeOf(again.fs, root), changes: again.changes(), version: again.treeVersion() }).toEqual(live);
      again.discard();
      expect(treeOf(again.fs, root)).toEqual(treeOf(fs, root));
      expect(again.changes()).toEqual([]);
      again.closeSync();
    }), { numRuns: Number(process.env['FUZZ_RUNS'] ?? 150) });
  });

  it('takes away just the rows at and below what it is given', () => {
    fc.assert(fc.property(fc.array(anyStep, { maxLength: 15 }), fc.nat(), (steps, choice) => {
      const root = lowerWith({ a: 'a', 'd/a': 'da', 'd/b': 'db', 'd/e/c': 'dec' }), overlay = opened({ root });
      play(overlay, root, steps.filter(({ op }) => op !== 'rename' && op !== 'link' && op !== 'discard'));
      const before = overlay.changes(), chosen = before[choice % Math.max(1, before.length)];
      if (chosen === undefined) return;
      const isDone = discards(overlay, chosen.path);
      const isBelow = (name: string): boolean => isDone && (name === chosen.path || name.startsWith(chosen.path + '/'));
      expect(overlay.changes()).toEqual(before.filter(({ path: name }) => !isBelow(name)));
    }), { numRuns: Number(process.env['FUZZ_RUNS'] ?? 150) });
  });
});

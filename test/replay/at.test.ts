import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MomentError, Overlay } from '../../src/index.ts';
import { census } from '../model/census.ts';
import { program } from '../model/arbitrary.ts';
import type { NodeFs } from '../model/world.ts';
import { CI_SEED } from '../support/seed.ts';
import { played } from './exported.ts';

/** Random programs, as many as `MOMENT_RUNS` says; a failure prints how it is played again. */
const runs = Number(process.env['MOMENT_RUNS'] ?? 25);
const seed = process.env['CI'] === undefined ? Date.now() | 0 : CI_SEED;

let scratch: string;
beforeAll(() => { scratch = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'palimpsest-at-'))); });
afterAll(() => fs.rmSync(scratch, { recursive: true, force: true }));

/** All that an overlay shows, without its times: those of directories are the lower's until something happens in them. */
function pictureOf(overlay: Overlay): unknown {
  const seen: unknown[] = [];
  for (const actor of ['main', 'ann', 'bob']) for (const path of ['a', 'b', 'd', 'd/d', 'e', 't']) seen.push([actor, path, overlay.as(actor).observation(path)]);
  return { changes: overlay.changes(), tree: overlay.treeVersion(), seen };
}

function treeOf(overlay: Overlay): string[] {
  return census(overlay.fs as NodeFs, { root: overlay.mountPoint, since: 0 }, [][Symbol.iterator]());
}

describe('a moment', () => {
  it.each(['memory', 'directory'] as const)(`is what the overlay was then, for every event of a random program (session in %s, seed ${seed})`, { timeout: 300_000 }, async (where) => {
    await fc.assert(fc.asyncProperty(program(25), async (each) => {
      const session = join(scratch, 'session');
      fs.rmSync(session, { recursive: true, force: true });
      const lived = new Map<number, unknown>();
      const after = (overlay: Overlay): void => {
        const { seq } = overlay.head;
        if (!lived.has(seq)) lived.set(seq, pictureOf(overlay));
      };
      await played(each, join(scratch, 'root'), (overlay) => {
        const last = overlay.head.seq;
        // In no order, so that each way of getting there is taken.
        for (const seq of [...lived.keys()].sort((a, b) => (a * 7919) % 101 - (b * 7919) % 101)) {
          const moment = overlay.at(seq), picture = pictureOf(moment);
          expect(picture, `after event ${seq}`).toEqual(lived.get(seq));
          expect(moment.head.seq).toBe(seq);
          expect([...moment.events()]).toHaveLength(seq);
        }
        expect(treeOf(overlay.at(last))).toEqual(treeOf(overlay));
        expect(overlay.head.seq).toBeGreaterThanOrEqual(last);
      }, { after, ...(where === 'directory' ? { session } : {}) });
      const again = where === 'memory' ? undefined : Overlay.openSync({ session, readOnly: true });
      for (const seq of again === undefined ? [] : lived.keys()) expect(pictureOf((again as Overlay).at(seq))).toEqual(lived.get(seq));
      again?.closeSync();
    }), { numRuns: runs, seed });
  });
});

describe('at', () => {
  let root: string;
  beforeAll(() => {
    root = join(scratch, 'small');
    fs.mkdirSync(root);
    fs.writeFileSync(join(root, 'a'), 'zero\n');
  });

  function story(options: { session?: string } = {}): Overlay {
    const overlay = Overlay.openSync({ root, ...options });
    overlay.mark('turn');
    overlay.fs.writeFileSync(join(root, 'a'), 'one\n');
    overlay.mark('turn');
    overlay.fs.renameSync(join(root, 'a'), join(root, 'b'));
    overlay.fs.writeFileSync(join(root, 'c'), 'c');
    return overlay;
  }

  it('takes the number of an event, or the label of the last mark', async () => {
    const overlay = story();
    expect(overlay.at(0).fs.readFileSync(join(root, 'a'), 'utf8')).toBe('zero\n');
    expect(overlay.at(0).changes()).toEqual([]);
    expect(overlay.at('turn').head.seq).toBe(3);
    expect(overlay.at('turn').fs.readFileSync(join(root, 'a'), 'utf8')).toBe('one\n');
    expect(overlay.at('turn').at('turn').head).toEqual(overlay.at(3).head);
    expect(overlay.at(2).at('turn').head.seq).toBe(1);
    await overlay.close();
  });

  it('says what there is where there is no such moment', async () => {
    const overlay = story(), fresh = Overlay.openSync({ root });
    expect(() => overlay.at(9)).toThrow(new MomentError('no event 9: they are 1 to 5'));
    expect(() => overlay.at(-1)).toThrow(MomentError);
    expect(() => overlay.at('turn 1')).toThrow(new MomentError('no mark "turn 1": the last are "turn"'));
    expect(() => fresh.at('x')).toThrow(new MomentError('no mark "x": none was made'));
    expect(() => fresh.at(1)).toThrow(new MomentError('no event 1: nothing has happened yet'));
    expect(() => overlay.at(1.5)).toThrow(TypeError);
    expect(() => overlay.at(3).at(4)).toThrow(MomentError);
    await overlay.close();
    await fresh.close();
  });

  it('cannot be changed, records nothing, and stays as it is while the overlay goes on', async () => {
    const overlay = story(), moment = overlay.at(3), { fs: face } = moment;
    expect(() => face.writeFileSync(join(root, 'a'), 'x')).toThrow(expect.objectContaining({ code: 'EROFS' }));
    expect(() => moment.mark('x')).toThrow(expect.objectContaining({ code: 'EROFS' }));
    overlay.fs.writeFileSync(join(root, 'd'), 'd');
    const { seq } = overlay.head;
    expect(face.readdirSync(root)).toEqual(['a']);
    expect(face.existsSync(join(root, 'd'))).toBe(false);
    expect(overlay.head.seq).toBe(seq);
    expect(moment.changes().map(({ kind, path }) => `${kind} ${path}`)).toEqual(['update a']);
    await moment.close();
    expect(overlay.fs.readFileSync(join(root, 'd'), 'utf8')).toBe('d');
    await overlay.close();
  });

  it('has the head that the log had then', async () => {
    const session = join(scratch, 'heads'), overlay = Overlay.openSync({ root, session }), heads = [overlay.head];
    for (let i = 0; i < 5; i++) {
      overlay.fs.writeFileSync(join(root, `n${i}`), String(i));
      heads.push(overlay.head);
    }
    expect(heads.map(({ seq }) => overlay.at(seq).head)).toEqual(heads);
    await overlay.close();
    const again = Overlay.openSync({ session, readOnly: true });
    expect(heads.map(({ seq }) => again.at(seq).head)).toEqual(heads);
    again.closeSync();
  });

  it('gives the difference between any two moments', async () => {
    const overlay = story();
    const between = (from: number | string, to: number | string): string[] =>
      [...overlay.at(to).differences({ since: overlay.at(from) })].map(({ kind, from: was, path }) => `${kind} ${was ?? ''} ${path}`);
    expect(between(0, 3)).toEqual(['update  a']);
    expect(between('turn', 5)).toEqual(['rename a b', 'create  c']);
    expect(between(5, 'turn')).toEqual(['rename b a', 'delete  c']);
    expect(between(4, 4)).toEqual([]);
    await overlay.close();
  });
});

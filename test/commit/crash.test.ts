import fs from 'node:fs';
import { constants } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pending } from '../../src/commit/site.ts';
import { recover } from '../../src/commit/recovery.ts';
import { bury, failAt, killed, watch } from './faults.ts';
import { census, commit, scratch, versionOf } from './ground.ts';
import { mixedSteps, plantMixed } from './mixed.ts';

/**
 * Every call that changes something, of a commit and of its recovery, is the last one once: in this very process, which then does nothing
 * any more until it is forgotten. `kill.test.ts` does the same with real processes, as far as there is time for.
 */
const ALL = process.env['CRASH'] === 'all';
let base: string, clear: () => void, before: string[], after: string[], calls: string[];
let count = 0;
const OUTSIDER = versionOf('OUTSIDER');

const fresh = (): string => {
  const root = path.join(base, `t${count++}`);
  plantMixed(root);
  return root;
};
const leftovers = (root: string): string[] => fs.readdirSync(root).filter((name) => name.startsWith('.palimpsest'));

beforeAll(async () => {
  ({ root: base, clear } = scratch('crash'));
  const root = fresh();
  before = census(root);
  const steps = mixedSteps(root), counter = watch(() => undefined);
  await commit(root, steps);
  counter.end();
  ({ calls } = counter);
  after = census(root);
});
afterAll(() => clear());

describe('a commit', () => {
  it('does the whole batch', () => {
    expect(calls.length).toBeGreaterThan(100);
    expect(after).not.toEqual(before);
    expect(after.map((line) => line.split(' ')[0])).toContain('"/made/sub"');
  });

  it('killed at any call leaves the old tree or the new one, after recovery, and nothing else', { timeout: 300_000 }, async () => {
    const flaws: string[] = [];
    let old = 0;
    for (let index = 0; index < calls.length; index++) {
      const root = fresh(), steps = mixedSteps(root);
      const wasKilled = await killed(index, () => commit(root, steps));
      bury(root);
      await recover(root);
      const found = census(root);
      const isOld = same(found, before);
      if (isOld) old++;
      else if (!same(found, after)) flaws.push(`${index} ${calls[index]}: ${difference(found, before)}`);
      if (leftovers(root).length > 0 || pending(root) !== undefined) flaws.push(`${index} ${calls[index]}: ${leftovers(root).join()} stay`);
      if (!wasKilled && isOld) flaws.push(`${index} ${calls[index]}: said to be done, and is not`);
      fs.rmSync(root, { recursive: true });
    }
    expect(flaws).toEqual([]);
    expect(old).toBeGreaterThan(50);
    expect(old).toBeLessThan(calls.length);
  });

  it('whose recovery is killed too, at any call, is recovered by the next one', { timeout: 600_000 }, async () => {
    const flaws: string[] = [];
    // The last calls before the journal says done: there most is to be taken back. And some before that.
    const done = calls.findLastIndex((call) => call.startsWith('renameSync') && call.endsWith('/journal'));
    for (const index of ALL ? calls.keys() : [done, done - 20, done + 3]) {
      for (let second = index % 3; ; second += ALL ? 1 : 3) {
        const root = fresh(), steps = mixedSteps(root);
        await killed(index, () => commit(root, steps));
        bury(root);
        const again = await killed(second, () => recover(root));
        bury(root);
        const recovery = await recover(root);
        const found = census(root);
        const wanted = index <= done ? before : after;
        if (!same(found, wanted)) flaws.push(`${index}, ${second}: ${difference(found, wanted)}`);
        if (recovery.left.length > 0) flaws.push(`${index}, ${second}: left ${JSON.stringify(recovery.left)}`);
        if (leftovers(root).length > 0) flaws.push(`${index}, ${second}: ${leftovers(root).join()} stay`);
        fs.rmSync(root, { recursive: true });
        if (!again) break;
      }
    }
    expect(flaws).toEqual([]);
  });

  it('killed at any call lets what an outsider writes before its recovery survive', { timeout: 600_000 }, async () => {
    const flaws: string[] = [];
    for (let index = 0; index < calls.length; index += ALL ? 1 : 2) {
      const root = fresh(), steps = mixedSteps(root);
      await killed(index, () => commit(root, steps));
      bury(root);
      const names = ['update', 'created', 'one', 'made/in', 'me2', 'script', 'link', 'to-dir', 'moved/sub/y'].filter((name) => fs.existsSync(path.join(root, name)));
      const name = names[index % names.length] as string, place = path.join(root, name);
      if (fs.statSync(place).isDirectory()) fs.writeFileSync(path.join(place, 'theirs'), 'OUTSIDER');
      else if (index % 3 === 0 && name !== 'link') fs.writeFileSync(place, 'OUTSIDER');
      else {
        fs.writeFileSync(path.join(root, 'temporary'), 'OUTSIDER');
        fs.renameSync(path.join(root, 'temporary'), place);
      }
      const { left } = await recover(root);
      const found = census(root).filter((line) => !line.startsWith('"/.palimpsest-saved'));
      const theirs = found.filter((line) => line.includes(OUTSIDER));
      if (theirs.length === 0) flaws.push(`${index} ${calls[index]}: what was written to ${name} is gone`);
      // Of the rest, what is in no way theirs is as before, or as after: links, parents and moves of what they wrote are not.
      const others = found.filter((line) => !/^"\/(update|link|created|one|two|made|me|me2|script|to-dir|moved|dir|temporary)[/"]/.test(line));
      const isOf = (tree: readonly string[]): boolean => others.every((line) => tree.includes(line));
      if (!isOf(before) && !isOf(after)) flaws.push(`${index} ${calls[index]}: ${name}: ${difference(others, before)}`);
      if (left.some(({ path: where }) => !['update', 'created', 'one', 'two', 'made', 'made/in', 'me2', 'me', 'script', 'link', 'to-dir', 'moved/sub/y'].includes(where))) {
        flaws.push(`${index} ${calls[index]}: ${name}: left ${JSON.stringify(left)}`);
      }
      if (pending(root) !== undefined) flaws.push(`${index} ${calls[index]}: staging stays`);
      fs.rmSync(root, { recursive: true });
    }
    expect(flaws).toEqual([]);
  });

  it.each(['ENOSPC', 'EACCES', 'EIO', 'EROFS'])('that the system refuses something at any call (%s) says so, and leaves the old tree', { timeout: 300_000 }, async (code) => {
    const flaws: string[] = [];
    for (let index = ALL ? 0 : code.length % 2; index < calls.length; index += ALL ? 1 : 2) {
      const root = fresh(), steps = mixedSteps(root), fault = failAt(index, code, -constants.errno[code as 'EIO']);
      let error: Error | undefined;
      try {
        await commit(root, steps);
      } catch (caught) {
        error = caught as Error;
      } finally {
        fault.end();
      }
      const found = census(root);
      if (!same(found, error === undefined ? after : before)) flaws.push(`${index} ${calls[index]}: ${error?.message ?? 'done'}: ${difference(found, error === undefined ? after : before)}`);
      if (leftovers(root).length > 0) flaws.push(`${index} ${calls[index]}: ${leftovers(root).join()} stay`);
      if (error !== undefined && (error as NodeJS.ErrnoException).code !== code) flaws.push(`${index} ${calls[index]}: ${error.message}`);
      fs.rmSync(root, { recursive: true });
    }
    expect(flaws).toEqual([]);
  });
});

function same(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((line, index) => line === b[index]);
}

function difference(found: readonly string[], wanted: readonly string[]): string {
  return [...found.filter((line) => !wanted.includes(line)).map((line) => `+${line}`), ...wanted.filter((line) => !found.includes(line)).map((line) => `-${line}`)].join('; ');
}

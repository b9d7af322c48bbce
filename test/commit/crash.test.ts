import fs from 'node:fs';
import { constants } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pending } from '../../src/commit/site.ts';
import { recover } from '../../src/commit/recovery.ts';
import { bury, failAt, killed, watch } from './faults.ts';
import { census, commit, scratch } from './ground.ts';
import { mixedSteps, plantMixed } from './mixed.ts';

/**
 * Every call that changes something, of a commit and of its recovery, is the last one once: in this very process, which then does nothing
 * any more until it is forgotten. `kill.test.ts` does the same with real processes, as far as there is time for.
 */
let base: string, clear: () => void, before: string[], after: string[], calls: string[];
let count = 0;

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
    expect(after.join('\n')).toMatchInlineSnapshot(`
      """ directory 755 0:0 
      "/attr" file 600 0:0 sha256:2148952c2c47033e44ec61fa83f01d8688db767553a0d2b6260428373d938fb8 4
      "/created" file 640 0:0 sha256:b37d2cbfd875891e9ed073fcbe61f35a990bee8eecbdd07f9efc51339d5ffd66 8
      "/link" symlink 777 0:0 "stays"
      "/made" directory 555 0:0 
      "/made/in" file 644 0:0 sha256:d61ed8a4484b05c7406a3e551f79bb3213f37e1c5980fd73d941742116292083 18
      "/made/sub" directory 711 0:0 
      "/moved" directory 755 0:0 
      "/moved/new" file 644 0:0 sha256:fcdf984026000acb0371faba4456d0b2c6f37dc512b8390b7f4086e0f71e5a17 17
      "/moved/sub" directory 755 0:0 
      "/moved/sub/y" file 644 0:0 sha256:7e6214357760162dfc20b086ef29f015788d92fdc4d0af33b33ae00579466158 27
      "/moved/x" file 644 0:0 sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881 1
      "/one" file 644 0:0 sha256:81526f50aad8eb1af0d279729d9e94c023973c57eeeb43e20e298f4735472f46 10
      "/p" directory 755 0:0 
      "/p/in" file 644 0:0 sha256:8e35c2cd3bf6641bdb0e2050b76932cbb2e6034a0ddacc1d9bea82a6ba57f7cf 1
      "/q" file 644 0:0 sha256:148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940 1
      "/script" file 4750 0:0 sha256:b875f928546aee7855cb1db9afc8ab3f1a8a34d43de5bbd62f7076d7ba9f3917 12
      "/stays" file 644 0:0 sha256:ab90b11836e7dd5814b9004fa89a58c1e27634273c0b58300be9736e05014c80 5
      "/stays-too" file 644 0:0 sha256:ab90b11836e7dd5814b9004fa89a58c1e27634273c0b58300be9736e05014c80 5 = /stays
      "/symlink" symlink 777 0:0 "nowhere"
      "/to-dir" directory 755 0:0 
      "/to-dir/child" file 644 0:0 sha256:ddc9e669194254cef019a29d3619a2c16592e5d52e1a81e98b01bd52319149a3 5
      "/to-file" file 644 0:0 sha256:92af885f330ed4b19948c1dd44dbed553840556063d5061346be12d7a06476d0 10
      "/two" file 644 0:0 sha256:81526f50aad8eb1af0d279729d9e94c023973c57eeeb43e20e298f4735472f46 10 = /one
      "/update" file 644 0:0 sha256:7f976f49972b1b4887417c59aee3d1893ba1a24fcb6b38bc0f06d792e32d0dab 27"
    `);
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
    for (const index of [done, done - 7, done - 20, done - 33, done + 3]) {
      for (let second = 0; ; second++) {
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

  it.each(['ENOSPC', 'EACCES', 'EIO', 'EROFS'])('that the system refuses something at any call (%s) says so, and leaves the old tree', { timeout: 300_000 }, async (code) => {
    const flaws: string[] = [];
    for (let index = 0; index < calls.length; index++) {
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

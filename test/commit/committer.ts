import fs from 'node:fs';
import path from 'node:path';
import { ConflictError } from '../../src/commit/fault.ts';
import { recover } from '../../src/commit/recovery.ts';
import { at, commit, file, now } from './ground.ts';
import { mixedSteps } from './mixed.ts';

/**
 * The process that is killed, or that commits beside others: `commit ROOT DURABILITY` does the mixed batch, `recover ROOT` what it says,
 * `count ROOT TIMES` adds one to the number in `counter` that often, each time by a guarded commit, tried again while it conflicts.
 */
const [act, root, more] = process.argv.slice(2) as [string, string, string];

async function count(): Promise<void> {
  const before = now(root, 'counter'), next = Number(fs.readFileSync(path.join(root, 'counter'), 'utf8')) + 1;
  try {
    await commit(root, [
      { act: 'replace', path: at('counter'), before, node: file(String(next)), attributes: 'kept' },
      { act: 'create', path: at(`from-${next}`), node: file(String(process.pid)) },
    ], { id: `c${process.pid}-${next}`, patience: 60_000 });
  } catch (error) {
    if (!(error instanceof ConflictError)) throw error;
    await count();
  }
}

if (act === 'commit') await commit(root, mixedSteps(root), { durability: more === 'fsync' ? 'fsync' : 'flush' });
else if (act === 'recover') await recover(root);
else for (let index = 0; index < Number(more); index++) await count();

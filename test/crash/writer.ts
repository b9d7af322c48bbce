import fs from 'node:fs';
import { Overlay } from '../../src/index.ts';
import type { Durability } from '../../src/store/store.ts';
import { perform } from './performance.ts';

/**
 * The process that is killed: plays the script over `root` in the session at `session`. Descriptor 3 takes one line after
 * each step, `<seq of its last event> <seq of the last event known to be stored>`, so that the parent knows what was acknowledged.
 */
const [root, session, durability] = process.argv.slice(2) as [string, string, Durability];
const PROGRESS = 3;

await perform(Overlay.openSync({ root, session, actor: 'ann', durability }), root, durability, ({ seq, safe }) => {
  fs.writeSync(PROGRESS, `${seq} ${safe}\n`);
});

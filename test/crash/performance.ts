import type { Overlay } from '../../src/index.ts';
import type { Durability } from '../../src/store/store.ts';
import { Player } from '../model/player.ts';
import { SCRIPT } from './script.ts';

/** What is known after a step: seq of its last event, and of the last event that was acknowledged as stored. */
export interface Progress {
  readonly seq: number;
  readonly safe: number;
}

/** Plays the script through `overlay`, whose tree is at `root`, and closes it; tells of each step once it is done. */
export async function perform(overlay: Overlay, root: string, durability: Durability, done: (progress: Progress) => void): Promise<void> {
  const player = new Player({
    root,
    leaksDescriptors: true,
    fs: () => overlay.fs,
    reopen: () => Promise.reject(new Error('the script does not reopen')),
    close: async () => overlay.close(),
  }, Date.now() - 1000);
  const umask = process.umask(0o022);
  let safe = 0;
  for (const step of SCRIPT) {
    if (step === 'flush') {
      await overlay.flush();
    } else {
      const outcome = await player.play(step);
      const mayFail = 'path' in step && step.path === 'missing';
      if ('error' in outcome && !mayFail) throw new Error(`${JSON.stringify(step)} gave ${JSON.stringify(outcome)}`);
    }
    const { seq } = overlay.head;
    if (step === 'flush' || durability === 'write' || durability === 'fsync' || step.op === 'fsync') safe = seq;
    done({ seq, safe });
  }
  process.umask(umask);
  await overlay.close();
}

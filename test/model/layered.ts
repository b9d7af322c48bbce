import fs from 'node:fs';
import { Overlay } from '../../src/index.ts';
import { ACTORS } from './world.ts';
import type { World } from './world.ts';
import type { Program } from './program.ts';

/** The world under test: an overlay over the lower at `root`, with its session in memory or at `session`. */
export interface LayeredWorld extends World {
  readonly overlay: Overlay;
}

export function layeredWorld(root: string, session: string, where: Program['session']): LayeredWorld {
  fs.rmSync(session, { recursive: true, force: true });
  const open = (): Overlay => Overlay.openSync({ root, actor: ACTORS[0], ...(where === 'directory' ? { session } : {}) });
  let overlay = open();
  return {
    root,
    leaksDescriptors: true,
    get overlay() { return overlay; },
    fs: (actor) => (actor === 0 ? overlay : overlay.as(ACTORS[actor])).fs,
    reopen: async () => {
      const before = memoryOf(overlay);
      await overlay.close();
      overlay = open();
      const after = memoryOf(overlay);
      if (after !== before) throw new Error(`reopened as another session:\nbefore ${before}\nafter  ${after}`);
    },
    close: async () => overlay.close(),
  };
}

/** What a session must know again after it was closed. */
function memoryOf(overlay: Overlay): string {
  const paths = [...new Set([...overlay.events()].flatMap((event) => ('path' in event && event.path !== undefined ? [event.path] : [])))];
  return JSON.stringify({
    // Closing may add a seal, which is no part of what happened.
    events: [...overlay.events()].filter(({ op }) => op !== 'seal').length,
    treeVersion: overlay.treeVersion(),
    changes: [...overlay.changes()],
    seen: ACTORS.map((actor) => paths.map((path) => [path, overlay.as(actor).observation(path)])),
  });
}

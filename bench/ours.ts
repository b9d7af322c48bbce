import { Overlay } from '../src/index.ts';
import { nodeSubject } from './node-subject.ts';
import type { Subject } from './subject.ts';

/**
 * Our overlay as anyone gets it: log on, versions on, containment on. With `session` its log and blobs are in that
 * directory, under the default durability; without, in memory.
 */
export function openOurs(root: string, session?: string): Subject {
  const overlay = Overlay.openSync(session === undefined ? { root } : { root, session });
  return nodeSubject(session === undefined ? 'ours' : 'ours on disk', overlay.fs, root, {
    settle: () => overlay.flush(),
    events: () => overlay.head.seq,
    close: () => overlay.close(),
  });
}

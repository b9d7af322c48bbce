import { initialState } from '../core/state.ts';
import { Clock } from '../overlay/clock.ts';
import { readEvents } from '../overlay/log-reader.ts';
import type { World } from '../overlay/world.ts';
import { Knowledge } from '../replay/knowledge.ts';
import { Moments, seqOf } from '../replay/moments.ts';
import { RecordedLower } from '../replay/recorded-lower.ts';
import { openDirectoryStore } from '../store/open.ts';
import { PrefixStore } from '../store/prefix.ts';
import { driftOf, type Drift } from '../replay/drift.ts';
import { SessionError } from '../store/fault.ts';
import { assemble, lowerOf, openLower, restore } from './open.ts';
import { spoken } from './spoken.ts';

/** A moment of a session to replay; without `at`, its end. */
export interface ReplayOptions {
  readonly at?: number | string;
  /** Absolute path under which the tree is seen; default: as it was recorded. */
  readonly mountPoint?: string;
}

/** The world that a session tells of, from its directory alone. Throws as `openDirectoryStore`, and `MomentError`. */
export function replayedWorld(directory: string, { at, mountPoint }: ReplayOptions): World {
  const store = openDirectoryStore({ directory, readOnly: true });
  try {
    const first = (store.header.parent?.seq ?? 0) + 1;
    const seq = at === undefined ? store.lastSeq : typeof at === 'number' ? seqOf(at, { ...initialState(), seq: store.lastSeq }, first)
      : seqOf(at, new Moments(store).after(store.lastSeq), first);
    const prefix = new PrefixStore(store, seq, { owns: true }), lower = new RecordedLower(store.header.root, new Knowledge(store, readEvents(store), seq), prefix);
    const { root } = store.header;
    return assemble({ session: directory, readOnly: true, mountPoint: mountPoint ?? (root.startsWith('/') && !root.includes(':') ? root : '/') },
      { lower, store: prefix, clock: new Clock(), asked: undefined });
  } catch (error) {
    store.close();
    throw error;
  }
}

/**
 * Where the directory that a session is about is not any more what the session has recorded of it, sorted by path. Throws `SessionError` where it is about no
 * directory, and an error with `code` ENOENT where that is gone.
 */
export function driftOfSession(directory: string): readonly Drift[] {
  return spoken('replay', () => {
    const store = openDirectoryStore({ directory, readOnly: true });
    try {
      const named = lowerOf(store.header);
      if (named === undefined) throw new SessionError('ERR_SESSION_ROOT', directory, 'is about no directory');
      const lower = openLower(named);
      try {
        return driftOf(lower, new Knowledge(store, readEvents(store)), restore(store));
      } finally {
        lower.close();
      }
    } finally {
      store.close();
    }
  });
}

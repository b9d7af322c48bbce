import { decodeState } from '../core/checkpoint.ts';
import type { State } from '../core/state.ts';
import type { Store } from '../store/store.ts';

/**
 * The state that the store's last checkpoint at or before event `upTo` holds. A checkpoint is only a cache: one that does not decode is as
 * good as none.
 */
export function savedState(store: Store, upTo = Infinity): State | undefined {
  const checkpoint = store.loadCheckpoint(upTo);
  if (checkpoint === undefined) return undefined;
  try {
    return decodeState(checkpoint.data);
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return undefined;
    throw error;
  }
}

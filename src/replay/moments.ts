import { evolve } from '../core/evolve.ts';
import { forkState } from '../core/fork.ts';
import { initialState, type State } from '../core/state.ts';
import { readEvents } from '../overlay/log-reader.ts';
import { savedState } from '../overlay/saved-state.ts';
import type { Store } from '../store/store.ts';

/** A state is kept for every so many events that were folded: what a moment between them takes is 50 ms at the most. */
const STRIDE_EVENTS = 16_384;
/** States kept. They share what did not change between them. */
const KEPT_STATES = 128;

/** There is no such moment: the event has not happened, or nobody made the mark. */
export class MomentError extends RangeError {
  override readonly name = 'MomentError';
  readonly code = 'ERR_NO_MOMENT';
}

/**
 * What was known after any event of a log, folded from the nearest state before it that is at hand: one that an earlier question left, or a
 * checkpoint of the session. The live state is never touched.
 */
export class Moments {
  private readonly store: Store;
  /** By seq, ascending. */
  private readonly kept: State[] = [];

  constructor(store: Store) {
    this.store = store;
  }

  /** The state after event `seq`, which is not to be changed. Throws `CorruptLogError`. */
  after(seq: number): State {
    const nearest = this.nearest(seq);
    if (nearest.seq === seq) return nearest;
    const state = forkState(nearest);
    for (const event of readEvents(this.store, state.seq + 1, seq)) {
      evolve(state, event);
      if (event.seq % STRIDE_EVENTS === 0 && event.seq < seq) this.keep(forkState(state));
    }
    this.keep(state);
    return state;
  }

  private nearest(seq: number): State {
    const kept = this.kept.findLast((state) => state.seq <= seq), begin = this.store.header.parent?.seq ?? 0;
    if (kept !== undefined && seq - kept.seq <= STRIDE_EVENTS) return kept;
    const saved = savedState(this.store, seq);
    if (saved !== undefined && saved.seq > (kept?.seq ?? begin)) {
      this.keep(saved);
      return saved;
    }
    return kept ?? initialState();
  }

  private keep(state: State): void {
    const { kept } = this, at = kept.findLastIndex(({ seq }) => seq <= state.seq) + 1;
    if (kept[at - 1]?.seq === state.seq) return;
    kept.splice(at, 0, state);
    if (kept.length > KEPT_STATES) kept.splice(1 + (kept.length >> 1), 1);
  }
}

/**
 * The event after which a moment is: as numbered, 0 being before all of them; or the last mark of that label. Throws `MomentError` that says
 * what there is.
 */
export function seqOf(moment: number | string, state: State, first: number): number {
  if (typeof moment === 'string') {
    const seq = state.marks.get(moment);
    if (seq !== undefined) return seq;
    const labels = [...state.marks.keys()].slice(-10).map((label) => JSON.stringify(label));
    throw new MomentError(`no mark ${JSON.stringify(moment)}: ${labels.length === 0 ? 'none was made' : `the last are ${labels.join(', ')}`}`);
  }
  if (!Number.isSafeInteger(moment)) throw new TypeError(`a moment is the number of an event or the label of a mark, not ${String(moment)}`);
  if (moment >= first - 1 && moment <= state.seq) return moment;
  throw new MomentError(`no event ${moment}: ${state.seq < first ? 'nothing has happened yet' : `they are ${first} to ${state.seq}`}`);
}

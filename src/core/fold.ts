import { enableMapSet, enablePatches, Immer, isDraftable } from 'immer';
import type { Draft, Patch } from 'immer';
import type { Event } from './event.ts';

/**
 * Deriving anything from a history: a reducer changes the state it is given as if nobody else had it, and immer makes of
 * that a new state that shares what did not change, frozen, with patches for nothing.
 */

/** Changes `draft` by what `event` did. What it returns is not looked at. */
export type Reducer<S> = (draft: Draft<S>, event: Event) => void;

/** What a batch of events changed, as JSON Patch-like steps: `patches` lead on, `inverse` back. */
export interface Change {
  readonly patches: Patch[];
  readonly inverse: Patch[];
}

enableMapSet();
enablePatches();
// One of our own: what the program around us sets for its immer must not thaw our results.
const immer = new Immer({ autoFreeze: true });

/**
 * Events folded under one draft. Each batch copies every Map it touches once, so batches double: copies stay in
 * proportion to the events. The largest bounds the drafts that are alive at once, each some hundred bytes.
 */
const FIRST_BATCH = 1024;
const LARGEST_BATCH = 65_536;

/**
 * The state after `events`, from `initial`, which is not changed; frozen, and the very same object where no event changed
 * anything. Throws TypeError for an `initial` that cannot be drafted (a number, a class instance), and whatever `reducer` throws.
 */
export function fold<S>(events: Iterable<Event>, reducer: Reducer<S>, initial: S): S {
  checkDraftable(initial);
  let state = initial;
  for (const batch of batches(events)) {
    state = immer.produce(state, (draft) => reduce(draft, reducer, batch));
  }
  return state === initial ? immer.produce(state, () => {}) : state;
}

/** A state that follows the log: see `projection`. */
export interface Projection<S> {
  /** After all events so far. Frozen; the same object as before where nothing changed. */
  readonly state: S;
  /** Folds `events` in. Where `reducer` throws, the state stays at the last whole batch. */
  apply(events: Iterable<Event>): Change;
}

/** A projection from `initial`. Throws TypeError for one that cannot be drafted. */
export function projection<S>(reducer: Reducer<S>, initial: S): Projection<S> {
  checkDraftable(initial);
  let state = immer.produce(initial, () => {});
  return {
    get state() {
      return state;
    },
    apply(events) {
      const patches: Patch[] = [], inverses: Patch[][] = [];
      for (const batch of batches(events)) {
        const [next, forward, inverse] = immer.produceWithPatches(state, (draft) => reduce(draft, reducer, batch));
        state = next;
        for (const patch of forward) patches.push(patch);
        inverses.push(inverse);
      }
      return { patches, inverse: inverses.reverse().flat() };
    },
  };
}

/** `state` after the steps of `patches`, which came from a projection of states like it. */
export function patched<S extends object>(state: S, patches: readonly Patch[]): S {
  return immer.applyPatches(state, patches);
}

function reduce<S>(draft: Draft<S>, reducer: Reducer<S>, batch: readonly Event[]): void {
  for (const event of batch) reducer(draft, event);
}

function checkDraftable(initial: unknown): void {
  if (!isDraftable(initial)) throw new TypeError('the initial state of a fold must be a plain object, an array, a Map or a Set');
}

function* batches(events: Iterable<Event>): Generator<readonly Event[]> {
  let batch: Event[] = [], size = FIRST_BATCH;
  for (const event of events) {
    batch.push(event);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
    size = Math.min(size * 2, LARGEST_BATCH);
  }
  if (batch.length > 0) yield batch;
}

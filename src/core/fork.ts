import { forkObservations } from './observation.ts';
import { Owner } from './owner.ts';
import type { State } from './state.ts';

/**
 * A copy of `state` that goes its own way, and shares with it all that neither has changed since: O(marks + actors + incidents), whatever the
 * tree holds. Both have new owners, so whichever changes a node first copies it. A node that somebody holds by reference is no more
 * the tree's own once that happens.
 */
export function forkState(state: State): State {
  state.owner = new Owner();
  const { totals } = state;
  return {
    ...state, owner: new Owner(), observations: forkObservations(state.observations), marks: new Map(state.marks),
    totals: structuredClone(totals), incidents: new Map(state.incidents),
  };
}

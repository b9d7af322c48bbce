import { join } from 'node:path';
import { CorruptEventError, decodeEvent } from '../core/encode.ts';
import type { Event } from '../core/event.ts';
import { evolve } from '../core/evolve.ts';
import type { State } from '../core/state.ts';
import { CorruptLogError } from '../store/fault.ts';
import { LOG_NAME } from '../store/open.ts';
import type { Store } from '../store/store.ts';

/** The events of a log from `from` to `to`, both inclusive. Throws `CorruptLogError` that names the line. */
export function* readEvents(store: Store, from = 1, to = Infinity): Generator<Event> {
  let seq = Math.max(from, firstSeq(store));
  for (const line of store.read(from, to)) {
    yield decoded(store, line, seq);
    seq++;
  }
}

/** Folds in what a log has beyond `state`. Throws `CorruptLogError` for an event that does not fit what is before it. */
export function foldRest(store: Store, state: State): void {
  for (const event of readEvents(store, state.seq + 1)) {
    try {
      evolve(state, event);
    } catch (error) {
      throw damaged(store, event.seq, error instanceof Error ? error.message : String(error));
    }
  }
}

function decoded(store: Store, line: string, seq: number): Event {
  try {
    return decodeEvent(line);
  } catch (error) {
    if (!(error instanceof CorruptEventError)) throw error;
    throw damaged(store, seq, error.reason);
  }
}

function damaged(store: Store, seq: number, detail: string): CorruptLogError {
  return new CorruptLogError({
    // The header is line 1.
    file: join(store.directory ?? '', LOG_NAME), line: seq - firstSeq(store) + 2, reason: 'bad event', detail,
    goodSeq: seq - 1, goodBytes: undefined,
  });
}

function firstSeq(store: Store): number {
  return (store.header.parent?.seq ?? 0) + 1;
}

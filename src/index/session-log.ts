import { setTimeout as wait } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { encodeEvent } from '../core/encode.ts';
import type { Event, Op } from '../core/event.ts';
import type { Header } from '../core/format.ts';
import { readSet, type ReadSetRow } from '../core/observation.ts';
import { readEvents } from '../overlay/log-reader.ts';
import { openDirectoryStore } from '../store/open.ts';
import type { LiveStore } from '../store/live.ts';
import { eventMatcher, type EventFilter } from './filter.ts';
import { restore } from './open.ts';
import { spoken, spokenEach } from './spoken.ts';

/** How often a log that another process writes is looked at for more; its writer gathers for as long. */
const LOOK_AGAIN_MS = 50;

/**
 * The log of a session, read from its directory alone: beside the live writer, and where its root is no more. Takes no
 * lock and writes nothing.
 */
export class SessionLog {
  readonly directory: string;
  /** Line 1: the session's id, the root it is about, when it was made. */
  readonly header: Header;
  private readonly store: LiveStore;

  private constructor(store: LiveStore) {
    this.store = store;
    this.header = store.header;
    this.directory = store.directory as string;
  }

  /** Throws `SessionError` where there is no session, `CorruptLogError` where its log is damaged. */
  static openSync(directory: string): SessionLog {
    return new SessionLog(spoken('open', () => openDirectoryStore({ directory, readOnly: true })));
  }

  /** The last event there is so far; 0 where there is none. */
  get lastSeq(): number {
    return this.store.lastSeq;
  }

  /** The events so far, in order, as `Overlay.events` gives them. Throws `CorruptLogError`. */
  *events<O extends Op = Op>(filter: EventFilter<O> = {}): Generator<Extract<Event, { op: O }>> {
    const matches = eventMatcher(filter);
    for (const event of spokenEach('events', readEvents(this.store, filter.from, filter.to))) {
      if (matches(event)) yield event as Extract<Event, { op: O }>;
    }
  }

  /**
   * The events so far and then those that its writer appends, as they come, in batches that came together. Ends after
   * `filter.to`, or when `signal` is aborted.
   */
  async *follow(filter: EventFilter = {}, options: { readonly signal?: AbortSignal } = {}): AsyncGenerator<readonly Event[]> {
    const { to = Infinity } = filter;
    for (let from = filter.from ?? 1; options.signal?.aborted !== true;) {
      const last = Math.min(to, spoken('follow', () => this.store.refresh()));
      if (last >= from) {
        yield [...this.events({ ...filter, from, to: last })];
        from = last + 1;
      }
      if (from > to) return;
      await wait(LOOK_AGAIN_MS);
    }
  }

  /** Who has seen what: a row for each actor and path, of what the log tells so far. Throws `CorruptLogError`. */
  *observations(): Generator<ReadSetRow> {
    yield* readSet(spoken('observations', () => restore(this.store)).observations);
  }

  close(): void {
    this.store.close();
  }
}

/** An event as the log holds it, as the schema has it: a name that is not UTF-8 is base64, in `path64` and its like; `crc` is last. */
export function eventJson(event: Event): string {
  const text = encodeEvent(event);
  return `${text},"crc":"${crc32(text).toString(16).padStart(8, '0')}"}`;
}

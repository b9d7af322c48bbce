import type { Event } from '../core/event.ts';
import type { Session } from '../overlay/session.ts';

/** New events of a session as an endless async iteration; ends when its reader leaves or the session is closed. */
export function followEvents(session: Session): AsyncIterableIterator<Event> {
  const waiting: Event[] = [];
  let wake: ((result: IteratorResult<Event>) => void) | undefined;
  let ended = false;
  const end = (): void => {
    ended = true;
    wake?.({ done: true, value: undefined });
    wake = undefined;
  };
  const following = session.follow((event) => {
    if (wake === undefined) waiting.push(event);
    else {
      wake({ done: false, value: event });
      wake = undefined;
    }
  }, end);
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next() {
      const event = waiting.shift();
      if (event !== undefined) return Promise.resolve({ done: false, value: event });
      if (ended) return Promise.resolve({ done: true, value: undefined });
      return new Promise((resolve) => { wake = resolve; });
    },
    return() {
      following.close();
      end();
      return Promise.resolve({ done: true, value: undefined });
    },
  };
}

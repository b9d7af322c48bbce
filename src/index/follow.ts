import type { Event } from '../core/event.ts';
import type { Session } from '../overlay/session.ts';

/** New events of a session as an endless async iteration; ends when its reader leaves or the session is closed. */
export function followEvents(session: Session): AsyncIterableIterator<Event> {
  const waiting: Event[] = [];
  const asking: ((result: IteratorResult<Event>) => void)[] = [];
  let ended = false;
  const end = (): void => {
    ended = true;
    for (const answer of asking.splice(0)) answer({ done: true, value: undefined });
  };
  const following = session.follow((event) => {
    const answer = asking.shift();
    if (answer === undefined) waiting.push(event);
    else answer({ done: false, value: event });
  }, end);
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next() {
      const event = waiting.shift();
      if (event !== undefined) return Promise.resolve({ done: false, value: event });
      if (ended) return Promise.resolve({ done: true, value: undefined });
      return new Promise((resolve) => { asking.push(resolve); });
    },
    return() {
      following.close();
      end();
      return Promise.resolve({ done: true, value: undefined });
    },
  };
}

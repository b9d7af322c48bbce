import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { types } from 'node:util';
import { codedError } from './errors.ts';

/**
 * A call of many steps (cp, rm -r, glob), written once for all faces: a generator that yields where it could wait.
 * The synchronous face never lets go of the thread, the others do.
 */
export type Steps<T> = Generator<Pause, T, unknown>;

export type Pause =
  /** Others may have a turn here. */
  | { readonly kind: 'turn' }
  | { readonly kind: 'sleep'; readonly ms: number }
  /** What a user's function answered, perhaps a promise of it; the generator gets the answer itself. */
  | { readonly kind: 'answer'; readonly from: string; readonly value: unknown };

/** A pause for others, cheap enough to be made for every file. */
export const TURN: Pause = { kind: 'turn' };

/** An asynchronous call keeps the thread this long at most before it lets others have a turn. */
const SLICE_MS = 8;

/** Which face a call was made through, where node's two implementations differ in what they say. */
export type Face = 'sync' | 'later';

/** Runs to the end at once. Throws ERR_INVALID_RETURN_VALUE where a user's function answers with a promise. */
export function settleNow<T>(steps: Steps<T>): T {
  let answer: unknown;
  for (;;) {
    const step = steps.next(answer);
    if (step.done) return step.value;
    answer = undefined;
    const pause = step.value;
    if (pause.kind === 'sleep') sleep(pause.ms);
    else if (pause.kind === 'answer') {
      if (types.isPromise(pause.value)) return rejectStep(steps, promisedAnswer(pause.from));
      answer = pause.value;
    }
  }
}

/** Runs the first steps before it returns, so that calls take effect in the order they are made; then in slices. */
export async function settleLater<T>(steps: Steps<T>): Promise<T> {
  let since = performance.now();
  let answer: unknown;
  for (;;) {
    const step = steps.next(answer);
    if (step.done) return step.value;
    answer = undefined;
    const pause = step.value;
    if (pause.kind === 'turn') {
      if (performance.now() - since < SLICE_MS) continue;
      await nextTurn();
    } else if (pause.kind === 'sleep') await delay(pause.ms);
    else {
      try {
        answer = await pause.value;
      } catch (error) {
        return rejectStep(steps, error);
      }
    }
    since = performance.now();
  }
}

/** Fails the step that waits, so that its `finally` runs. */
function rejectStep(steps: Steps<unknown>, error: unknown): never {
  steps.throw(error);
  throw error;
}

function promisedAnswer(from: string): Error {
  return codedError(TypeError, 'ERR_INVALID_RETURN_VALUE',
    `Expected boolean to be returned from the "${from}" function but got an instance of Promise.`);
}

function sleep(ms: number): void {
  if (ms > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** What a search finds, as it finds it; the `undefined`s are its pauses for others. */
export async function* sliced<T>(finding: Iterable<T | undefined>): AsyncGenerator<T, void, undefined> {
  let since = performance.now();
  for (const found of finding) {
    if (found !== undefined) yield found;
    if (performance.now() - since < SLICE_MS) continue;
    await nextTurn();
    since = performance.now();
  }
}

import { validateFunction } from './arguments.ts';
import { isFault } from './errors.ts';

/**
 * How one synchronous body becomes a callback call and a promise. The body runs when the call is made, so changes
 * happen in the order of the calls; only the answer comes later. A body may answer with a promise (bulk reads, calls
 * that a signal can stop): then that is what is waited for.
 */
export type Body = (...args: unknown[]) => unknown;

export interface Call {
  readonly sync: Body;
  /** What the asynchronous faces do, where that is not the same. */
  readonly lifted?: Body;
  /** What the promise does, where that is again another: it takes iterables where callbacks do not. */
  readonly promised?: Body;
  /** The first and the last position at which the callback may stand. */
  readonly callback: readonly [first: number, last: number];
  /** Refuses arguments before the callback is looked at, for calls where node has that order. */
  readonly check?: Body;
  /** Not every call has a promise by its name: those on descriptors are methods of a FileHandle. */
  readonly promise: boolean;
}

/** The callback face of a call: refused arguments are thrown, faults and results come in a later turn. */
export function callbackOf({ sync, lifted: body = sync, callback: [first, last], check }: Call): Body {
  return (...args) => {
    let at = first;
    while (at < last && typeof args[at] !== 'function') at++;
    const done = args[at];
    if (typeof done !== 'function') check?.(...args);
    validateFunction(done);
    args.length = at;
    conclude(body, args, done);
  };
}

/** Runs `body` and gives its outcome to `done` in a later turn of the event loop. */
export function conclude(body: Body, args: unknown[], done: Body): void {
  let value: unknown;
  try {
    value = body(...args);
  } catch (error) {
    if (!isFault(error)) throw error;
    fail(done, error);
    return;
  }
  if (value instanceof Promise) {
    void concludeLater(value, done);
  } else answer(done, value);
}

async function concludeLater(promise: Promise<unknown>, done: Body): Promise<void> {
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    return fail(done, error);
  }
  answer(done, value);
}

function fail(done: Body, error: unknown): void {
  setImmediate(() => done(error));
}

function answer(done: Body, value: unknown): void {
  setImmediate(() => value === undefined ? done(null) : done(null, value));
}

/** Promises that settle without a turn between them before one is made: timers and sockets must not starve. */
const CALLS_PER_TURN = 256;

let callsThisTurn = 0;
let nextTurn: Promise<void> | undefined;

function beginTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(() => {
      callsThisTurn = 0;
      nextTurn = undefined;
      resolve();
    });
  });
}

/** Runs `body` at once and promises its outcome; whatever it throws is a rejection. */
export async function settled(body: Body, args: unknown[]): Promise<unknown> {
  try {
    return await body(...args);
  } catch (error) {
    await addWaiting(error);
    throw error;
  } finally {
    if (++callsThisTurn > CALLS_PER_TURN) await (nextTurn ??= beginTurn());
  }
}

/** Adds those who await the call to the stack of its error: V8 tells them only to whoever has waited itself. */
async function addWaiting(fault: unknown): Promise<void> {
  if (!(fault instanceof Error) || typeof fault.stack !== 'string') return;
  await Promise.resolve();
  const trace: { stack?: string } = {};
  Error.captureStackTrace(trace, addWaiting);
  const waiting = (trace.stack ?? '').split('\n').filter((line) => line.includes(' at async ') && !line.includes('settled'));
  if (waiting.length > 0) fault.stack += `\n${waiting.join('\n')}`;
}

/** The promise call of `body`. */
export function promiseOf(body: Body): (...args: unknown[]) => Promise<unknown> {
  return (...args) => settled(body, args);
}

/** Resolves in a later turn of the event loop. */
export function laterTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Gives a lifted function the name and arity that node's has: libraries and stack traces read them. */
export function named<T extends Body>(call: T, name: string, length: number): T {
  Object.defineProperty(call, 'name', { value: name, configurable: true });
  Object.defineProperty(call, 'length', { value: length, configurable: true });
  return call;
}

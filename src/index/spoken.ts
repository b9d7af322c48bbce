import { Refusal } from '../core/refusal.ts';
import { nodeError } from '../overlay/node/errors.ts';

/** Lets a refusal out as the error that a user of `node:fs` knows, named after the method. */
export function spoken<T>(method: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw error instanceof Refusal ? nodeError(error, method) : error;
  }
}

/** The same for each step of an iteration. */
export function* spokenEach<T>(method: string, source: Generator<T>): Generator<T> {
  for (let next = spoken(method, () => source.next()); !next.done; next = spoken(method, () => source.next())) yield next.value;
}

/** The same for what is done later. */
export async function spokenLater<T>(method: string, act: Promise<T>): Promise<T> {
  try {
    return await act;
  } catch (error) {
    throw error instanceof Refusal ? nodeError(error, method) : error;
  }
}

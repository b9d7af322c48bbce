import { Worker } from 'node:worker_threads';

let ahead: Worker | undefined;

/**
 * Starts a serving thread before it is known what it is to serve: it takes as long to load as all else that a run has to do
 * first. One that nobody takes does not hold the process up.
 */
export function startAhead(): void {
  ahead = start();
  ahead.unref();
}

/** A serving thread, which waits for its options as its first message: the one started ahead, or a new one. */
export function takeThread(): Worker {
  const thread = ahead ?? start();
  ahead = undefined;
  thread.ref();
  return thread;
}

function start(): Worker {
  // What this process was started with (`--input-type`) may be nothing for a thread.
  return new Worker(new URL('./worker.js', import.meta.url), { execArgv: [] });
}

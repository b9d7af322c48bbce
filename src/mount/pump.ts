import { parentPort, workerData, type MessagePort } from 'node:worker_threads';
import { receive, STOP, waitForMount } from './loop.ts';

/**
 * The thread that takes requests from the kernel for another thread to answer, one at a time. The thread pool will not do: it
 * may be full of calls that wait for an answer to a request that nobody then could take.
 */

/** What the thread is started with. `shared[TURN]` is 1 while a request waits to be answered. */
export interface PumpOptions {
  readonly device: number;
  readonly memory: SharedArrayBuffer;
  readonly shared: Int32Array<SharedArrayBuffer>;
}

/** Beside the places that `loop.ts` has in the shared numbers. */
export const TURN = 3;
/** What the thread says instead of a length: first, and last. */
export const BEGUN = -1, ENDED = 0;

const port = parentPort as MessagePort;
const { device, memory, shared } = workerData as PumpOptions;
const buffer = Buffer.from(memory);

// The first word: this thread needs the pool no more, which loading it did.
port.postMessage(BEGUN);

for (let mounted = false; ;) {
  const length = receive(device, buffer);
  if (length === 'gone') continue;
  if (length === 'ended') {
    if (mounted || !waitForMount(shared)) break;
    continue;
  }
  mounted = true;
  Atomics.store(shared, TURN, 1);
  port.postMessage(length);
  // Again and again: what notified may have meant the turn before, which was over before it came to wait.
  while (Atomics.load(shared, TURN) === 1) Atomics.wait(shared, TURN, 1);
}
if (Atomics.load(shared, STOP) === 0) port.postMessage(ENDED);

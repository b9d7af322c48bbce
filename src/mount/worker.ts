import { parentPort, receiveMessageOnPort, workerData, type MessagePort } from 'node:worker_threads';
import { Overlay } from '../index/overlay.ts';
import { Refusal } from '../index/front-end.ts';
import { Callers } from './callers.ts';
import { Duties } from './duties.ts';
import { RINGER, serveBlocking } from './loop.ts';
import type { Numbered, ServingOptions, Word } from './orders.ts';
import { Server } from './server.ts';

/** The thread that opens the session and serves it until it is unmounted. It reads its orders when the bell is rung. */

const port = parentPort as MessagePort;
const options = workerData as ServingOptions;

function say(word: Word): void {
  port.postMessage(word);
}

function serve(): void {
  const overlay = Overlay.openSync({ ...options.overlay, actor: options.actor });
  const { served } = overlay, callers = new Callers(options.actor);
  const server = new Server(served, callers, {
    exact: options.exact, isShared: false, bell: options.bell, ringer: () => Atomics.load(options.shared, RINGER), woken: obeyAll,
    claimed: (claim, thread) => callers.claim(claim, thread),
    failed: (error) => say({ kind: 'failed', error }),
  });
  const duties = new Duties({ served, callers, actor: options.actor, lastSeq: () => overlay.head.seq });

  function obeyAll(): void {
    server.idle();
    for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
      const order = next.message as Numbered;
      server.settle();
      try {
        say({ kind: 'done', id: order.id, seq: duties.obey(order) });
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        say({ kind: 'refused', id: order.id, code: error.code, reason: error.reason });
      }
    }
  }

  say({ kind: 'open', seq: overlay.head.seq, session: options.overlay.session });
  try {
    serveBlocking(options.device, server, options.shared);
    server.settle();
  } finally {
    duties.close();
    const { seq } = overlay.head;
    overlay.closeSync();
    say({ kind: 'closed', seq });
  }
}

serve();

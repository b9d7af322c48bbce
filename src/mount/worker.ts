import { parentPort, receiveMessageOnPort, type MessagePort } from 'node:worker_threads';
import { Overlay } from '../index/overlay.ts';
import { Refusal } from '../index/front-end.ts';
import { Callers } from './callers.ts';
import { Duties } from './duties.ts';
import { push, RINGER, serveBlocking } from './loop.ts';
import type { Numbered, ServingOptions, Word } from './orders.ts';
import { Server } from './server.ts';

/**
 * The thread that opens the session and serves it until it is unmounted. Its options are the first message to
 * it; it reads its orders when the bell is rung.
 */

const port = parentPort as MessagePort;

function say(word: Word): void {
  port.postMessage(word);
}

function serve(options: ServingOptions): void {
  const overlay = Overlay.openSync({ ...options.overlay, actor: options.actor });
  const { served } = overlay, callers = new Callers(options.actor);
  const server = new Server(served, callers, {
    exact: options.exact, writeBack: options.writeBack, isShared: false, bell: options.bell, ringer: () => Atomics.load(options.shared, RINGER), woken: obeyAll,
    claimed: (claim, thread) => callers.claim(claim, thread), push: (parts) => push(options.device, parts),
    failed: (error) => say({ kind: 'failed', error }),
  });
  const duties = new Duties({ served, callers, actor: options.actor, lastSeq: () => overlay.head.seq,
    discard: (paths) => {
      overlay.discard(paths === undefined ? {} : { paths });
      // This thread must not write them: the kernel may have it wait for an answer that only this thread can give.
      say({ kind: 'notices', notices: server.notices() });
    } });

  function obeyAll(): void {
    server.idle();
    for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
      const order = next.message as Numbered;
      server.settle();
      try {
        say({ kind: 'done', id: order.id, seq: duties.obey(order) });
      } catch (error) {
        say({ kind: 'refused', id: order.id, ...refusalOf(error) });
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

/** What the one who asked is told. Any fault that has no code is a bug. */
function refusalOf(error: unknown): { code: string; reason: string | undefined } {
  if (error instanceof Refusal) return { code: error.code, reason: error.reason };
  if (error instanceof Error && 'code' in error) return { code: String(error.code), reason: error.message };
  if (error instanceof TypeError) return { code: 'EINVAL', reason: error.message };
  throw error;
}

port.once('message', serve);

import { Worker } from 'node:worker_threads';
import { nanoid } from 'nanoid';
import type { Served } from '../index/front-end.ts';
import { Callers } from './callers.ts';
import { Duties } from './duties.ts';
import { RINGER, send, STOP } from './loop.ts';
import type { Order, Service } from './orders.ts';
import { Server } from './server.ts';

/** After the last request, what was held back is told within this time. */
const IDLE_MS = 50;
/** As in `pump.ts`. */
const TURN = 3, BEGUN = -1, ENDED = 0;

/** What of an open overlay a live service needs. */
export interface LiveOverlay {
  readonly served: Served;
  readonly actor: string;
  readonly head: { readonly seq: number };
  readonly discard: (paths: readonly string[] | undefined) => void;
}

/**
 * Serves an overlay that this process has open, between its other work: what either does the other sees at once. A thread takes
 * the requests from the kernel; each is answered here, when the event loop comes to it. So this thread must not call the
 * mount synchronously: it would wait for itself.
 */
export class LiveService implements Service {
  readonly bell = `.palimpsest-bell-${nanoid()}`;
  /** Resolved when requests will be taken. Before, nobody may look into the mount: enough who do would keep the thread from loading. */
  readonly opened: Promise<void>;
  readonly closed: Promise<number>;
  readonly faults: unknown[] = [];
  private readonly overlay: LiveOverlay;
  private readonly device: number;
  private readonly server: Server;
  private readonly duties: Duties;
  private readonly shared = new Int32Array(new SharedArrayBuffer(16));
  private readonly memory: SharedArrayBuffer;
  private timer: ReturnType<typeof setTimeout> | undefined = undefined;

  constructor(overlay: LiveOverlay, device: number) {
    const { served, actor } = overlay, callers = new Callers(actor);
    this.overlay = overlay;
    this.device = device;
    this.server = new Server(served, callers, {
      exact: true, isShared: true, bell: this.bell, ringer: () => Atomics.load(this.shared, RINGER), woken: () => undefined,
      claimed: (claim, thread) => callers.claim(claim, thread), failed: (error) => this.faults.push(error),
    });
    this.duties = new Duties({ served, callers, actor, lastSeq: () => overlay.head.seq, discard: overlay.discard });
    this.memory = new SharedArrayBuffer(this.server.request.buffer.length);
    const { opened, closed } = this.pump();
    this.opened = opened;
    this.closed = closed.finally(() => this.end());
    this.closed.catch(() => undefined);
  }

  ringBy(ringer: number): void {
    Atomics.store(this.shared, RINGER, ringer);
  }

  async order(order: Order): Promise<number> {
    this.server.settle();
    return this.duties.obey(order);
  }

  giveUp(): void {
    Atomics.store(this.shared, STOP, 1);
    Atomics.notify(this.shared, STOP);
  }

  /** Answers what the thread takes from the kernel, until the connection ends. */
  private pump(): { opened: Promise<void>; closed: Promise<number> } {
    const { device, memory, shared } = this, bytes = Buffer.from(memory);
    const worker = new Worker(new URL('./pump.js', import.meta.url), { workerData: { device, memory, shared }, execArgv: [] });
    const opened = new Promise<void>((done, failed) => {
      worker.once('message', (word: number) => {
        if (word === BEGUN) done();
      });
      worker.once('error', failed);
    });
    const closed = new Promise<number>((done, failed) => {
      worker.on('message', (length: number) => {
        if (length === BEGUN || length === ENDED) return;
        this.server.request.buffer.set(bytes.subarray(0, length));
        Atomics.store(shared, TURN, 0);
        Atomics.notify(shared, TURN);
        const answer = this.server.handle(length);
        if (answer > 0) send(device, this.server.reply.buffer, answer);
        this.timer ??= setTimeout(() => this.rest(), IDLE_MS);
      });
      worker.once('error', failed);
      worker.once('exit', () => done(this.overlay.head.seq));
    });
    return { opened, closed };
  }

  private rest(): void {
    this.timer = this.server.idle() ? undefined : setTimeout(() => this.rest(), IDLE_MS);
  }

  private end(): void {
    clearTimeout(this.timer);
    this.server.settle();
    this.duties.close();
  }
}

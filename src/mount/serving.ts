import { write } from 'node:fs';
import type { Worker } from 'node:worker_threads';
import { nanoid } from 'nanoid';
import { DIRTY, RINGER, STOP } from './loop.ts';
import type { Numbered, Order, Service, ServingOptions, Word } from './orders.ts';
import { takeThread } from './thread.ts';

/** With no requests coming, what is recorded is written this long after it happened. */
const FLUSH_EVERY_MS = 50;

/** An order that the session did not take: no room, no permission. */
export class RefusedOrderError extends Error {
  override readonly name = 'RefusedOrderError';
  readonly code: string;

  constructor(code: string, reason: string | undefined) {
    super(`the session refuses to record it: ${code}${reason === undefined ? '' : ` (${reason})`}`);
    this.code = code;
  }
}

const unmounted = (): RefusedOrderError => new RefusedOrderError('ENODEV', 'unmounted');

interface Waiting {
  readonly done: (seq: number) => void;
  readonly failed: (error: unknown) => void;
}

/**
 * A thread that serves an overlay to one FUSE connection, as the main thread has it. The thread waits in the kernel, so it
 * has no events and no timers of its own: whoever wants it to listen rings (`bell`).
 */
export class Serving implements Service {
  readonly bell: string;
  /** Resolved when the session is open and requests are answered; rejected with what opening it threw. */
  readonly opened: Promise<number>;
  /** Resolved when the connection has ended and the session is closed, with its last event's number. */
  readonly closed: Promise<number>;
  readonly faults: unknown[] = [];
  private readonly device: number;
  private readonly worker: Worker;
  private readonly waiting = new Map<number, Waiting>();
  private readonly shared = new Int32Array(new SharedArrayBuffer(12));
  private ring: (() => void) | undefined = undefined;
  private readonly timer: ReturnType<typeof setInterval>;
  private nextId = 1;
  private over = false;

  constructor(options: Omit<ServingOptions, 'bell' | 'shared'>) {
    this.bell = `.palimpsest-bell-${nanoid()}`;
    const { worker, opened, closed } = start({ ...options, bell: this.bell, shared: this.shared }, (word) => this.hear(word));
    this.device = options.device;
    this.worker = worker;
    this.opened = opened;
    this.closed = closed.finally(() => this.end());
    this.closed.catch(() => undefined);
    this.timer = setInterval(() => {
      if (Atomics.load(this.shared, DIRTY) !== 0) this.ring?.();
    }, FLUSH_EVERY_MS);
    this.timer.unref();
  }

  ringBy(ringer: number, ring: () => void): void {
    Atomics.store(this.shared, RINGER, ringer);
    this.ring = ring;
    if (this.waiting.size > 0) ring();
  }

  order(order: Order): Promise<number> {
    return new Promise((done, failed) => {
      if (this.over) {
        failed(unmounted());
        return;
      }
      const id = this.nextId++;
      this.waiting.set(id, { done, failed });
      this.worker.postMessage({ ...order, id } satisfies Numbered);
      this.ring?.();
    });
  }

  giveUp(): void {
    Atomics.store(this.shared, STOP, 1);
    Atomics.notify(this.shared, STOP);
  }

  private hear(word: Word): void {
    if (word.kind === 'failed') this.faults.push(word.error);
    if (word.kind === 'notices') void this.notify(word.notices);
    if (word.kind !== 'done' && word.kind !== 'refused') return;
    const waiting = this.waiting.get(word.id);
    this.waiting.delete(word.id);
    if (word.kind === 'done') waiting?.done(word.seq);
    else waiting?.failed(new RefusedOrderError(word.code, word.reason));
  }

  /** In order, and by the thread pool, since the kernel may let a notice wait for requests to be answered. */
  private async notify(notices: readonly Uint8Array[]): Promise<void> {
    for (const notice of notices) {
      await new Promise<void>((done) => {
        // What the kernel does not know (ENOENT) it need not forget; and after ENODEV there is no kernel to tell.
        write(this.device, notice, (error) => {
          if (error !== null && error.code !== 'ENOENT' && error.code !== 'ENODEV' && error.code !== 'EBADF') this.faults.push(error);
          done();
        });
      });
    }
  }

  private end(): void {
    clearInterval(this.timer);
    for (const { failed } of this.waiting.values()) failed(unmounted());
    this.waiting.clear();
    this.over = true;
  }
}

function start(options: ServingOptions, hear: (word: Word) => void) {
  const worker = takeThread();
  const until = (kind: 'open' | 'closed'): Promise<number> => new Promise((resolve, reject) => {
    worker.on('message', (word: Word) => {
      if (word.kind === kind) resolve(word.seq);
    });
    worker.once('error', reject);
    worker.once('exit', () => reject(new Error('the serving thread ended before its time')));
  });
  worker.on('message', hear);
  const first: ServingOptions = options;
  worker.postMessage(first);
  return { worker, opened: until('open'), closed: until('closed') };
}

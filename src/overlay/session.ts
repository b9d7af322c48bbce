import { encodeEvent } from '../core/encode.ts';
import type { Content } from '../core/content.ts';
import type { Event, EventBody, KeptRecord, ProcessInfo, Stamp, WriteBody } from '../core/event.ts';
import { applyWrite, evolve } from '../core/evolve.ts';
import { observe } from '../core/observation.ts';
import type { TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import type { State } from '../core/state.ts';
import type { Node } from '../core/tree.ts';
import type { Durability, Store } from '../store/store.ts';
import type { Clock } from './clock.ts';
import { readEvents } from './log-reader.ts';
import type { PendingWrite, Range } from './pending-write.ts';

/** A seal record follows at the latest this many events after the last one: the most that `verify` has to distrust. */
const SEAL_EVERY_EVENTS = 4096;
/**
 * A checkpoint follows when this many events have come since the last one, and as many as there were then: writing
 * them all costs no more than in proportion to the log, and an opening folds half of it at the most.
 */
const CHECKPOINT_EVENTS = 20_000;
/** A session that ends keeps a checkpoint for so many events: to read fewer takes no longer than to read a checkpoint. */
const CLOSING_EVENTS = 500;
/**
 * Room that the log must have for an event to be accepted: what a line takes that has two long paths and a base, and a seal
 * after it. So a limit is met by the operation that would exceed it, not by a later one.
 */
const LINE_BYTES = 4096;
/** An event stays unpublished no longer than this under `flush`; the same bound as the store's own grouping. */
const PUBLISH_WITHIN_MS = 50;

/** Stores the bytes of a write, and says what its event has to name and what its node's content is from then on. */
export type Settle = (write: { path: TreePath; held: Content; ranges: readonly Range[]; secret: boolean }) => {
  content: Content;
  fields: Partial<WriteBody>;
};

type Growing<T> = { -readonly [K in keyof T]: T[K] };

/**
 * A log, and the state folded from it. `append` is the only way to change either. The last event stays unpublished, and
 * may grow, until something could tell the difference: another event, a reader of the log, a flush, 50 ms.
 */
export class Session {
  readonly state: State;
  readonly store: Store;
  readonly clock: Clock;
  /** Nothing is recorded, and what would change something is refused. */
  readonly isReadOnly: boolean;
  readonly durability: Durability;
  private readonly settle: Settle;
  private readonly checkpoint: (state: State) => string;
  private readonly keep: ((body: EventBody) => readonly KeptRecord[] | undefined) | undefined;
  /** On a mount: who asks, told by every event from here on. */
  process: ProcessInfo | undefined = undefined;
  private tail: Event | undefined = undefined;
  private pending: { readonly node: Node; readonly write: PendingWrite } | undefined = undefined;
  private fault: unknown = undefined;
  private held = false;
  private timer: ReturnType<typeof setTimeout> | undefined = undefined;
  private sealedSeq: number;
  private checkpointSeq: number;
  private readonly followers = new Set<{ readonly told: (event: Event) => void; readonly ended: () => void }>();

  constructor(parts: { state: State; store: Store; clock: Clock; durability: Durability; settle: Settle;
    checkpoint: (state: State) => string; readOnly: boolean; keep?: ((body: EventBody) => readonly KeptRecord[] | undefined) | undefined; }) {
    this.state = parts.state;
    this.store = parts.store;
    this.clock = parts.clock;
    this.isReadOnly = parts.readOnly;
    this.durability = parts.durability;
    this.settle = parts.settle;
    this.checkpoint = parts.checkpoint;
    this.keep = parts.keep;
    this.sealedSeq = this.checkpointSeq = parts.state.seq;
    if (this.store.directory !== undefined && !this.isReadOnly) keepAtExit(this);
  }

  /** The unpublished last event, if `actor` made it: what a coalescing caller may grow. */
  tailOf(actor: string): Event | undefined {
    const { tail } = this;
    return tail !== undefined && tail.actor === actor && tail.process === this.process ? tail : undefined;
  }

  /** The bytes of the unpublished write, if the tail is `actor`'s and goes to `node` by the name `path`. */
  pendingWrite(actor: string, node: Node, path: TreePath): PendingWrite | undefined {
    const { pending, tail } = this;
    if (pending === undefined || pending.node !== node || tail?.actor !== actor || tail.process !== this.process) return undefined;
    return tail.op === 'write' && tail.path === path ? pending.write : undefined;
  }

  /** Until the function that it gives is called, what would change something is refused with EBUSY: it is being published. */
  hold(): () => void {
    this.publish();
    this.held = true;
    return () => { this.held = false; };
  }

  /**
   * Appends `body` as an event (the very object: it is the log's from now on) and folds it in. Throws what the store threw (nothing has changed then). `write`: the bytes of a
   * write, which reach the store when the event is published. `orphan`: the node, where the file has no name any more.
   * A read-only session takes looks without recording them, and throws EROFS for anything else.
   */
  append(actor: string, body: EventBody, write?: PendingWrite, orphan?: Node): Event {
    if (this.fault !== undefined) throw this.fault;
    if (this.isReadOnly) return unrecorded(body);
    if (this.held && 'mtime' in body && body.op !== 'stat') throw new Refusal('EBUSY', { reason: 'a commit is under way' });
    this.publish();
    this.store.demandRoom(body.op === 'setxattr' ? LINE_BYTES + body.value.length : LINE_BYTES, write?.bytes ?? 0);
    const event = body as Growing<Event>;
    event.seq = this.state.seq + 1;
    event.time = this.clock.iso();
    event.actor = actor;
    if (this.process !== undefined) event.process = this.process;
    const kept = this.keep?.(event);
    if (kept !== undefined) {
      event.kept = kept;
      this.store.demandRoom(LINE_BYTES * (kept.length + 1), 0);
    }
    if (this.durability === 'write' || this.durability === 'fsync') return this.appendAtOnce(event, write, orphan);
    this.pending = this.fold(event, write, write?.content, orphan);
    this.tail = event;
    if (this.timer === undefined && this.store.directory !== undefined) this.arm();
    return event;
  }

  /** Throws EFBIG where `bytes` more in the pending write could not be stored. */
  demandRoom(bytes: number): void {
    this.store.demandRoom(0, (this.pending?.write.bytes ?? 0) + bytes);
  }

  /** The pending write has grown by more bytes: the event's size and time, and the node's, follow. */
  grow(mtime: bigint): void {
    const event = this.tail as Growing<WriteBody & Stamp>;
    const { node, write } = this.pending as { node: Node; write: PendingWrite };
    if (event.created !== undefined && event.created.at === undefined) event.created = { ...event.created, at: event.mtime };
    event.size = write.size;
    event.mtime = String(mtime);
    applyWrite(node, event, write.content);
  }

  /** Replaces the tail by itself, grown: only for observations, whose fold is the same for both. */
  regrow(event: Event): void {
    const before = this.tail?.kept, kept = this.keep?.(event);
    if (before !== undefined || kept !== undefined) (event as Growing<Event>).kept = [...before ?? [], ...kept ?? []];
    this.tail = event;
    observe(this.state.observations, event);
  }

  /** The tail event joins the log. Throws what the store threw. */
  publish(): void {
    if (this.tail === undefined) return;
    this.settleTail();
    const event = this.tail;
    this.store.append(encodeEvent(event));
    this.tail = undefined;
    this.tell(event);
    if (event.seq - this.sealedSeq >= SEAL_EVERY_EVENTS) this.seal(event.actor);
    if (event.seq - this.checkpointSeq >= Math.max(CHECKPOINT_EVENTS, this.checkpointSeq)) this.saveCheckpoint();
  }

  /** Publishes, and makes everything so far as durable as the session promises. */
  flush(): void {
    if (this.isReadOnly) return;
    this.publish();
    this.store.flush();
  }

  /** Publishes, and makes everything so far survive a power cut. */
  sync(): void {
    if (this.isReadOnly) return;
    this.publish();
    this.store.sync();
  }

  /** Published events from `from` to `to`, both inclusive. Throws `CorruptLogError`. */
  events(from?: number, to?: number): Generator<Event> {
    this.publish();
    return readEvents(this.store, from, to);
  }

  /** Calls `told` with every event as it is published, and `ended` when the session is closed. */
  follow(told: (event: Event) => void, ended: () => void): { close(): void } {
    this.publish();
    const follower = { told, ended };
    this.followers.add(follower);
    return { close: () => this.followers.delete(follower) };
  }

  /** Seals, keeps a checkpoint where that is worth it, flushes and closes the store. The lower and the state stay readable. */
  close(actor: string): void {
    clearTimeout(this.timer);
    atExit.delete(this);
    try {
      if (this.fault !== undefined || this.isReadOnly) return;
      this.publish();
      if (this.state.seq > this.sealedSeq) this.seal(actor);
      if (this.state.seq - this.checkpointSeq >= CLOSING_EVENTS) this.saveCheckpoint();
    } finally {
      this.store.close();
      for (const follower of this.followers) follower.ended();
    }
  }

  private fold(event: Event, write: PendingWrite | undefined, content: Content | undefined, orphan: Node | undefined) {
    const changed = this.evolved(event, content);
    if (write === undefined || event.op !== 'write') return undefined;
    if (orphan !== undefined) applyWrite(orphan, event, content);
    return { node: orphan ?? changed as Node, write };
  }

  private evolved(event: Event, content: Content | undefined): Node | undefined {
    try {
      return evolve(this.state, event, content);
    } catch (error) {
      // The state may be half changed: nothing more may be built on it.
      this.fault = error;
      throw error;
    }
  }

  private appendAtOnce(event: Event, write: PendingWrite | undefined, orphan: Node | undefined): Event {
    let content = write?.content;
    if (write !== undefined && event.op === 'write') {
      const settled = this.settle({ path: event.path, held: write.content, ranges: write.ranges, secret: write.secret });
      Object.assign(event, settled.fields);
      content = settled.content;
    }
    this.store.append(encodeEvent(event));
    this.fold(event, write, content, orphan);
    this.tell(event);
    return event;
  }

  private settleTail(): void {
    if (this.pending === undefined) return;
    const event = this.tail as WriteBody & Stamp, { node, write } = this.pending;
    // Blobs first: an event must never name bytes that are not stored.
    const { content, fields } = this.settle({ path: event.path, held: write.content, ranges: write.ranges, secret: write.secret });
    Object.assign(event, fields);
    this.pending = undefined;
    applyWrite(node, event, content);
    observe(this.state.observations, event);
  }

  private tell(event: Event): void {
    for (const follower of this.followers) follower.told(event);
  }

  private seal(actor: string): void {
    const event = { seq: this.state.seq + 1, time: this.clock.iso(), actor, op: 'seal', hash: this.store.sealHash() } as const;
    this.store.append(encodeEvent(event));
    evolve(this.state, event);
    this.sealedSeq = event.seq;
    this.tell(event);
  }

  private saveCheckpoint(): void {
    if (this.store.directory === undefined) return;
    this.store.saveCheckpoint(this.state.seq, this.checkpoint(this.state));
    this.checkpointSeq = this.state.seq;
  }

  private arm(): void {
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.flushUnasked();
    }, PUBLISH_WITHIN_MS);
    this.timer.unref();
  }

  /** A flush that nobody called for has nobody to tell of a fault: the event is still the tail, so the next call meets it. */
  flushUnasked(): void {
    try {
      this.flush();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
    }
  }
}

function unrecorded(body: EventBody): Event {
  switch (body.op) {
    case 'read': case 'list': case 'stat': case 'readlink': case 'miss': case 'refuse': case 'flag': return body as Event;
    default: throw new Refusal('EROFS');
  }
}

/** Sessions in directories that are open: what they have not published yet goes out when the process ends by itself. */
const atExit = new Set<Session>();

function keepAtExit(session: Session): void {
  // Before the store's own listener, which closes it.
  if (!process.listeners('exit').includes(flushAll)) process.prependListener('exit', flushAll);
  atExit.add(session);
}

function flushAll(): void {
  for (const session of atExit) session.flushUnasked();
}

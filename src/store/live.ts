import { Refusal } from '../core/refusal.ts';
import type { Version } from '../core/version.ts';
import type { Blobs } from './blob.ts';
import type { Log } from './log.ts';
import type { Header } from '../core/format.ts';
import type { Durability, Store } from './store.ts';

/** A store over its parts: the order in which they are written, when, and what follows from a failed write. */

/** With durability `flush`, what is appended is written at most this much later. */
const FLUSH_MS = 50;

/** What a session directory has besides log and blobs. */
export interface Surroundings {
  readonly directory: string;
  /** Keeps `data` as the state after event `seq`; everything up to it is in the log's file. */
  saveCheckpoint(seq: number, data: string): void;
  loadCheckpoint(upTo: number): { seq: number; data: string } | undefined;
  /** Gives up the lock. */
  release(): void;
}

export interface LiveOptions {
  readonly durability: Durability;
  readonly readOnly: boolean;
  readonly surroundings?: Surroundings;
}

/** A `Store` made of a log and blobs, and what both have in common: order, durability, poison. */
export class LiveStore implements Store {
  readonly header: Header;
  readonly directory: string | undefined;
  readonly tornBytes: number;
  readonly readOnly: boolean;

  readonly #log: Log;
  readonly #blobs: Blobs;
  readonly #durability: Durability;
  readonly #surroundings: Surroundings | undefined;
  /** Why nothing more can be written. */
  #poison: Refusal | undefined;
  #closed = false;
  #timer: NodeJS.Timeout | undefined;
  /** When the oldest byte that waits must be written: a busy loop starves the timer. */
  #deadline = 0;

  constructor(log: Log, blobs: Blobs, options: LiveOptions) {
    this.header = log.header;
    this.tornBytes = log.tornBytes;
    this.directory = options.surroundings?.directory;
    this.readOnly = options.readOnly;
    this.#log = log;
    this.#blobs = blobs;
    this.#durability = options.durability;
    this.#surroundings = options.surroundings;
    if (this.directory !== undefined) openStores.add(this);
  }

  get lastSeq(): number {
    return this.#log.lastSeq;
  }

  append(json: string): void {
    this.#mayWrite();
    if (this.#log.isFull(json.length)) this.#write({ through: false });
    this.#log.add(json);
    if (this.#durability === 'flush') this.#writeSoon();
    else if (this.#durability !== 'memory') {
      try {
        this.#write({ through: this.#durability === 'fsync' });
      } catch (error) {
        this.#log.takeBack();
        throw error;
      }
    }
  }

  read(from = 1, to = this.#log.lastSeq): IterableIterator<string> {
    this.#mayRead();
    return this.#log.lines(from, to);
  }

  demandRoom(lineBytes: number, blobBytes: number): void {
    this.#log.demandRoom(lineBytes);
    if (blobBytes > 0) this.#blobs.demandRoom(blobBytes);
  }

  putBlob(digest: Version, bytes: Uint8Array): void {
    this.#mayWrite();
    const { pending } = this.#blobs;
    try {
      this.#blobs.put(digest, bytes);
    } catch (error) {
      // Where blobs that were taken before could not be written either, more is lost than this one.
      const refusal = Refusal.of(error);
      if (pending > 0 && refusal.code !== 'EFBIG') this.#poison = refusal;
      throw refusal;
    }
    if (this.#durability === 'flush' && this.#blobs.pending > 0) this.#writeSoon();
  }

  hasBlob(digest: Version): boolean {
    this.#mayRead();
    return this.#blobs.has(digest);
  }

  getBlob(digest: Version): Uint8Array {
    this.#mayRead();
    try {
      return this.#blobs.get(digest);
    } catch (error) {
      throw Refusal.of(error);
    }
  }

  readBlob(digest: Version, into: Uint8Array, offset: number, length: number, position: number): number {
    this.#mayRead();
    try {
      return this.#blobs.read(digest, into, offset, length, position);
    } catch (error) {
      throw Refusal.of(error);
    }
  }

  sealHash(seq = this.lastSeq): Version {
    this.#mayRead();
    return this.#log.seal(seq);
  }

  saveCheckpoint(seq: number, data: string): void {
    this.#mayWrite();
    if (this.#surroundings === undefined) return;
    this.#write({ through: false });
    try {
      this.#surroundings.saveCheckpoint(seq, data);
    } catch (error) {
      throw Refusal.of(error);
    }
  }

  loadCheckpoint(upTo = this.lastSeq): { seq: number; data: string } | undefined {
    this.#mayRead();
    return this.#surroundings?.loadCheckpoint(upTo);
  }

  flush(): void {
    this.#mayWrite();
    if (this.#surroundings !== undefined) this.#write({ through: this.#durability === 'fsync' });
  }

  sync(): void {
    this.#mayWrite();
    if (this.#surroundings !== undefined) this.#write({ through: true });
  }

  /** Takes in what a live writer has appended since a read-only store was opened; gives the last event's seq. */
  refresh(): number {
    this.#mayRead();
    if (this.readOnly) this.#log.readOn();
    return this.#log.lastSeq;
  }

  close(): void {
    if (this.#closed) return;
    try {
      if (!this.readOnly) this.flush();
    } finally {
      this.#closed = true;
      openStores.delete(this);
      clearTimeout(this.#timer);
      this.#log.close();
      this.#blobs.close();
      this.#surroundings?.release();
    }
  }

  /** Blobs first: an event must never name bytes that are not stored. */
  #write(barrier: { through: boolean }): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    try {
      this.#blobs.write(barrier);
      this.#log.write(barrier);
    } catch (error) {
      this.#poison = Refusal.of(error);
      throw this.#poison;
    }
  }

  #writeSoon(): void {
    if (this.#surroundings === undefined) return;
    if (this.#timer === undefined) {
      this.#deadline = Date.now() + FLUSH_MS;
      this.#timer = setTimeout(() => this.#writeNow(), FLUSH_MS);
      this.#timer.unref();
    } else if (Date.now() >= this.#deadline) this.#write({ through: false });
  }

  /** A write that nobody waits for: its failure is told by the next call. */
  #writeNow(): void {
    if (this.#poison !== undefined) return;
    try {
      this.#write({ through: false });
    } catch (error) {
      if (error !== this.#poison) throw error;
    }
  }

  #mayRead(): void {
    if (this.#closed) throw new Refusal('EBADF', { reason: 'session is closed' });
  }

  #mayWrite(): void {
    if (this.#poison !== undefined) throw this.#poison;
    if (this.#closed) throw new Refusal('EBADF', { reason: 'session is closed' });
    if (this.readOnly) throw new Refusal('EROFS', { reason: 'session is open for reading only' });
  }
}

/** Open stores of session directories; what they hold back is written when the process exits by itself. */
const openStores = new Set<LiveStore>();

process.on('exit', () => {
  for (const store of openStores) {
    try {
      store.close();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
    }
  }
});

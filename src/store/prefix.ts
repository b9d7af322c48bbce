import { Refusal } from '../core/refusal.ts';
import type { Header } from '../core/format.ts';
import type { Version } from '../core/version.ts';
import type { Store } from './store.ts';

/** A store as it was after event `lastSeq`, read-only. Lives as long as the store it is a part of; closing it closes that only where it owns it. */
export class PrefixStore implements Store {
  readonly header: Header;
  readonly directory: string | undefined;
  readonly lastSeq: number;
  readonly tornBytes = 0;
  readonly #whole: Store;
  readonly #owns: boolean;

  constructor(whole: Store, lastSeq: number, { owns = false } = {}) {
    this.header = whole.header;
    this.directory = whole.directory;
    this.lastSeq = lastSeq;
    this.#whole = whole;
    this.#owns = owns;
  }

  append(): void {
    throw new Refusal('EROFS', { reason: 'what has been is only to be read' });
  }

  demandRoom(): void {
    this.append();
  }

  read(from = 1, to = this.lastSeq): IterableIterator<string> {
    return this.#whole.read(from, Math.min(to, this.lastSeq));
  }

  putBlob(): void {
    this.append();
  }

  hasBlob(digest: Version): boolean {
    return this.#whole.hasBlob(digest);
  }

  getBlob(digest: Version): Uint8Array {
    return this.#whole.getBlob(digest);
  }

  readBlob(digest: Version, into: Uint8Array, offset: number, length: number, position: number): number {
    return this.#whole.readBlob(digest, into, offset, length, position);
  }

  sealHash(seq = this.lastSeq): Version {
    return this.#whole.sealHash(seq);
  }

  saveCheckpoint(): void {
    this.append();
  }

  loadCheckpoint(upTo = this.lastSeq): { seq: number; data: string } | undefined {
    return this.#whole.loadCheckpoint(upTo);
  }

  flush(): void { /* There is nothing that could wait. */ }

  sync(): void { /* As `flush`. */ }

  close(): void {
    if (this.#owns) this.#whole.close();
  }
}

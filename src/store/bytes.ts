import { closeSync, fdatasyncSync, fstatSync, ftruncateSync } from 'node:fs';
import { readFully, writeSome } from './file.ts';

/** Bytes that can be read at any place. */
export interface Readable {
  readonly size: number;
  /** Bytes read: `length`, or fewer at the end. */
  read(into: Uint8Array, offset: number, length: number, position: number): number;
}

/** Bytes that grow at their end: the sink beneath a log or a pack, in memory or on disk. */
export interface Growing extends Readable {
  /** Adds all of `bytes`. Where that throws, `size` has grown by what was added before the fault. */
  append(bytes: Uint8Array): void;
  truncate(size: number): void;
  /** Brings `size` up to date with what other processes did. */
  measure(): void;
  /** What was appended survives a power cut. */
  sync(): void;
  close(): void;
}

/** Kept in memory as the chunks that were appended, each copied. */
export class MemoryBytes implements Growing {
  size = 0;
  readonly #chunks: { readonly start: number; readonly bytes: Uint8Array }[] = [];

  append(bytes: Uint8Array): void {
    this.#chunks.push({ start: this.size, bytes: new Uint8Array(bytes) });
    this.size += bytes.length;
  }

  read(into: Uint8Array, offset: number, length: number, position: number): number {
    const end = Math.min(position + length, this.size);
    let at = position;
    for (let i = this.#chunkOf(at); at < end; i++) {
      const { start, bytes } = this.#chunks[i] as { start: number; bytes: Uint8Array };
      const piece = bytes.subarray(at - start, Math.min(bytes.length, end - start));
      into.set(piece, offset + at - position);
      at += piece.length;
    }
    return Math.max(0, at - position);
  }

  #chunkOf(position: number): number {
    let low = 0, high = this.#chunks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#chunks[middle] as { start: number }).start <= position) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  truncate(size: number): void {
    while (this.size > size) {
      const last = this.#chunks.pop() as { start: number; bytes: Uint8Array };
      this.size = last.start;
      if (size > last.start) this.append(last.bytes.subarray(0, size - last.start));
    }
  }

  measure(): void {}
  sync(): void {}
  close(): void {}
}

/** A file behind a descriptor that is this object's own. Writes go to known places, never "to the end". */
export class DiskBytes implements Growing {
  readonly #fd: number;
  size: number;

  constructor(fd: number, size: number) {
    this.#fd = fd;
    this.size = size;
  }

  append(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const written = writeSome(this.#fd, bytes, at, this.size);
      at += written;
      this.size += written;
    }
  }

  read(into: Uint8Array, offset: number, length: number, position: number): number {
    return readFully(this.#fd, into, offset, Math.min(length, this.size - position), position);
  }

  truncate(size: number): void {
    ftruncateSync(this.#fd, size);
    this.size = size;
  }

  measure(): void {
    this.size = fstatSync(this.#fd).size;
  }

  sync(): void {
    fdatasyncSync(this.#fd);
  }

  close(): void {
    closeSync(this.#fd);
  }
}

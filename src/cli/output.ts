import { writeSync } from 'node:fs';

/** Bytes gathered before they are written: a line each would cost a system call each. */
const BUFFER_BYTES = 64 * 1024;
/** How long to wait for a reader whose non-blocking pipe is full. */
const FULL_PIPE_MS = 5;

/** The reader of the output has gone away, as `head` does. Nobody is to be told. */
export class ClosedPipe extends Error {
  override readonly name = 'ClosedPipe';
}

/**
 * A standard stream, written synchronously, so that any amount of output needs no memory and a reader that leaves ends the
 * command at once. `write` and `flush` throw `ClosedPipe` then, or the system's error (a full disk, say).
 */
export class Output {
  private readonly fd: number;
  private waiting: Uint8Array[] = [];
  private length = 0;

  constructor(fd: number) {
    this.fd = fd;
  }

  write(data: string | Uint8Array): void {
    const bytes = typeof data === 'string' ? Buffer.from(data) : data;
    this.waiting.push(bytes);
    this.length += bytes.length;
    if (this.length >= BUFFER_BYTES) this.flush();
  }

  line(text: string): void {
    this.write(text + '\n');
  }

  flush(): void {
    if (this.length === 0) return;
    const bytes = this.waiting.length === 1 ? this.waiting[0] as Uint8Array : Buffer.concat(this.waiting);
    this.waiting = [];
    this.length = 0;
    for (let at = 0; at < bytes.length;) at += this.writeSome(bytes, at);
  }

  private writeSome(bytes: Uint8Array, at: number): number {
    try {
      return writeSync(this.fd, bytes, at);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EPIPE') throw new ClosedPipe();
      if (code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_PIPE_MS);
      return 0;
    }
  }
}

/** Data. */
export const out = new Output(1);

const err = new Output(2);

/** Words for the user, on stderr. A stderr that nobody reads is no fault. */
export function say(text: string): void {
  try {
    err.line(text);
    err.flush();
  } catch (error) {
    if (!(error instanceof ClosedPipe)) throw error;
  }
}

/** The same on a terminal in the place of the line before. */
export function sayOver(text: string): void {
  try {
    err.write(`\r\x1b[K${text}`);
    err.flush();
  } catch (error) {
    if (!(error instanceof ClosedPipe)) throw error;
  }
}

import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';

/**
 * What a helper process says on its standard output, a line at a time, and on its standard error. Lines for which
 * `taken` answers true are not given to `next`.
 */
export class Replies {
  readonly #lines: string[] = [];
  readonly #waiting: ((line: string) => void)[] = [];
  #closed = false;
  #errors = '';

  constructor(process: ChildProcess, taken: (line: string) => boolean) {
    if (process.stdout === null || process.stderr === null) throw new TypeError('the process has no pipes');
    process.stderr.on('data', (chunk) => { this.#errors += String(chunk); });
    process.once('error', (error) => { this.#errors += error.message; });
    createInterface({ input: process.stdout }).on('line', (line) => {
      if (!taken(line)) (this.#waiting.shift() ?? ((text: string) => this.#lines.push(text)))(line);
    });
    // Both pipes have been read to their ends by then, and the process has been buried.
    process.once('close', () => {
      this.#closed = true;
      for (const waiting of this.#waiting.splice(0)) waiting('');
    });
  }

  /** The next line; an empty one when there will be no more. */
  async next(): Promise<string> {
    const line = this.#lines.shift();
    if (line !== undefined || this.#closed) return line ?? '';
    return new Promise((resolve) => { this.#waiting.push(resolve); });
  }

  /** What has been written to the standard error, in one line. */
  get errors(): string {
    return this.#errors.trim().replaceAll(/\s*\n\s*/g, '; ') || 'it ended without a word';
  }
}

import { say, sayOver } from './output.ts';

/** What takes less is over before anybody asks. */
const PATIENCE_MS = 1000;
const EVERY_MS = 100;

/** How far something has come, on a terminal, where it takes longer than a second. */
export class Progress {
  private readonly words: string;
  private readonly began = Date.now();
  private last = 0;
  private isShown = false;

  constructor(words: string) {
    this.words = words;
  }

  show(done: number, all: number): void {
    const now = Date.now();
    if (!process.stderr.isTTY || now - this.began < PATIENCE_MS || now - this.last < EVERY_MS) return;
    this.last = now;
    this.isShown = true;
    sayOver(`${this.words} ${Math.floor(all === 0 ? 100 : done / all * 100)}%`);
  }

  end(): void {
    if (this.isShown) say('');
    this.isShown = false;
  }
}

/** The one place where time comes in: the ISO time of an event, and the ns times that files get. */
export class Clock {
  private readonly milliseconds: () => number;
  private lastMs = -1;
  private lastIso = '';
  private lastNs = 0n;

  constructor(milliseconds: () => number = Date.now) {
    this.milliseconds = milliseconds;
  }

  /** ISO 8601 with ms. */
  iso(): string {
    const ms = this.milliseconds();
    if (ms !== this.lastMs) {
      this.lastMs = ms;
      this.lastIso = new Date(ms).toISOString();
    }
    return this.lastIso;
  }

  /** ns since 1970, never twice the same while the clock stands still: files changed in turn have times in turn. */
  nanoseconds(): bigint {
    const now = BigInt(this.milliseconds()) * 1_000_000n;
    this.lastNs = now > this.lastNs || this.lastNs - now > 1_000_000_000n ? now : this.lastNs + 1n;
    return this.lastNs;
  }

  /** ms since 1970, as file systems see them. */
  now(): number {
    return this.milliseconds();
  }
}

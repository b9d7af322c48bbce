/** The longest a timer can wait, in ms: about 24 days. */
const LONGEST_MS = 2 ** 31 - 1;

/** Keeps the process running while it is referenced, as an open handle does. */
export class KeepAlive {
  #timer: NodeJS.Timeout | undefined;

  constructor(referenced: boolean) {
    this.#timer = setInterval(() => undefined, LONGEST_MS);
    if (!referenced) this.#timer.unref();
  }

  ref(): void {
    this.#timer?.ref();
  }

  unref(): void {
    this.#timer?.unref();
  }

  end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

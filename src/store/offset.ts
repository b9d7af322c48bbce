/** One entry for this many bytes of log: finding an event reads at most so much more than the event. */
export const STRIDE_BYTES = 32 * 1024;

/** A sparse index of a log: where the lines of some events start. */
export class OffsetIndex {
  readonly #seqs: number[];
  readonly #offsets: number[];

  constructor(seqs: number[] = [], offsets: number[] = []) {
    this.#seqs = seqs;
    this.#offsets = offsets;
  }

  /** Notes where event `seq` starts, if the last noted one is far enough behind. In ascending order. */
  add(seq: number, offset: number): void {
    const { length } = this.#offsets;
    if (length > 0 && offset - (this.#offsets[length - 1] as number) < STRIDE_BYTES) return;
    this.#seqs.push(seq);
    this.#offsets.push(offset);
  }

  /** Forgets event `seq` and all later ones. */
  remove(seq: number): void {
    while ((this.#seqs.at(-1) ?? -1) >= seq) {
      this.#seqs.pop();
      this.#offsets.pop();
    }
  }

  /** The nearest noted event at or before `seq`. There is one, since the first event is noted. */
  before(seq: number): { seq: number; offset: number } {
    const at = this.#search(seq);
    return { seq: this.#seqs[at] as number, offset: this.#offsets[at] as number };
  }

  /** Where some event after `seq` starts; `undefined` where none is noted. */
  after(seq: number): number | undefined {
    return this.#seqs.length === 0 ? undefined : this.#offsets[this.#search(seq) + 1];
  }

  /** What is noted up to event `seq`, as JSON can hold it. */
  upTo(seq: number): { seqs: number[]; offsets: number[] } {
    const count = this.#seqs.length === 0 || (this.#seqs[0] as number) > seq ? 0 : this.#search(seq) + 1;
    return { seqs: this.#seqs.slice(0, count), offsets: this.#offsets.slice(0, count) };
  }

  #search(seq: number): number {
    let low = 0, high = this.#seqs.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#seqs[middle] as number) <= seq) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

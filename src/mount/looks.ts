import type { Attr, Caller, Served, TreePath } from '../index/front-end.ts';

interface Look {
  readonly caller: Caller;
  readonly path: TreePath;
  /** `undefined`: nothing was there. */
  readonly attr: Attr | undefined;
  /** When, in ms of the monotonic clock. */
  readonly at: number;
}

/** A thread that has something to do with what it looked up does so within this time. */
const MEANT_WITHIN_MS = 10;

/** Most looks held back at once; one more tells the oldest. */
const HELD_LOOKS = 1024;

/**
 * Looks whose meaning the next request of the same thread tells. The kernel looks a name up before it creates, opens or
 * walks through it: a look that was only the way to something else is not told, any other is, as a stat or a miss.
 */
export class Looks {
  private readonly served: Served;
  private readonly held = new Map<number, Look>();

  constructor(served: Served) {
    this.served = served;
  }

  hold(thread: number, look: Omit<Look, 'at'>): void {
    if (this.held.size >= HELD_LOOKS) this.tellFirst();
    this.held.set(thread, { ...look, at: performance.now() });
  }

  /** What the thread has looked up just now. */
  heldBy(thread: number): TreePath | undefined {
    return this.held.get(thread)?.path;
  }

  /** The thread's next request is here. `way`: whether a look at that path was only the way to it. */
  settle(thread: number, way: (path: TreePath, found: boolean) => boolean): void {
    if (this.held.size === 0) return;
    const look = this.held.get(thread);
    if (look === undefined) return;
    this.held.delete(thread);
    if (!way(look.path, look.attr !== undefined)) this.tell(look);
  }

  /** Tells what has been held for long. Gives how many looks are still held. */
  tellOld(): number {
    const young = performance.now() - MEANT_WITHIN_MS;
    for (const [thread, look] of this.held) {
      if (look.at > young) break;
      this.held.delete(thread);
      this.tell(look);
    }
    return this.held.size;
  }

  /** Nothing more is coming. */
  tellAll(): void {
    for (const look of this.held.values()) this.tell(look);
    this.held.clear();
  }

  private tellFirst(): void {
    const [thread, look] = this.held.entries().next().value as [number, Look];
    this.held.delete(thread);
    this.tell(look);
  }

  private tell({ caller, path, attr }: Look): void {
    this.served.acting(caller);
    if (attr === undefined) this.served.tellMiss(path, 'lookup');
    else this.served.tellStat(path, attr);
  }
}

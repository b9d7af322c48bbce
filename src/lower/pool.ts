import { readFileSync } from 'node:fs';

/** What the pool may close when descriptors get scarce. */
export interface Pooled {
  /** Index in the pool; kept by the pool. */
  slot: number;
  /** Set at each use; the pool clears it when its hand passes. */
  used: boolean;
  /** Members that were opened through this one and need it: it goes after them. */
  children: number;
  /** Closes it and calls `pool.remove(this)`. */
  evict(): void;
}

/** Descriptors a process may have where nobody says (POSIX's traditional soft limit). */
const USUAL_DESCRIPTOR_LIMIT = 1024;

/**
 * The directory descriptors of all lowers in this process, at most `limit` of them: a new one beyond that
 * closes one not used lately (second chance: a use costs one store, where a list in order of use costs ten
 * times that).
 */
export class DescriptorPool {
  readonly limit: number;
  private readonly ring: Pooled[] = [];
  private hand = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  get size(): number {
    return this.ring.length;
  }

  /**
   * Makes room for one more, never at the cost of `keep`. Members whose children are open are passed over.
   */
  makeRoom(keep: Pooled): void {
    while (this.ring.length >= this.limit && this.evictOne(keep)) { /* until it fits or nothing can go */ }
  }

  add(member: Pooled): void {
    member.slot = this.ring.length;
    this.ring.push(member);
  }

  remove(member: Pooled): void {
    const last = this.ring.pop() as Pooled;
    if (last === member) return;
    this.ring[member.slot] = last;
    last.slot = member.slot;
  }

  /** Closes all it can: for when the process has run out of descriptors. Gives whether any was closed. */
  shed(keep: Pooled): boolean {
    const before = this.ring.length;
    while (this.evictOne(keep)) { /* leaves first, then those above them */ }
    return this.ring.length < before;
  }

  private evictOne(keep: Pooled): boolean {
    for (let steps = 2 * this.ring.length; steps > 0; steps--) {
      if (this.hand >= this.ring.length) this.hand = 0;
      const member = this.ring[this.hand] as Pooled;
      if (member === keep || member.children > 0) this.hand++;
      else if (member.used) {
        member.used = false;
        this.hand++;
      } else {
        member.evict();
        return true;
      }
    }
    return false;
  }
}

let shared: DescriptorPool | undefined;

/** The pool of this process: a quarter of its soft descriptor limit, as it is when the first lower opens. */
export function processPool(): DescriptorPool {
  shared ??= new DescriptorPool(Math.max(16, Math.floor(descriptorLimit() / 4)));
  return shared;
}

function descriptorLimit(): number {
  try {
    const line = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'latin1'));
    const soft = line?.[1];
    return soft === undefined || soft === 'unlimited' ? USUAL_DESCRIPTOR_LIMIT : Number(soft);
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ENOENT') throw error;
    return USUAL_DESCRIPTOR_LIMIT;
  }
}

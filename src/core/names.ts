import type { Owner } from './owner.ts';
import { compareNames } from './path.ts';

/**
 * A map from names to values that many overlays can share: changed in place by its owner, copied a piece at a time by
 * anyone else. Up to `SMALL` names it is a Map (copied whole); above, a hash array mapped trie whose nodes carry owner
 * stamps, so that the first write after a fork costs the same at any size.
 */

/** Names a directory may hold before its Map becomes a trie; at 64, copying the Map costs about what a trie path does. */
const SMALL = 64;
const BITS = 5;
const WIDTH_MASK = 31;
/** Levels of five bits in a 32-bit hash; below, names whose hashes are equal share one bucket. */
const LAST_SHIFT = 30;

interface Leaf<V> {
  readonly hash: number;
  readonly name: string;
  readonly value: V;
}

interface Branch<V> {
  readonly owner: Owner;
  /** One bit a child; of a bucket, 0. */
  bitmap: number;
  readonly slots: (Leaf<V> | Branch<V>)[];
}

/** Names and what each stands for. `set` and `delete` are for the owner alone. */
export class Names<V> {
  private owner: Owner;
  private small: Map<string, V> | undefined = new Map();
  private trie: Branch<V> | undefined = undefined;
  private sorted: readonly string[] | undefined = undefined;
  private count = 0;

  constructor(owner: Owner) {
    this.owner = owner;
  }

  get size(): number {
    return this.count;
  }

  get(name: string): V | undefined {
    if (this.small !== undefined) return this.small.get(name);
    const hash = hashOf(name);
    let branch = this.trie as Branch<V>;
    for (let shift = 0; ; shift += BITS) {
      const at = shift > LAST_SHIFT ? bucketIndex(branch, name) : slotIndex(branch, hash, shift);
      if (at < 0) return undefined;
      const slot = branch.slots[at] as Leaf<V> | Branch<V>;
      if ('slots' in slot) branch = slot;
      else return slot.hash === hash && slot.name === name ? slot.value : undefined;
    }
  }

  /** This map for `owner`: itself when it is the owner's already, else a copy that shares everything below the top. */
  ownedBy(owner: Owner): Names<V> {
    if (owner === this.owner) return this;
    const copy = new Names<V>(owner);
    copy.small = this.small && new Map(this.small);
    copy.trie = this.trie;
    copy.sorted = this.sorted;
    copy.count = this.count;
    return copy;
  }

  /** Only on a map that its caller owns (`ownedBy`). */
  set(name: string, value: V): void {
    if (this.small !== undefined) {
      const before = this.small.size;
      this.small.set(name, value);
      this.count = this.small.size;
      if (this.count !== before) this.sorted = undefined;
      if (this.count > SMALL) this.grow(this.small);
      return;
    }
    const before = this.count;
    this.trie = this.insert(this.trie as Branch<V>, 0, { hash: hashOf(name), name, value });
    if (this.count !== before) this.sorted = undefined;
  }

  /** Only on a map that its caller owns. Whether the name was there. */
  delete(name: string): boolean {
    if (this.small !== undefined) {
      if (!this.small.delete(name)) return false;
    } else {
      if (this.get(name) === undefined) return false;
      this.trie = this.remove(this.trie as Branch<V>, 0, hashOf(name), name);
    }
    this.count--;
    this.sorted = undefined;
    return true;
  }

  /** Calls back with every entry, in no particular order. */
  forEach(visit: (value: V, name: string) => void): void {
    if (this.small !== undefined) this.small.forEach(visit);
    else visitBranch(this.trie as Branch<V>, visit);
  }

  /** All names by their bytes; the list is kept until a name comes or goes. */
  names(): readonly string[] {
    if (this.sorted === undefined) {
      const names: string[] = [];
      this.forEach((_, name) => names.push(name));
      this.sorted = names.sort(compareNames);
    }
    return this.sorted;
  }

  private grow(small: Map<string, V>): void {
    this.small = undefined;
    this.count = 0;
    this.trie = { owner: this.owner, bitmap: 0, slots: [] };
    for (const [name, value] of small) {
      this.trie = this.insert(this.trie, 0, { hash: hashOf(name), name, value });
    }
  }

  private own(branch: Branch<V>): Branch<V> {
    if (branch.owner === this.owner) return branch;
    return { owner: this.owner, bitmap: branch.bitmap, slots: branch.slots.slice() };
  }

  private insert(shared: Branch<V>, shift: number, leaf: Leaf<V>): Branch<V> {
    const branch = this.own(shared);
    if (shift > LAST_SHIFT) {
      const at = bucketIndex(branch, leaf.name);
      if (at < 0) this.count++;
      branch.slots[at < 0 ? branch.slots.length : at] = leaf;
      return branch;
    }
    const bit = 1 << ((leaf.hash >>> shift) & WIDTH_MASK);
    const at = countBits(branch.bitmap & (bit - 1));
    if ((branch.bitmap & bit) === 0) {
      branch.slots.splice(at, 0, leaf);
      branch.bitmap |= bit;
      this.count++;
      return branch;
    }
    const slot = branch.slots[at] as Leaf<V> | Branch<V>;
    if ('slots' in slot) branch.slots[at] = this.insert(slot, shift + BITS, leaf);
    else if (slot.name === leaf.name) branch.slots[at] = leaf;
    else {
      const pushed = this.place({ owner: this.owner, bitmap: 0, slots: [] }, shift + BITS, slot);
      branch.slots[at] = this.insert(pushed, shift + BITS, leaf);
    }
    return branch;
  }

  /** Puts a leaf that was counted already into an empty branch. */
  private place(branch: Branch<V>, shift: number, leaf: Leaf<V>): Branch<V> {
    if (shift <= LAST_SHIFT) branch.bitmap = 1 << ((leaf.hash >>> shift) & WIDTH_MASK);
    branch.slots.push(leaf);
    return branch;
  }

  private remove(shared: Branch<V>, shift: number, hash: number, name: string): Branch<V> {
    const branch = this.own(shared);
    const at = shift > LAST_SHIFT ? bucketIndex(branch, name) : slotIndex(branch, hash, shift);
    const slot = branch.slots[at] as Leaf<V> | Branch<V>;
    if ('slots' in slot) {
      const rest = this.remove(slot, shift + BITS, hash, name);
      if (rest.slots.length > 0) {
        branch.slots[at] = rest;
        return branch;
      }
    }
    branch.slots.splice(at, 1);
    if (shift <= LAST_SHIFT) branch.bitmap &= ~(1 << ((hash >>> shift) & WIDTH_MASK));
    return branch;
  }
}

function slotIndex(branch: Branch<unknown>, hash: number, shift: number): number {
  const bit = 1 << ((hash >>> shift) & WIDTH_MASK);
  return (branch.bitmap & bit) === 0 ? -1 : countBits(branch.bitmap & (bit - 1));
}

function bucketIndex(branch: Branch<unknown>, name: string): number {
  return branch.slots.findIndex((slot) => !('slots' in slot) && slot.name === name);
}

function visitBranch<V>(branch: Branch<V>, visit: (value: V, name: string) => void): void {
  for (const slot of branch.slots) {
    if ('slots' in slot) visitBranch(slot, visit);
    else visit(slot.value, slot.name);
  }
}

function countBits(bits: number): number {
  let n = bits - ((bits >>> 1) & 0x55555555);
  n = (n & 0x33333333) + ((n >>> 2) & 0x33333333);
  return Math.imul((n + (n >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/** FNV-1a over UTF-16 units, its bits mixed once more since the trie looks at five at a time. */
function hashOf(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  return hash ^ (hash >>> 13);
}

import { Refusal } from '../core/refusal.ts';
import type { Event } from '../core/event.ts';
import type { RunningVersion } from './hash.ts';
import type { OpenInode } from './inode.ts';
import { FIRST_DESCRIPTOR } from './system.ts';

/** Most descriptors open at once in one overlay: the usual hard limit of a Linux process. */
const DESCRIPTOR_LIMIT = 1 << 20;

/** An open file description: what open(2) gives, beyond the inode itself. */
export class Descriptor {
  readonly inode: OpenInode;
  readonly actor: string;
  /** The name as asked, where it led through a symlink. */
  readonly via: string | undefined;
  readonly readable: boolean;
  readonly writable: boolean;
  readonly append: boolean;
  readonly isDirectory: boolean;
  position = 0;
  /** All of the lower file, from when it was opened; of the small ones that a mount reads at once. */
  slurped: Uint8Array | undefined = undefined;
  /** The read event this descriptor made last. */
  told: Event | undefined = undefined;
  /** Hashes what is read from the start on, so that a file read through has a version; `undefined` once out of turn. */
  hashing: { readonly version: RunningVersion; upTo: number } | undefined = undefined;

  constructor(born: Pick<Descriptor, 'inode' | 'actor' | 'via' | 'readable' | 'writable' | 'append' | 'isDirectory'>) {
    this.inode = born.inode;
    this.actor = born.actor;
    this.via = born.via;
    this.readable = born.readable;
    this.writable = born.writable;
    this.append = born.append;
    this.isDirectory = born.isDirectory;
  }
}

/** The table of open descriptors, shared by all actors of an overlay; the lowest free number is given, as open(2) does. */
export class Descriptors {
  private readonly slots: (Descriptor | undefined)[] = [];
  private readonly free: number[] = [];

  add(descriptor: Descriptor): number {
    const slot = this.lowestFree();
    if (slot >= DESCRIPTOR_LIMIT) throw new Refusal('EMFILE');
    this.slots[slot] = descriptor;
    return FIRST_DESCRIPTOR + slot;
  }

  get(fd: number): Descriptor {
    const descriptor = this.slots[fd - FIRST_DESCRIPTOR];
    if (descriptor === undefined) throw new Refusal('EBADF');
    return descriptor;
  }

  remove(fd: number): Descriptor {
    const descriptor = this.get(fd), slot = fd - FIRST_DESCRIPTOR;
    this.slots[slot] = undefined;
    this.free.push(slot);
    return descriptor;
  }

  /** Every number still open. */
  *open(): Generator<number> {
    for (const [slot, descriptor] of this.slots.entries()) if (descriptor !== undefined) yield FIRST_DESCRIPTOR + slot;
  }

  private lowestFree(): number {
    if (this.free.length === 0) return this.slots.length;
    let best = 0;
    for (let at = 1; at < this.free.length; at++) if ((this.free[at] as number) < (this.free[best] as number)) best = at;
    const slot = this.free[best] as number;
    this.free[best] = this.free.at(-1) as number;
    this.free.pop();
    return slot;
  }
}

import type { Observation, Present } from './observation.ts';
import type { TreePath } from './path.ts';
import type { FsCode } from './refusal.ts';
import type { Version } from './version.ts';

/**
 * What an actor wants to do to a path:
 *
 * - `write`: put something there, in place of whatever is: a write of all or part, what is renamed or copied onto it, a new directory
 * - `edit`: replace text in it
 * - `delete`, `rename`: take it away
 * - `attributes`: mode, owner, times, extended attributes
 */
export interface Intent {
  readonly verb: 'write' | 'edit' | 'delete' | 'rename' | 'attributes';
  readonly actor: string;
  readonly path: TreePath;
}

/** An expectation on what is at a path, checked in the same step in which it is changed. */
export type Guard =
  /** None: whatever is there. */
  | { readonly kind: 'any' }
  /** Nothing is there: `createIfAbsent`. */
  | { readonly kind: 'absent' }
  /** What is there has this version: `replaceIfVersion`. */
  | { readonly kind: 'version'; readonly version: Version }
  /**
   * What is there is what the actor saw. `shown`: how much of it the actor must have been shown: of an edit the bytes replaced (`span`),
   * or all of it.
   */
  | { readonly kind: 'seen'; readonly seen: Present; readonly shown?: 'span' | 'whole' };

/** What a decider says: a guard, or no. */
export type Decision = Guard | { readonly kind: 'refuse'; readonly code: FsCode };

/** Turns what an actor has seen of a path into a guard. Pure: it looks at nothing but its arguments. */
export interface Decider {
  /** For those who read of it. */
  readonly name: string;
  decide(intent: Intent, seen: Observation): Decision;
}

/**
 * The one place in which a decider stands. The first that was registered decides, and no other is asked as long as it is there; without
 * any, everything is allowed. What the actors have seen is no part of it, so a decider taken out and put back has lost nothing.
 */
export class DeciderSlot {
  private readonly registered: Decider[] = [];

  /** The decider that decides. */
  get current(): Decider | undefined {
    return this.registered[0];
  }

  /** Puts a decider behind those that are there. Gives what takes it out again. */
  register(decider: Decider): () => void {
    const own: Decider = { name: decider.name, decide: (intent, seen) => decider.decide(intent, seen) };
    this.registered.push(own);
    return () => {
      const at = this.registered.indexOf(own);
      if (at >= 0) this.registered.splice(at, 1);
    };
  }
}

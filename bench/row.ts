import type { Elapsed } from './clock.ts';
import type { Call, Answer, Subject, SubjectName } from './subject.ts';
import type { Shape, Tree } from './tree.ts';

/**
 * A line of the table. A warm row is work on many paths, done by each subject in turn in this process; a cold row is a
 * single act, done in a process of its own.
 */
export type Row = WarmRow | ColdRow;

interface Named {
  /** What `npm run bench -- NAME` chooses by. */
  readonly name: string;
  /** In words, as the table shows it. */
  readonly work: string;
  readonly limits: Partial<Record<SubjectName, Limit>>;
}

/** The most that is wanted: as a ratio to raw, as a time of one operation, as memory. All that are given must hold. */
export interface Limit {
  readonly ratio?: number;
  readonly micros?: number;
  readonly bytes?: number;
}

export interface WarmRow extends Named {
  readonly kind: 'warm';
  readonly shape: Shape;
  /** Subjects without these calls are left out. */
  readonly needs: readonly Call[];
  /** Whether raw changes the tree, so needs one of its own. */
  readonly changes: boolean;
  /** Opens the subject where a row is not about a file system; `undefined`: the subject has nothing like it. */
  open?(subject: SubjectName, scratch: string): Subject | undefined;
  /** Paths to work on, relative to the tree's root; one operation each. */
  paths(tree: Tree, n: number): string[];
  /** The first so many are enough for a peer that needs seconds for each. */
  readonly peerPaths?: number;
  /** Events that an operation adds to our log; an average, at least. */
  readonly events: number;
  /** Before the clock starts; `paths` as the subject names them. */
  prepare?(subject: Subject, paths: readonly string[]): Answer | undefined;
  /** The work. Its sum must be raw's. */
  run(subject: Subject, paths: readonly string[]): Answer;
  /** After the clock stopped: a number that must be raw's, where it did the work right. */
  verify?(subject: Subject, paths: readonly string[]): Answer;
  /** Takes back what raw did. */
  restore?(paths: readonly string[]): void;
}

export interface ColdRow extends Named {
  readonly kind: 'cold';
  readonly subjects: readonly SubjectName[];
  /** What the table shows of ours and the peers: memory is a line of its own where it is. */
  readonly shows: 'time' | 'time and memory';
  /** Rounds of a peer, where a single one takes long. */
  readonly peerRounds?: number;
  /** Makes what the act needs below `scratch`; gives the argument for `act`. */
  stage(scratch: string, n: number): string | Promise<string>;
  /** Runs in its own process. */
  act(subject: SubjectName, argument: string): Sample | Promise<Sample>;
}

export interface Sample extends Elapsed {
  /** Growth of resident memory, in bytes. */
  readonly bytes: number;
  /** Must be raw's. */
  readonly sum: number;
}

/**
 * A file system at work: raw `node:fs`, ours, or a peer, made to look the same, so that every one does the same work.
 * A call answers with a number (bytes read, names listed, 1 for true), which is summed and compared with raw's sum.
 */

/** `raw again` is raw once more: what it differs from raw by is the noise of the machine. */
export const SUBJECTS = ['raw', 'raw again', 'ours', 'ours on disk', 'memfs', 'unionfs', 'just-bash', 'nx'] as const;
export type SubjectName = (typeof SUBJECTS)[number];

export type Answer = number | Promise<number>;

export interface Calls {
  read(path: string): Answer;
  /** The promise face, where there is another one. */
  readLater(path: string): Promise<number>;
  write(path: string, bytes: Uint8Array): Answer;
  append(path: string, bytes: Uint8Array): Answer;
  exists(path: string): Answer;
  stat(path: string): Answer;
  /** A stat that throws, and is caught: 0 where nothing is there. */
  statMiss(path: string): Answer;
  list(path: string): Answer;
  /** All files at any depth, by listing every directory. */
  walk(path: string): Answer;
  rename(from: string, to: string): Answer;
  /** One byte at `position` of a file, without reading the rest where that is possible. */
  poke(path: string, position: number): Answer;
  /** One event about `path` into the log, and nothing else. */
  log(path: string): Answer;
}
export type Call = keyof Calls;

/** Calls that a subject does not have are absent. Answers of one that `waits` are awaited one by one. */
export interface Subject extends Partial<Calls> {
  readonly name: SubjectName;
  readonly waits: boolean;
  /** The name by which this subject knows a path of the tree. */
  at(path: string): string;
  /** Makes sure that all bytes are where they belong; part of the work. */
  settle?(): void | Promise<void>;
  /** Events in its log so far. */
  events?(): number;
  close(): void | Promise<void>;
}

/** Whether this is the real file system, whose changes have to be taken back after each round. */
export function isRaw(subject: Subject): boolean {
  return subject.name === 'raw' || subject.name === 'raw again';
}

/** Calls `call` for each item, one after another, and sums the answers. */
export function sumOf<T>(subject: Subject, items: readonly T[], call: (item: T) => Answer): Answer {
  return subject.waits ? sumLater(items, call) : sumNow(items, call);
}

function sumNow<T>(items: readonly T[], call: (item: T) => Answer): number {
  let sum = 0;
  for (const item of items) sum += call(item) as number;
  return sum;
}

/** The same, waiting for each answer before the next call. */
export async function sumLater<T>(items: readonly T[], call: (item: T) => Answer): Promise<number> {
  let sum = 0;
  for (const item of items) sum += await call(item);
  return sum;
}

/** The same with up to `width` calls in flight. */
export async function sumInFlight<T>(items: readonly T[], width: number, call: (item: T) => Promise<number>): Promise<number> {
  let sum = 0, next = 0;
  const lane = async (): Promise<void> => {
    while (next < items.length) {
      // Not `sum += await …`, which would read the sum before it waits.
      const answer = await call(items[next++] as T);
      sum += answer;
    }
  };
  await Promise.all(Array.from({ length: width }, lane));
  return sum;
}

/** The named call of a subject that is known to have it. Throws where it has not. */
export function callOf<C extends Call>(subject: Subject, call: C): Calls[C] {
  const found = subject[call] as Calls[C] | undefined;
  if (found === undefined) throw new Error(`${subject.name} has no ${call}`);
  return found.bind(subject) as Calls[C];
}

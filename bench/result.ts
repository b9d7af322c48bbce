import type { Limit } from './row.ts';
import type { SubjectName } from './subject.ts';

/** Figures of one subject in one row. Samples are in the order they were taken. */
export interface Figures {
  /** µs of one operation, a sample a round. */
  readonly micros: readonly number[];
  /** To raw of the same round. */
  readonly ratios: readonly number[];
  /** Growth of resident memory, in bytes; of cold rows. */
  readonly bytes?: readonly number[];
  /** Why there are no figures: what it threw, or how its work was wrong. */
  readonly failure?: string;
  /** Whether its limit is kept; absent where it has none. */
  readonly met?: boolean;
  readonly limit?: Limit;
}

export interface Result {
  readonly name: string;
  readonly work: string;
  readonly kind: 'warm' | 'cold';
  readonly operations: number;
  readonly subjects: Partial<Record<SubjectName, Figures>>;
}

/** The middle value; of an even number, the mean of the two. NaN of none. */
export function median(samples: readonly number[]): number {
  const sorted = [...samples].sort((a, b) => a - b), middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] as number : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}

/** Judges figures against a limit, by their medians. */
export function judged(figures: Figures, limit: Limit | undefined): Figures {
  if (limit === undefined) return figures;
  const within = (samples: readonly number[], most: number | undefined): boolean => most === undefined || median(samples) <= most;
  const met = figures.failure === undefined && within(figures.ratios, limit.ratio) && within(figures.micros, limit.micros) &&
    within(figures.bytes ?? [0], limit.bytes);
  return { ...figures, met, limit };
}

/** What came of a suite: points that passed, those that failed with what is known of each, those that did not apply. */
export interface Tally {
  readonly passed: number;
  readonly failed: readonly string[];
  readonly skipped: number;
}

/** A suite that lasts longer than this hangs, in ms. */
export const SUITE_MS = 3_600_000;

/** In one line, as every runner here prints it. */
export function lineOf({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed.length} failed, ${skipped} skipped`;
}

import { inspect, isDeepStrictEqual } from 'node:util';
import { census } from './census.ts';
import { Player } from './player.ts';
import { isSame } from './outcome.ts';
import type { Outcome } from './outcome.ts';
import type { Program, Step } from './program.ts';
import type { World } from './world.ts';

/** Watches the world under test while a program runs in both; throws where a law is broken. */
export interface Audit {
  /** `expected` is what the oracle said to `step`. */
  after(step: Step, expected: Outcome): void;
  end(): void;
}

/**
 * Plays a program in the oracle and in the world under test, step by step. Throws at the first step whose outcome
 * differs, or at the end when the trees do.
 */
export async function duel(program: Program, oracle: World, subject: World, audit?: Audit): Promise<void> {
  const since = Date.now() - 1000;
  const players = [new Player(oracle, since), new Player(subject, since)] as const;
  const umask = process.umask(program.umask);
  try {
    for (const [index, step] of program.steps.entries()) {
      if (step.op === 'umask') process.umask(step.mask);
      else await compareStep(players, index, step, audit);
    }
    const [expected, got] = [oracle, subject].map((world, side) => {
      const told = { root: world.root, since };
      return census(world.fs(0), told, players[side as 0 | 1].descriptors());
    }) as [string[], string[]];
    if (!isDeepStrictEqual(got, expected)) throw new Difference(`final tree\n${listDifference(expected, got)}`);
    audit?.end();
  } finally {
    process.umask(umask);
    for (const player of players) await player.closeAll();
  }
}

async function compareStep(
  [oracle, subject]: readonly [Player, Player], index: number, step: Step, audit: Audit | undefined,
): Promise<void> {
  const expected = await oracle.play(step);
  const got = await subject.play(step);
  if (!isSame(step, got, expected)) {
    throw new Difference(`step ${index}: ${inspect(step)}\nexpected ${inspect(expected, { depth: 6 })}\ngot ${inspect(got, { depth: 6 })}`);
  }
  audit?.after(step, expected);
}

export class Difference extends Error {
  override readonly name = 'Difference';
}

function listDifference(expected: readonly string[], got: readonly string[]): string {
  const had = new Set(expected), has = new Set(got);
  const missing = expected.filter((line) => !has.has(line)).map((line) => `expected ${line}`);
  const extra = got.filter((line) => !had.has(line)).map((line) => `got      ${line}`);
  return [...missing, ...extra].join('\n') || 'same lines in another order';
}

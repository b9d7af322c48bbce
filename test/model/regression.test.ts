import { afterAll, beforeAll, describe, it } from 'vitest';
import { playground } from './playground.ts';
import type { Playground } from './playground.ts';
import type { Program, Step } from './program.ts';

/** Programs that once told an overlay from a real directory, as small as shrinking made them. */
const FOUND: readonly [string, readonly Step[], Partial<Program>?][] = [
  ['a program that does nothing', []],
];

describe('regressions', () => {
  let ground: Playground;
  beforeAll(() => { ground = playground(); });
  afterAll(() => ground.clear());

  it.each(FOUND)('%s', async (_, steps, more = {}) => {
    for (const watched of [false, true]) {
      await ground.play({ lower: 'mixed', umask: 0o022, session: 'directory', watched, steps, ...more });
    }
  });
});

import type { Command } from 'commander';
import { removeSession } from '../index.ts';
import { FAILED, tellFailure } from './failure.ts';
import { manual } from './manual.ts';
import { namedSession } from './session-directory.ts';

/** `palimpsest rm`. */
export function rm(command: Command): void {
  manual(command, {
    description: 'Removes sessions: their logs and all contents that they keep. The directories they are about are not touched.\n\n' +
      'A session that a live process has open is refused; the others are removed all the same.',
    examples: [
      ['palimpsest rm repo-20261201-100203-9f3a61c2', 'by its name in the list of sessions'],
      ['palimpsest rm runs/41 runs/42', 'by their directories'],
    ],
  });
  command.argument('<session...>', 'names as palimpsest sessions lists them, or directories');
  command.action((names: readonly string[]) => {
    for (const name of names) {
      try {
        removeSession(namedSession(name));
      } catch (error) {
        tellFailure(error);
        process.exitCode = FAILED;
      }
    }
  });
}

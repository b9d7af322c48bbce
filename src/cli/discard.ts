import type { Command } from 'commander';
import { glance } from '../index.ts';
import { manual } from './manual.ts';
import { withSession, type SessionOption } from './options.ts';
import { say } from './output.ts';
import { placesOf, treePath } from './path.ts';
import { withWriter } from './reading.ts';
import { sessionToRead } from './session-directory.ts';

/** `palimpsest discard`. */
export function discard(command: Command): void {
  manual(command, {
    description: 'Throws changes away, so that what is beneath shows again: all changes, or those at and below the given paths, with both ends of ' +
      'a rename. The log keeps what happened.\n\n' +
      'A path without a change is refused, and so is one whose change is part of another\'s (a file in a directory that was deleted).',
    examples: [
      ['palimpsest discard src/generated', 'what changed there'],
      ['palimpsest discard', 'everything'],
    ],
  });
  withSession(command).argument('[path...]', 'what to throw away, with all below it (default: everything)');
  command.action(async (given: readonly string[], options: SessionOption) => {
    const places = placesOf(glance(sessionToRead(options.session)).header);
    const chosen = given.length === 0 ? {} : { paths: given.map((path) => treePath(path, places)) };
    const made = await withWriter(options, 'main', { kind: 'discard', ...chosen }, (overlay) => {
      const before = overlay.changes().length;
      overlay.discard(chosen);
      return { before, left: overlay.changes().length };
    }).catch((error: Error) => {
      // The code in front of the words is for programs.
      throw new Error(error.message.replace(/^E[A-Z]+: /, ''), { cause: error });
    });
    if ('asked' in made) return say('thrown away, by the process that has the session open');
    const { before, left } = made.done;
    say(`${before - left} ${before - left === 1 ? 'change' : 'changes'} thrown away, ${left} left`);
  });
}

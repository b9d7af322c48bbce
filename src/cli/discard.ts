import type { Command } from 'commander';
import { manual } from './manual.ts';
import { withSession, type SessionOption } from './options.ts';
import { say } from './output.ts';
import { treePath } from './path.ts';
import { withWriter } from './reading.ts';

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
  command.action((paths: readonly string[], options: SessionOption) => withWriter(options, 'main', (overlay) => {
    const before = overlay.changes().length;
    overlay.discard(paths.length === 0 ? {} : { paths: paths.map((path) => treePath(path, overlay.mountPoint)) });
    const left = overlay.changes().length;
    say(`${before - left} ${before - left === 1 ? 'change' : 'changes'} thrown away, ${left} left`);
  }));
}

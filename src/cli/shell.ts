import type { Command } from 'commander';
import { manual } from './manual.ts';
import { addRunOptions, runCommand, type RunFlags } from './run.ts';

/** `palimpsest shell`. */
export function shell(command: Command): void {
  manual(command, {
    description: 'Starts $SHELL over the overlay of a directory, in place. Try what you like: the directory stays as it is. ' +
      'The summary follows when the shell ends.',
    examples: [['palimpsest shell', 'your shell, over the working directory'], ['palimpsest shell --session try', 'to be gone on with']],
    exit: 'As the shell; 124 when --timeout ended it, 125 for a failure of our own.',
  });
  addRunOptions(command).action(async (flags: RunFlags) => {
    const program = process.env['SHELL'];
    process.exitCode = await runCommand([program === undefined || program === '' ? '/bin/sh' : program], flags);
  });
}

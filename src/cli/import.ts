import type { Command } from 'commander';
import { existsSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { Misuse } from './failure.ts';
import { manual } from './manual.ts';
import { out } from './output.ts';
import { isName, stateDirectory } from './state-directory.ts';

/** `palimpsest import`. */
export function importing(command: Command): void {
  manual(command, {
    description: 'Makes a session of a file that palimpsest export session wrote, here or on another machine, and prints its directory.\n\n' +
      'It is about the same directory as before; where that is not there, the verbs that read the log alone work.',
    examples: [
      ['palimpsest import run.tar', 'into the list of sessions, as "run"'],
      ['palimpsest import run.tar runs/42', 'into a directory'],
    ],
  });
  command
    .argument('<file>', 'a packed session')
    .argument('[directory]', 'where to put it, which must not be there yet (default: among the sessions, by the name of the file)');
  command.action(async (file: string, directory: string | undefined) => {
    const { unpackSession } = await import('../index.ts');
    const name = basename(file).replace(/\.tar$/, '');
    if (directory === undefined && (!isName(name) || name.startsWith('.'))) throw new Misuse(`"${name}" is no name for a session: give a directory`);
    const target = directory === undefined ? join(stateDirectory(), name) : resolve(directory);
    if (existsSync(target)) throw new Misuse(`${target} is there already${directory === undefined ? ': give another directory' : ''}`);
    unpackSession(file, target);
    out.line(target);
  });
}

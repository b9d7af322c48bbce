import { realpathSync } from 'node:fs';
import type { Command } from 'commander';
import { recover as recoverRoot, recoverAll, type Recovery } from '../index.ts';
import { FAILED } from './failure.ts';
import { manual } from './manual.ts';
import { withFormats } from './options.ts';
import { out, say } from './output.ts';
import { quoted } from './text.ts';

/** `palimpsest recover`. */
export function recover(command: Command): void {
  manual(command, {
    description: 'Ends a commit to a directory that was interrupted: takes it back, or where all of it was done, keeps it. What somebody else has ' +
      'changed since is left as it is; then all versions are saved and told, and the exit status is 1. Every command that opens a session about the directory does the same first.',
    examples: [['palimpsest recover', 'the working directory'], ['palimpsest recover ~/app', 'another one']],
  });
  withFormats(command, { json: 'one JSON object' }).argument('[directory]', 'the directory that was committed to', '.');
  command.action(async (directory: string, options: { json?: true }) => {
    const recovery = await recoverRoot(realpathSync.native(directory));
    if (options.json === true) out.line(JSON.stringify(recovery, undefined, 2));
    if (recovery.outcome === 'nothing') say('nothing to recover');
    else tellRecovery(recovery);
  });
}

/** Ends what was interrupted at these directories, and tells of it. */
export async function recoverFirst(roots: readonly string[]): Promise<void> {
  for (const recovery of await recoverAll(roots)) tellRecovery(recovery);
}

function tellRecovery({ outcome, id, left, late }: Recovery): void {
  say(`the commit ${id ?? ''} was interrupted: ${outcome === 'back' ? 'it is taken back' : 'all of it was done'}`);
  for (const { path, found, saved } of left) {
    say(`${quoted(path)} was changed by somebody else since (${found}), and is left as it is${saved.map((each) => `; ${each.side}: ${quoted(each.path)}`).join('')}`);
  }
  for (const { path, saved } of late) say(`${quoted(path)} was written by somebody else meanwhile; those bytes are in ${quoted(saved)}`);
  if (left.length > 0 || late.length > 0) process.exitCode = FAILED;
}

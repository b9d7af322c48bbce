import { Option, type Command } from 'commander';
import { ConflictError, glance, type Guard, type Receipt } from '../index.ts';
import { changeJson, changeLine } from './change.ts';
import { tellConflicts } from './conflict.ts';
import { FAILED } from './failure.ts';
import { manual } from './manual.ts';
import { withFormats, withSession, type SessionOption } from './options.ts';
import { out, say } from './output.ts';
import { placesOf, treePath } from './path.ts';
import { Progress } from './progress.ts';
import { publishing } from './reading.ts';
import { sessionToRead } from './session-directory.ts';
import { quoted } from './text.ts';

interface Options extends SessionOption {
  readonly guard: Guard;
  readonly actor?: string;
  readonly dryRun?: true;
  readonly json?: true;
}

/** `palimpsest commit`. */
export function commit(command: Command): void {
  manual(command, {
    description: 'Publishes changes to the directory beneath: all changes, or those at and below the given paths with what they need (new directories ' +
      'above them, both ends of a rename, all names of a file). All of them or none: where somebody has changed since what a change is based on, every such ' +
      'conflict is told, and nothing is done.\n\n' +
      'A commit that is killed is ended by the next command, or by palimpsest recover. The receipt has the id that palimpsest revert takes.',
    examples: [
      ['palimpsest commit --dry-run', 'what would be done, and what stands in the way'],
      ['palimpsest commit', 'everything'],
      ['palimpsest commit src README.md', 'only that'],
      ['palimpsest commit --guard reads', 'only if all that was read, listed or missed is as it was'],
    ],
  });
  withFormats(withSession(command), { json: 'the receipt, or the conflicts, as one JSON object' }).argument('[path...]', 'what to publish, with all below it (default: everything)')
    .addOption(new Option('--guard <guard>', 'what has to be as it was: `changed`, what was changed; `reads`, also what was read; `none`').choices(['changed', 'reads', 'none']).default('changed'))
    .option('--actor <name>', 'with --guard reads: only what this actor has read, listed or missed')
    .option('--dry-run', 'do nothing, tell what would be done');
  command.action(async (given: readonly string[], options: Options) => {
    const places = placesOf(glance(sessionToRead(options.session)).header), progress = new Progress('committing');
    try {
      const receipt = await publishing(options, (overlay) => overlay.commit({
        ...(given.length > 0 && { paths: given.map((path) => treePath(path, places)) }), guard: options.guard, ...(options.actor !== undefined && { reader: options.actor }), dryRun: options.dryRun === true,
        onProgress: (done, all) => progress.show(done, all),
      }));
      progress.end();
      if (options.json === true) out.line(JSON.stringify(receiptJson(receipt), undefined, 2));
      else print(receipt);
      if (receipt.conflicts.length > 0 || receipt.late.length > 0) process.exitCode = FAILED;
    } catch (error) {
      progress.end();
      if (!(error instanceof ConflictError)) throw error;
      if (options.json === true) out.line(JSON.stringify({ conflicts: error.conflicts }, undefined, 2));
      tellConflicts(error, 'nothing was published');
      process.exitCode = FAILED;
    }
  });
}

function receiptJson(receipt: Receipt): object {
  return { ...receipt, changes: receipt.changes.map(changeJson) };
}

function print({ id, changes, steps, dryRun, losses, late, conflicts }: Receipt): void {
  for (const change of changes) out.line(changeLine(change));
  for (const step of steps) say(`would ${quoted(step)}`);
  for (const { path, words } of losses) say(`note: ${quoted(path)}: ${words}`);
  for (const { path, saved } of late) say(`${quoted(path)} was written by somebody else meanwhile; those bytes are in ${quoted(saved)}`);
  for (const { path, expected, actual } of conflicts) say(`conflict: ${quoted(path)} is ${quoted(actual)}, expected was ${quoted(expected)}`);
  const count = `${changes.length} ${changes.length === 1 ? 'change' : 'changes'}`;
  if (changes.length === 0) say('nothing to commit');
  else say(dryRun ? `${count} would be published` : `${count} published as ${id}`);
}

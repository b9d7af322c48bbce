import type { Command } from 'commander';
import { ConflictError } from '../index.ts';
import { tellConflicts } from './conflict.ts';
import { FAILED } from './failure.ts';
import { manual } from './manual.ts';
import { withFormats, withSession, type SessionOption } from './options.ts';
import { out, say } from './output.ts';
import { publishing } from './reading.ts';
import { quoted } from './text.ts';

interface Options extends SessionOption {
  readonly json?: true;
}

/** `palimpsest revert`. */
export function revert(command: Command): void {
  manual(command, {
    description: 'Takes back what a commit did to the directory beneath, and nothing else; other commits may have come since. Where somebody has ' +
      'changed what it wrote, that is told, and nothing is done.',
    examples: [
      ['palimpsest log --op commit', 'commits, with their ids'],
      ['palimpsest revert V1StGXR8_Z5jdHi6B-myT', 'take one back'],
    ],
  });
  withFormats(withSession(command), { json: 'the receipt, or the conflicts, as one JSON object' }).argument('<id>', 'of the commit');
  command.action(async (id: string, options: Options) => {
    try {
      const receipt = await publishing(options, (overlay) => overlay.revert(id));
      if (options.json === true) out.line(JSON.stringify(receipt, undefined, 2));
      for (const { path, saved } of receipt.late) say(`${quoted(path)} was written by somebody else meanwhile; those bytes are in ${quoted(saved)}`);
      say(`commit ${id} is taken back: ${receipt.paths.length} ${receipt.paths.length === 1 ? 'path' : 'paths'} written`);
      if (receipt.late.length > 0) process.exitCode = FAILED;
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
      if (options.json === true) out.line(JSON.stringify({ conflicts: error.conflicts }, undefined, 2));
      tellConflicts(error, 'nothing was taken back');
      process.exitCode = FAILED;
    }
  });
}

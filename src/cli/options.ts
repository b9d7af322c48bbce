import { Option, type Command } from 'commander';
import { Misuse } from './failure.ts';

/** Options that several verbs have, and what their values may be. */

export interface SessionOption {
  readonly session?: string;
}

/** `--session`. */
export function withSession(command: Command): Command {
  return command.option('--session <dir>', 'the session: its directory, or its name in the list of sessions (default: the newest one about ' +
    'the working directory or the nearest directory above it)');
}

/** `--json`, and `-z` where a verb prints paths. */
export function withFormats(command: Command, formats: { json?: string; z?: string }): Command {
  if (formats.json !== undefined) command.addOption(new Option('--json', formats.json));
  if (formats.z !== undefined) command.addOption(new Option('-z', formats.z).conflicts(formats.json === undefined ? [] : ['json']));
  return command;
}

/** The number of an event, from 1. Throws `Misuse` for anything else. */
export function seqOption(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[1-9][0-9]{0,14}$/.test(text)) throw new Misuse(`${name} takes the number of an event, not "${text}"`);
  return Number(text);
}

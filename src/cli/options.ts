import { Option, type Command } from 'commander';
import { Misuse } from './failure.ts';

/** Options that several verbs have, and what their values may be. */

export interface SessionOption {
  readonly session?: string;
}

/** Options of a verb that looks at the tree: as it is, or as it was. */
export interface TreeOption extends SessionOption {
  readonly at?: string;
  readonly replay?: true;
}

/** `--at`. */
export function withMoment(command: Command): Command {
  return command.option('--at <moment>', `as it was then, over the directory beneath as it is now: ${MOMENT}`)
    .option('--replay', 'from the session alone, over what it has kept of the directory beneath');
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

/** What `--at` and its like name: the number of an event, 0 being before all of them, or else the label of a mark. */
export function momentOption(text: string): number | string {
  return /^(0|[1-9][0-9]{0,14})$/.test(text) ? Number(text) : text;
}

/** What a moment is called, in help. */
export const MOMENT = 'the number of an event (0: before all), or the label of a mark: of several, the last';

/** The number of an event, from 1. Throws `Misuse` for anything else. */
export function seqOption(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[1-9][0-9]{0,14}$/.test(text)) throw new Misuse(`${name} takes the number of an event, not "${text}"`);
  return Number(text);
}

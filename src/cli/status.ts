import type { Command } from 'commander';
import type { Change, Overlay, SessionGlance } from '../index.ts';
import { changeJson, changeLine, changeRecord } from './change.ts';
import { incidentJson, incidentLine } from './incident.ts';
import { manual } from './manual.ts';
import { withFormats, withSession, type SessionOption } from './options.ts';
import { out } from './output.ts';
import { paint } from './paint.ts';
import { withTree } from './reading.ts';
import { quoted, visible } from './text.ts';

interface Options extends SessionOption {
  readonly json?: boolean;
  readonly z?: boolean;
}

interface Summary {
  readonly session: SessionGlance;
  readonly totals: ReturnType<Overlay['totals']>;
  readonly changes: readonly Change[];
}

/** `palimpsest status`. */
export function status(command: Command): void {
  manual(command, {
    description: 'Tells what a session is about, how much was read, looked for and changed, what is different now from the directory beneath ' +
      '(deletions too), and what was flagged or refused.\n\n' +
      'A renamed directory is one line, and one more for each thing in it that changed as well. What was changed and changed back is no line.',
    examples: [
      ['palimpsest status', 'the newest session about this directory'],
      ['palimpsest status --session runs/42', 'any session'],
      ["palimpsest status --json | jq -r '.changes[] | select(.kind == \"delete\").path'", 'what was deleted'],
      ['palimpsest status -z | tr "\\0\\t" "\\n "', 'changes for a program: kind, tab, path, NUL'],
    ],
    more: {
      'Output with -z': 'For each change its kind, a tab, its path and NUL; renames and links are followed by the path they come from and NUL.',
    },
  });
  withFormats(withSession(command), { json: 'one JSON object', z: 'only the changes, as records that end with NUL, names as they are' });
  command.action((options: Options) => withTree(options, (overlay, session) => {
    if (options.z === true) {
      for (const change of overlay.changes()) out.write(changeRecord(change));
      return;
    }
    const summary = { session, totals: overlay.totals(), changes: overlay.changes() };
    if (options.json === true) out.line(JSON.stringify(toJson(summary), undefined, 2));
    else print(summary);
  }));
}

function print({ session, totals, changes }: Summary): void {
  const { header, owner } = session, { total, events, flags, refusals } = totals;
  out.line(`${paint.bold('Session')}  ${quoted(session.directory)}${owner === undefined ? '' : paint.dim(` (open in process ${owner.pid})`)}`);
  out.line(`${paint.bold('Root')}     ${quoted(header.root)}`);
  out.line(`${paint.bold('Events')}   ${counted(events, 'event')}${span(totals)}`);
  const counts = [
    counted(total.reads, 'read'), counted(total.lists, 'listing'), counted(total.looks, 'look'), counted(total.misses, 'miss', 'misses'),
    counted(total.mutations, 'mutation'), counted(total.refusals, 'refusal'), counted(total.flags, 'flag'),
  ];
  out.line(`         ${counts.join(', ')}`);
  if (totals.actors.size > 1) out.line(`${paint.bold('Actors')}   ${[...totals.actors.keys()].map((actor) => visible(actor)).join(', ')}`);
  section(changes.length === 0 ? 'No changes' : `Changes (${changes.length})`, changes.map((change) => changeLine(change)));
  if (flags.length > 0) section(`Flagged (${total.flags})`, flags.map((incident) => incidentLine(incident)));
  if (refusals.length > 0) section(`Refused (${total.refusals})`, refusals.map((incident) => incidentLine(incident)));
}

function section(heading: string, lines: readonly string[]): void {
  out.line(`\n${paint.bold(heading)}`);
  for (const line of lines) out.line('  ' + line);
}

function span({ first, last }: Summary['totals']): string {
  return first === undefined || last === undefined ? '' : paint.dim(`, ${first} to ${last}`);
}

function counted(number: number, one: string, many = one + 's'): string {
  return `${number.toLocaleString('en')} ${number === 1 ? one : many}`;
}

function toJson({ session, totals, changes }: Summary): object {
  const { header, directory, owner } = session, { events, first, last, total, ops, actors, flags, refusals } = totals;
  return {
    session: header.session, directory, root: header.root, created: header.created, ...(header.parent && { parent: header.parent }),
    process: owner?.pid ?? null, events, first: first ?? null, last: last ?? null, total, ops: Object.fromEntries(ops),
    actors: Object.fromEntries(actors), changes: changes.map((change) => changeJson(change)),
    flags: flags.map((incident) => incidentJson(incident)), refusals: refusals.map((incident) => incidentJson(incident)),
  };
}

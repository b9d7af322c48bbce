import type { Command } from 'commander';
import type { ReadSetRow, SessionLog } from '../index.ts';
import { FAILED } from './failure.ts';
import { manual } from './manual.ts';
import { withFormats, withSession, type SessionOption } from './options.ts';
import { out, say } from './output.ts';
import { paint } from './paint.ts';
import { isChosen, nameField, nulRecord, placesOf, treePath } from './path.ts';
import { withLog } from './reading.ts';
import { short } from './sentence.ts';
import { quoted, visible } from './text.ts';

interface Options extends SessionOption {
  readonly actor?: string;
  readonly json?: boolean;
  readonly z?: boolean;
}

type Row = ReadSetRow & { readonly observation: Exclude<ReadSetRow['observation'], { kind: 'unseen' }> };

/** Ranges that a line names; `--json` has all of them. */
const RANGES_TOLD = 4;

/** Of a shortened version. */
const VERSION_WIDTH = 19;

/** `palimpsest seen`. */
export function seen(command: Command): void {
  manual(command, {
    description: 'Prints who has seen what: for each actor and path whether it was present when the actor last met it, at which version, and at which ' +
      'event; or absent, which is what the actor looked for and did not find, or took away.\n\n' +
      'Reading, listing, writing and renaming is seeing; a stat is not. Paths that an actor has not seen are no line; where nothing of a given path was ' +
      'seen, that is said on standard error, and the exit status is 1.\n\n' +
      'Where not all of a file was shown, the bytes that were stand after the path, or that it is not known: a command on a mount reads as its kernel pleases.',
    examples: [
      ['palimpsest seen', 'everything that anybody has seen'],
      ['palimpsest seen src --actor agent-1', 'what one actor has seen of a directory'],
      ["palimpsest seen --json | jq -r 'select(.kind == \"absent\").path'", 'what was looked for in vain'],
    ],
    more: {
      'Output with -z': 'For each line: present or absent, a tab, the actor, a tab, the path and NUL.',
    },
  });
  withSession(command)
    .argument('[path...]', 'only these paths and what is below them')
    .option('--actor <name>', 'only what this actor has seen');
  withFormats(command, { json: 'JSON Lines', z: 'records that end with NUL, names as they are' });
  command.action((paths: readonly string[], options: Options) => withLog(options, (log) => {
    const { rows, unseen } = rowsOf(log, paths, options.actor);
    if (options.json === true) for (const row of rows) out.line(JSON.stringify(toJson(row)));
    else if (options.z === true) for (const row of rows) out.write(nulRecord([row.observation.kind, row.actor], row.path));
    else print(rows);
    out.flush();
    for (const path of unseen) {
      say(`palimpsest: ${quoted(path)}: not seen${options.actor === undefined ? ' by anybody' : ` by ${visible(options.actor)}`}, and not looked for`);
      process.exitCode = FAILED;
    }
  }));
}

/** Rows of the paths asked for, and those of the paths at and below which there is none. */
function rowsOf(log: SessionLog, paths: readonly string[], actor: string | undefined): { rows: readonly Row[]; unseen: readonly string[] } {
  const places = placesOf(log.header), chosen = paths.map((path) => treePath(path, places)), rows: Row[] = [];
  for (const row of log.observations()) {
    if (row.observation.kind === 'unseen' || (actor !== undefined && row.actor !== actor) || !isChosen(row.path, chosen)) continue;
    rows.push(row as Row);
  }
  rows.sort((a, b) => a.actor === b.actor ? (a.path < b.path ? -1 : 1) : a.actor < b.actor ? -1 : 1);
  return { rows, unseen: paths.filter((_, at) => !rows.some(({ path }) => isChosen(path, [chosen[at] as string]))) };
}

function print(rows: readonly Row[]): void {
  const width = (of: (row: Row) => string): number => Math.max(0, ...rows.map((row) => of(row).length));
  const actor = width((row) => visible(row.actor)), seq = width((row) => String(row.observation.seq)) + 1;
  for (const row of rows) {
    const { observation, path } = row;
    const kind = observation.kind === 'absent' ? paint.yellow('absent ') : 'present';
    const version = observation.kind === 'absent' ? undefined : short(observation.version);
    out.line(`${visible(row.actor).padEnd(actor)}  ${kind}  ${`#${observation.seq}`.padStart(seq)}  ` +
      `${paint.dim((version ?? '-').padEnd(VERSION_WIDTH))}  ${path === '' ? '.' : quoted(path)}${paint.dim(coverage(observation))}`);
  }
}

/** How much of it the actor was shown, where that is not all of it. */
function coverage(observation: Row['observation']): string {
  if (observation.kind === 'absent' || observation.shown === 'whole') return '';
  if (observation.contentSeq === undefined) return '  (nothing of its content)';
  const { shown } = observation, told = shown.slice(0, RANGES_TOLD).map(([start, end]) => `${start}-${end - 1}`).join(', ');
  if (shown.length === 0) return '  (nothing shown)';
  return `  (bytes ${told}${shown.length > RANGES_TOLD ? `, and ${shown.length - RANGES_TOLD} more ranges` : ''})`;
}

function toJson({ actor, path, observation }: Row): object {
  const { kind, seq } = observation;
  if (kind === 'absent') return { actor, ...nameField('path', path), kind, seq };
  const { contentSeq, version, fingerprint, shown } = observation;
  return { actor, ...nameField('path', path), kind, seq, contentSeq, version, fingerprint, shown };
}

import type { Command } from 'commander';
import { lowerOf, type ReadSetRow, type SessionLog } from '../index.ts';
import { manual } from './manual.ts';
import { withFormats, withSession, type SessionOption } from './options.ts';
import { out } from './output.ts';
import { paint } from './paint.ts';
import { isChosen, nameField, nulRecord, treePath } from './path.ts';
import { withLog } from './reading.ts';
import { short } from './sentence.ts';
import { quoted, visible } from './text.ts';

interface Options extends SessionOption {
  readonly actor?: string;
  readonly json?: boolean;
  readonly z?: boolean;
}

type Row = ReadSetRow & { readonly observation: Exclude<ReadSetRow['observation'], { kind: 'unseen' }> };

/** `palimpsest seen`. */
export function seen(command: Command): void {
  manual(command, {
    description: 'Prints who has seen what: for each actor and path whether it was present when the actor last met it, at which version, and at which ' +
      'event; or absent, which is what the actor looked for and did not find, or took away.\n\n' +
      'Reading, listing, writing and renaming is seeing; a stat is not. Paths that an actor has not seen are no line.',
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
    for (const row of rowsOf(log, paths, options.actor)) {
      if (options.json === true) out.line(JSON.stringify(toJson(row)));
      else out.write(options.z === true ? nulRecord([row.observation.kind, row.actor], row.path) : line(row) + '\n');
    }
  }));
}

function rowsOf(log: SessionLog, paths: readonly string[], actor: string | undefined): readonly Row[] {
  const lower = lowerOf(log.header), root = lower === undefined ? '/' : 'root' in lower ? lower.root : lower.lower[0] as string;
  const chosen = paths.map((path) => treePath(path, root)), rows: Row[] = [];
  for (const row of log.observations()) {
    if (row.observation.kind === 'unseen' || (actor !== undefined && row.actor !== actor) || !isChosen(row.path, chosen)) continue;
    rows.push(row as Row);
  }
  return rows.sort((a, b) => a.actor === b.actor ? (a.path < b.path ? -1 : 1) : a.actor < b.actor ? -1 : 1);
}

function line({ actor, path, observation }: Row): string {
  const kind = observation.kind === 'absent' ? paint.yellow('absent ') : 'present';
  const version = observation.kind === 'absent' ? undefined : short(observation.version);
  return `${visible(actor)} ${kind} ${String(observation.seq).padStart(6)} ${(version ?? '-').padEnd(19)} ${path === '' ? '.' : quoted(path)}`;
}

function toJson({ actor, path, observation }: Row): object {
  const { kind, seq } = observation;
  if (kind === 'absent') return { actor, ...nameField('path', path), kind, seq };
  const { contentSeq, version, fingerprint, shown } = observation;
  return { actor, ...nameField('path', path), kind, seq, contentSeq, version, fingerprint, shown };
}

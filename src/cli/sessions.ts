import type { Command } from 'commander';
import { basename } from 'node:path';
import type { SessionGlance } from '../index.ts';
import { tellFailure } from './failure.ts';
import { manual } from './manual.ts';
import { withFormats } from './options.ts';
import { out } from './output.ts';
import { paint } from './paint.ts';
import { nulRecord } from './path.ts';
import { sessionsIn } from './session-directory.ts';
import { stateDirectory } from './state-directory.ts';
import { quoted } from './text.ts';

interface Options {
  readonly json?: boolean;
  readonly z?: boolean;
}

/** `palimpsest sessions`. */
export function sessions(command: Command): void {
  manual(command, {
    description: 'Lists the sessions that are kept in the default place, newest first: name, when it was made, number of its last event, the directory it is ' +
      'about, and which process has it open. Sessions that cannot be read are named on standard error, and the exit status is 1.',
    examples: [
      ['palimpsest sessions', 'all of them'],
      ['palimpsest sessions -z | xargs -0 palimpsest rm', 'remove them all'],
    ],
    more: {
      'Where': 'In $XDG_STATE_HOME/palimpsest, or ~/.local/state/palimpsest. A session made with --session elsewhere is not listed.',
    },
  });
  withFormats(command, { json: 'JSON Lines', z: 'only the directories, each ended by NUL' });
  command.action((options: Options) => {
    const found: SessionGlance[] = [];
    for (const each of sessionsIn(stateDirectory())) {
      if (!(each instanceof Error)) found.push(each);
      else process.exitCode = tellFailure(each);
    }
    found.sort((a, b) => a.header.created < b.header.created ? 1 : a.header.created > b.header.created ? -1 : b.modified - a.modified);
    if (options.json === true) for (const each of found) out.line(JSON.stringify(toJson(each)));
    else if (options.z === true) for (const { directory } of found) out.write(nulRecord([], directory));
    else print(found);
  });
}

function print(found: readonly SessionGlance[]): void {
  const rows = found.map((each) => ({ each, name: quoted(basename(each.directory)), last: each.lastSeq === undefined ? 'damaged' : String(each.lastSeq) }));
  const name = Math.max(0, ...rows.map((row) => row.name.length)), last = Math.max(0, ...rows.map((row) => row.last.length));
  for (const row of rows) {
    const { header, owner } = row.each;
    const open = owner === undefined ? '' : paint.green(` (open in process ${owner.pid})`);
    out.line(`${paint.bold(row.name.padEnd(name))}  ${paint.dim(header.created)}  ${row.last.padStart(last)}  ${quoted(header.root)}${open}`);
  }
}

function toJson({ directory, header, lastSeq, logBytes, modified, owner }: SessionGlance): object {
  const { session, root, created, parent } = header;
  return {
    name: basename(directory), directory, session, root, created, modified: new Date(modified).toISOString(), last: lastSeq ?? null, logBytes,
    process: owner?.pid ?? null, ...(parent && { parent }),
  };
}

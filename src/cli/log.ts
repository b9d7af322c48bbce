import type { Command } from 'commander';
import { eventJson, type Event, type EventFilter, type Op } from '../index.ts';
import { Misuse } from './failure.ts';
import { manual } from './manual.ts';
import { seqOption, withFormats, withSession, type SessionOption } from './options.ts';
import { out } from './output.ts';
import { withLog } from './reading.ts';
import { OPS, sentences } from './sentence.ts';

interface Options extends SessionOption {
  readonly actor?: string;
  readonly op?: readonly string[];
  readonly path?: string;
  readonly from?: string;
  readonly to?: string;
  readonly follow?: boolean;
  readonly json?: boolean;
}

/** `palimpsest log`. */
export function log(command: Command): void {
  manual(command, {
    description: 'Prints the events of a session, oldest first: number, time, who, what happened, to which path, and what is known of it. ' +
      'Conditions add up.\n\nIt reads the log alone: beside the program that writes it, and where the root is gone.',
    examples: [
      ['palimpsest log --op miss', 'what was looked for and not there'],
      ["palimpsest log --path 'tests/hidden/**' --op read --op list", 'who opened the hidden tests'],
      ['palimpsest log --follow', 'watch a run from another terminal'],
      ["palimpsest log --json --from 100 | jq -r 'select(.op == \"write\").path'", 'for programs'],
    ],
    more: {
      'Ops': `seen: read, list, stat, readlink, miss\nchanged: ${OPS.slice(OPS.indexOf('write'), OPS.indexOf('run')).join(', ')}\n` +
        `other: ${OPS.slice(OPS.indexOf('run')).join(', ')}`,
    },
  });
  withSession(command)
    .option('--actor <name>', 'events of this actor')
    .option('--op <op>', 'events of this op; may be given several times, or several separated by commas', 
      (op: string, ops: string[] | undefined) => [...ops ?? [], ...op.split(',')])
    .option('--path <glob>', 'events whose path matches; of renames and links either path')
    .option('--from <seq>', 'the first event, by its number')
    .option('--to <seq>', 'the last event, by its number')
    .option('-f, --follow', 'go on with what is written from now on, until --to or Ctrl-C');
  withFormats(command, { json: 'JSON Lines, as in log.jsonl without the crc' });
  command.action((options: Options) => {
    const filter = filterOf(options), line = options.json === true ? eventJson : sentences();
    return withLog(options, async (sessionLog) => {
      if (options.follow !== true) {
        for (const event of sessionLog.events(filter)) out.line(line(event));
        return;
      }
      for await (const batch of sessionLog.follow(filter)) {
        batch.forEach((event: Event) => out.line(line(event)));
        out.flush();
      }
    });
  });
}

function filterOf({ actor, op, path, from, to }: Options): EventFilter {
  const first = seqOption('--from', from), last = seqOption('--to', to);
  const unknown = op?.find((each) => !(OPS as readonly string[]).includes(each));
  if (unknown !== undefined) throw new Misuse(`there is no op "${unknown}"; there are ${OPS.join(', ')}`);
  return {
    ...(actor !== undefined && { actor }), ...(op !== undefined && { op: op as readonly Op[] }), ...(path !== undefined && { path }),
    ...(first !== undefined && { from: first }), ...(last !== undefined && { to: last }),
  };
}

import { InvalidArgumentError, Option, type Command } from 'commander';
import { basename } from 'node:path';
import type { Exports, Omission, Overlay, SessionGlance } from '../index.ts';
import { FAILED, Misuse } from './failure.ts';
import { demandKnown } from './known.ts';
import { manual } from './manual.ts';
import { withMoment, withSession, type TreeOption } from './options.ts';
import { say } from './output.ts';
import { isTerminal } from './paint.ts';
import { placesOf, treePath } from './path.ts';
import { withLog, withTree } from './reading.ts';
import { gather } from './rule-flags.ts';
import { visible } from './text.ts';
import { writtenTo } from './written.ts';

const FORMATS = ['patch', 'git', 'swebench', 'tar', 'session'] as const;
type Format = (typeof FORMATS)[number];

interface Options extends TreeOption {
  readonly output?: string;
  readonly redact?: readonly string[];
  readonly branch?: string;
  readonly per?: 'mark' | 'actor';
  readonly instance?: string;
  readonly model?: string;
}

/** Which options go with which format. */
const OWN: Readonly<Record<Format, readonly (keyof Options)[]>> = {
  patch: ['redact'], git: ['redact', 'branch', 'per'], swebench: ['redact', 'instance', 'model'], tar: ['redact'], session: ['redact'],
};
const SELECTIVE = new Set<Format>(['patch', 'swebench', 'tar']);
const BINARY = new Set<Format>(['git', 'tar', 'session']);

/** `palimpsest export`. */
export function exporting(command: Command): void {
  manual(command, {
    description: 'Writes what a session holds in a format of others, to standard output or a file. Of any size it takes no more memory.\n\n' +
      'What the format has no words for, and what is redacted, is named on standard error. A file that cannot be read is left out, and the exit status is 1.',
    examples: [
      ['palimpsest export patch -o fix.patch', 'the changes, for git apply'],
      ['palimpsest export git | git -C history.git fast-import', 'the history: what was beneath, then a commit for each mark'],
      ['palimpsest export swebench --instance django__django-11099 --model agent-1 >> preds.jsonl', 'a prediction'],
      ["palimpsest export tar --at 'turn 3' | tar -x -C elsewhere", 'the tree as it was at a mark'],
      ['palimpsest export session -o run.tar', 'the session as one file, for palimpsest import'],
    ],
    more: {
      Formats: '  patch     a diff of git\'s, with binary files, modes, renames, symlinks; without owners,\n' +
        '            times, special files, empty directories\n' +
        '  git       a stream for git fast-import: what is beneath, then a commit for each mark\n' +
        '  swebench  a line of JSON: instance_id, model_name_or_path, model_patch\n' +
        '  tar       the whole tree, by POSIX (pax): names, modes, owners, times, links\n' +
        '  session   log and contents in one file; verbs that only read take it as their --session',
    },
  });
  withMoment(withSession(command))
    .argument('<format>', FORMATS.join(', '), (value: string) => {
      if (!(FORMATS as readonly string[]).includes(value)) throw new InvalidArgumentError(`It is one of ${FORMATS.join(', ')}.`);
      return value;
    })
    .argument('[path...]', 'of patch, swebench and tar: only these paths and what is below them')
    .option('-o, --output <file>', 'write to this file, which is there only when it is whole')
    .option('--redact <glob>', 'leave contents of these paths out: a digest stands in for them; as often as wanted', gather)
    .option('--branch <name>', 'of git: the branch to make (default: palimpsest)')
    .addOption(new Option('--per <what>', 'of git: a commit for each mark, or also whenever another actor goes on (default: mark)').choices(['mark', 'actor']))
    .option('--instance <id>', 'of swebench: instance_id (default: the name of the root)')
    .option('--model <name>', 'of swebench: model_name_or_path (default: palimpsest)');
  command.action((format: Format, paths: readonly string[], options: Options) => {
    demandFitting(format, paths, options);
    if (BINARY.has(format) && options.output === undefined && isTerminal) throw new Misuse(`${format} is nothing for a terminal: give a file with -o, or a pipe`);
    if (format === 'session') return exportSession(options);
    return withTree(options, (overlay, session) => writtenTo(options.output, exportOf(format, paths, options, overlay, session)));
  });
}

function demandFitting(format: Format, paths: readonly string[], options: Options): void {
  if (paths.length > 0 && !SELECTIVE.has(format)) throw new Misuse(`${format} is of everything: it takes no paths`);
  if (options.at !== undefined && format === 'session') throw new Misuse('--at does not go with session');
  for (const name of ['redact', 'branch', 'per', 'instance', 'model'] as const) {
    if (options[name] !== undefined && !OWN[format].includes(name)) throw new Misuse(`--${name} does not go with ${format}`);
  }
}

async function exportSession(options: Options): Promise<void> {
  const { packSession } = await import('../index.ts');
  await withLog(options, ({ directory }) => writtenTo(options.output, packSession(directory, options.redact === undefined ? {} : { redact: options.redact })));
}

function exportOf(format: Exclude<Format, 'session'>, given: readonly string[], options: Options, overlay: Overlay, { header }: SessionGlance): Iterable<Uint8Array> {
  const places = placesOf(header), chosen = given.map((path) => treePath(path, places));
  demandKnown(given, chosen, [overlay]);
  const paths = chosen.length === 0 ? {} : { paths: chosen }, redact = options.redact === undefined ? {} : { redact: options.redact };
  const told: Pick<Exports['patch'], 'onOmitted'> = { onOmitted: tell };
  if (format === 'git') {
    const { branch, per } = options, last = overlay.events({ op: ['commit', 'revert'] });
    if (last.next().done !== true) say('palimpsest: the session was committed: its history begins anew behind that, with what is beneath now');
    return overlay.export('git', { ...redact, ...told, ...(branch !== undefined && { branch }), ...(per !== undefined && { per }) });
  }
  if (format === 'swebench') {
    const { instance = basename(places[0].directory), model = 'palimpsest' } = options;
    return overlay.export('swebench', { ...paths, ...redact, ...told, instance, model });
  }
  return overlay.export(format, { ...paths, ...redact, ...told });
}

function tell({ kind, words }: Omission): void {
  say(`palimpsest: left out: ${visible(words)}`);
  if (kind === 'unreadable') process.exitCode = FAILED;
}


import type { Command } from 'commander';
import type { Difference } from '../index.ts';
import { FAILED, Misuse } from './failure.ts';
import { demandKnown } from './known.ts';
import { manual } from './manual.ts';
import { MOMENT, momentOption, withFormats, withSession, type SessionOption } from './options.ts';
import { out, say } from './output.ts';
import { isTerminal, paint } from './paint.ts';
import { writePatch } from './patch.ts';
import { nameField, nulRecord, placesOf, treePath } from './path.ts';
import { withTree } from './reading.ts';
import { diffStat } from './stat.ts';
import { quoted, shownLine, visible } from './text.ts';

interface Options extends SessionOption {
  readonly replay?: true;
  readonly from?: string;
  readonly to?: string;
  readonly patch?: boolean;
  readonly stat?: boolean;
  readonly json?: boolean;
  readonly z?: boolean;
}

/** `palimpsest diff`. */
export function diff(command: Command): void {
  manual(command, {
    description: 'Shows what is different from the directory beneath, as a diff in git\'s manner; each file of a renamed directory is renamed. What git does not ' +
      'keep (directories, special files, owners, times, hard links, permissions) is said in lines that begin with #.\n\n' +
      'Into a file or a pipe it is what git apply takes, binary files included; a terminal is only told that those differ. ' +
      'What no patch can hold (a file that cannot be read, or in a .git directory) is named on standard error; for the former the exit status is 1.',
    examples: [
      ['palimpsest diff', 'everything that changed'],
      ["palimpsest diff --from 'turn 2' --to 'turn 3'", 'what happened between two marks, or two events'],
      ['palimpsest diff --stat', 'how many lines in which files'],
      ['palimpsest diff src test/a.js | less', 'only there'],
      ['palimpsest diff --patch | git -C repo apply', 'do the same to another copy'],
    ],
    more: {
      'Output with --stat -z': 'For each file lines added, a tab, lines removed, a tab, its path and NUL; - for lines that are not counted. ' +
        'Renames are followed by the path they come from and NUL.',
    },
  });
  withSession(command)
    .argument('[path...]', 'only these paths and what is below them')
    .option('--from <moment>', `from how it was then (default: the directory beneath): ${MOMENT}`)
    .option('--to <moment>', 'to how it was then (default: now)')
    .option('--replay', 'from the session alone, over what it has kept of the directory beneath')
    .option('--patch', 'for git apply, even on a terminal: without the lines that begin with #, which go to standard error')
    .option('--stat', 'lines added and removed, file by file');
  withFormats(command, { json: 'JSON Lines: path, what happened to it, lines added and removed, and the diff', z: 'with --stat: records that end with NUL, names as they are' });
  command.action((paths: readonly string[], options: Options) => {
    if (options.z === true && options.stat !== true) throw new Misuse('-z goes with --stat; status -z lists the paths that changed');
    if (options.patch === true && (options.stat === true || options.json === true)) throw new Misuse('--patch goes with neither --stat nor --json');
    return withTree(options, (now, { header }) => {
      // The earlier one first: the later goes on from it, and what is the same in both is known to be.
      const since = options.from === undefined ? undefined : now.at(momentOption(options.from));
      const overlay = options.to === undefined ? since === undefined ? now : now.at(now.head.seq) : now.at(momentOption(options.to));
      const places = placesOf(header), chosen = paths.map((path) => treePath(path, places));
      demandKnown(paths, chosen, since === undefined ? [overlay] : [overlay, since]);
      const found = overlay.differences({ ...(chosen.length === 0 ? undefined : { paths: chosen }), ...(since && { since }) });
      if (options.json === true) for (const difference of found) out.line(JSON.stringify(toJson(difference)));
      else if (options.z === true) for (const difference of found) out.write(toRecord(difference));
      else if (options.stat === true) for (const line of diffStat([...found])) out.line(line);
      else if (options.patch === true) writePatch(found);
      else for (const difference of found) print(difference);
    });
  });
}

function print(difference: Difference): void {
  const { head, hunks, unshown, omitted } = difference;
  for (const { words } of omitted) out.line(paint.dim(`# ${visible(words)}`));
  tellUnreadable(difference);
  if (!isTerminal) {
    for (const bytes of difference.patch()) out.write(bytes);
    return;
  }
  for (const line of head) out.line(paint.bold(line));
  if (unshown !== undefined) out.line(unshown.words);
  for (const { head: at, lines } of hunks) {
    out.line(paint.cyan(at));
    for (const line of lines) out.line(painted(line));
  }
}

function tellUnreadable({ path, omitted }: Difference): void {
  if (!omitted.some(({ kind }) => kind === 'unreadable')) return;
  say(`palimpsest: ${quoted(path)} is in no patch: it cannot be read`);
  process.exitCode = FAILED;
}

function painted(line: string): string {
  const shown = shownLine(Buffer.from(line, 'latin1').toString());
  return line.startsWith('+') ? paint.green(shown) : line.startsWith('-') ? paint.red(shown) : line.startsWith('\\') ? paint.dim(shown) : shown;
}

/** The text of the diff is UTF-8, or base64 where a file's bytes are not. */
function toJson(difference: Difference): object {
  const { path, kind, type, from, omitted, added, removed, unshown } = difference;
  const bytes = Buffer.concat([...difference.patch()]), text = bytes.toString(), isText = Buffer.from(text).equals(bytes);
  return {
    ...nameField('path', path), kind, type, ...nameField('from', from), added, removed, ...(unshown && { unshown: unshown.reason }),
    ...(omitted.length > 0 && { notes: omitted.map(({ words }) => words) }), ...(isText ? { diff: text } : { diff64: bytes.toString('base64') }),
  };
}

function toRecord({ path, from, added, removed, unshown }: Difference): Uint8Array {
  const counts = unshown === undefined ? [String(added), String(removed)] : ['-', '-'];
  return nulRecord(counts, path, ...(from === undefined ? [] : [from]));
}

import type { Command } from 'commander';
import { glance, lowerOf, Overlay } from '../index.ts';
import { differencesOf, patchOf, type Difference } from './difference.ts';
import { FAILED, Misuse } from './failure.ts';
import { manual } from './manual.ts';
import { withFormats, withSession, type SessionOption } from './options.ts';
import { out, say } from './output.ts';
import { isTerminal, paint } from './paint.ts';
import { nameField, nulRecord, placesOf, treePath } from './path.ts';
import { withTree } from './reading.ts';
import { statsAt } from './side.ts';
import { diffStat } from './stat.ts';
import { quoted, shownLine } from './text.ts';

interface Options extends SessionOption {
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
      'What no patch can hold (a file that cannot be read, or of more than 512 MiB) is named on standard error, and the exit status is 1.',
    examples: [
      ['palimpsest diff', 'everything that changed'],
      ['palimpsest diff --stat', 'how many lines in which files'],
      ['palimpsest diff src test/a.js | less', 'only there'],
      ['palimpsest diff | git -C repo apply', 'do the same to another copy'],
    ],
    more: {
      'Output with --stat -z': 'For each file lines added, a tab, lines removed, a tab, its path and NUL; - for lines that are not counted. ' +
        'Renames are followed by the path they come from and NUL.',
    },
  });
  withSession(command)
    .argument('[path...]', 'only these paths and what is below them')
    .option('--stat', 'lines added and removed, file by file');
  withFormats(command, { json: 'JSON Lines: path, what happened to it, lines added and removed, and the diff', z: 'with --stat: records that end with NUL, names as they are' });
  command.action((paths: readonly string[], options: Options) => {
    if (options.z === true && options.stat !== true) throw new Misuse('-z goes with --stat; status -z lists the paths that changed');
    return withTree(options, (overlay, { directory, header }) => {
      const places = placesOf(header), before = beneath(directory), chosen = paths.map((path) => treePath(path, places));
      try {
        demandKnown(paths, chosen, before, overlay);
        const found = differencesOf(overlay, before, chosen);
        if (options.json === true) for (const difference of found) out.line(JSON.stringify(toJson(difference)));
        else if (options.z === true) for (const difference of found) out.write(toRecord(difference));
        else if (options.stat === true) for (const line of diffStat([...found])) out.line(line);
        else for (const difference of found) print(difference);
      } finally {
        before.closeSync();
      }
    });
  });
}

/** The directory beneath as it is now. */
function beneath(session: string): Overlay {
  const lower = lowerOf(glance(session).header);
  if (lower === undefined) throw new Error('the session is about no directory');
  return Overlay.openSync(lower);
}

/** Throws for a path that is neither beneath nor in the overlay, nor a name of anything that changed. */
function demandKnown(paths: readonly string[], chosen: readonly string[], before: Overlay, after: Overlay): void {
  const at = chosen.findIndex((path) => statsAt(after, path) === undefined && statsAt(before, path) === undefined);
  if (at >= 0) throw new Error(`${quoted(paths[at] as string)}: no such path, neither in the session nor in the directory beneath`);
}

function print(difference: Difference): void {
  const { path, notes, head, hunks, unshown } = difference;
  for (const note of notes) out.line(paint.dim(`# ${note}`));
  if (!isTerminal) {
    const patch = patchOf(difference);
    if (patch !== undefined) return out.write(patch);
    out.line(`# ${unshown?.words ?? ''}`);
    say(`palimpsest: ${quoted(path)} is in no patch: it ${unshown?.reason === 'unreadable' ? 'cannot be read' : 'is too large'}`);
    process.exitCode = FAILED;
    return;
  }
  for (const line of head) out.line(paint.bold(line));
  if (unshown !== undefined) out.line(unshown.words);
  for (const { head: at, lines } of hunks) {
    out.line(paint.cyan(at));
    for (const line of lines) out.line(painted(line));
  }
}

function painted(line: string): string {
  const shown = shownLine(Buffer.from(line, 'latin1').toString());
  return line.startsWith('+') ? paint.green(shown) : line.startsWith('-') ? paint.red(shown) : line.startsWith('\\') ? paint.dim(shown) : shown;
}

/** The text of the diff is UTF-8, or base64 where a file's bytes are not. */
function toJson(difference: Difference): object {
  const { path, kind, type, from, notes, added, removed, unshown } = difference, bytes = patchOf(difference);
  const text = bytes?.toString(), isText = bytes === undefined || Buffer.from(text ?? '').equals(bytes);
  return {
    ...nameField('path', path), kind, type, ...nameField('from', from), added, removed, ...(unshown && { unshown: unshown.reason }),
    ...(notes.length > 0 && { notes }), ...(isText ? { diff: text } : { diff64: bytes.toString('base64') }),
  };
}

function toRecord({ path, from, added, removed, unshown }: Difference): Uint8Array {
  const counts = unshown === undefined ? [String(added), String(removed)] : ['-', '-'];
  return nulRecord(counts, path, ...(from === undefined ? [] : [from]));
}

import type { Command } from 'commander';
import { glance, lowerOf, Overlay } from '../index.ts';
import { changeJson } from './change.ts';
import { differencesOf, type Difference } from './difference.ts';
import { manual } from './manual.ts';
import { withFormats, withSession, type SessionOption } from './options.ts';
import { out } from './output.ts';
import { isTerminal, paint } from './paint.ts';
import { isChosen, nulRecord, placesOf, treePath } from './path.ts';
import { withTree } from './reading.ts';
import { diffStat } from './stat.ts';
import { shownLine } from './text.ts';

interface Options extends SessionOption {
  readonly stat?: boolean;
  readonly json?: boolean;
  readonly z?: boolean;
}

/** `palimpsest diff`. */
export function diff(command: Command): void {
  manual(command, {
    description: 'Shows what is different from the directory beneath as a unified diff with git\'s headers. Binary files are named. Directories, owners, times ' +
      'and hard links, which git does not keep, have header lines of their own.',
    examples: [
      ['palimpsest diff', 'everything that changed'],
      ['palimpsest diff --stat', 'how many lines in which files'],
      ['palimpsest diff src test/a.js | less -R', 'only there'],
    ],
    more: {
      'Output with --stat -z': 'For each file lines added, a tab, lines removed, a tab, its path and NUL; - for lines that are not counted. ' +
        'Renames are followed by the path they come from and NUL.',
    },
  });
  withSession(command)
    .argument('[path...]', 'only these paths and what is below them')
    .option('--stat', 'lines added and removed, file by file');
  withFormats(command, { json: 'JSON Lines: the change, lines added and removed, and the diff', z: 'with --stat: records that end with NUL, names as they are' });
  command.action((paths: readonly string[], options: Options) => withTree(options, (overlay, { directory, header }) => {
    const places = placesOf(header), before = beneath(directory), chosen = paths.map((path) => treePath(path, places));
    try {
      const found = differences(overlay, before, chosen);
      if (options.json === true) for (const difference of found) out.line(JSON.stringify(toJson(difference)));
      else if (options.z === true) for (const difference of found) out.write(toRecord(difference));
      else if (options.stat === true) for (const line of diffStat([...found])) out.line(line);
      else for (const difference of found) print(difference);
    } finally {
      before.closeSync();
    }
  }));
}

/** The directory beneath as it is now. */
function beneath(session: string): Overlay {
  const lower = lowerOf(glance(session).header);
  if (lower === undefined) throw new Error('the session is about no directory');
  return Overlay.openSync(lower);
}

function* differences(overlay: Overlay, before: Overlay, chosen: readonly string[]): Generator<Difference> {
  for (const change of overlay.changes()) {
    const { path, from } = change;
    if (isChosen(path, chosen) || (from !== undefined && isChosen(from, chosen))) yield* differencesOf(change, before, overlay);
  }
}

function print({ head, hunks }: Difference): void {
  for (const line of head) out.line(paint.bold(line));
  for (const { head: at, lines } of hunks) {
    out.line(paint.cyan(at));
    for (const line of lines) out.write(isTerminal ? painted(line) + '\n' : Buffer.from(line + '\n', 'latin1'));
  }
}

function painted(line: string): string {
  const shown = shownLine(Buffer.from(line, 'latin1').toString());
  return line.startsWith('+') ? paint.green(shown) : line.startsWith('-') ? paint.red(shown) : line.startsWith('\\') ? paint.dim(shown) : shown;
}

/** The text of the diff is UTF-8, or base64 where a file's bytes are not. */
function toJson({ change, head, hunks, added, removed, unshown }: Difference): object {
  const bytes = Buffer.concat([
    Buffer.from(head.map((line) => line + '\n').join('')),
    ...hunks.map(({ head: at, lines }) => Buffer.from([at, ...lines, ''].join('\n'), 'latin1')),
  ]);
  const text = bytes.toString(), isText = Buffer.from(text).equals(bytes);
  return {
    ...changeJson(change), added, removed, ...(unshown && { unshown: unshown.reason }),
    ...(isText ? { diff: text } : { diff64: bytes.toString('base64') }),
  };
}

function toRecord({ change: { path, from, kind }, added, removed, unshown }: Difference): Uint8Array {
  const counts = unshown === undefined ? [String(added), String(removed)] : ['-', '-'];
  return nulRecord(counts, path, ...(kind === 'rename' && from !== undefined ? [from] : []));
}

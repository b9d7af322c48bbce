import type { Command } from 'commander';
import type { Stats } from 'node:fs';
import { pathFromBytes, type Overlay } from '../index.ts';
import { lookingAt } from './failure.ts';
import { manual } from './manual.ts';
import { withFormats, withMoment, withSession, type TreeOption } from './options.ts';
import { out } from './output.ts';
import { paint } from './paint.ts';
import { fileName, nameField, nulRecord, placesOf, treePath } from './path.ts';
import { withTree } from './reading.ts';
import { quoted } from './text.ts';

interface Options extends TreeOption {
  readonly long?: boolean;
  readonly json?: boolean;
  readonly z?: boolean;
}

interface Entry {
  readonly name: string;
  readonly stats: Stats;
  /** Of a symlink. */
  readonly target: string | undefined;
}

/** `palimpsest ls`. */
export function ls(command: Command): void {
  manual(command, {
    description: 'Lists a directory as the session has it, names sorted by their bytes; of anything else, itself. Listing it this way is not recorded.',
    examples: [
      ['palimpsest ls', 'the working directory, or the root if that lies elsewhere'],
      ['palimpsest ls -l src', 'with mode, owner, size and time'],
      ["palimpsest ls -z src | xargs -0 -n 1 printf '%q\\n'", 'names for a program, whatever is in them'],
    ],
  });
  withMoment(withSession(command))
    .argument('[path]', 'relative to the working directory if that is below the root, else to the root; or absolute')
    .option('-l, --long', 'mode, links, owner, size, time and name');
  withFormats(command, { json: 'JSON Lines: name, type, mode, size, …', z: 'names as they are, each ended by NUL' });
  command.action((path: string | undefined, options: Options) => withTree(options, (overlay, { header }) => {
    const named = treePath(path ?? '.', placesOf(header)), entries = lookingAt(path ?? '.', () => entriesOf(overlay, named));
    if (options.json === true) for (const entry of entries) out.line(JSON.stringify(toJson(entry)));
    else if (options.z === true) for (const { name } of entries) out.write(nulRecord([], name));
    else print(entries, options.long === true);
  }));
}

function entriesOf(overlay: Overlay, path: string): readonly Entry[] {
  const { fs } = overlay, whole = fileName(overlay.mountPoint, path);
  // A link that leads nowhere is listed itself, as any that leads to no directory.
  if (fs.lstatSync(whole) && fs.statSync(whole, { throwIfNoEntry: false })?.isDirectory() !== true) return [entryOf(overlay, whole, path)];
  return fs.readdirSync(whole, { encoding: 'buffer' }).map((bytes) => {
    const name = pathFromBytes(bytes);
    return entryOf(overlay, fileName(overlay.mountPoint, path === '' ? name : `${path}/${name}`), name);
  });
}

function entryOf({ fs }: Overlay, whole: string | Buffer, name: string): Entry {
  const stats = fs.lstatSync(whole) as Stats;
  return { name, stats, target: stats.isSymbolicLink() ? pathFromBytes(fs.readlinkSync(whole, 'buffer')) : undefined };
}

function print(entries: readonly Entry[], isLong: boolean): void {
  const width = (of: (entry: Entry) => string): number => Math.max(0, ...entries.map((entry) => of(entry).length));
  const links = width(({ stats }) => String(stats.nlink)), owner = width(ownerOf), size = width(({ stats }) => String(stats.size));
  for (const entry of entries) {
    const { stats, target } = entry, name = painted(entry) + (isLong && target !== undefined ? ' -> ' + quoted(target) : '');
    if (!isLong) out.line(name);
    else {
      out.line(`${modeText(stats.mode)} ${String(stats.nlink).padStart(links)} ${ownerOf(entry).padEnd(owner)} ` +
        `${String(stats.size).padStart(size)} ${stats.mtime.toISOString().slice(0, 19)}Z ${name}`);
    }
  }
}

function painted({ name, stats }: Entry): string {
  const shown = quoted(name);
  if (stats.isDirectory()) return paint.blue(shown);
  if (stats.isSymbolicLink()) return paint.cyan(shown);
  return stats.isFile() && (stats.mode & 0o111) !== 0 ? paint.green(shown) : shown;
}

function ownerOf({ stats }: Entry): string {
  return `${stats.uid}:${stats.gid}`;
}

const S_IFMT = 0o170000;
/** By the bits of S_IFMT: the letter of ls(1), and the word of the log. */
const TYPES: Readonly<Record<number, readonly [letter: string, word: string]>> = {
  0o100000: ['-', 'file'], 0o040000: ['d', 'directory'], 0o120000: ['l', 'symlink'], 0o010000: ['p', 'fifo'],
  0o140000: ['s', 'socket'], 0o060000: ['b', 'block'], 0o020000: ['c', 'character'],
};

/** `-rwsr-xr-t`, as ls(1) shows it. */
function modeText(mode: number): string {
  const letters = 'rwxrwxrwx'.split('').map((letter, at) => (mode & (0o400 >> at)) === 0 ? '-' : letter);
  for (const [bit, at, letter] of [[0o4000, 2, 's'], [0o2000, 5, 's'], [0o1000, 8, 't']] as const) {
    if ((mode & bit) !== 0) letters[at] = letters[at] === 'x' ? letter : letter.toUpperCase();
  }
  return (TYPES[mode & S_IFMT]?.[0] ?? '?') + letters.join('');
}

function toJson({ name, stats, target }: Entry): object {
  const { mode, nlink, uid, gid, size, mtime } = stats;
  return {
    ...nameField('name', name), type: TYPES[mode & S_IFMT]?.[1], mode: (mode & 0o7777).toString(8), nlink, uid, gid, size,
    mtime: mtime.toISOString(), ...nameField('target', target),
  };
}

import { spawnSync } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import type { Attr } from '../core/attr.ts';
import { childOf, fromBytes, nameOf, parentOf, toBytes, type TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { codeOf } from './fault.ts';
import type { LowerEntry, Xattrs } from './lower.ts';
import type { Walker } from './walker.ts';

/** A file without any: nearly every one. */
export const NO_XATTRS: Xattrs = new Map();

/**
 * What of a lower file is told: what its users keep with it. Not `security.*` (no file of the lower gives a capability to what
 * runs over it) and not `system.*` (access lists are not looked at); so nothing has to be asked of the lower for those
 * two, which a kernel and `ls` ask for all the time.
 */
const TOLD = '^(user|trusted)\\.';

/** Files asked for at once: whoever asks for one asks for its neighbours next, and starting the tool costs as much as 300 files. */
const BATCH_FILES = 1024;
/** Files whose attributes are remembered; about 200 bytes each, as most have none. */
const REMEMBERED_FILES = 100_000;
/** A file that changed this shortly before it was asked may change again and look the same. */
const RACY_MS = 20;
/** Most that the tool may have to say of one batch. */
const OUTPUT_BYTES = 256 * 1024 * 1024;
/** How long the tool may take before it is given up, for the whole of its batch. */
const PATIENCE_MS = 10_000;
/** xargs(1): the tool was not found. */
const NO_TOOL = 127;
const O_PATH = 0o10000000;
const DIRECTORY_FLAGS = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** The directory's descriptor as the tool has it: below it, no symlink is followed. */
const THERE = '/proc/self/fd/3/';

/** Everything that says whether a file's attributes can have changed. */
type Print = Pick<Attr, 'dev' | 'ino' | 'ctime'>;

/**
 * Extended attributes of a directory lower, by the tool `getfattr`, since node has no call for them. It is given a
 * descriptor of the directory, so containment is the walker's; it is asked for many neighbours at once, and what it said of a
 * file is good until the file's ctime moves.
 */
export class LowerXattrs {
  private readonly walker: Walker;
  private readonly clock: () => number;
  private readonly known = new Map<TreePath, { readonly print: Print; readonly xattrs: Xattrs }>();
  private isMissing = false;

  constructor(walker: Walker, clock: () => number) {
    this.walker = walker;
    this.clock = clock;
  }

  /** Those of the file at `path`, which looks as `attr` says; `undefined` where the tool is missing. */
  of(path: TreePath, attr: Print): Xattrs | undefined {
    const entry = this.known.get(path);
    if (entry !== undefined && isSame(entry.print, attr)) return entry.xattrs;
    if (this.isMissing) return undefined;
    const found = this.ask(path, attr, BATCH_FILES);
    return found !== undefined || this.isMissing ? found : this.ask(path, attr, 1);
  }

  private ask(path: TreePath, attr: Print, limit: number): Xattrs | undefined {
    const directory = parentOf(path), asked = path === '' ? '.' : nameOf(path);
    const settled = BigInt(Math.floor(this.clock()) - RACY_MS) * 1_000_000n;
    const prints = new Map<string, Print>([[asked, attr]]);
    if (path !== '' && limit > 1) this.addNeighbours(prints, directory, asked, limit);
    const found = this.walker.withDirectory(directory, (place) => this.run(place, [...prints.keys()]));
    // The directory is gone by now, and the file with it.
    if (typeof found === 'string') return NO_XATTRS;
    if (found === undefined) return undefined;
    for (const [name, print] of prints) {
      if (print.ctime < settled) this.keep(name === '.' ? directory : childOf(directory, name), print, found.get(name) ?? NO_XATTRS);
    }
    return found.get(asked) ?? NO_XATTRS;
  }

  /** Those after the name asked for that are not known, in the order in which a directory is gone through. */
  private addNeighbours(prints: Map<string, Print>, directory: TreePath, asked: string, limit: number): void {
    const entries = this.listed(directory), from = entries.findIndex(({ name }) => name === asked);
    for (const { name } of entries.slice(from + 1, from + limit)) {
      const path = childOf(directory, name);
      if (this.known.has(path)) continue;
      const attr = this.walker.lstat(path);
      if (typeof attr !== 'string') prints.set(name, attr);
    }
  }

  /** Nothing of a directory that may be searched and not listed. */
  private listed(directory: TreePath): readonly LowerEntry[] {
    try {
      return this.walker.list(directory);
    } catch (error) {
      if (codeOf(error) === 'EACCES') return [];
      throw error;
    }
  }

  private keep(path: TreePath, print: Print, xattrs: Xattrs): void {
    if (this.known.size >= REMEMBERED_FILES && !this.known.has(path)) {
      const oldest = this.known.keys().next();
      if (!oldest.done) this.known.delete(oldest.value);
    }
    this.known.set(path, { print: { dev: print.dev, ino: print.ino, ctime: print.ctime }, xattrs });
  }

  /** By name, of those that have any; `undefined` where the tool is missing, or had more to say of several than is sensible. */
  private run(place: string | Buffer, names: readonly string[]): ReadonlyMap<string, Xattrs> | undefined {
    const fd = openSync(place, DIRECTORY_FLAGS);
    try {
      const input = Buffer.concat(names.map((name) => Buffer.concat([Buffer.from(THERE), toBytes(name), Buffer.of(0)])));
      // By xargs: names may be any bytes, and more than fit into one command line.
      const { error, status, stdout } = spawnSync('xargs',
        ['-0', 'getfattr', '-h', '-d', '-m', TOLD, '-e', 'base64', '--absolute-names', '--'],
        { input, stdio: ['pipe', 'pipe', 'ignore', fd], maxBuffer: OUTPUT_BYTES, timeout: PATIENCE_MS, env: { ...process.env, LC_ALL: 'C' } });
      const { code } = (error ?? {}) as NodeJS.ErrnoException;
      this.isMissing = code === 'ENOENT' || status === NO_TOOL;
      if (this.isMissing || (code === 'ENOBUFS' && names.length > 1)) return undefined;
      if (error !== undefined) throw Refusal.of(error);
      return parseXattrs(stdout.toString('latin1'), THERE);
    } finally {
      closeSync(fd);
    }
  }
}

/**
 * Attributes by file, of the output of `getfattr -d -e base64 --absolute-names` (as latin1): `# file: …`, then a line `name=0sBASE64` for
 * each attribute, then an empty one; what could end a line stands there as `\ooo`. Only of files whose name begins with `place`, by
 * what comes after that.
 */
export function parseXattrs(output: string, place: string): Map<string, Xattrs> {
  const files = new Map<string, Xattrs>(), header = `# file: ${place}`;
  let xattrs = new Map<string, string>();
  for (const line of output.split('\n')) {
    if (line.startsWith(header)) {
      files.set(unquoted(line.slice(header.length)), xattrs = new Map());
      continue;
    }
    const cut = line.indexOf('=');
    if (cut > 0) xattrs.set(unquoted(line.slice(0, cut)), line.slice(cut + 1).replace(/^0s/, ''));
  }
  return files;
}

function unquoted(text: string): string {
  const bytes = text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
  return fromBytes(Buffer.from(bytes, 'latin1'));
}

function isSame(a: Print, b: Print): boolean {
  return a.ctime === b.ctime && a.ino === b.ino && a.dev === b.dev;
}

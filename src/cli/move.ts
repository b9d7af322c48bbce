import { pathFromBytes, type Change, type ChangeKind, type Overlay } from '../index.ts';
import { fileName } from './path.ts';
import { statsAt } from './side.ts';

/**
 * What became of one path, as git has it. The change list has one row for a renamed directory; git, which knows files alone, wants each
 * file of it, and knows no rename onto what was there before: that is a change there, and a deletion here.
 */
export interface Move {
  /** Where it was in the directory beneath; `undefined` for what is new. */
  readonly old: string | undefined;
  /** Where it is now; `undefined` for what is gone. */
  readonly now: string | undefined;
  /** Whether the content may be another one. */
  readonly content: boolean;
  /** The row of the change list that says no more and no less than this does. */
  readonly row: Change | undefined;
}

/** Kinds of a row in which a path has content of its own that may differ from what is beneath. */
const OTHER_CONTENT = new Set<ChangeKind>(['create', 'update', 'delete', 'type', 'link']);

/** The rows of a change list from `before` (the directory beneath) to `after` as moves, sorted by path. */
export function movesOf(changes: readonly Change[], before: Overlay, after: Overlay): readonly Move[] {
  const rows = new Map(changes.filter(({ kind }) => kind !== 'delete').map((row) => [row.path as string, row]));
  const moves = new Moves(before);
  for (const row of changes) {
    const { kind, path, from, origin = path } = row;
    if (kind === 'create' || kind === 'link') moves.add({ old: undefined, now: path, content: true, row });
    else if (kind === 'delete') moves.add({ old: origin, now: undefined, content: true, row });
    else if (kind === 'type') {
      moves.add({ old: origin, now: undefined, content: true, row });
      moves.add({ old: undefined, now: path, content: true, row });
    } else if (kind === 'rename') {
      moves.add({ old: from, now: path, content: row.type === 'symlink' || row.before === undefined || row.before !== row.after, row });
      if (row.type === 'directory') for (const child of carried(after, rows, from ?? path, path)) moves.add(child);
    } else moves.add({ old: origin, now: path, content: OTHER_CONTENT.has(kind), row });
  }
  for (const { kind, type, from } of changes) if (kind === 'rename' && type === 'directory' && from !== undefined) moves.addLost(from);
  return moves.settled();
}

/** What went with a renamed directory and is no row of its own. */
function* carried(after: Overlay, rows: ReadonlyMap<string, Change>, from: string, to: string): Generator<Move> {
  for (const name of namesIn(after, to)) {
    const old = `${from}/${name}`, now = `${to}/${name}`, row = rows.get(now);
    if (row !== undefined && (OTHER_CONTENT.has(row.kind) && row.kind !== 'update' || row.kind === 'rename')) continue;
    if (statsAt(after, now)?.isDirectory() === true) yield* carried(after, rows, old, now);
    else if (row === undefined) yield { old, now, content: hasOtherNames(after, now) || kindOf(after, now) === 'symlink', row: undefined };
  }
}

class Moves {
  private readonly before: Overlay;
  private readonly all = new Set<Move>();
  private readonly byOld = new Map<string, Set<Move>>();
  private files: readonly string[] | undefined = undefined;

  constructor(before: Overlay) {
    this.before = before;
  }

  add(move: Move): void {
    this.all.add(move);
    if (move.old === undefined) return;
    const others = this.byOld.get(move.old);
    if (others === undefined) this.byOld.set(move.old, new Set([move]));
    else others.add(move);
  }

  /** What a renamed directory had and did not take along is gone: its new name has something else there. */
  addLost(directory: string): void {
    const taken = this.taken();
    for (const path of filesOf(this.before, directory)) {
      if (!this.byOld.has(path) && !taken.has(path)) this.add({ old: path, now: undefined, content: true, row: undefined });
    }
  }

  settled(): readonly Move[] {
    // A rename that is taken apart frees no name: another one that counted on it is looked at again.
    for (let changed = true; changed;) {
      changed = false;
      for (const move of [...this.all]) changed = this.settle(move) || changed;
      changed = this.addOtherNames() || changed;
    }
    const key = ({ old, now }: Move): string => now ?? old ?? '';
    return [...this.all].sort((a, b) => key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : Number(a.now !== undefined) - Number(b.now !== undefined));
  }

  /**
   * What one name of a file shows, its other names show too; the change list knows those that something was done to. Whether there were any
   * that nobody had thought of.
   */
  private addOtherNames(): boolean {
    const several = [...this.byOld.keys()].filter((old) => hasOtherNames(this.before, old));
    if (several.length === 0) return false;
    const wanted = new Set(several.map((old) => keyOf(this.before, old))), taken = this.taken();
    let found = false;
    for (const path of this.filesBefore()) {
      if (this.byOld.has(path) || taken.has(path) || !hasOtherNames(this.before, path) || !wanted.has(keyOf(this.before, path))) continue;
      this.add({ old: path, now: path, content: true, row: undefined });
      found = true;
    }
    return found;
  }

  private taken(): ReadonlySet<string | undefined> {
    return new Set([...this.all].map(({ now }) => now));
  }

  private filesBefore(): readonly string[] {
    return this.files ??= [...filesOf(this.before, '')];
  }

  /** Makes a change of what comes to a name that is taken beneath; whether there was anything to do. */
  private settle(move: Move): boolean {
    const { old, now } = move;
    if (now === undefined || old === now) return false;
    const there = kindOf(this.before, now);
    if (there === undefined) return false;
    const leaving = [...this.byOld.get(now) ?? []];
    if (leaving.some((each) => each.now !== undefined)) return false;
    // The row of a change of type stands for both halves, which git has apart as well.
    const type = old === undefined ? undefined : kindOf(this.before, old);
    const isSame = old === undefined ? move.row?.kind !== 'type' && move.row?.type === there : type === there;
    if (!isSame) {
      if (leaving.length > 0) return false;
      this.add({ old: now, now: undefined, content: true, row: undefined });
      return true;
    }
    for (const each of [move, ...leaving]) this.remove(each);
    this.add({ old: now, now, content: true, row: undefined });
    if (old !== undefined) this.add({ old, now: undefined, content: true, row: undefined });
    return true;
  }

  private remove(move: Move): void {
    this.all.delete(move);
    if (move.old !== undefined) this.byOld.get(move.old)?.delete(move);
  }
}

/** What git could hold of what is at `path`, which is not to be reached through a symlink. */
function kindOf(overlay: Overlay, path: string): 'file' | 'symlink' | undefined {
  for (let slash = path.indexOf('/'); slash >= 0; slash = path.indexOf('/', slash + 1)) {
    if (statsAt(overlay, path.slice(0, slash))?.isDirectory() !== true) return undefined;
  }
  const stats = statsAt(overlay, path);
  return stats?.isFile() === true ? 'file' : stats?.isSymbolicLink() === true ? 'symlink' : undefined;
}

function hasOtherNames(overlay: Overlay, path: string): boolean {
  const stats = statsAt(overlay, path);
  return stats?.isFile() === true && stats.nlink > 1;
}

function keyOf({ fs, mountPoint }: Overlay, path: string): string {
  const { dev, ino } = fs.lstatSync(fileName(mountPoint, path), { bigint: true });
  return `${dev}:${ino}`;
}

/** All paths at and below `directory` that are no directories; without what may not be listed. */
function* filesOf(overlay: Overlay, directory: string): Generator<string> {
  for (const name of namesIn(overlay, directory)) {
    const path = directory === '' ? name : `${directory}/${name}`;
    if (statsAt(overlay, path)?.isDirectory() === true) yield* filesOf(overlay, path);
    else yield path;
  }
}

function namesIn({ fs, mountPoint }: Overlay, directory: string): string[] {
  try {
    return fs.readdirSync(fileName(mountPoint, directory), { encoding: 'buffer' }).map((bytes) => pathFromBytes(bytes));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EACCES') return [];
    throw error;
  }
}

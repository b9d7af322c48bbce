import { PERMISSION_BITS } from '../core/attr.ts';
import type { TreePath } from '../core/path.ts';
import { gitName } from './git-name.ts';
import type { Side } from './side.ts';

/** Something that changed and that git has no way to say, or is not to be told. */
export interface Omission {
  readonly path: TreePath;
  /**
   * `redacted`, `unreadable`, `repository` (a path in a `.git` directory, which git refuses): the content is left out; the rest: the file is
   * there, but for that. `directory`: one without a file in it.
   */
  readonly kind: 'redacted' | 'unreadable' | 'repository' | 'directory' | 'special' | 'link' | 'mode' | 'owner' | 'times' | 'xattr';
  /** For a reader, in one line. */
  readonly words: string;
}

/** Modes that say no more than git does, by a usual umask. */
const USUAL_MODES: ReadonlySet<number> = new Set([0o644, 0o755, 0o664, 0o775]);

/** What git has no words for of a change between two sides; `isCarried`: files in a directory say that it is there, or gone. */
export function* omissionsOf(path: TreePath, old: Side | undefined, now: Side | undefined, { isCarried, link }: { isCarried: boolean; link: TreePath | undefined }): Generator<Omission> {
  const name = path === '' ? '.' : gitName(path), side = (now ?? old) as Side, { type } = side;
  const omit = (kind: Omission['kind'], words: string): Omission => ({ path, kind, words });
  if (link !== undefined) yield omit('link', `hard link ${name} = ${gitName(link)}`);
  if (!isGits(type)) {
    const kind = type === 'directory' ? 'directory' : 'special';
    if (old === undefined && !isCarried) yield omit(kind, `new ${type} ${name} (mode ${octal(side)})`);
    else if (now === undefined && !isCarried) yield omit(kind, `deleted ${type} ${name}`);
    else if (old !== undefined && now !== undefined && old.path !== now.path) yield omit(kind, `renamed ${type} ${gitName(old.path)} → ${name}`);
  }
  if (now === undefined) return;
  if (old === undefined) {
    if ((type === 'file' || isCarried) && !USUAL_MODES.has(permissionsOf(now))) yield omit('mode', `mode of ${name}: ${octal(now)}`);
    return;
  }
  if (octal(old) !== octal(now) && type !== 'symlink' && (!isGits(type) || gitMode(old) === gitMode(now) || !USUAL_MODES.has(permissionsOf(now)))) {
    yield omit('mode', `mode of ${name}: ${octal(old)} → ${octal(now)}`);
  }
  if (ownerOf(old) !== ownerOf(now)) yield omit('owner', `owner of ${name}: ${ownerOf(old)} → ${ownerOf(now)}`);
  if (now.spot.node?.timesSet === true && old.attr.mtime !== now.attr.mtime) yield omit('times', `time of ${name}: ${timeOf(old)} → ${timeOf(now)}`);
  if (now.spot.node?.xattrs !== old.spot.node?.xattrs && old.xattrs() !== now.xattrs()) yield omit('xattr', `extended attributes of ${name}`);
}

/** Whether git keeps such things. */
export function isGits(type: Side['type']): boolean {
  return type === 'file' || type === 'symlink';
}

/** The mode that git keeps of a file: whether it is executable. */
export function gitMode({ type, attr }: Pick<Side, 'type' | 'attr'>): string {
  return type === 'symlink' ? '120000' : (attr.mode & 0o100) === 0 ? '100644' : '100755';
}

function permissionsOf({ attr }: Side): number {
  return attr.mode & PERMISSION_BITS;
}

function octal(side: Side): string {
  return permissionsOf(side).toString(8);
}

function ownerOf({ attr }: Side): string {
  return `${attr.uid}:${attr.gid}`;
}

function timeOf({ attr }: Side): string {
  return new Date(Number(attr.mtime / 1_000_000n)).toISOString();
}

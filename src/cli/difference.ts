import { createHash } from 'node:crypto';
import type { Change, ChangeKind, Overlay } from '../index.ts';
import { binaryPatch } from './binary.ts';
import { countLines, hunksOf, type Hunk } from './hunk.ts';
import { movesOf, type Move } from './move.ts';
import { isChosen } from './path.ts';
import { sideOf, type Side, type Unshown } from './side.ts';
import { quoted } from './text.ts';

/**
 * What became of a path, as git would show it. What git has no words for (directories, special files, owners, times, links, attributes,
 * permissions beyond execution) is in notes, which stand between the diffs and mean nothing to whatever reads those.
 */
export interface Difference {
  readonly path: string;
  readonly kind: ChangeKind;
  readonly type: Side['type'];
  readonly from: string | undefined;
  /** Lines without `#` and newline. */
  readonly notes: readonly string[];
  /** Lines before the hunks, without newlines; none where git would show nothing. */
  readonly head: readonly string[];
  readonly hunks: readonly Hunk[];
  readonly added: number;
  readonly removed: number;
  readonly unshown: Hidden | undefined;
}

/** A change of content that is not shown as lines. */
interface Hidden {
  readonly reason: Unshown['reason'];
  /** Bytes before and after. */
  readonly before: number;
  readonly after: number;
  /** What a reader is told. */
  readonly words: string;
  /** What git is told, without newlines; `undefined` where a content cannot be read, or is too large. */
  patch(): Iterable<string> | undefined;
}

/** What is different in `after` from `before` (the directory beneath) at and below the paths that are `chosen`; all where none is. */
export function* differencesOf(after: Overlay, before: Overlay, chosen: readonly string[]): Generator<Difference> {
  for (const move of movesOf(after.changes(), before, after)) {
    const { old, now } = move;
    if (![old, now].some((path) => path !== undefined && isChosen(path, chosen))) continue;
    const difference = differenceOf(move, before, after);
    if (difference !== undefined && difference.notes.length + difference.head.length > 0) yield difference;
  }
}

/** How `move` shows between `before` (the directory beneath) and `after`; `undefined` where nothing is left of it. */
function differenceOf({ old: from, now: to, content, row }: Move, before: Overlay, after: Overlay): Difference | undefined {
  const old = from === undefined ? undefined : sideOf(before, from, { content });
  const now = to === undefined ? undefined : sideOf(after, to, { content });
  const path = to ?? from ?? '', type = (now ?? old)?.type;
  if (type === undefined) return undefined;
  const isMoved = old !== undefined && now !== undefined && from !== to;
  const known = {
    path, type, kind: isMoved ? 'rename' : old === undefined ? 'create' : now === undefined ? 'delete' : row?.kind ?? 'update',
    from: isMoved ? from : undefined, notes: notesOf(path, isMoved ? from : undefined, row, old, now),
  } satisfies Partial<Difference>;
  const isSame = !isMoved && old !== undefined && now !== undefined && gitMode(old) === gitMode(now) && hasSameContent(old, now);
  if (!isGits(type) || isSame) {
    return { ...known, head: [], hunks: [], added: 0, removed: 0, unshown: undefined };
  }
  const names = { old: quoted(`a/${from ?? path}`), now: quoted(`b/${to ?? path}`) };
  return { ...known, ...shown(names, old, now, [`diff --git ${names.old} ${names.now}`, ...headOf(known.from, path, old, now)]) };
}

/**
 * The difference as git takes it, names and contents as the bytes they are; empty where git keeps nothing of it, `undefined` where a
 * content cannot be read, or is too large.
 */
export function patchOf({ head, hunks, unshown }: Difference): Buffer | undefined {
  const patch = unshown === undefined ? [] : unshown.patch();
  if (patch === undefined) return undefined;
  return Buffer.concat([
    Buffer.from([...head, ...patch].map((line) => line + '\n').join('')),
    ...hunks.map(({ head: at, lines }) => Buffer.from([at, ...lines, ''].join('\n'), 'latin1')),
  ]);
}

function shown(names: { old: string; now: string }, old: Side | undefined, now: Side | undefined, head: string[]):
    Pick<Difference, 'head' | 'hunks' | 'added' | 'removed' | 'unshown'> {
  const { content: from = '' } = old ?? {}, { content: to = '' } = now ?? {};
  const end = old !== undefined && now !== undefined && gitMode(old) === gitMode(now) ? ' ' + gitMode(now) : '';
  if (typeof from !== 'string' || typeof to !== 'string') {
    return { head, hunks: [], added: 0, removed: 0, unshown: hidden(names, { old, now, end }) };
  }
  const hunks = hunksOf(from, to);
  // Of a symlink git has to be told that it is one, which only this line does: what comes in its place may be a directory.
  if (from !== to || old === undefined || now === undefined || now.type === 'symlink') {
    head.push(`index ${blobId(old, Buffer.from(from, 'latin1')).slice(0, 7)}..${blobId(now, Buffer.from(to, 'latin1')).slice(0, 7)}${end}`);
  }
  if (hunks.length > 0) {
    head.push(`--- ${old === undefined ? '/dev/null' : tabbed(names.old)}`, `+++ ${now === undefined ? '/dev/null' : tabbed(names.now)}`);
  }
  return { head, hunks, ...countLines(hunks), unshown: undefined };
}

function hidden(names: { old: string; now: string }, { old, now, end }: { old: Side | undefined; now: Side | undefined; end: string }): Hidden {
  const { content: from = '' } = old ?? {}, { content: to = '' } = now ?? {};
  const reasons = [from, to].flatMap((each) => typeof each === 'string' ? [] : [each.reason]);
  const reason = reasons.find((each) => each !== 'binary') ?? 'binary';
  const what = { binary: 'Binary files', large: 'Large files', unreadable: 'Files that cannot be read,' }[reason];
  return {
    reason, before: old?.size ?? 0, after: now?.size ?? 0,
    words: `${what} ${old === undefined ? '/dev/null' : names.old} and ${now === undefined ? '/dev/null' : names.now} differ`,
    patch() {
      const was = bytesOf(from), is = bytesOf(to);
      if (was === undefined || is === undefined) return undefined;
      return withIndex(`index ${blobId(old, was)}..${blobId(now, is)}${end}`, was, is);
    },
  };
}

function* withIndex(index: string, before: Buffer, after: Buffer): Generator<string> {
  if (before.equals(after)) return;
  yield index;
  yield* binaryPatch(before, after);
}

function hasSameContent({ content: from }: Side, { content: to }: Side): boolean {
  if (typeof from === 'string' || typeof to === 'string') return from === to;
  return from.reason === 'binary' && to.reason === 'binary' && from.bytes()?.equals(to.bytes() as Buffer) === true;
}

function bytesOf(content: string | Unshown): Buffer | undefined {
  return typeof content === 'string' ? Buffer.from(content, 'latin1') : content.bytes();
}

/** Git's name for a content; zeros for none. */
function blobId(side: Side | undefined, content: Buffer): string {
  if (side === undefined) return '0'.repeat(40);
  return createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex');
}

/** Git's way to end a name that has a space in it, so that what follows cannot be taken for a time. */
function tabbed(name: string): string {
  return name.includes(' ') ? name + '\t' : name;
}

/** Git's extended header lines. */
function headOf(from: string | undefined, path: string, old: Side | undefined, now: Side | undefined): string[] {
  if (old === undefined || now === undefined) {
    return [`${now === undefined ? 'deleted' : 'new'} file mode ${gitMode((now ?? old) as Side)}`];
  }
  const lines: string[] = [];
  if (gitMode(old) !== gitMode(now)) lines.push(`old mode ${gitMode(old)}`, `new mode ${gitMode(now)}`);
  if (from !== undefined) {
    if (old.content === now.content) lines.push('similarity index 100%');
    lines.push(`rename from ${quoted(from)}`, `rename to ${quoted(path)}`);
  }
  return lines;
}

function notesOf(path: string, from: string | undefined, row: Change | undefined, old: Side | undefined, now: Side | undefined): string[] {
  const notes: string[] = [], name = path === '' ? '.' : quoted(path);
  const side = (now ?? old) as Side, what = `${side.type} ${name}`;
  if (row?.kind === 'link') notes.push(`hard link ${name} = ${quoted(row.from ?? '')}`);
  else if (!isGits(side.type)) {
    if (old === undefined) notes.push(`new ${what} (mode ${octal(side)})`);
    else if (now === undefined) notes.push(`deleted ${what}`);
    else if (from !== undefined) notes.push(`renamed ${side.type} ${quoted(from)} → ${name}`);
  } else if (old === undefined && side.type === 'file' && !USUAL_MODES.has(side.mode)) notes.push(`mode of ${name}: ${octal(side)}`);
  if (old === undefined || now === undefined) return notes;
  if (old.mode !== now.mode && now.type !== 'symlink' && (!isGits(now.type) || gitMode(old) === gitMode(now) || !USUAL_MODES.has(now.mode))) {
    notes.push(`mode of ${name}: ${octal(old)} → ${octal(now)}`);
  }
  if (old.owner !== now.owner) notes.push(`owner of ${name}: ${old.owner} → ${now.owner}`);
  if (row?.kind === 'times') notes.push(`time of ${name}: ${old.mtime} → ${now.mtime}`);
  if (row?.kind === 'xattr' || row?.xattrs !== undefined) notes.push(`extended attributes of ${name}`);
  return notes;
}

/** Modes that say no more than git does, by a usual umask. */
const USUAL_MODES: ReadonlySet<number> = new Set([0o644, 0o755, 0o664, 0o775]);

/** Whether git keeps such things. */
function isGits(type: Side['type']): boolean {
  return type === 'file' || type === 'symlink';
}

/** The mode that git keeps of a file: whether it is executable. */
function gitMode({ type, mode }: Side): string {
  return type === 'symlink' ? '120000' : (mode & 0o100) === 0 ? '100644' : '100755';
}

function octal({ mode }: Pick<Side, 'mode'>): string {
  return mode.toString(8);
}

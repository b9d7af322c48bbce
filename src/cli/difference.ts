import { createHash } from 'node:crypto';
import type { Change, Overlay } from '../index.ts';
import { countLines, hunksOf, type Hunk } from './hunk.ts';
import { sideOf, type Side, type Unshown } from './side.ts';
import { quoted } from './text.ts';

/**
 * A change as git would show it. Git knows no directories, owners and times; for these there are header lines in the same
 * manner, so that nothing which changed is left out.
 */
export interface Difference {
  readonly change: Change;
  /** Lines before the hunks, without newlines. */
  readonly head: readonly string[];
  readonly hunks: readonly Hunk[];
  readonly added: number;
  readonly removed: number;
  /** Bytes before and after of a file whose lines are not shown. */
  readonly unshown: { readonly reason: Unshown['reason']; readonly before: number; readonly after: number } | undefined;
}

/** What a change is, between `before` (the directory beneath) and `after`. A change of type is two: what went, what came. */
export function differencesOf(change: Change, before: Overlay, after: Overlay): readonly Difference[] {
  const { kind, path, from, origin } = change;
  const content = isContentOther(change);
  const old = kind === 'create' || kind === 'link' ? undefined : sideOf(before, from ?? origin ?? path, { content });
  const now = kind === 'delete' ? undefined : sideOf(after, path, { content });
  if (old !== undefined && now !== undefined && old.type !== now.type) {
    return [differenceOf(change, old, undefined), differenceOf(change, undefined, now)];
  }
  return [differenceOf(change, old, now)];
}

function differenceOf(change: Change, old: Side | undefined, now: Side | undefined): Difference {
  const { path } = change, was = change.kind === 'link' ? path : change.from ?? path;
  const slash = (now ?? old)?.type === 'directory' ? '/' : '';
  const names = { old: quoted(`a/${was}${slash}`), now: quoted(`b/${path}${slash}`) };
  const head = [`diff --git ${names.old} ${names.now}`, ...headOf(change, old, now)];
  const { content: from = '' } = old ?? {}, { content: to = '' } = now ?? {};
  if (typeof from !== 'string' || typeof to !== 'string') {
    const { reason } = typeof from === 'string' ? to as Unshown : from;
    const words = { binary: 'Binary files', large: 'Large files', unreadable: 'Files that cannot be read,' }[reason];
    const line = `${words} ${old === undefined ? '/dev/null' : names.old} and ${now === undefined ? '/dev/null' : names.now} differ`;
    return { change, head: [...head, line], hunks: [], added: 0, removed: 0, unshown: { reason, before: old?.size ?? 0, after: now?.size ?? 0 } };
  }
  const hunks = hunksOf(from, to);
  if (from !== to) head.push(`index ${blobId(old, from)}..${blobId(now, to)}${old !== undefined && now !== undefined && gitMode(old) === gitMode(now) ? ' ' + gitMode(now) : ''}`);
  if (hunks.length > 0) {
    head.push(`--- ${old === undefined ? '/dev/null' : tabbed(names.old)}`, `+++ ${now === undefined ? '/dev/null' : tabbed(names.now)}`);
  }
  return { change, head, hunks, ...countLines(hunks), unshown: undefined };
}

/** The first digits of git's name for a content. */
function blobId(side: Side | undefined, content: string): string {
  if (side === undefined) return '0000000';
  return createHash('sha1').update(`blob ${content.length}\0`).update(content, 'latin1').digest('hex').slice(0, 7);
}

/** Git's way to end a name that has a space in it, so that what follows cannot be taken for a time. */
function tabbed(name: string): string {
  return name.includes(' ') ? name + '\t' : name;
}

/** Whether the change is one of content, or may be: other versions, or one that is not known. */
function isContentOther({ kind, before, after }: Change): boolean {
  if (kind === 'rename') return before === undefined || before !== after;
  return kind === 'create' || kind === 'update' || kind === 'delete' || kind === 'type';
}

/** Git's extended header lines, and ours. */
function headOf({ kind, path, from, before, after }: Change, old: Side | undefined, now: Side | undefined): string[] {
  if (old === undefined && now === undefined) return ['gone meanwhile'];
  if (kind === 'link') return [`hard link from ${quoted(from ?? '')}`, `hard link to ${quoted(path)}`];
  if (old === undefined || now === undefined) {
    const side = (now ?? old) as Side, verb = now === undefined ? 'deleted' : 'new';
    return [side.type === 'file' || side.type === 'symlink' ? `${verb} file mode ${gitMode(side)}` : `${verb} ${side.type} mode ${octal(side)}`];
  }
  const lines: string[] = [];
  if (gitMode(old) !== gitMode(now) && now.type !== 'symlink') lines.push(`old mode ${gitMode(old)}`, `new mode ${gitMode(now)}`);
  else if (old.mode !== now.mode && now.type !== 'symlink') lines.push(`old permissions ${octal(old)}`, `new permissions ${octal(now)}`);
  if (kind === 'rename') {
    if (now.type !== 'directory' && before !== undefined && before === after) lines.push('similarity index 100%');
    lines.push(`rename from ${quoted(from ?? '')}`, `rename to ${quoted(path)}`);
  }
  if (old.owner !== now.owner) lines.push(`old owner ${old.owner}`, `new owner ${now.owner}`);
  if (kind === 'times') lines.push(`old time ${old.mtime}`, `new time ${now.mtime}`);
  if (kind === 'xattr') lines.push('extended attributes changed');
  return lines;
}

/** The mode that git keeps of a file: whether it is executable. */
function gitMode({ type, mode }: Side): string {
  if (type === 'symlink') return '120000';
  return type === 'file' ? (mode & 0o100) === 0 ? '100644' : '100755' : octal({ mode });
}

function octal({ mode }: Pick<Side, 'mode'>): string {
  return mode.toString(8);
}

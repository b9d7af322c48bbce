import { Refusal } from '../core/refusal.ts';
import type { NodeType } from '../core/attr.ts';
import { parentOf, ROOT, type TreePath } from '../core/path.ts';
import type { ChangeKind } from '../overlay/changes.ts';
import type { Comparison, Pair } from './comparison.ts';
import { deltaOf, deltaSize } from './delta.ts';
import { gitName, isRefusedByGit } from './git-name.ts';
import { countLines, hunksOf, type Hunk } from './hunk.ts';
import { binaryHunk } from './binary.ts';
import { gitMode, isGits, omissionsOf, type Omission } from './omission.ts';
import { Side } from './side.ts';
import { isChosen, type Snapshot } from './snapshot.ts';

/** What became of a path, as git would show it. */
export interface Difference {
  readonly path: TreePath;
  /** `type` is two: what is deleted, and what is created. */
  readonly kind: ChangeKind;
  readonly type: NodeType;
  /** Where a renamed file was. */
  readonly from: TreePath | undefined;
  /** What of it git has no words for. */
  readonly omitted: readonly Omission[];
  /** Lines before the hunks, without newlines; none where git would show nothing. Names are UTF-8. */
  readonly head: readonly string[];
  /** Text of which each character is one byte. */
  readonly hunks: readonly Hunk[];
  readonly added: number;
  readonly removed: number;
  /** A change of content that is not shown as lines: why, and bytes before and after. */
  readonly unshown: { readonly reason: 'binary' | 'large'; readonly before: number; readonly after: number; readonly words: string } | undefined;
  /** All of it as `git apply` takes it, a piece at a time; of what is not shown as lines the content is read now. */
  patch(): Generator<Uint8Array>;
}

/** Which differences, and what is not to be shown of them. */
export interface DifferenceOptions {
  /** Only at and below these, by a name before or after. */
  readonly paths?: readonly TreePath[] | undefined;
  readonly isRedacted?: ((path: TreePath) => boolean) | undefined;
  /** Contents that are no UTF-8 are shown as binary ones are. */
  readonly utf8?: boolean | undefined;
}

type Body = Pick<Difference, 'head' | 'hunks' | 'added' | 'removed' | 'unshown' | 'patch'>;

const NOTHING: Body = { head: [], hunks: [], added: 0, removed: 0, unshown: undefined, *patch() { /* Git keeps nothing of it. */ } };
/** Digits of git's name for a content that a reader is shown. */
const SHORT_ID = 7;
const JOINED_BYTES = 1 << 20;

/** What is different in `after`, from `before` on, path by path in order; made one at a time. */
export function* differencesOf(before: Snapshot, after: Snapshot, comparison: Comparison, options: DifferenceOptions = {}): Generator<Difference> {
  const carried = carriedBy(comparison.pairs), { paths } = options;
  for (const pair of comparison.pairs) {
    if (![pair.old, pair.now].some((path) => path !== undefined && isChosen(path, paths))) continue;
    const old = Side.at(before, pair.old), now = Side.at(after, pair.now);
    // An outsider has taken it away since the trees were compared.
    if (old === undefined && now === undefined) continue;
    const link = old === undefined && now?.type === 'file' ? comparison.otherName(now.spot) : undefined;
    const isCarried = carried[now === undefined ? 'gone' : 'come'].has(pair.path);
    const difference = differenceOf(pair, old, now, { link, isCarried, isRedacted: options.isRedacted ?? (() => false), utf8: options.utf8 ?? false });
    if (difference.omitted.length + difference.head.length > 0) yield difference;
  }
}

/** Directories in which git removes, or makes, some file. */
function carriedBy(pairs: readonly Pair[]): Record<'gone' | 'come', ReadonlySet<TreePath>> {
  const found = { gone: new Set<TreePath>(), come: new Set<TreePath>() };
  const carry = (set: Set<TreePath>, path: TreePath | undefined): void => {
    for (let above = path === undefined ? ROOT : parentOf(path); above !== ROOT && !set.has(above); above = parentOf(above)) set.add(above);
  };
  for (const { old, now, type } of pairs) {
    if (!isGits(type)) continue;
    if (old !== now) carry(found.gone, old);
    carry(found.come, now);
  }
  return found;
}

interface Known {
  readonly link: TreePath | undefined;
  readonly isCarried: boolean;
  readonly isRedacted: (path: TreePath) => boolean;
  readonly utf8: boolean;
}

function differenceOf({ path, old: was }: Pair, old: Side | undefined, now: Side | undefined, known: Known): Difference {
  const { type } = (now ?? old) as Side, omitted = [...omissionsOf(path, old, now, known)];
  const from = old !== undefined && now !== undefined && was !== path ? was : undefined;
  const plain = { path, type, from, omitted, ...NOTHING }, isNew = old === undefined, isGone = now === undefined;
  const named = from !== undefined ? 'rename' : isNew ? known.link === undefined ? 'create' : 'link' : isGone ? 'delete' : undefined;
  const lesser = { ...plain, kind: named ?? lesserKind(omitted) };
  if (!isGits(type)) return lesser;
  try {
    const isSame = old !== undefined && now !== undefined && old.hasContentOf(now);
    if (from === undefined && isSame && gitMode(old) === gitMode(now)) return lesser;
    const kind = named ?? (isSame ? 'mode' : 'update'), whole = { ...plain, kind } as const;
    const paths = [path, ...(from === undefined ? [] : [from])];
    if (paths.some((each) => isRefusedByGit(each, type))) {
      return { ...whole, omitted: [...omitted, { path, kind: 'repository', words: `${kind} of ${gitName(path)}, which git takes for its own` }] };
    }
    if (paths.some((each) => known.isRedacted(each)) || [old, now].some((side) => side?.isSecret === true)) {
      return { ...whole, omitted: [...omitted, redaction(path, kind, old, now)] };
    }
    return { ...whole, ...bodyOf(old, now, { isSame, utf8: known.utf8 }) };
  } catch (error) {
    if (!(error instanceof Refusal) || (error.code !== 'EACCES' && error.code !== 'EIO')) throw error;
    const why = error.reason ?? (error.code === 'EACCES' ? 'permission denied' : 'input/output error');
    return { ...lesser, kind: named ?? 'update', omitted: [...omitted, { path, kind: 'unreadable', words: `${named ?? 'update'} of ${gitName(path)}, which cannot be read: ${why}` }] };
  }
}

function lesserKind(omitted: readonly Omission[]): ChangeKind {
  const kinds = new Set<string>(omitted.map(({ kind }) => kind));
  return (['mode', 'owner', 'times', 'xattr'] as const).find((kind) => kinds.has(kind)) ?? 'update';
}

function redaction(path: TreePath, kind: ChangeKind, old: Side | undefined, now: Side | undefined): Omission {
  const versions = [old, now].flatMap((side) => side === undefined ? [] : [side.version() ?? side.type]);
  return { path, kind: 'redacted', words: `${kind} of ${gitName(path)}, redacted: ${versions.join(' → ')}` };
}

function bodyOf(old: Side | undefined, now: Side | undefined, { isSame, utf8: asUtf8 }: { isSame: boolean; utf8: boolean }): Body {
  const side = (now ?? old) as Side, names = { old: gitName(`a/${(old ?? side).path}`), now: gitName(`b/${side.path}`) };
  const ends = { old: old === undefined ? '/dev/null' : names.old, now: now === undefined ? '/dev/null' : names.now };
  const mode = old !== undefined && now !== undefined && gitMode(old) === gitMode(now) ? ' ' + gitMode(now) : '';
  const head = [`diff --git ${names.old} ${names.now}`, ...modeLines(old, now)];
  const rename = (similarity: number): string[] => old === undefined || now === undefined || old.path === now.path ? []
    : [`similarity index ${similarity}%`, `rename from ${gitName(old.path)}`, `rename to ${gitName(now.path)}`];
  if (isSame) {
    // That it is a symlink only the index line says; whatever comes in its place may be a directory.
    if (side.type === 'symlink') return linesOnly([...head, ...rename(100), `index ${idsOf(old, now, SHORT_ID)}${mode}`]);
    return linesOnly([...head, ...rename(100)]);
  }
  const [was, is] = [old?.text({ utf8: asUtf8 }), now?.text({ utf8: asUtf8 })];
  if ((was !== undefined && 'unshown' in was) || (is !== undefined && 'unshown' in is)) {
    const reason = [was, is].some((each) => each !== undefined && 'unshown' in each && each.unshown === 'large') ? 'large' : 'binary';
    const words = `${reason === 'large' ? 'Large' : 'Binary'} files ${ends.old} and ${ends.now} differ`;
    const lines = [...head, ...rename(0)];
    return {
      ...NOTHING, head: lines, unshown: { reason, before: old?.size ?? 0, after: now?.size ?? 0, words },
      *patch() {
        yield utf8([...lines, `index ${idsOf(old, now)}${mode}`, 'GIT binary patch']);
        // There and back.
        yield* hunkBetween(old, now);
        yield* hunkBetween(now, old);
      },
    };
  }
  const before = was?.shown ?? '', after = is?.shown ?? '', hunks = hunksOf(before, after), counted = countLines(hunks);
  const lines = [...head, ...rename(similarityOf(before, after, hunks)), `index ${idsOf(old, now, SHORT_ID)}${mode}`];
  if (hunks.length > 0) lines.push(`--- ${tabbed(ends.old)}`, `+++ ${tabbed(ends.now)}`);
  return {
    ...NOTHING, head: lines, hunks, ...counted,
    *patch() {
      yield utf8(lines);
      for (const { head: at, lines: those } of hunks) yield Buffer.from([at, ...those, ''].join('\n'), 'latin1');
    },
  };
}

function* hunkBetween(from: Side | undefined, to: Side | undefined): Generator<Uint8Array> {
  const size = from === undefined || to === undefined ? undefined : deltaSize(from, to);
  if (size !== undefined) {
    // Joined: a piece is deflated by itself, and an instruction is a few bytes.
    yield* binaryHunk('delta', size, joined(deltaOf(from as Side, to as Side)));
  } else yield* binaryHunk('literal', to?.size ?? 0, to?.chunks() ?? []);
}

function* joined(pieces: Iterable<Uint8Array>): Generator<Uint8Array> {
  let waiting: Uint8Array[] = [], length = 0;
  for (const piece of pieces) {
    waiting.push(piece);
    length += piece.length;
    if (length < JOINED_BYTES) continue;
    yield Buffer.concat(waiting);
    waiting = [];
    length = 0;
  }
  if (length > 0) yield Buffer.concat(waiting);
}

function linesOnly(head: readonly string[]): Body {
  return { ...NOTHING, head, *patch() { yield utf8(head); } };
}

function modeLines(old: Side | undefined, now: Side | undefined): string[] {
  if (old === undefined) return [`new file mode ${gitMode(now as Side)}`];
  if (now === undefined) return [`deleted file mode ${gitMode(old)}`];
  return gitMode(old) === gitMode(now) ? [] : [`old mode ${gitMode(old)}`, `new mode ${gitMode(now)}`];
}

function idsOf(old: Side | undefined, now: Side | undefined, digits = 40): string {
  return [old, now].map((side) => (side?.blobId() ?? '0'.repeat(40)).slice(0, digits)).join('..');
}

/** How much of the larger of two texts is in both, in percent; less than 100, as they differ. */
function similarityOf(before: string, after: string, hunks: readonly Hunk[]): number {
  let removed = 0;
  for (const { lines } of hunks) for (const line of lines) if (line.startsWith('-')) removed += line.length;
  const larger = Math.max(before.length, after.length);
  return larger === 0 ? 0 : Math.min(99, Math.max(0, Math.floor((before.length - removed) * 100 / larger)));
}

/** Git's way to end a name that has a space in it, so that what follows cannot be taken for a time. */
function tabbed(name: string): string {
  return name.includes(' ') ? name + '\t' : name;
}

function utf8(lines: readonly string[]): Buffer {
  return Buffer.from(lines.map((line) => line + '\n').join(''));
}

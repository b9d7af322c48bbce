import { FsError, type Edited } from '../index.ts';
import { toBytes } from '../index/front-end.ts';
import { endingAround, withEndings } from './lines.ts';

const LF = 10, CR = 13;

/** A text to put in place of another. */
export interface Replacement {
  readonly old_string: string;
  readonly new_string: string;
  readonly replace_all?: boolean;
}

interface Match {
  readonly start: number;
  readonly end: number;
}

/**
 * The bytes with `old_string` replaced, literally. A line feed in it matches CRLF too; those of `new_string` become what the lines around
 * have. Nothing outside of what matched changes. Throws FS_EDIT_NOT_FOUND and FS_AMBIGUOUS_EDIT about `path`.
 */
export function replaceText(before: Uint8Array, { old_string, new_string, replace_all = false }: Replacement, path: string): Edited & { readonly count: number } {
  if (old_string === '') throw new FsError('FS_EDIT_NOT_FOUND', 'old_string must be a non-empty string');
  const matches = matchesOf(before, toBytes(old_string));
  if (matches.length === 0) throw new FsError('FS_EDIT_NOT_FOUND', `old_string was not found in "${path}"`);
  if (matches.length > 1 && !replace_all) {
    throw new FsError('FS_AMBIGUOUS_EDIT',
      `old_string matched ${matches.length} times in "${path}"; provide a more specific old_string or set replace_all to true`);
  }
  const pieces: Uint8Array[] = [], splices: [number, number, number][] = [];
  let from = 0, moved = 0;
  for (const match of matches) {
    const put = replacementOf(before, match, old_string, new_string);
    pieces.push(before.subarray(from, match.start), put);
    splices.push([match.start + moved, match.end - match.start, put.length]);
    moved += put.length - (match.end - match.start);
    from = match.end;
  }
  pieces.push(before.subarray(from));
  return { bytes: Buffer.concat(pieces), splices, count: matches.length };
}

/** Where `needle` is, from left to right, without overlap. */
function matchesOf(hay: Uint8Array, needle: Uint8Array): Match[] {
  const view = Buffer.from(hay.buffer, hay.byteOffset, hay.length), feed = needle.indexOf(LF);
  // Up to its first line feed it is found as it is.
  const head = Buffer.from(feed < 0 ? needle : needle.subarray(0, feed)), matches: Match[] = [];
  for (let from = 0; from <= hay.length;) {
    let start = view.indexOf(head.length > 0 ? head : Buffer.of(LF), from);
    if (start < 0) break;
    if (head.length === 0 && start > from && hay[start - 1] === CR) start--;
    const end = endOfMatch(hay, start, needle);
    if (end === undefined) from = head.length === 0 && hay[start] === CR ? start + 2 : start + 1;
    else {
      matches.push({ start, end });
      from = end;
    }
  }
  return matches;
}

function endOfMatch(hay: Uint8Array, start: number, needle: Uint8Array): number | undefined {
  let at = start;
  for (let index = 0; index < needle.length; index++) {
    const byte = needle[index];
    if (byte === LF && hay[at] === CR && hay[at + 1] === LF && needle[index - 1] !== CR) at += 2;
    else if (hay[at] === byte) at++;
    else return undefined;
  }
  return at;
}

/** The bytes to put in: a line that stays keeps the ending it has, a new one takes that of the one above it. */
function replacementOf(before: Uint8Array, { start, end }: Match, old: string, text: string): Uint8Array {
  const endings: string[] = [];
  for (let feed = before.indexOf(LF, start); feed >= 0 && feed < end; feed = before.indexOf(LF, feed + 1)) {
    endings.push(feed > 0 && before[feed - 1] === CR ? '\r\n' : '\n');
  }
  const was = old.split('\n'), is = text.split('\n'), count = is.length - 1, most = Math.min(was.length, is.length);
  let first = 0, last = 0;
  while (first < most && was[first] === is[first]) first++;
  while (last < most - first && was[was.length - 1 - last] === is[is.length - 1 - last]) last++;
  const around = endings[Math.max(0, Math.min(first, endings.length) - 1)] ?? endingAround(before, end);
  return withEndings(text, (index) => {
    if (index < first) return endings[index] ?? around;
    if (count - index <= last && endings.length - (count - index) >= 0) return endings[endings.length - (count - index)] ?? around;
    return index < endings.length && was.length === is.length ? endings[index] as string : around;
  });
}

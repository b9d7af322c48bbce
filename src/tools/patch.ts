import { ToolInputError } from './tool.ts';

/** What a V4A patch does to one file. */
export type FileChange =
  | { readonly kind: 'add'; readonly path: string; readonly lines: readonly string[] }
  | { readonly kind: 'delete'; readonly path: string }
  | { readonly kind: 'update'; readonly path: string; readonly to: string | undefined; readonly chunks: readonly Chunk[] };

/** Lines of a file that change together. */
export interface Chunk {
  /** Headings to look for first, one after the other. */
  readonly headings: readonly string[];
  /** Each begins with a space, `-` or `+`. */
  readonly lines: readonly string[];
  /** The last of them is the last of the file. */
  readonly atEnd: boolean;
  /** Where it begins in the patch, from 1. */
  readonly line: number;
}

const BEGIN = '*** Begin Patch', END = '*** End Patch', END_OF_FILE = '*** End of File';
const HEADER = /^\*\*\* (Add|Update|Delete) File: (.+)$/, MOVE = /^\*\*\* Move to: (.+)$/;

/** Reads a patch in the V4A format. Throws `ToolInputError` naming the line that is wrong, and what about it. */
export function parsePatch(text: string): readonly FileChange[] {
  const lines = text.trim().split(/\r?\n/), changes: FileChange[] = [];
  const wrong = (at: number, what: string): never => {
    throw new ToolInputError(`apply_patch: line ${at + 1}: ${what}`);
  };
  if (lines[0] !== BEGIN) wrong(0, `a patch begins with "${BEGIN}"`);
  if (lines.at(-1) !== END || lines.length < 2) wrong(lines.length - 1, `a patch ends with "${END}"`);
  const last = lines.length - 1;
  for (let at = 1; at < last;) {
    const [, kind, path] = HEADER.exec((lines[at] as string).trimEnd()) ?? [];
    if (kind === undefined || path === undefined) {
      return wrong(at, `"*** Add File: ", "*** Update File: " or "*** Delete File: " is expected, not ${JSON.stringify(lines[at])}`);
    }
    const start = ++at;
    while (at < last && !HEADER.test((lines[at] as string).trimEnd())) at++;
    const body = lines.slice(start, at);
    if (kind === 'Add') {
      const bad = body.findIndex((line) => !line.startsWith('+'));
      if (bad >= 0) wrong(start + bad, 'each line of an added file begins with "+"');
      changes.push({ kind: 'add', path, lines: body.map((line) => line.slice(1)) });
    } else if (kind === 'Delete') {
      if (body.length > 0) wrong(start, 'nothing follows the file that is deleted');
      changes.push({ kind: 'delete', path });
    } else {
      const to = MOVE.exec((body[0] ?? '').trimEnd())?.[1], skipped = to === undefined ? 0 : 1;
      const chunks = chunksOf(body.slice(skipped), start + skipped, wrong);
      if (chunks.length === 0 && to === undefined) wrong(start - 1, `"${path}" is updated, and nothing says how`);
      changes.push({ kind: 'update', path, to, chunks });
    }
  }
  if (changes.length === 0) wrong(0, 'the patch changes no file');
  return changes;
}

function chunksOf(body: readonly string[], offset: number, wrong: (at: number, what: string) => never): Chunk[] {
  const chunks: Chunk[] = [];
  let headings: string[] = [], lines: string[] = [], begin = offset;
  const close = (at: number, atEnd: boolean): void => {
    if (lines.length > 0) {
      if (lines.every((line) => line.startsWith(' '))) wrong(begin, 'nothing is changed here: lines that begin with "-" or "+" are missing');
      chunks.push({ headings, lines, atEnd, line: begin + 1 });
    } else if (headings.length > 0) wrong(at, 'a heading is followed by no lines');
    headings = [];
    lines = [];
  };
  for (const [index, line] of body.entries()) {
    const at = offset + index;
    if (line === END_OF_FILE) close(at, true);
    else if (line.startsWith('@@')) {
      if (lines.length > 0) close(at, false);
      if (headings.length === 0) begin = at;
      headings.push(line.slice(2).trim());
    } else if (line === '' || /^[ +-]/.test(line)) {
      if (lines.length === 0 && headings.length === 0) begin = at;
      // An empty line lost its space on the way.
      lines.push(line === '' ? ' ' : line);
    } else wrong(at, `a line begins with " ", "-" or "+", or is "@@ …": ${JSON.stringify(line)}`);
  }
  if (lines.length > 0) close(offset + body.length, false);
  return chunks;
}

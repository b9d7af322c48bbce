import { FsError, type Edited, type GuardedFiles } from '../index.ts';
import { toBytes, unreachable } from '../index/front-end.ts';
import { changeData, diffOf } from './difference.ts';
import { endingAround, linesOf, shownText, withEndings, type Line } from './lines.ts';
import { parsePatch, type Chunk, type FileChange } from './patch.ts';
import { toolOf, ToolInputError, type Bench, type Tool } from './tool.ts';
import { withRemedy } from './write.ts';

interface Planned {
  readonly line: string;
  apply(): Readonly<Record<string, unknown>>;
}

/** `apply_patch`: changes to several files, in the V4A format. */
export function applyPatchTool({ files }: Bench): Tool {
  return toolOf({
    name: 'apply_patch',
    description: 'Applies a patch to one or several files: all of it or, where anything does not fit, nothing. The format is\n' +
      '*** Begin Patch\n*** Update File: path\n[*** Move to: new path]\n@@ a line above the change, to find it by\n context\n-removed\n+added\n' +
      '*** Add File: path\n+each line\n*** Delete File: path\n*** End Patch\n' +
      'Files that are updated or deleted have to be read first.',
    properties: { input: { type: 'string', description: 'The patch, from "*** Begin Patch" to "*** End Patch".' } },
    required: ['input'],
    act: ({ input }: { input: string }) => {
      const changes = parsePatch(input);
      demandApart(files, changes);
      // All is looked up and checked before anything is applied, and nothing can come between.
      const planned = changes.map((change) => withRemedy(change.path, () => plan(files, change)));
      const done = planned.map((each) => each.apply());
      return { text: planned.map(({ line }) => line).join('\n'), data: { files: done } };
    },
  });
}

/** Throws where two changes of a patch are about one path, or one below the other. */
function demandApart(files: GuardedFiles, changes: readonly FileChange[]): void {
  const paths = changes.flatMap((change) => [change.path, ...(change.kind === 'update' && change.to !== undefined ? [change.to] : [])])
    .map((path) => ({ path, resolved: files.resolve(path) }));
  for (const [at, { path, resolved }] of paths.entries()) {
    const other = paths.slice(0, at).find((one) => one.resolved === resolved || resolved.startsWith(`${one.resolved}/`) || one.resolved.startsWith(`${resolved}/`));
    if (other !== undefined) throw new ToolInputError(`apply_patch: "${other.path}" and "${path}" are in each other's way: a patch names each file once`);
  }
}

function plan(files: GuardedFiles, change: FileChange): Planned {
  const { path } = change;
  switch (change.kind) {
    case 'add': {
      if (files.stat(path, { follow: false, verb: 'write' }) !== undefined) throw new FsError('FS_IO_ERROR', `cannot add "${path}": it exists; update it instead`, { path });
      const prepared = files.prepareWrite(path, toBytes(change.lines.map((line) => `${line}\n`).join('')));
      return { line: `A ${path}`, apply: () => changeData(prepared.apply()) };
    }
    case 'delete': {
      const type = files.stat(path, { follow: false, verb: 'delete' })?.type;
      if (type === 'directory') throw new FsError('FS_NOT_REGULAR_FILE', `cannot delete "${path}": not a regular file`, { path });
      const prepared = files.prepareRemove(path), before = type === 'file' ? contentOf(files, path) : undefined;
      return { line: `D ${path}`, apply: () => {
        const removed = prepared.apply();
        return { path: removed.path.toWellFormed(), operation: 'delete', ...(before === undefined ? undefined : diffOf(removed.path, before, undefined)) };
      } };
    }
    case 'update': {
      const edit = files.prepareEdit(path, (before) => patched(before, change.chunks, path));
      const move = change.to === undefined ? undefined : files.prepareMove(path, change.to);
      return { line: change.to === undefined ? `M ${path}` : `M ${path} -> ${change.to}`, apply: () => {
        const data = changeData(edit.apply()), moved = move?.apply();
        return moved === undefined ? data : { ...data, to: moved.to.toWellFormed() };
      } };
    }
    default: return unreachable(change);
  }
}

function contentOf(files: GuardedFiles, path: string): Uint8Array | undefined {
  try {
    return files.hold(path, { verb: 'delete' }).bytes;
  } catch (error) {
    if (error instanceof FsError && (error.code === 'FS_TOO_LARGE' || error.code === 'FS_PERMISSION_DENIED')) return undefined;
    throw error;
  }
}

/** The bytes with the lines that chunks remove and add; every other line stays as it is. */
function patched(before: Uint8Array, chunks: readonly Chunk[], path: string): Edited {
  const lines = linesOf(before), texts = lines.map(({ start, end }) => shownText(before, start, end));
  const pieces: Uint8Array[] = [], splices: [number, number, number][] = [];
  let cursor = 0, from = 0, moved = 0;
  const put = (start: number, end: number, bytes: Uint8Array): void => {
    pieces.push(before.subarray(from, start), bytes);
    splices.push([start + moved, end - start, bytes.length]);
    moved += bytes.length - (end - start);
    from = end;
  };
  for (const chunk of chunks) {
    let at = placeOf(texts, chunk, cursor, path);
    for (let index = 0; index < chunk.lines.length;) {
      if (chunk.lines[index]?.startsWith(' ') === true) {
        at++;
        index++;
        continue;
      }
      const first = at, added: string[] = [];
      for (; index < chunk.lines.length && chunk.lines[index]?.startsWith(' ') !== true; index++) {
        const line = chunk.lines[index] as string;
        if (line.startsWith('-')) at++;
        else added.push(line.slice(1));
      }
      put(...replacementAt(before, lines, first, at, added));
    }
    cursor = at;
  }
  pieces.push(before.subarray(from));
  return { bytes: Buffer.concat(pieces), splices };
}

/** Lines `first` up to `end` make way for `added`: from which byte to which, and the bytes. */
function replacementAt(before: Uint8Array, lines: readonly Line[], first: number, end: number, added: readonly string[]): [number, number, Uint8Array] {
  const start = lines[first]?.start ?? before.length, until = end > first ? (lines[end - 1] as Line).next : start;
  const ending = endingAround(before, Math.max(0, (end > first ? until : start) - 1)), kept = lines.slice(first, end);
  const isLast = until === before.length, last = lines.at(-1), wasEnded = last === undefined || last.end < last.next;
  if (isLast && !wasEnded && added.length > 0) {
    // The last line has no ending: whatever becomes the last has none, and what is put after it needs one before.
    const text = `${end > first ? '' : '\n'}${added.join('\n')}`;
    return [start, until, withEndings(text, (index) => endingOf(before, kept[index]) ?? ending)];
  }
  return [start, until, withEndings(added.map((line) => `${line}\n`).join(''), (index) => endingOf(before, kept[index]) ?? ending)];
}

function endingOf(before: Uint8Array, line: Line | undefined): string | undefined {
  return line === undefined || line.end === line.next ? undefined : before[line.end] === 13 ? '\r\n' : '\n';
}

/** How lines may differ and still be taken for the same, strictest first. */
const LIKENESSES: readonly ((text: string) => string)[] = [(text) => text, (text) => text.trimEnd(), (text) => text.trim()];

/** The line at which a chunk begins: the first place after `cursor` and its headings where its old lines are. */
function placeOf(texts: readonly string[], { headings, lines, atEnd, line }: Chunk, cursor: number, path: string): number {
  let from = cursor;
  for (const heading of headings) {
    if (heading === '') continue;
    const at = find(texts, [heading], from, false) ?? find(texts, [heading], 0, false);
    if (at === undefined) throw new FsError('FS_EDIT_NOT_FOUND', `line ${line} of the patch: "${heading}" was not found in "${path}"`, { path });
    from = at + 1;
  }
  const old = lines.filter((each) => !each.startsWith('+')).map((each) => each.slice(1));
  if (old.length === 0) return headings.some((heading) => heading !== '') ? from : texts.length;
  const at = find(texts, old, from, atEnd) ?? (headings.some((heading) => heading !== '') ? find(texts, old, Math.max(0, from - 1), atEnd) : undefined);
  if (at !== undefined) return at;
  throw new FsError('FS_EDIT_NOT_FOUND', `line ${line} of the patch: these lines were not found in "${path}"${cursor > 0 ? ' below the change before' : ''}:\n${old.join('\n')}`, { path });
}

function find(texts: readonly string[], old: readonly string[], from: number, atEnd: boolean): number | undefined {
  for (const alike of LIKENESSES) {
    for (let at = atEnd ? Math.max(from, texts.length - old.length) : from; at + old.length <= texts.length; at++) {
      if (old.every((line, index) => alike(texts[at + index] as string) === alike(line))) return at;
    }
  }
  return undefined;
}

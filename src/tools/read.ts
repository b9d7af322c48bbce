import { FsError } from '../index.ts';
import { linesOf, shownText, type Line } from './lines.ts';
import { toolOf, type Bench, type Limits, type Tool, type ToolAnswer } from './tool.ts';

interface Input {
  readonly file_path: string;
  readonly offset?: number;
  readonly limit?: number;
}

/** `read`: numbered lines of a text file. */
export function readTool(bench: Bench): Tool {
  const { lines, lineCharacters, bytes } = bench.limits;
  return toolOf({
    name: 'read',
    description: `Reads a text file and returns its lines, numbered from 1. At most ${lines} lines, ${lineCharacters} characters of a line and ` +
      `${bytes} bytes at a time; the last line of the answer says what was shown of how much, and how to go on. A file has to be read before it is changed.`,
    properties: {
      file_path: { type: 'string', description: 'The file: absolute, or relative to the root of the tree.' },
      offset: { type: 'integer', minimum: 1, description: 'The line to begin with. Default 1.' },
      limit: { type: 'integer', minimum: 1, description: `How many lines. Default and at most ${lines}.` },
    },
    required: ['file_path'],
    act: ({ file_path, offset = 1, limit = lines }: Input) => view(bench, file_path, { offset, limit: Math.min(limit, lines) }),
  });
}

/** Shows a window of a file, and records what of it was shown. */
export function view({ files, limits }: Bench, path: string, { offset, limit }: { offset: number; limit: number }): ToolAnswer {
  const file = files.hold(path), { bytes } = file, binary = bytes.indexOf(0);
  if (binary >= 0) {
    // That it holds a NUL is all that is told of it.
    file.show([[binary, binary + 1]]);
    throw new FsError('FS_NOT_TEXT', `cannot read "${path}": binary file`);
  }
  const lines = linesOf(bytes), total = lines.length;
  if (offset > Math.max(total, 1)) {
    file.show([]);
    throw new FsError('FS_NOT_FOUND', `offset ${offset} is out of range for "${path}" (${total} lines)`);
  }
  const shown = windowOf(bytes, lines, { offset, limit }, limits), last = offset + shown.texts.length - 1;
  file.show(offset === 1 && shown.isWhole && last === total ? 'whole' : shown.ranges);
  const isAll = offset === 1 && last === total;
  const footer = total === 0 ? '(empty file)' : isAll ? `(all ${total} lines)`
    : last === total ? `(lines ${offset}-${last} of ${total}; end of file)` : `(lines ${offset}-${last} of ${total}; go on with offset ${last + 1})`;
  const text = [...shown.texts.map((line, at) => `${String(offset + at).padStart(6)}\t${line}`), footer].join('\n');
  return { text, data: { path: file.path.toWellFormed(), version: file.version, total, from: total === 0 ? 0 : offset, to: last, bytes: bytes.length, truncated: !shown.isWhole || !isAll } };
}

interface Window {
  readonly texts: readonly string[];
  readonly ranges: readonly (readonly [number, number])[];
  /** No line was cut. */
  readonly isWhole: boolean;
}

function windowOf(bytes: Uint8Array, lines: readonly Line[], { offset, limit }: { offset: number; limit: number }, limits: Limits): Window {
  const texts: string[] = [], ranges: [number, number][] = [];
  let left = limits.bytes, isWhole = true;
  for (const { start, end, next } of lines.slice(offset - 1, offset - 1 + limit)) {
    const text = shownText(bytes, start, end), cut = text.length > limits.lineCharacters ? text.slice(0, limits.lineCharacters) : undefined;
    const size = cut === undefined ? end - start : Buffer.byteLength(cut);
    if (size > left && texts.length > 0) break;
    left -= size + 1;
    if (cut === undefined) ranges.push([start, next]);
    else {
      isWhole = false;
      // Of bytes that are no UTF-8 the count is not known: then only what is certain is claimed.
      ranges.push([start, Math.min(end, start + Buffer.from(cut.replace(/\ufffd/g, '')).length)]);
    }
    texts.push(cut === undefined ? text : `${cut}… (line cut: ${text.length} characters)`);
  }
  return { texts, ranges, isWhole };
}

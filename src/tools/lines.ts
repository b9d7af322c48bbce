import { toBytes } from '../index/front-end.ts';

const LF = 10, CR = 13;
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** A line of a file: bytes [start, end) are its text, up to `next` its ending. */
export interface Line {
  readonly start: number;
  readonly end: number;
  readonly next: number;
}

/** The lines of a file. What follows the last ending is a line unless it is nothing; a byte order mark is part of none. */
export function linesOf(bytes: Uint8Array): readonly Line[] {
  const lines: Line[] = [];
  for (let start = startOf(bytes); start < bytes.length;) {
    const feed = bytes.indexOf(LF, start), next = feed < 0 ? bytes.length : feed + 1;
    const end = feed < 0 ? bytes.length : feed > start && bytes[feed - 1] === CR ? feed - 1 : feed;
    lines.push({ start, end, next });
    start = next;
  }
  return lines;
}

/** Where the text of a file begins: after a byte order mark. */
export function startOf(bytes: Uint8Array): number {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
}

/** Text as it is shown: what is no UTF-8 is U+FFFD. */
export function shownText(bytes: Uint8Array, start = 0, end = bytes.length): string {
  return decoder.decode(bytes.subarray(start, end));
}

/** The ending of the lines around byte `at`: of the line it is in, else of the one before; `\n` where there is no other line. */
export function endingAround(bytes: Uint8Array, at: number): string {
  let feed = bytes.indexOf(LF, at);
  if (feed < 0) feed = at === 0 ? -1 : bytes.lastIndexOf(LF, at - 1);
  return feed > 0 && bytes[feed - 1] === CR ? '\r\n' : '\n';
}

/** The same text with `endings` at its line feeds, each in turn and then `rest`; a CRLF in it stays. */
export function withEndings(text: string, endingOf: (index: number) => string): Uint8Array {
  let index = 0;
  return toBytes(text.replace(/\r?\n/g, (found) => {
    const ending = endingOf(index++);
    return found === '\r\n' ? found : ending;
  }));
}

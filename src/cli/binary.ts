import { deflateSync } from 'node:zlib';

/** Git's binary patch: both contents whole, deflated, as lines in git's base 85. */

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~';
/** Bytes that a line stands for, at most; a letter in front tells how many. */
const LINE_BYTES = 52;

/** The lines from `GIT binary patch` on, without newlines: how to come from `before` to `after`, and back. */
export function* binaryPatch(before: Buffer, after: Buffer): Generator<string> {
  yield 'GIT binary patch';
  yield* literal(after);
  yield* literal(before);
}

function* literal(content: Buffer): Generator<string> {
  yield `literal ${content.length}`;
  const bytes = deflateSync(content);
  for (let at = 0; at < bytes.length; at += LINE_BYTES) {
    const line = bytes.subarray(at, at + LINE_BYTES), { length } = line;
    yield String.fromCharCode(length <= 26 ? 64 + length : 96 + length - 26) + base85(line);
  }
  yield '';
}

function base85(bytes: Buffer): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += 4) {
    let word = 0, group = '';
    for (let i = 0; i < 4; i++) word = word * 256 + (bytes[at + i] ?? 0);
    for (let i = 0; i < 5; i++) {
      group = (DIGITS[word % 85] as string) + group;
      word = Math.floor(word / 85);
    }
    text += group;
  }
  return text;
}

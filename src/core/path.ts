/**
 * Names and paths as the overlay thinks of them.
 *
 * A Linux name is bytes; a JavaScript string is not. A byte that is no valid UTF-8 is kept as one lone low
 * surrogate, U+DC00 + byte (the scheme of Python's PEP 383), so every name has exactly one string and every such
 * string exactly one name. Only strings that are not well-formed take the slow way back to bytes.
 */
declare const brand: unique symbol;

/** A resolved path below the root: `/`-separated, no leading or trailing slash, no `.` or `..`; the root is `''`. */
export type TreePath = string & { readonly [brand]: 'TreePath' };

/** A path as a caller gave it: absolute or relative to the working directory, unresolved, escaped as above. */
export type PathName = string & { readonly [brand]: 'PathName' };

export const ROOT = '' as TreePath;

/** The longest name of one component, in bytes (NAME_MAX of every usual Linux file system). */
export const NAME_MAX_BYTES = 255;

/** The longest path of one call, in bytes with its final NUL (PATH_MAX of Linux). */
export const PATH_MAX_BYTES = 4096;

/** Symlinks followed in one look-up before it is ELOOP (MAXSYMLINKS of Linux). */
export const SYMLINK_LIMIT = 40;

/** The path of `name` in directory `parent`. */
export function childOf(parent: TreePath, name: string): TreePath {
  return (parent === '' ? name : parent + '/' + name) as TreePath;
}

/** The directory that holds `path`; of the root, the root. */
export function parentOf(path: TreePath): TreePath {
  const slash = path.lastIndexOf('/');
  return (slash < 0 ? '' : path.slice(0, slash)) as TreePath;
}

/** The last component of `path`; of the root, `''`. */
export function nameOf(path: TreePath): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Whether `path` is `ancestor` or lies below it. */
export function isWithin(path: TreePath, ancestor: TreePath): boolean {
  return ancestor === '' || path === ancestor ||
    (path.length > ancestor.length && path.charCodeAt(ancestor.length) === 47 && path.startsWith(ancestor));
}

/** `path`, which lies within `from`, as it is called when `from` is renamed to `to`. */
export function rebase(path: TreePath, from: TreePath, to: TreePath): TreePath {
  if (path === from) return to;
  return childOf(to, from === '' ? path : path.slice(from.length + 1));
}

const utf8 = new TextEncoder();
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The string of a name's bytes. Lossless for any bytes. */
export function fromBytes(bytes: Uint8Array): string {
  try {
    return strict.decode(bytes);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return escapeInvalid(bytes);
  }
}

/** The bytes of a string made by `fromBytes`, or of any well-formed string. */
export function toBytes(text: string): Uint8Array {
  if (text.isWellFormed()) return utf8.encode(text);
  const parts: number[] = [];
  for (const char of text) {
    const unit = char.codePointAt(0) as number;
    if (unit >= 0xdc80 && unit <= 0xdcff) parts.push(unit - 0xdc00);
    else for (const byte of utf8.encode(char)) parts.push(byte);
  }
  return Uint8Array.from(parts);
}

/** Length of `text` in bytes. */
export function byteLength(text: string): number {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) > 127) return toBytes(text).length;
  }
  return text.length;
}

/** Compares two names by their bytes, as `LC_ALL=C sort` does. */
export function compareNames(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i), y = b.charCodeAt(i);
    if (x !== y) return x < 0xd800 && y < 0xd800 ? x - y : compareBytes(toBytes(a), toBytes(b));
  }
  return a.length - b.length;
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const difference = (a[i] as number) - (b[i] as number);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** Bytes per UTF-8 sequence by its first byte, 0 where none may start; the second byte's range closes the rest. */
function sequenceLength(bytes: Uint8Array, at: number): number {
  const first = bytes[at] as number, second = bytes[at + 1] ?? 0;
  const length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (length < 2) return length;
  const low = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
  const high = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
  if (second < low || second > high) return 0;
  for (let i = 2; i < length; i++) if (((bytes[at + i] ?? 0) & 0xc0) !== 0x80) return 0;
  return length;
}

function escapeInvalid(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length;) {
    const length = sequenceLength(bytes, at);
    if (length === 0) text += String.fromCharCode(0xdc00 + (bytes[at++] as number));
    else {
      text += strict.decode(bytes.subarray(at, at + length));
      at += length;
    }
  }
  return text;
}

import { toBytes } from '../core/path.ts';

/** Names as git's patches and streams have them: quoted as in C where they hold what is not to be printed as it is. */

/** Controls, DEL, line separators, marks that turn text around, and bytes that are no UTF-8 (lone low surrogates). */
const UNPRINTED = /[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const NEEDS_QUOTES = new RegExp(`["\\\\]|${UNPRINTED.source}`);
const SHORT: Readonly<Record<string, string>> = { '\x07': '\\a', '\b': '\\b', '\t': '\\t', '\n': '\\n', '\v': '\\v', '\f': '\\f', '\r': '\\r' };

/** A component that git takes for its own directory, on any system, and never writes. */
const REPOSITORY = /^(?:\.git|git~1)[. ]*(?:[\\:].*)?$/is;
/** Nor a symlink by the name of one of its own files. */
const MODULES = /^\.gitmodules$/i;

/** A name as it is, or in quotes. */
export function gitName(name: string): string {
  if (!NEEDS_QUOTES.test(name)) return name;
  return '"' + name.replace(/["\\]/g, '\\$&').replace(UNPRINTED, (unit) => SHORT[unit] ?? octal(unit)) + '"';
}

/** Whether git refuses to have anything of the kind by that path. */
export function isRefusedByGit(path: string, type: string): boolean {
  return path.split('/').some((part) => REPOSITORY.test(part) || (type === 'symlink' && MODULES.test(part)));
}

function octal(unit: string): string {
  return [...toBytes(unit)].map((byte) => '\\' + byte.toString(8).padStart(3, '0')).join('');
}

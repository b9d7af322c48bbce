/**
 * Names and words as a terminal may show them. A terminal obeys control bytes, and two of Unicode's marks turn text around;
 * a name that holds such is shown as git shows it: in quotes, with C's escapes.
 */

/** C0 and C1 controls, DEL, line separators, marks of direction, and bytes that are no UTF-8 (lone low surrogates). */
const UNSHOWN = /[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const NEEDS_QUOTES = new RegExp(`["\\\\]|${UNSHOWN.source}`);

const SHORT: Readonly<Record<string, string>> = {
  '\x07': '\\a', '\b': '\\b', '\t': '\\t', '\n': '\\n', '\v': '\\v', '\f': '\\f', '\r': '\\r',
};

/** A name as it is, or in quotes where it holds what a terminal would not show as it is. */
export function quoted(name: string): string {
  if (!NEEDS_QUOTES.test(name)) return name;
  return '"' + visible(name.replace(/["\\]/g, '\\$&')) + '"';
}

/** Text on one line, in which what a terminal would obey is escaped. */
export function visible(text: string): string {
  return text.replace(UNSHOWN, (unit) => SHORT[unit] ?? octal(unit));
}

function octal(unit: string): string {
  const code = unit.charCodeAt(0);
  const bytes = code >= 0xdc80 && code <= 0xdcff ? [code - 0xdc00] : [...Buffer.from(unit)];
  return bytes.map((byte) => '\\' + byte.toString(8).padStart(3, '0')).join('');
}

/** A line of a file for a terminal: what it would obey is escaped, but for tabs. */
export function shownLine(line: string): string {
  return line.split('\t').map((part) => visible(part)).join('\t');
}

/** Alternatives of one pattern; what would be more is refused. */
const EXPANSION_LIMIT = 65_536;

/**
 * The patterns that one with braces stands for, as bash expands them: `a{b,c}` is `ab` and `ac`, `{1..3}` counts. A
 * brace without a comma or range is itself. Throws RangeError above 65,536 patterns.
 */
export function expandBraces(pattern: string): string[] {
  const open = firstGroup(pattern, 0);
  if (open === undefined) return [pattern];
  const before = pattern.slice(0, open.start), rests = expandBraces(pattern.slice(open.end + 1));
  const results: string[] = [];
  for (const choice of open.choices) {
    for (const middle of open.nested ? expandBraces(choice) : [choice]) {
      for (const rest of rests) {
        if (results.length === EXPANSION_LIMIT) throw tooMany();
        results.push(before + middle + rest);
      }
    }
  }
  return results;
}

function tooMany(): RangeError {
  return new RangeError(`Pattern stands for more than ${EXPANSION_LIMIT} patterns`);
}

interface Group {
  readonly start: number;
  /** Of its closing brace. */
  readonly end: number;
  readonly choices: readonly string[];
  /** Whether the choices may have braces of their own. */
  readonly nested: boolean;
}

/** The first brace that has alternatives, outermost first. */
function firstGroup(pattern: string, from: number): Group | undefined {
  for (let start = pattern.indexOf('{', from); start >= 0; start = pattern.indexOf('{', start + 1)) {
    const end = closing(pattern, start);
    if (end === undefined) continue;
    const inside = pattern.slice(start + 1, end);
    const choices = topLevelParts(inside);
    if (choices.length > 1) return { start, end, choices, nested: true };
    const counted = range(inside);
    if (counted) return { start, end, choices: counted, nested: false };
  }
  return undefined;
}

function closing(pattern: string, start: number): number | undefined {
  let depth = 0;
  for (let at = start; at < pattern.length; at++) {
    if (pattern[at] === '{') depth++;
    else if (pattern[at] === '}' && --depth === 0) return at;
  }
  return undefined;
}

/** Split at commas outside of inner braces. */
function topLevelParts(inside: string): string[] {
  const parts: string[] = [];
  let depth = 0, since = 0;
  for (let at = 0; at < inside.length; at++) {
    const char = inside[at];
    if (char === '{') depth++;
    else if (char === '}') depth--;
    else if (char === ',' && depth === 0) {
      parts.push(inside.slice(since, at));
      since = at + 1;
    }
  }
  parts.push(inside.slice(since));
  return parts;
}

/** `1..9`, `01..10..3`, `a..e`: all that it counts, padded as widely as its ends. */
function range(inside: string): string[] | undefined {
  const match = /^(?:(-?\d+)\.\.(-?\d+)|([a-zA-Z])\.\.([a-zA-Z]))(?:\.\.(-?\d+))?$/.exec(inside);
  if (!match) return undefined;
  const [, low, high, first, last, by] = match;
  const numeric = low !== undefined && high !== undefined;
  const from = numeric ? Number(low) : (first as string).charCodeAt(0);
  const to = numeric ? Number(high) : (last as string).charCodeAt(0);
  const step = Math.max(1, Math.abs(Number(by ?? 1)));
  if (Math.abs(to - from) / step >= EXPANSION_LIMIT) throw tooMany();
  const width = numeric && [low, high].some((end) => /^-?0\d/.test(end)) ? Math.max(low.length, high.length) : 0;
  const counted: string[] = [];
  for (let value = from; from <= to ? value <= to : value >= to; value += from <= to ? step : -step) {
    counted.push(numeric ? padded(value, width) : String.fromCharCode(value));
  }
  return counted;
}

function padded(value: number, width: number): string {
  const sign = value < 0 ? '-' : '';
  return sign + String(Math.abs(value)).padStart(width - sign.length, '0');
}

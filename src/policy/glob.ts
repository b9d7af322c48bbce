import picomatch from 'picomatch';

/** Dots are nothing special, and no byte of a name is beyond a star: a name may hold newlines. */
const OPTIONS = { dot: true, strictBrackets: true, debug: true, flags: 's' };

/** A glob over paths of the tree, compiled. */
export interface Glob {
  readonly glob: string;
  /** The path that it begins with, before its first magic character; what it matches lies there or below. */
  readonly base: string;
  matches(path: string): boolean;
}

/**
 * Compiles a glob. Its paths are relative to the root: a leading `./` and a trailing `/` mean nothing. A path that is
 * the glob, letter by letter, matches. Throws TypeError that names a glob with brackets left open, a leading `/`, `.`, `..`,
 * NUL, or nothing in it.
 */
export function compileGlob(given: string): Glob {
  const glob = given.replace(/^(?:\.\/+)+/, '').replace(/\/+$/, '');
  const fault = faultOf(glob);
  if (fault !== undefined) throw malformed(given, fault);
  let expression: RegExp;
  try {
    expression = picomatch.makeRe(glob, OPTIONS);
  } catch (error) {
    throw malformed(given, (error as Error).message);
  }
  const { base, negated } = picomatch.scan(glob);
  // An escaped character could end the base too early or too late: then it says nothing.
  return { glob, base: negated || base.includes('\\') ? '' : base, matches: (path) => path === glob || expression.test(path) };
}

/** Whether a path matches any of the globs. Throws as `compileGlob`. */
export function anyOf(globs: readonly string[]): (path: string) => boolean {
  const compiled = globs.map(compileGlob);
  return (path) => compiled.some((glob) => glob.matches(path));
}

function faultOf(glob: string): string | undefined {
  if (glob === '') return 'it is empty';
  if (glob.includes('\0')) return 'it holds a NUL';
  if (glob.startsWith('/')) return 'it has to be relative to the root';
  if (glob.split('/').some((part) => part === '.' || part === '..')) return 'it holds `.` or `..`';
  return undefined;
}

function malformed(glob: string, fault: string): TypeError {
  return Object.assign(new TypeError(`malformed glob "${glob}": ${fault}`), { code: 'ERR_INVALID_OPTION' });
}

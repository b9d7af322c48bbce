import { realpathSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { Misuse } from './failure.ts';

/** Directories that a run is over. */
export interface Roots {
  /** As an overlay is opened with them. */
  readonly lower: { readonly root: string } | { readonly roots: Readonly<Record<string, string>> };
  /** Where each is seen, and what of the overlay it is. */
  readonly places: readonly [Place, ...Place[]];
}

interface Place {
  readonly path: string;
  readonly from: string;
}

/**
 * What `--root`, given once or several times, asks for. Of several, each is named after its directory, with a number behind where that
 * is taken. Throws `Misuse` for what is no directory, or lies in another root.
 */
export function rootsOf(given: readonly string[]): Roots {
  const paths = (given.length === 0 ? ['.'] : given).map((directory) => realDirectory(directory));
  const [first] = paths as [string];
  if (paths.length === 1) return { lower: { root: first }, places: [{ path: first, from: '' }] };
  const named: Record<string, string> = {};
  for (const path of paths) {
    const around = paths.find((other) => other !== path && isWithin(path, other));
    if (around !== undefined) throw new Misuse(`the root ${path} lies in the root ${around}`);
    named[freeName(basename(path), named)] = path;
  }
  if (Object.keys(named).length < 2) throw new Misuse(`the root ${first} is given more than once`);
  return { lower: { roots: named }, places: Object.entries(named).map(([from, path]) => ({ path, from })) as [Place, ...Place[]] };
}

function realDirectory(directory: string): string {
  try {
    const real = realpathSync.native(directory);
    if (!statSync(real).isDirectory()) throw new Misuse(`the root ${directory} is not a directory`);
    return real;
  } catch (error) {
    if (error instanceof Misuse || !(error instanceof Error) || !('code' in error)) throw error;
    throw new Misuse(`the root ${directory} ${error.code === 'ENOENT' ? 'does not exist' : `cannot be read (${String(error.code)})`}`);
  }
}

function freeName(name: string, taken: Readonly<Record<string, string>>): string {
  for (let number = 1; ; number++) {
    const free = number === 1 ? name : `${name}-${number}`;
    if (taken[free] === undefined) return free;
  }
}

function isWithin(path: string, directory: string): boolean {
  return path.startsWith(directory === '/' ? '/' : `${directory}/`);
}

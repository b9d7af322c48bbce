import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { lowerOf, pathToBytes, type SessionGlance } from '../index.ts';
import { Misuse } from './failure.ts';
import { isBelow, workingDirectory } from './state-directory.ts';
import { quoted } from './text.ts';

/** Paths of the tree: as the command line names them, and as its output does. */

/** A directory beneath, and the path of the tree that it is: `''` where it is the only one. */
export interface Place {
  readonly directory: string;
  readonly path: string;
}

/** The directories that a session is about; `/` where its lower was no directory. */
export function placesOf(header: SessionGlance['header']): readonly [Place, ...Place[]] {
  const lower = lowerOf(header);
  if (lower === undefined) return [{ directory: '/', path: '' }];
  if ('root' in lower) return [{ directory: lower.root, path: '' }];
  if ('lower' in lower) return [{ directory: lower.lower[0] as string, path: '' }];
  return Object.entries(lower.roots).map(([path, directory]) => ({ directory, path })) as [Place, ...Place[]];
}

/** A path of the tree that an argument names: relative to the working directory if that is below a place, else to the first. */
export function treePath(argument: string, places: readonly [Place, ...Place[]]): string {
  const here = workingDirectory(), isInside = places.some(({ directory }) => isBelow(here, directory));
  const absolute = resolve(isInside ? here : places[0].directory, argument);
  for (const found of [absolute, withRealParent(absolute)]) {
    for (const { directory, path } of places) {
      if (found !== undefined && isBelow(found, directory)) return join(path, found.slice(directory === '/' ? 1 : directory.length + 1)).replace(/^\.$/, '');
    }
  }
  throw new Misuse(`${quoted(argument)} lies outside ${places.map(({ directory }) => quoted(directory)).join(' and ')}`);
}

/** The same path by the real name of its directory, where it has one on the disk. */
function withRealParent(path: string): string | undefined {
  const parent = dirname(path);
  return existsSync(parent) ? join(realpathSync.native(parent), basename(path)) : undefined;
}

/** Whether `path` is one of `chosen` or lies below one; all are where none is chosen. */
export function isChosen(path: string, chosen: readonly string[]): boolean {
  return chosen.length === 0 || chosen.some((each) => each === '' || isBelow(path, each));
}

/** `name` under `key` of a JSON object, or as base64 under `<key>64` where it is no UTF-8. */
export function nameField(key: string, name: string | undefined): Record<string, string> {
  if (name === undefined) return {};
  return name.isWellFormed() ? { [key]: name } : { [key + '64']: Buffer.from(pathToBytes(name)).toString('base64') };
}

/** A record of a list with `-z`: fields, tabs between, then names as the bytes they are, a NUL behind each. */
export function nulRecord(fields: readonly string[], ...names: readonly string[]): Uint8Array {
  const head = Buffer.from(fields.map((field) => field + '\t').join(''));
  return Buffer.concat([head, ...names.flatMap((name) => [pathToBytes(name), Buffer.of(0)])]);
}

/** The name by which `overlay.fs` knows a path of the tree that is seen under `mountPoint`. */
export function fileName(mountPoint: string, path: string): string | Buffer {
  const name = join(mountPoint, path);
  return name.isWellFormed() ? name : Buffer.from(pathToBytes(name));
}

import * as fs from 'node:fs';
import type { Dirent } from 'node:fs';
import { posix } from 'node:path';
import picomatch from 'picomatch';
import type { NodeType } from '../../core/attr.ts';
import { typeOf } from '../../core/attr.ts';
import type { PathName } from '../../core/path.ts';
import { Refusal } from '../../core/refusal.ts';
import type { System, SystemEntry } from '../system.ts';
import { pathName, validateFunction, validateObject, validateString } from './arguments.ts';
import { expandBraces } from './braces.ts';
import { dirent } from './dirent.ts';
import { invalidType } from './errors.ts';
import { conclude } from './lift.ts';
import { settleLater, sliced, TURN, type Steps } from './steps.ts';

/** `fs.glob` in all its faces, as Node 22 has it. */

export interface GlobOptions {
  readonly cwd?: string | URL | undefined;
  /** What to leave out, with all beneath it: patterns, or a function of the path (with `withFileTypes`, the Dirent). */
  readonly exclude?: readonly string[] | ((entry: never) => unknown) | undefined;
  readonly withFileTypes?: boolean | undefined;
}

type Found = string | Dirent;
type GlobCallback = (error: unknown, matches?: Found[]) => void;

/** Node 20 has no `fs.glob`; a face shaped like it has none either. */
export const NODE_HAS_GLOB = 'globSync' in fs;

/** The calls that find paths by pattern, over `system`. */
export function globs(system: System) {
  function globSync(pattern: string | readonly string[], options?: GlobOptions): Found[] {
    return [...new Glob(system, pattern, options).find()].filter((found) => found !== undefined);
  }

  function glob(
    pattern: string | readonly string[], options?: GlobOptions | GlobCallback, callback?: GlobCallback,
  ): void {
    if (typeof options === 'function') [callback, options] = [options, undefined];
    validateFunction(callback);
    const search = new Glob(system, pattern, options);
    conclude(() => settleLater(collected(search.find())), [], callback);
  }

  async function* globLater(
    pattern: string | readonly string[], options?: GlobOptions,
  ): AsyncGenerator<Found, void, undefined> {
    yield* sliced(new Glob(system, pattern, options).find());
  }

  // The name node's own has.
  Object.defineProperty(globLater, 'name', { value: 'glob' });
  return { glob, globSync, promises: { glob: globLater } };
}

function* collected(finding: Iterable<Found | undefined>): Steps<Found[]> {
  const all: Found[] = [];
  for (const found of finding) {
    if (found === undefined) yield TURN;
    else all.push(found);
  }
  return all;
}

/** A part of a pattern between two slashes. */
type Part =
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'match'; readonly matches: (name: string) => boolean }
  /** `**`: any directories, also none. */
  | { readonly kind: 'any' }
  | { readonly kind: 'up' }
  /** A slash at the end: directories only. */
  | { readonly kind: 'directory' };

interface Pattern {
  readonly parts: readonly Part[];
  readonly absolute: boolean;
  /** Begins with `./`, so that a `**` after it is not the first part. */
  readonly dotted: boolean;
}

/** A path on the way, as the result would name it, and what is there. */
interface Place {
  readonly path: string;
  readonly type: NodeType;
}

/**
 * One search. Each directory is listed once at most, and only where a pattern needs its names: a part without magic
 * is looked for by name. `**` enters no symlinks, but where it is not a pattern's first part, a symlink may be the
 * last directory it stands for. Names that begin with a dot match only patterns that say the dot.
 */
class Glob {
  readonly #system: System;
  readonly #root: string;
  readonly #patterns: readonly Pattern[];
  readonly #withFileTypes: boolean;
  readonly #excludes: (place: Place) => boolean;
  readonly #lists = new Map<string, readonly SystemEntry[]>();
  readonly #types = new Map<string, NodeType | undefined>();
  readonly #excluded = new Map<string, boolean>();
  readonly #told = new Set<string>();

  constructor(system: System, pattern: string | readonly string[], options: GlobOptions = {}) {
    validateObject(options, 'options');
    this.#system = system;
    this.#root = pathName(options.cwd ?? '.', 'options.cwd');
    this.#withFileTypes = Boolean(options.withFileTypes);
    this.#excludes = this.#exclusion(options.exclude);
    this.#patterns = patternsOf(pattern).flatMap(expandBraces).filter((text) => text !== '').map(parsed);
  }

  /** The matches, each once; `undefined` where others may have a turn. */
  * find(): Generator<Found | undefined, void> {
    for (const pattern of this.#patterns) {
      const seen = new Set<string>();
      const start: Place = { path: pattern.absolute ? '/' : '.', type: 'directory' };
      for (const place of this.#walk(pattern, start, 0, seen)) {
        if (place === undefined) yield undefined;
        else if (!this.#told.has(place.path)) {
          this.#told.add(place.path);
          yield this.#withFileTypes ? this.#dirent(place) : place.path.toWellFormed();
        }
      }
    }
  }

  * #walk(pattern: Pattern, place: Place, index: number, seen: Set<string>): Generator<Place | undefined, void> {
    const key = `${index}:${place.path}`;
    if (seen.has(key)) return;
    seen.add(key);
    const part = pattern.parts[index];
    if (part === undefined) {
      if (!this.#isExcluded(place)) yield place;
      return;
    }
    switch (part.kind) {
      case 'directory':
        if (this.#canEnter(place)) yield* this.#walk(pattern, place, index + 1, seen);
        return;
      case 'up':
        if (this.#canEnter(place)) {
          yield* this.#walk(pattern, { path: posix.join(place.path, '..'), type: 'directory' }, index + 1, seen);
        }
        return;
      case 'name': {
        const path = posix.join(place.path, part.name);
        const type = this.#canEnter(place) ? this.#typeOf(path) : undefined;
        if (type !== undefined) yield* this.#descend(pattern, { path, type }, index + 1, seen);
        return;
      }
      case 'match':
        for (const child of this.#children(place)) {
          if (part.matches(posix.basename(child.path))) yield* this.#descend(pattern, child, index + 1, seen);
        }
        yield undefined;
        return;
      case 'any':
        yield* this.#walkAny(pattern, place, index, seen);
    }
  }

  * #walkAny(pattern: Pattern, place: Place, index: number, seen: Set<string>): Generator<Place | undefined, void> {
    yield* this.#walk(pattern, place, index + 1, seen);
    const last = index + 1 === pattern.parts.length;
    for (const child of this.#children(place)) {
      if (posix.basename(child.path).startsWith('.')) continue;
      if (child.type === 'directory') yield* this.#descend(pattern, child, index, seen);
      else if (last || (child.type === 'symlink' && (index > 0 || pattern.dotted))) {
        yield* this.#descend(pattern, child, index + 1, seen);
      }
    }
    yield undefined;
  }

  * #descend(pattern: Pattern, place: Place, index: number, seen: Set<string>): Generator<Place | undefined, void> {
    if (!this.#isExcluded(place)) yield* this.#walk(pattern, place, index, seen);
  }

  #full(path: string): PathName {
    return (posix.isAbsolute(path) ? path : posix.join(this.#root, path)) as PathName;
  }

  #canEnter({ path, type }: Place): boolean {
    if (type !== 'symlink') return type === 'directory';
    const attr = absent(() => this.#system.stat(this.#full(path)));
    return attr !== undefined && typeOf(attr.mode) === 'directory';
  }

  #children(place: Place): Place[] {
    if (!this.#canEnter(place)) return [];
    let entries = this.#lists.get(place.path);
    if (entries === undefined) {
      entries = absent(() => this.#system.readdir(this.#full(place.path))) ?? [];
      this.#lists.set(place.path, entries);
    }
    return entries.map(({ name, type }) => ({ path: posix.join(place.path, name), type }));
  }

  #typeOf(path: string): NodeType | undefined {
    if (this.#types.has(path)) return this.#types.get(path);
    const attr = absent(() => this.#system.lstat(this.#full(path)));
    const type = attr && typeOf(attr.mode);
    this.#types.set(path, type);
    return type;
  }

  #isExcluded(place: Place): boolean {
    let excluded = this.#excluded.get(place.path);
    if (excluded === undefined) {
      excluded = this.#excludes(place);
      this.#excluded.set(place.path, excluded);
    }
    return excluded;
  }

  #exclusion(exclude: unknown): (place: Place) => boolean {
    if (exclude === undefined || exclude === null) return () => false;
    if (typeof exclude === 'function') {
      return (place) => Boolean(exclude(this.#withFileTypes ? this.#dirent(place) : place.path.toWellFormed()));
    }
    if (!Array.isArray(exclude)) throw invalidType('options.exclude', ['string[]', 'function'], exclude);
    const matchers = exclude.map((pattern: unknown, index) => {
      if (typeof pattern !== 'string') throw invalidType(`options.exclude[${index}]`, 'string', pattern);
      const normal = posix.normalize(pattern), directories = normal.endsWith('/');
      const matches = picomatch(directories ? normal.slice(0, -1) : normal, { ...MATCHING, nobrace: false });
      return { matches, directories, absolute: posix.isAbsolute(normal) };
    });
    const root = posix.resolve(this.#system.cwd(), this.#root);
    return ({ path, type }) => {
      const absolute = posix.resolve(root, path), relative = posix.relative(root, absolute);
      return matchers.some((matcher) => (!matcher.directories || type === 'directory') &&
        matcher.matches(matcher.absolute ? absolute : relative));
    };
  }

  #dirent({ path, type }: Place): Dirent {
    const full = this.#full(path);
    return dirent(posix.basename(full).toWellFormed(), type, posix.dirname(full).toWellFormed());
  }
}

const MATCHING: picomatch.PicomatchOptions = {
  nonegate: true, nobrace: true, posix: true, nocase: process.platform === 'darwin' || process.platform === 'win32',
};

function patternsOf(pattern: unknown): readonly string[] {
  if (typeof pattern !== 'object') {
    validateString(pattern, 'patterns');
    return [pattern];
  }
  if (!Array.isArray(pattern)) throw invalidType('patterns', 'Array', pattern);
  return pattern.map((one: unknown, index) => {
    validateString(one, `patterns[${index}]`);
    return one;
  });
}

/** A pattern without braces. A backslash is a slash, as node has it, so nothing can be escaped but by `[…]`. */
function parsed(text: string): Pattern {
  const pattern = text.replaceAll('\\', '/');
  const parts: Part[] = [];
  for (const piece of pattern.split('/')) {
    if (piece === '' || piece === '.') continue;
    const last = parts.at(-1);
    if (piece === '..') {
      // `x/..` is no part at all, as long as something is there that `x` could match.
      if (last && (last.kind === 'name' || last.kind === 'match')) parts.pop();
      else parts.push({ kind: 'up' });
    } else if (piece !== '**') parts.push(named(piece));
    else if (last?.kind !== 'any') parts.push({ kind: 'any' });
  }
  if (pattern.endsWith('/') && parts.length > 0) parts.push({ kind: 'directory' });
  return { parts, absolute: pattern.startsWith('/'), dotted: pattern.startsWith('./') };
}

function named(piece: string): Part {
  if (!/[*?[]|[!+@]\(/.test(piece)) return { kind: 'name', name: piece };
  const matches = picomatch(piece, MATCHING), hidden = /^(?:\.|[@+*?!]\((?:[^)]*\|)?\.)/.test(piece);
  return { kind: 'match', matches: (name) => (hidden || !name.startsWith('.')) && matches(name) };
}

/** What `look` gives, or nothing where the system refuses: a search goes on without what it may not see. */
function absent<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    Refusal.of(error);
    return undefined;
  }
}

import { FsError, type GuardedFiles } from '../index.ts';
import ignore, { type Ignore } from 'ignore';

/** A file, symlink or directory that a walk came by. */
export interface Walked {
  /** As the tools call it: below the path that the walk began at. */
  readonly path: string;
  /** The same relative to where the walk began. */
  readonly below: string;
  readonly type: string;
}

/** How a tree is walked. */
export interface WalkOptions {
  /** What `.gitignore` files ignore is left out, as git would. */
  readonly gitignore: boolean;
  /** Whether to go into a directory. */
  readonly enters?: (below: string) => boolean;
}

interface Rules {
  /** Of the directory that holds the `.gitignore`, with its slash. */
  readonly base: string;
  readonly rules: Ignore;
}

/** All that is below a directory, sorted by the bytes of the names, symlinks not followed, `.git` left out. Each listing is recorded. */
export function* walk(files: GuardedFiles, from: string, options: WalkOptions, verb: string): Generator<Walked> {
  yield* within(files, { from, below: '', rules: [] }, options, verb);
}

function* within(files: GuardedFiles, at: { from: string; below: string; rules: readonly Rules[] }, options: WalkOptions, verb: string): Generator<Walked> {
  const { from, below } = at, entries = files.list(joined(from, below), verb);
  const own = options.gitignore && entries.some(({ name, type }) => name === '.gitignore' && type === 'file') ? rulesIn(files, from, below) : undefined;
  const rules = own === undefined ? at.rules : [...at.rules, own];
  for (const { name, type } of entries) {
    if (name === '.git') continue;
    const next = below === '' ? name : `${below}/${name}`;
    if (rules.length > 0 && isIgnored(rules, type === 'directory' ? `${next}/` : next)) continue;
    yield { path: joined(from, next), below: next, type };
    if (type !== 'directory' || options.enters?.(next) === false) continue;
    try {
      yield* within(files, { from, below: next, rules }, options, verb);
    } catch (error) {
      // What may not be listed is passed over, as a search does; that it was refused is in the log.
      if (!(error instanceof FsError) || error.code !== 'FS_PERMISSION_DENIED') throw error;
    }
  }
}

/** A name below a path as it was given: nothing, `.`, relative or absolute. */
export function joined(from: string, below: string): string {
  const base = from.replace(/\/+$/, '').replace(/^\.(?:\/|$)/, '');
  if (below === '') return base === '' ? (from.startsWith('/') ? '/' : '.') : base;
  return base === '' ? (from.startsWith('/') ? `/${below}` : below) : `${base}/${below}`;
}

function rulesIn(files: GuardedFiles, from: string, below: string): Rules | undefined {
  const file = files.hold(joined(from, below === '' ? '.gitignore' : `${below}/.gitignore`));
  file.show([], { search: true });
  return { base: below === '' ? '' : `${below}/`, rules: ignore().add(Buffer.from(file.bytes).toString('utf8')) };
}

/** The deepest `.gitignore` that says anything decides. */
function isIgnored(rules: readonly Rules[], below: string): boolean {
  for (const { base, rules: own } of rules.toReversed()) {
    const { ignored, unignored } = own.test(below.slice(base.length));
    if (ignored) return true;
    if (unignored) return false;
  }
  return false;
}

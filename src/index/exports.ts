import type { TreePath } from '../core/path.ts';
import type { World } from '../overlay/world.ts';
import { anyOf } from '../policy/glob.ts';
import { Comparison } from '../replay/comparison.ts';
import { differencesOf, type Difference } from '../replay/difference.ts';
import { fastImport, type CommitPer } from '../replay/fast-import.ts';
import type { Omission } from '../replay/omission.ts';
import { prediction } from '../replay/prediction.ts';
import { Snapshot } from '../replay/snapshot.ts';
import { treeTar } from '../replay/tree-tar.ts';

/** What of an overlay is to be told to others. */
export interface ExportOptions {
  /** Only what changed at and below these, by its name before or after. */
  readonly paths?: readonly string[];
  /** Globs over paths whose contents are not to be told: digests stand in for them. Those the session itself redacts are never told. */
  readonly redact?: readonly string[];
}

/** A patch that `git apply` takes, and what changed that is not in it. */
export type Patch = Buffer & { readonly omitted: readonly Omission[] };

/** What is told of an export while it is made. */
interface Listening {
  /** Hears of everything that is left out. */
  readonly onOmitted?: (omission: Omission) => void;
}

/**
 * By format, what can be asked for. `patch`: for `git apply`. `git`: a stream for `git fast-import`, with a commit for each mark or also each actor's
 * turn, on `branch` (default `palimpsest`). `swebench`: a line of a predictions file. `tar`: the whole tree as it is now.
 */
export interface Exports {
  readonly patch: ExportOptions & Listening;
  readonly git: Pick<ExportOptions, 'redact'> & Listening & { readonly branch?: string; readonly per?: CommitPer };
  readonly swebench: ExportOptions & Listening & { readonly instance: string; readonly model: string };
  readonly tar: ExportOptions & Listening;
}

/** Options that each format knows. */
export const EXPORT_KEYS: Readonly<Record<keyof Exports, readonly string[]>> = {
  patch: ['paths', 'redact', 'onOmitted'],
  git: ['redact', 'onOmitted', 'branch', 'per'],
  swebench: ['paths', 'redact', 'onOmitted', 'instance', 'model'],
  tar: ['paths', 'redact', 'onOmitted'],
};

interface Asked {
  readonly paths: readonly TreePath[] | undefined;
  readonly redact: readonly string[] | undefined;
  readonly utf8?: boolean;
}

/** What is different in a tree, from its lower or from `since` on. Throws TypeError for a glob that is none. */
export function differencesBetween(after: World, since: World | undefined, { paths, redact, utf8 }: Asked): Generator<Difference> {
  const isRedacted = matcher(redact);
  after.session.publish();
  since?.session.publish();
  const later = new Snapshot(after), earlier = since === undefined ? Snapshot.beneath(after) : new Snapshot(since);
  return differencesOf(earlier, later, new Comparison(earlier, later), { paths, isRedacted, utf8 });
}

/** The bytes of differences, in one piece. */
export function patchOf(differences: Iterable<Difference>): Patch {
  const omitted: Omission[] = [], pieces = [...patchPieces(differences, (omission) => omitted.push(omission))];
  return Object.assign(Buffer.concat(pieces), { omitted });
}

/** An export, a piece at a time. Throws TypeError for options that mean nothing. */
export function exported<F extends keyof Exports>(world: World, format: F, options: Exports[F], paths: readonly TreePath[] | undefined): Generator<Uint8Array> {
  const { redact, onOmitted = () => undefined } = options, isRedacted = matcher(redact), asked = { paths, redact };
  world.session.publish();
  if (format === 'patch') return patchPieces(differencesBetween(world, undefined, asked), onOmitted);
  if (format === 'tar') return treeTar(new Snapshot(world), { paths, isRedacted, omit: onOmitted });
  if (format === 'swebench') {
    const { instance, model } = options as Exports['swebench'];
    if (typeof instance !== 'string' || typeof model !== 'string') throw new TypeError('export: a prediction needs the names "instance" and "model"');
    return prediction({ instance, model }, differencesBetween(world, undefined, { ...asked, utf8: true }), onOmitted);
  }
  const { branch = 'palimpsest', per = 'mark' } = options as Exports['git'];
  if (!isBranch(branch)) throw new TypeError(`export: "${branch}" is no name for a branch`);
  if (per !== 'mark' && per !== 'actor') throw new TypeError('export: commits are made per "mark" or per "actor"');
  return fastImport(world, { branch, per, isRedacted, omit: onOmitted });
}

function* patchPieces(differences: Iterable<Difference>, omit: (omission: Omission) => void): Generator<Uint8Array> {
  for (const difference of differences) {
    difference.omitted.forEach(omit);
    yield* difference.patch();
  }
}

function matcher(globs: readonly string[] | undefined): (path: TreePath) => boolean {
  return globs === undefined || globs.length === 0 ? () => false : anyOf(globs);
}

/** Git's rules for the name of a branch, a bit stricter. */
function isBranch(name: string): boolean {
  return typeof name === 'string' && /^[\w.+@][\w.+@/-]*$/.test(name) && !/\.\.|@\{|\/\/|\/\.|^\.|\.lock(\/|$)|[./]$|^@$/.test(name);
}

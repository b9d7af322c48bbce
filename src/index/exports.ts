import type { TreePath } from '../core/path.ts';
import type { World } from '../overlay/world.ts';
import { anyOf } from '../policy/glob.ts';
import { Comparison } from '../replay/comparison.ts';
import { differencesOf, type Difference } from '../replay/difference.ts';
import type { Omission } from '../replay/omission.ts';
import { Snapshot } from '../replay/snapshot.ts';

/** What of an overlay is to be told to others. */
export interface ExportOptions {
  /** Only what changed at and below these, by its name before or after. */
  readonly paths?: readonly string[];
  /** Globs over paths whose contents are not to be told: digests stand in for them. */
  readonly redact?: readonly string[];
}

/** A patch that `git apply` takes, and what changed that is not in it. */
export type Patch = Buffer & { readonly omitted: readonly Omission[] };

/** What is different in a tree, from its lower or from `since` on. Throws TypeError for a glob that is none. */
export function differencesBetween(after: World, since: World | undefined, { paths, redact }: { paths: readonly TreePath[] | undefined; redact: readonly string[] | undefined }): Generator<Difference> {
  const isRedacted = redact === undefined || redact.length === 0 ? undefined : anyOf(redact);
  after.session.publish();
  since?.session.publish();
  const later = new Snapshot(after), earlier = since === undefined ? Snapshot.beneath(after) : new Snapshot(since);
  return differencesOf(earlier, later, new Comparison(earlier, later), { paths, isRedacted });
}

/** The bytes of differences, in one piece. */
export function patchOf(differences: Iterable<Difference>): Patch {
  const pieces: Uint8Array[] = [], omitted: Omission[] = [];
  for (const difference of differences) {
    omitted.push(...difference.omitted);
    pieces.push(...difference.patch());
  }
  return Object.assign(Buffer.concat(pieces), { omitted });
}

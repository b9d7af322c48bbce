import { join } from 'node:path';
import { ROOT } from '../core/path.ts';
import { STAGING_NAME } from '../core/plan.ts';
import { CommitError, isFault } from './fault.ts';
import { Ground } from './ground.ts';
import { Journal } from './journal.ts';
import { lateWrites } from './late.ts';
import { Rescuer, type Rescue } from './rescue.ts';
import { markPublished, pending, Site } from './site.ts';
import { Undoing, type Left } from './undoing.ts';
import { Volume } from './volume.ts';

/** Most ms that `recover` waits for whoever is at the root. */
const PATIENCE_MS = 10_000;

/** What was found of an interrupted commit, and what became of it. */
export interface Recovery {
  /** `'nothing'`: there was none, or it had not begun; `'back'`: the tree is as before it; `'forward'`: all of it is done. */
  readonly outcome: 'nothing' | 'back' | 'forward';
  /** Id of the commit. */
  readonly id: string | undefined;
  /** Paths that outsiders have changed since, left as they are. Where there are any, somebody has to look at them. */
  readonly left: readonly Left[];
  /** What outsiders wrote into files that the commit replaced or removed. */
  readonly late: readonly Rescue[];
}

/**
 * Ends a commit to `root` that was interrupted: goes back, or where all of it was done forward; nothing of it stays in staging. Can be
 * interrupted itself and called again. Throws `LockedRootError` where a live process is at it, `JournalError` where the journal is
 * damaged or of a newer version: then nothing is touched.
 */
export async function recover(root: string, { patience = PATIENCE_MS }: { patience?: number } = {}): Promise<Recovery> {
  if (pending(root) === undefined) return { outcome: 'nothing', id: undefined, left: [], late: [] };
  const ground = new Ground(root);
  try {
    const site = await Site.take(ground, patience);
    const { recovery, volumes } = await recoverSite(ground, site);
    try {
      site.clear(volumes);
      site.leave(volumes);
    } catch (error) {
      site.abandon(volumes);
      throw CommitError.of(ground.root, ROOT, error);
    }
    return recovery;
  } finally {
    ground.close();
  }
}

/** The same for who has the root's lock already. Its volumes are to be left, with all that is in them. */
export async function recoverSite(ground: Ground, site: Site): Promise<{ recovery: Recovery; volumes: readonly Volume[] }> {
  const phase = site.phase();
  if (phase === undefined) return { recovery: { outcome: 'nothing', id: undefined, left: [], late: [] }, volumes: [site.volume] };
  let journal: Journal | undefined;
  const volumes = new Map([[0, site.volume]]);
  try {
    journal = new Journal(site.volume.name(phase), join(ground.root, STAGING_NAME, phase), phase);
    for (const { volume: index, path } of journal.volumes) {
      const volume = Volume.find(ground, index, path);
      if (volume !== undefined) volumes.set(index, volume);
    }
    const { id } = journal, rescuer = new Rescuer(ground, id);
    let left: readonly Left[] = [], late: readonly Rescue[] = [];
    if (phase === 'journal') left = await goBack(ground, site, journal, volumes, rescuer);
    else if (phase === 'done' || phase === 'confirmed') late = lateWrites(ground, journal.entries(), volumes, rescuer);
    if (phase === 'done' && journal.confirms) {
      markPublished(ground, id);
      site.become('confirmed', 'done');
    }
    const outcome = phase === 'staging' ? 'nothing' : phase === 'done' || phase === 'confirmed' ? 'forward' : 'back';
    return { recovery: { outcome, id, left, late }, volumes: [...volumes.values()] };
  } catch (error) {
    site.abandon(volumes.values());
    throw error;
  } finally {
    journal?.close();
  }
}

/** Takes back all that a journal says. After that it is `undone`. */
export async function goBack(
  ground: Ground, site: Site, journal: Journal, volumes: ReadonlyMap<number, Volume>, rescuer: Rescuer,
): Promise<readonly Left[]> {
  const undoing = new Undoing(ground, volumes, rescuer);
  for (const entry of journal.entries('backward')) {
    try {
      await undoing.undo(entry);
    } catch (error) {
      throw isFault(error) ? CommitError.of(ground.root, entry.path, error) : error;
    }
  }
  site.become('undone', 'journal');
  return undoing.left;
}

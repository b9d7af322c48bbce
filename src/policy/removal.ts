import { childOf, type PathName } from '../core/path.ts';
import { observationOf } from '../core/observation.ts';
import { Refusal } from '../core/refusal.ts';
import { CHANGED, type Guards } from '../overlay/guards.ts';
import type { Kernel } from '../overlay/kernel.ts';
import type { Observed } from '../overlay/recorder.ts';
import { spotType, type Spot } from '../overlay/spot.ts';
import type { World } from '../overlay/world.ts';

/**
 * The removal of a file, or of a directory with all it holds. What is in a directory need not have been read: to have listed it is enough; but
 * what was read in it has to be as it was.
 */
export class Removal {
  private readonly world: World;
  private readonly guards: Guards;
  private readonly kernel: Kernel;

  constructor(world: World, guards: Guards, kernel: Kernel) {
    this.world = world;
    this.guards = guards;
    this.kernel = kernel;
  }

  /** Throws where it must not go, or something below it; nothing has changed then. */
  demand(spot: Spot, at: Observed, { recursive }: { recursive: boolean }): void {
    if (spot.path === '') throw new Refusal('EBUSY');
    if (spotType(spot) === 'directory' && !recursive && this.world.entries(spot).length > 0) throw new Refusal('ENOTEMPTY');
    this.guards.demand(at, 'delete', spot, 'delete');
    if (spotType(spot) === 'directory') this.demandBelow(spot);
  }

  /** Takes it away, from the leaves up. */
  remove(spot: Spot): void {
    const path = this.world.walker.seenAs(spot.path) as PathName;
    if (spotType(spot) !== 'directory') return this.kernel.unlink(path);
    for (const { name } of [...this.world.entries(spot)]) {
      const child = this.world.walker.child(spot, name);
      if (!('parent' in child)) this.remove(child);
    }
    this.kernel.rmdir(path);
  }

  private demandBelow(directory: Spot): void {
    const { world, guards } = this;
    for (const { name } of world.entries(directory)) {
      const child = world.walker.child(directory, name);
      // A rule hides it: it must not go unseen.
      if ('parent' in child) throw new Refusal('ENOTEMPTY');
      world.gate?.demand(guards.actor, { path: child.path, via: undefined }, child, ['delete'], 'delete');
      const isDirectory = spotType(child) === 'directory';
      const seen = observationOf(world.state.observations, guards.actor, childOf(directory.path, name));
      if (world.deciders.current !== undefined && !isDirectory && seen.kind === 'present' && seen.contentSeq !== undefined && !guards.isCurrent(seen, child)) {
        throw guards.refuse({ path: child.path, via: undefined }, 'delete', 'FS_STALE_VERSION', CHANGED);
      }
      if (isDirectory) this.demandBelow(child);
    }
  }
}

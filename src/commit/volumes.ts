import { childOf, ROOT, type TreePath } from '../core/path.ts';
import { STAGING_NAME } from '../core/plan.ts';
import type { Ground } from './ground.ts';
import { Mounts } from './mounts.ts';
import { Volume } from './volume.ts';

/** Which directories are on which file system, and the staging directories of those. */
export class Volumes {
  readonly all: Volume[] = [];
  private readonly ground: Ground;
  private readonly id: string;
  readonly mounts: Mounts;
  private readonly made: (volume: Pick<Volume, 'index' | 'path'>) => void;
  private readonly tops = new Map<TreePath, Volume>();
  private last: { readonly path: TreePath; readonly volume: Volume } | undefined;

  /** `made` is called before each further staging directory is made: so it can be found again. */
  constructor(ground: Ground, id: string, first: Volume, made: (volume: Pick<Volume, 'index' | 'path'>) => void) {
    this.ground = ground;
    this.id = id;
    this.made = made;
    this.all.push(first);
    this.tops.set(ROOT, first);
    this.mounts = new Mounts(ground);
  }

  /** The file system that has the names of the directory `path`, which is there. */
  of(path: TreePath): Volume {
    if (this.last?.path === path) return this.last.volume;
    const top = this.mounts.topOf(path);
    let volume = this.tops.get(top);
    if (volume === undefined) {
      const index = this.all.length, staging = childOf(top, `${STAGING_NAME}-${this.id}`);
      this.made({ index, path: staging });
      volume = Volume.make(this.ground, index, staging);
      this.all.push(volume);
      this.tops.set(top, volume);
      volume.begin();
    }
    this.last = { path, volume };
    return volume;
  }
}

import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { childOf, nameOf, ROOT, type TreePath } from '../core/path.ts';
import { codeOf } from '../lower/fault.ts';
import { join } from '../lower/listing.ts';
import type { Ground } from './ground.ts';
import type { Volume } from './volume.ts';

/** What such a directory's name begins with; the rest is the commit's id. It stays until its user removes it. */
const SAVED_NAME = '.palimpsest-saved';

/** Bytes that are nobody's any more, of a path, and where they are now: a path below the root. */
export interface Rescue {
  readonly path: TreePath;
  readonly saved: TreePath;
}

/** Where things are put that a commit or its recovery may neither leave in staging nor bring into the tree. */
export class Rescuer {
  private readonly ground: Ground;
  private readonly id: string;

  constructor(ground: Ground, id: string) {
    this.ground = ground;
    this.id = id;
  }

  /**
   * Moves `name` from staging to a lasting place, where it is called as `path` is, in a directory `shelved` of its own; gives that. Once
   * more gives the same place; undefined where there is nothing, and never was.
   */
  save(volume: Volume, name: string, shelved: string, path: TreePath): TreePath | undefined {
    const directory = childOf(volume.top, `${SAVED_NAME}-${this.id}`), shelf = childOf(directory, shelved);
    const saved = childOf(shelf, nameOf(path));
    if (volume.find(name) === undefined) return this.ground.find(saved) === undefined ? undefined : saved;
    this.make(directory);
    this.ground.inside(directory, (there) => writeFileSync(join(there, '.gitignore'), '*\n'));
    this.make(shelf);
    this.ground.at(saved, (target) => renameSync(volume.name(name), target));
    return saved;
  }

  /** Whether anything was saved under that name. */
  has(shelved: string): boolean {
    return this.ground.find(childOf(childOf(ROOT, `${SAVED_NAME}-${this.id}`), shelved)) !== undefined;
  }

  private make(directory: TreePath): void {
    this.ground.at(directory, (name) => {
      try {
        mkdirSync(name, 0o700);
      } catch (error) {
        if (codeOf(error) !== 'EEXIST') throw error;
      }
    });
  }
}

import { readFileSync } from 'node:fs';
import { fromBytes, isWithin, parentOf, ROOT, type TreePath } from '../core/path.ts';
import { codeOf } from '../lower/fault.ts';
import type { Ground } from './ground.ts';

/** Where in the tree other file systems begin. */
export class Mounts {
  private readonly ground: Ground;
  /** Paths of the tree on which something is mounted, also the same file system once more. */
  private readonly points: ReadonlySet<TreePath>;

  constructor(ground: Ground) {
    this.ground = ground;
    this.points = mountPoints(ground.root);
  }

  /** The topmost directory that is on the same file system as the directory `path`, all between them too. */
  topOf(path: TreePath): TreePath {
    let at = path, dev = this.devOf(path);
    while (at !== ROOT) {
      if (this.points.has(at)) return at;
      const above = parentOf(at), there = this.devOf(above);
      if (there !== dev) return at;
      at = above;
      dev = there;
    }
    return at;
  }

  /** A path at or below `path` on which something is mounted, if there is any. */
  within(path: TreePath): TreePath | undefined {
    for (const point of this.points) if (isWithin(point, path)) return point;
    return undefined;
  }

  private devOf(path: TreePath): bigint | undefined {
    return this.ground.find(path)?.dev;
  }
}

function mountPoints(root: string): Set<TreePath> {
  const found = new Set<TreePath>();
  let table: string;
  try {
    table = fromBytes(readFileSync('/proc/self/mountinfo'));
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    return found;
  }
  const prefix = root === '/' ? root : root + '/';
  for (const line of table.split('\n')) {
    // Field 5; what would end it stands there in octal.
    const point = line.split(' ')[4]?.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
    if (point !== undefined && point.length > prefix.length && point.startsWith(prefix)) found.add(point.slice(prefix.length) as TreePath);
  }
  return found;
}

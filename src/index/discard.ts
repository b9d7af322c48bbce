import { isWithin, type TreePath } from '../core/path.ts';
import type { Change } from '../overlay/changes.ts';

/**
 * The paths to discard so that the changes at and below `paths` go whole: both ends of every rename among them, and
 * what was renamed into or out of those. Throws an error with `code` ENOENT for a path without a change at or below it.
 */
export function closure(changes: readonly Change[], paths: readonly TreePath[]): TreePath[] {
  for (const path of paths) {
    if (changes.some((change) => isWithin(change.path, path) || change.from === path || isWithin(path, change.path))) continue;
    throw Object.assign(new Error(`ENOENT: no change at or below "${path}"`), { code: 'ENOENT', path });
  }
  const chosen = new Set<TreePath>(paths);
  for (let grew = true; grew;) {
    grew = false;
    for (const { path, from } of changes) {
      if (from === undefined) continue;
      const touched = [...chosen].some((each) => isWithin(path, each) || isWithin(from, each));
      if (!touched || (chosen.has(path) && chosen.has(from))) continue;
      chosen.add(path).add(from);
      grew = true;
    }
  }
  return [...chosen].sort();
}

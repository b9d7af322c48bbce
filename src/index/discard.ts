import { childOf, isWithin, ROOT, type TreePath } from '../core/path.ts';
import { nodeOf, type State } from '../core/state.ts';
import { WHITEOUT } from '../core/tree.ts';
import type { Change } from '../overlay/changes.ts';

/**
 * The paths to discard so that the changes at and below `paths` go whole: both ends of every rename among them, and
 * what was renamed into or out of those. Throws an error with `code` ENOENT for a path without a change at or below it, and
 * EBUSY for one whose change is part of another's, which it names: a child of a directory that was removed or replaced.
 */
export function closure(state: State, changes: readonly Change[], paths: readonly TreePath[]): TreePath[] {
  for (const path of paths) {
    if (changes.some((change) => isWithin(change.path, path) || (change.from !== undefined && isWithin(change.from, path)))) continue;
    throw discardError('ENOENT', path, `no change at or below "${path}"`);
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
  for (const path of chosen) demandSeparate(state, path);
  return [...chosen].sort();
}

/** Throws EBUSY where a change above `path` makes it what it is, so that it cannot go without that one. */
function demandSeparate(state: State, path: TreePath): void {
  let node = state.root, above = ROOT;
  for (const name of path.split('/')) {
    const here = childOf(above, name), entry = node.names?.get(name);
    if (entry === undefined && node.below(name) === undefined) throw partOf(path, above);
    if (here === path || entry === undefined) return;
    const next = nodeOf(state, entry);
    if (next === WHITEOUT || next.type !== 'directory') throw partOf(path, here);
    node = next;
    above = here;
  }
}

function partOf(path: TreePath, other: TreePath): Error {
  return discardError('EBUSY', path, `the change of "${path}" is part of that of "${other}"`);
}

function discardError(code: string, path: TreePath, words: string): Error {
  return Object.assign(new Error(`${code}: ${words}`), { code, path });
}

import { childOf, isWithin, ROOT, type TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { spotType, type Spot } from '../overlay/spot.ts';
import { gitName } from './git-name.ts';
import type { Omission } from './omission.ts';
import { isChosen, type Snapshot } from './snapshot.ts';

/** What of a tree is told to others, and who hears of what is not. */
export interface TreeOptions {
  /** Only what lies at and below these, with the directories that lead there. */
  readonly paths?: readonly TreePath[] | undefined;
  /** Paths whose content is told as a digest only. */
  readonly isRedacted: (path: TreePath) => boolean;
  readonly omit: (omission: Omission) => void;
}

/** All there is in a tree but its root, by path, a directory before what it holds; `enters`: whether what is in a directory is wanted. */
export function* everything(snapshot: Snapshot, { paths, omit }: Pick<TreeOptions, 'paths' | 'omit'>, enters: (path: TreePath) => boolean = () => true): Generator<Spot> {
  const waiting: Spot[] = [snapshot.root()];
  for (let spot = waiting.pop(); spot !== undefined; spot = waiting.pop()) {
    const { path } = spot, isWanted = isChosen(path, paths);
    if (!isWanted && paths?.some((each) => isWithin(each, path)) !== true) continue;
    if (path !== ROOT) yield spot;
    if (spotType(spot) !== 'directory' || !enters(path)) continue;
    const children: Spot[] = [];
    for (const name of listed(snapshot, spot, omit)) {
      const child = childAt(snapshot, spot, name, omit);
      if (child !== undefined) children.push(child);
    }
    for (const child of children.reverse()) waiting.push(child);
  }
}

/** What a redacted file holds for others: what it would be known by. */
export function standIn(version: string | undefined): Buffer {
  return Buffer.from(`redacted ${version ?? ''}\n`);
}

/**
 * The pieces of a file's content, the first of them read already: `undefined` where it cannot be read, of which `omit` hears. Later ones throw
 * as `Snapshot.chunks`.
 */
export function begun(spot: Spot, pieces: Generator<Uint8Array>, omit: TreeOptions['omit']): Iterable<Uint8Array> | undefined {
  const first = attempt(spot.path, () => pieces.next(), omit);
  if (first === undefined) return undefined;
  return (function* () {
    for (let next = first; next.done !== true; next = pieces.next()) yield next.value;
  })();
}

function listed(snapshot: Snapshot, directory: Spot, omit: TreeOptions['omit']): readonly string[] {
  return attempt(directory.path, () => snapshot.names(directory), omit) ?? [];
}

function childAt(snapshot: Snapshot, directory: Spot, name: string, omit: TreeOptions['omit']): Spot | undefined {
  return attempt(childOf(directory.path, name), () => snapshot.child(directory, name), omit);
}

function attempt<T>(path: TreePath, act: () => T, omit: TreeOptions['omit']): T | undefined {
  try {
    return act();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    omit({ path, kind: 'unreadable', words: `${gitName(path)}, which cannot be read: ${error.reason ?? error.code}` });
    return undefined;
  }
}

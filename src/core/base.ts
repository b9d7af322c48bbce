import type { FingerprintRecord, LowerBase } from './event.ts';
import type { Names } from './names.ts';
import { compareNames, type TreePath } from './path.ts';
import type { Version } from './version.ts';

/**
 * What a change is based on: the lower as its actor last saw it before its own first change there, else as that change found it.
 * Whoever publishes the change expects the lower to be that still.
 */
export interface Base {
  /** As the change found it; `undefined` where nothing was there. */
  readonly found: LowerBase | undefined;
  /** The change: by whom, when, which event. */
  readonly actor: string;
  readonly time: string;
  readonly seq: number;
  /** Other bytes could have the same fingerprint: what was found had only just been written. */
  readonly racy?: true;
  /** What the actor had seen last, where that was something else than what the change then found. */
  readonly seen?: Sight;
}

/** A look at the lower. */
export type Sight =
  | { readonly kind: 'absent'; readonly seq: number }
  | { readonly kind: 'present'; readonly seq: number; readonly version?: Version; readonly fingerprint: FingerprintRecord };

/** The bases of lower paths below `origin`, by the bytes of the paths. */
export function* basesBelow(bases: Names<Base>, origin: TreePath): Generator<[TreePath, Base]> {
  const all = bases.names(), prefix = origin === '' ? '' : `${origin}/`;
  // Sorted by bytes, so whatever begins with the prefix lies together; only names that are not well-formed need a look at all.
  for (let at = prefix.isWellFormed() ? firstFrom(all, prefix) : 0; at < all.length; at++) {
    const path = all[at] as TreePath;
    if (path.startsWith(prefix)) {
      if (path !== origin) yield [path, bases.get(path) as Base];
    } else if (prefix.isWellFormed()) return;
  }
}

function firstFrom(sorted: readonly string[], prefix: string): number {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compareNames(sorted[middle] as string, prefix) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

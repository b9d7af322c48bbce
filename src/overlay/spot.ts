import { typeOf, type Attr, type NodeType } from '../core/attr.ts';
import type { TreePath } from '../core/path.ts';
import type { Node } from '../core/tree.ts';

/**
 * Something that is there, where a look-up ended: a node of the overlay, or what the lower says under a path that the
 * overlay does not cover (`attr` is then the lower's, and `origin` its path there; without `attr` a directory).
 */
export interface Spot {
  readonly path: TreePath;
  readonly node: Node | undefined;
  readonly origin: TreePath | undefined;
  readonly attr: Attr | undefined;
  /** The name is the lower's alone; the node is known by another name of the same file. */
  readonly borrowed?: true;
}

/** Nothing is there. `parent`: the directory that would hold it, where that exists. */
export interface Missing {
  readonly path: TreePath;
  readonly parent: Spot | undefined;
  /** What the lower says of that directory, where the look told it. */
  readonly parentBelow?: Attr | undefined;
  /** Where the lower would have it: a name to look at before a whiteout is left out. */
  readonly origin: TreePath | undefined;
  /** Ended by a slash, or by `/.`: only a directory can be there. */
  readonly directoryOnly: boolean;
  /** The rule that hides the name: whether something is there is not said. */
  readonly hidden?: string;
}

/** The symlinks that a look-up followed, where somebody wants to know. */
interface Passed {
  readonly through?: readonly Spot[];
}

/** What a look-up found, and the name as asked where a symlink made it another. */
export type Look = (
  | { readonly kind: 'spot'; readonly spot: Spot }
  | { readonly kind: 'missing'; readonly missing: Missing }
  | { readonly kind: 'outside'; readonly outside: string }
) & Passed & { readonly via: string | undefined };

/**
 * The directory that holds a name, and the name; `special`: the path ends in no name. `slash`: slashes follow it. Outside
 * the tree, `outside` is the directory and `named` the whole path.
 */
export type ParentLook = Passed & (
  | { readonly kind: 'parent'; readonly parent: Spot; readonly name: string; readonly slash: boolean; readonly via: string | undefined }
  | { readonly kind: 'special'; readonly last: '/' | '.' | '..'; readonly slash: boolean }
  | { readonly kind: 'missing'; readonly missing: Missing; readonly via: string | undefined }
  | { readonly kind: 'outside'; readonly outside: string; readonly named: string }
);

/** What kind of thing a look-up found. */
export function spotType(spot: Spot): NodeType {
  if (spot.node !== undefined) return spot.node.type;
  return spot.attr === undefined ? 'directory' : typeOf(spot.attr.mode);
}

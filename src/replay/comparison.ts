import type { NodeType } from '../core/attr.ts';
import { childOf, compareNames, ROOT, type TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import type { Node } from '../core/tree.ts';
import { spotType, type Spot } from '../overlay/spot.ts';
import type { Snapshot } from './snapshot.ts';

/**
 * What became of one path from one tree to another. There may be no difference left in the end: what is not known without reading is
 * not looked at here.
 */
export interface Pair {
  readonly path: TreePath;
  /** Where it was; `undefined` for what is new. Of something that moved, another path. */
  readonly old: TreePath | undefined;
  /** Where it is: `path`; `undefined` for what is gone. */
  readonly now: TreePath | undefined;
  readonly type: NodeType;
}

/** A name that something has left, or has come to. */
interface Half {
  readonly path: TreePath;
  readonly type: NodeType;
  /** By which a file that moved is known again; `undefined` for half of a change of type, which is no move. */
  readonly key: string | undefined;
}

/**
 * Two trees compared, by path; what is the same by construction is skipped, so it costs what differs. A rename is one where a file has
 * left one name that is free now for another that was free before: whatever order somebody follows the pairs in, none is in another's way.
 */
export class Comparison {
  private readonly before: Snapshot;
  private readonly after: Snapshot;
  /** Sorted by path; of a change of type what went comes before what came. */
  readonly pairs: Pair[] = [];
  private readonly named = new Map<Node, TreePath[]>();
  private readonly gone: Half[] = [];
  private readonly come: Half[] = [];
  /** Whether what the lower shows through in both is the same. */
  private readonly shareLower: boolean;
  /** Whether a directory that is the same object can still hold other things: files that have names elsewhere, too. */
  private readonly linksDiffer: boolean;

  constructor(before: Snapshot, after: Snapshot) {
    this.before = before;
    this.after = after;
    const differ = differingLinks(before, after);
    this.linksDiffer = differ.length > 0;
    // Other names of a lower file show what was done to it by one of them: they are to be found in all of the lower.
    this.shareLower = before.sharesLower(after) && !differ.some(({ base }) => base !== undefined && base.nlink > 1);
    this.compare(ROOT, before.root(), after.root());
    this.pairMoves();
    this.pairs.sort((a, b) => compareNames(a.path, b.path) || Number(a.now !== undefined) - Number(b.now !== undefined));
  }

  /** Another name that a file has in the later tree, as far as it was looked at. */
  otherName({ path, node }: Spot): TreePath | undefined {
    return node && this.named.get(node)?.find((each) => each !== path);
  }

  private compare(path: TreePath, old: Spot | undefined, now: Spot | undefined): void {
    const isOld = old !== undefined && spotType(old) === 'directory', isNow = now !== undefined && spotType(now) === 'directory';
    if (now?.node !== undefined && !isNow && now.node.nlink > 1) this.noteName(now.node, path);
    if (isOld && isNow) {
      if (!this.isSame(old, now)) this.compareDirectories(path, old, now);
      return;
    }
    const isReplaced = old !== undefined && now !== undefined && spotType(old) !== spotType(now);
    if (old !== undefined && now !== undefined && !isReplaced) {
      if (!this.isSame(old, now)) this.pairs.push({ path, old: path, now: path, type: spotType(now) });
      return;
    }
    if (old !== undefined) {
      if (isOld) this.directory({ path, old: path, now: undefined, type: 'directory' }, old, undefined);
      else this.gone.push(half(path, old, !isReplaced || isNow ? this.before : undefined));
    }
    if (now === undefined) return;
    if (isNow) this.directory({ path, old: undefined, now: path, type: 'directory' }, undefined, now);
    else this.come.push(half(path, now, !isReplaced || isOld ? this.after : undefined));
  }

  private directory(pair: Pair, old: Spot | undefined, now: Spot | undefined): void {
    this.pairs.push(pair);
    const names = old === undefined ? this.namesAfter(now as Spot) : this.namesBefore(old);
    this.children(pair.path, names, old, now);
  }

  private compareDirectories(path: TreePath, old: Spot, now: Spot): void {
    if (now.node?.ino !== undefined && now.node !== old.node) this.pairs.push({ path, old: path, now: path, type: 'directory' });
    const below = this.before.below(old), isSameBelow = this.shareLower && below === this.after.below(now);
    const names = new Set(isSameBelow ? ownNames(old) : this.namesBefore(old));
    for (const name of isSameBelow ? ownNames(now) : this.namesAfter(now)) names.add(name);
    this.children(path, names, old, now);
  }

  private children(path: TreePath, names: Iterable<string>, old: Spot | undefined, now: Spot | undefined): void {
    for (const name of names) {
      this.compare(childOf(path, name), old && this.before.child(old, name), now && this.after.child(now, name));
    }
  }

  /** Whether two things of one type are the same without a look at what they hold. */
  private isSame(old: Spot, now: Spot): boolean {
    if (old.node === undefined && now.node === undefined) return this.shareLower && old.origin === now.origin;
    return old.node === now.node && (!this.linksDiffer || spotType(now) !== 'directory');
  }

  private pairMoves(): void {
    const left = new Map<string, TreePath>();
    for (const { path, key } of this.gone) if (key !== undefined) left.set(key, path);
    const moved = new Set<TreePath>();
    for (const { path, type, key } of this.come) {
      const old = key === undefined ? undefined : left.get(key);
      if (old !== undefined) {
        left.delete(key as string);
        moved.add(old);
      }
      this.pairs.push({ path, old, now: path, type });
    }
    for (const { path, type } of this.gone) if (!moved.has(path)) this.pairs.push({ path, old: path, now: undefined, type });
    this.gone.length = this.come.length = 0;
  }

  private noteName(node: Node, path: TreePath): void {
    const names = this.named.get(node);
    if (names === undefined) this.named.set(node, [path]);
    else names.push(path);
  }

  private namesBefore(directory: Spot): readonly string[] {
    return readable(() => this.before.names(directory));
  }

  private namesAfter(directory: Spot): readonly string[] {
    return readable(() => this.after.names(directory));
  }
}

/** What is kept of a thing is little: there may be very many. */
function half(path: TreePath, spot: Spot, moving: Snapshot | undefined): Half {
  const type = spotType(spot);
  return { path, type, key: moving && `${type} ${moving.identity(spot)}` };
}

/** Nodes with several names that are not the same in both. */
function differingLinks(before: Snapshot, after: Snapshot): readonly Node[] {
  const found: Node[] = [], a = before.state.links, b = after.state.links;
  b.forEach((node, key) => {
    if (a.get(key) !== node) found.push(node);
  });
  a.forEach((node, key) => {
    if (b.get(key) === undefined) found.push(node);
  });
  return found;
}

function ownNames({ node }: Spot): readonly string[] {
  return node?.names?.names() ?? [];
}

/** What may not be listed is as good as empty: whoever has no right to see it cannot say what became of it. */
function readable(list: () => readonly string[]): readonly string[] {
  try {
    return list();
  } catch (error) {
    if (error instanceof Refusal && error.code === 'EACCES') return [];
    throw error;
  }
}

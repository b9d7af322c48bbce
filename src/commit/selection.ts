import { basesBelow } from '../core/base.ts';
import { childOf, isWithin, parentOf, ROOT, type TreePath } from '../core/path.ts';
import { nodeOf } from '../core/state.ts';
import { Shared, WHITEOUT, type Entry, type Node } from '../core/tree.ts';
import type { Change } from '../overlay/changes.ts';
import type { World } from '../overlay/world.ts';

/** A name in the overlay's own tree, and what it means for the lower. */
interface Row {
  readonly path: TreePath;
  readonly node: Node | typeof WHITEOUT;
  /** The lower path that shows at this name, were the name not in the tree. */
  readonly natural: TreePath | undefined;
  /** It still is what the lower has there, changed or not. */
  readonly isInPlace: boolean;
  /** Of a file with several names: which. */
  readonly key: string | undefined;
}

/**
 * Which names of the overlay's tree are to be published: those asked for, with all they need, so that what is left can stay as
 * it is. What a rule hides is never among them.
 */
export class Selection {
  /** All names of the tree. */
  readonly isAll: boolean;
  private readonly chosen: ReadonlySet<TreePath>;
  private readonly rows: ReadonlyMap<TreePath, Row>;

  private constructor(isAll: boolean, chosen: ReadonlySet<TreePath>, rows: ReadonlyMap<TreePath, Row>) {
    this.isAll = isAll;
    this.chosen = chosen;
    this.rows = rows;
  }

  /**
   * What `paths` ask for, each with all below it; everything without them. Throws an error with `code` ENOENT for a path without a
   * change at or below it.
   */
  static of(world: World, changes: readonly Change[], paths: readonly TreePath[] | undefined): Selection {
    if (paths === undefined && world.gate === undefined) return new Selection(true, new Set(), new Map());
    for (const path of paths ?? []) {
      if (changes.some((change) => isWithin(change.path, path) || (change.from !== undefined && isWithin(change.from, path)))) continue;
      throw Object.assign(new Error(`ENOENT: no change at or below ${JSON.stringify(path)}`), { code: 'ENOENT', path });
    }
    const closing = new Closing(world);
    return new Selection(false, closing.chosen(paths ?? [ROOT]), closing.rows);
  }

  has(path: TreePath): boolean {
    return this.isAll || this.chosen.has(path);
  }

  /** The names, by their bytes of no importance; `undefined` where it is all. */
  get paths(): readonly TreePath[] | undefined {
    return this.isAll ? undefined : [...this.chosen].sort();
  }

  /** Whether a row of the change list is about what is published. */
  covers({ path }: Change): boolean {
    if (this.isAll || this.rows.has(path)) return this.has(path);
    for (let above = path; above !== ROOT;) {
      above = parentOf(above);
      if (this.rows.has(above)) return this.has(above);
    }
    return false;
  }
}

class Closing {
  readonly rows = new Map<TreePath, Row>();
  private readonly world: World;
  private readonly whiteouts = new Map<TreePath, Row>();
  /** By where in the lower what moved was. */
  private readonly moved = new Map<TreePath, Row>();
  private readonly groups = new Map<string, Row[]>();

  constructor(world: World) {
    this.world = world;
    const { root } = world.state;
    if (root.ino !== undefined) this.add({ path: ROOT, node: root, natural: ROOT, isInPlace: true, key: undefined });
    this.walk(root, ROOT);
  }

  chosen(paths: readonly TreePath[]): Set<TreePath> {
    const chosen = new Set<TreePath>(), waiting: Row[] = [];
    const choose = (row: Row | undefined): void => {
      if (row === undefined || chosen.has(row.path)) return;
      chosen.add(row.path);
      waiting.push(row);
    };
    for (const row of this.rows.values()) if (paths.some((path) => this.isAskedFor(row, path))) choose(row);
    for (const path of paths) choose(this.partOf(path));
    for (let row = waiting.pop(); row !== undefined; row = waiting.pop()) {
      for (const needed of this.needs(row)) choose(needed);
    }
    return chosen;
  }

  private isAskedFor({ path, node }: Row, asked: TreePath): boolean {
    return isWithin(path, asked) || (node !== WHITEOUT && this.isMoved(node) && isWithin(node.origin as TreePath, asked));
  }

  private isMoved(node: Node): boolean {
    return node.origin !== undefined && this.moved.has(node.origin);
  }

  /** Of a path that is no name of the tree: the change above it that makes it what it is. */
  private partOf(path: TreePath): Row | undefined {
    for (let above = path; above !== ROOT; above = parentOf(above)) {
      const row = this.rows.get(above);
      if (row !== undefined) return row.isInPlace ? undefined : row;
    }
    return undefined;
  }

  private *needs({ path, node, natural, isInPlace, key }: Row): Generator<Row | undefined> {
    for (let above = path; above !== ROOT;) {
      above = parentOf(above);
      const row = this.rows.get(above);
      if (row?.isInPlace === false) yield row;
    }
    if (key !== undefined) yield* this.groups.get(key) ?? [];
    if (node !== WHITEOUT && node.origin !== undefined) yield this.whiteouts.get(node.origin);
    if (isInPlace || natural === undefined) return;
    yield this.moved.get(natural);
    if (this.moved.size === 0) return;
    for (const [below] of basesBelow(this.world.state.bases, natural)) yield this.moved.get(below);
  }

  private walk(directory: Node, path: TreePath): void {
    directory.names?.forEach((entry, name) => {
      const { gate, state } = this.world, here = childOf(path, name), natural = directory.below(name), node = nodeOf(state, entry);
      if (gate?.hidesName(here, natural) !== undefined || (node !== WHITEOUT && gate?.hidesNode(node) !== undefined)) return;
      this.add({
        path: here, node, natural, isInPlace: node !== WHITEOUT && isInPlace(this.world, entry, node, natural),
        key: entry instanceof Shared ? entry.key : undefined,
      });
      if (node !== WHITEOUT && node.type === 'directory') this.walk(node, here);
    });
  }

  private add(row: Row): void {
    const { path, node, natural, key } = row;
    this.rows.set(path, row);
    if (key !== undefined) this.groups.set(key, [...this.groups.get(key) ?? [], row]);
    if (node === WHITEOUT) {
      if (natural !== undefined) this.whiteouts.set(natural, row);
    } else if (!row.isInPlace && node.origin !== undefined) this.moved.set(node.origin, row);
  }
}

/** Whether the lower shows the same file under the name; of a file with several names there, any of them will do. */
export function isInPlace(world: World, entry: Entry, node: Node, natural: TreePath | undefined): boolean {
  if (node.origin === natural && natural !== undefined) return true;
  if (natural === undefined || !(entry instanceof Shared)) return false;
  const attr = world.lower.lstat(natural);
  return typeof attr !== 'string' && attr.ino === node.ino && attr.dev === node.dev;
}

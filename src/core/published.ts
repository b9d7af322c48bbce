import { basesBelow, type Base } from './base.ts';
import type { CommitBody } from './event.ts';
import { Names } from './names.ts';
import { learn } from './observation.ts';
import { childOf, parentOf, rebase, ROOT, type TreePath } from './path.ts';
import { find, nodeOf, type State } from './state.ts';
import { Node, passThrough, Shared, WHITEOUT, type Entry } from './tree.ts';

/**
 * What a commit makes of the state: what was published is the lower's from now on, so its names fall through; the rest lies over the
 * lower as it is now. No event asks the lower, so the event says which names these are, and which lower directories moved.
 */
export function published(state: State, event: CommitBody): void {
  for (const { path, version } of event.versions ?? []) {
    const node = find(state, path);
    if (node instanceof Node) learn(state.observations, path, version, node.contentSeq);
  }
  if (event.paths === undefined) {
    state.root = passThrough(state.owner, ROOT);
    state.links = new Names(state.owner);
    state.bases = new Names(state.owner);
    return;
  }
  new Rest(state, new Set(event.paths), movesOf(event.moves ?? [])).take();
}

/** What a revert makes of the state: the overlay's own changes lie over lower directories that have moved back. */
export function relocate(state: State, moves: readonly TreePath[]): void {
  if (moves.length > 0) new Rest(state, new Set(), movesOf(moves)).take();
}

function movesOf(pairs: readonly TreePath[]): ReadonlyMap<TreePath, TreePath> {
  const moves = new Map<TreePath, TreePath>();
  for (let at = 0; at + 1 < pairs.length; at += 2) moves.set(pairs[at] as TreePath, pairs[at + 1] as TreePath);
  return moves;
}

/** What is left of a state when some of its names have gone to the lower. Nodes are never changed in place: forks may share them. */
class Rest {
  private readonly state: State;
  private readonly chosen: ReadonlySet<TreePath>;
  private readonly moves: ReadonlyMap<TreePath, TreePath>;
  /** Lower paths whose bases are of no use any more; with all below them where these went away as well. */
  private readonly settled = new Set<TreePath>();
  private readonly removed: TreePath[] = [];
  private readonly links = new Set<string>();

  constructor(state: State, chosen: ReadonlySet<TreePath>, moves: ReadonlyMap<TreePath, TreePath>) {
    this.state = state;
    this.chosen = chosen;
    this.moves = moves;
  }

  take(): void {
    const { state } = this, { owner } = state;
    state.root = this.directory(state.root, ROOT, ROOT) ?? passThrough(owner, ROOT);
    const links = new Names<Node>(owner);
    state.links.forEach((node, key) => {
      if (!this.links.has(key)) links.set(key, this.moved(node));
    });
    state.links = links;
    state.bases = this.bases();
  }

  /** A directory with what is left in it; `undefined` where nothing is. `natural`: what the lower has shown at its name. */
  private directory(node: Node, path: TreePath, natural: TreePath | undefined): Node | undefined {
    const { owner } = this.state, isChosen = this.chosen.has(path);
    if (isChosen) this.settle(node, natural);
    const names = new Names<Entry>(owner);
    let subdirectories = 0;
    node.names?.forEach((entry, name) => {
      const left = this.entry(entry, childOf(path, name), node.below(name));
      if (left === undefined) return;
      names.set(name, left);
      subdirectories += this.gain(entry, node.below(name), childOf(path, name));
    });
    const isPassed = isChosen || node.ino === undefined;
    if (isPassed && names.size === 0) return undefined;
    const left = isChosen ? passThrough(owner, path) : this.moved(node, owner);
    left.names = names;
    left.subdirectories = subdirectories;
    return left;
  }

  private entry(entry: Entry, path: TreePath, natural: TreePath | undefined): Entry | undefined {
    const node = nodeOf(this.state, entry);
    if (node !== WHITEOUT && node.type === 'directory') return this.directory(node, path, natural);
    if (!this.chosen.has(path)) return entry instanceof Node ? this.moved(entry) : entry;
    if (entry instanceof Shared) this.links.add(entry.key);
    this.settle(node, natural);
    return undefined;
  }

  /** Its bases are of no use any more. */
  private settle(node: Node | typeof WHITEOUT, natural: TreePath | undefined): void {
    if (natural !== undefined) {
      this.settled.add(natural);
      if (node === WHITEOUT || node.origin !== natural) this.removed.push(natural);
    }
    if (node !== WHITEOUT && node.origin !== undefined) this.settled.add(node.origin);
  }

  /** Subdirectories that an entry adds to those of the lower directory: one, none, or one less. */
  private gain(entry: Entry, natural: TreePath | undefined, path: TreePath): number {
    const node = nodeOf(this.state, entry), isDirectory = node !== WHITEOUT && node.type === 'directory';
    if (isDirectory && (node.origin === natural || this.chosen.has(path))) return 0;
    const hides = natural !== undefined && this.state.bases.get(natural)?.found?.type === 'directory';
    return Number(isDirectory) - Number(hides);
  }

  /** A node whose content comes from where the lower has it now. */
  private moved(node: Node, owner = node.owner): Node {
    const origin = node.origin === undefined ? undefined : this.placeOf(node.origin);
    if (origin === node.origin && owner === node.owner) return node;
    const { owner: ours } = this.state, { type, ino, dev, base } = node;
    return Object.assign(new Node(ours, { type, ino, dev, origin, base }), node, { owner: ours, origin });
  }

  /** Where the lower has now what it had at `path`. */
  private placeOf(path: TreePath): TreePath {
    if (this.moves.size === 0) return path;
    for (let above = path; ; above = parentOf(above)) {
      const to = this.moves.get(above);
      if (to !== undefined) return rebase(path, above, to);
      if (above === ROOT) return path;
    }
  }

  private bases(): Names<Base> {
    const bases = new Names<Base>(this.state.owner);
    const gone = new Set<TreePath>();
    for (const origin of this.removed) {
      for (const [path] of basesBelow(this.state.bases, origin)) if (this.placeOf(path) === path) gone.add(path);
    }
    this.state.bases.forEach((base, name) => {
      const path = name as TreePath;
      if (!this.settled.has(path) && !gone.has(path)) bases.set(this.placeOf(path), base);
    });
    return bases;
  }
}

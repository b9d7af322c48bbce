import { PERMISSION_BITS } from '../core/attr.ts';
import { basesBelow, type Base } from '../core/base.ts';
import type { LowerBase } from '../core/event.ts';
import { slices } from '../core/extents.ts';
import { childOf, parentOf, ROOT, type TreePath } from '../core/path.ts';
import type { Attributes, Below, Expectation, NewNode, Source, Step } from '../core/plan.ts';
import { Refusal } from '../core/refusal.ts';
import { nodeOf } from '../core/state.ts';
import { Shared, WHITEOUT, type Entry, type Node } from '../core/tree.ts';
import { unreachable } from '../core/unreachable.ts';
import { contentSize } from '../overlay/attributes.ts';
import type { World } from '../overlay/world.ts';
import { expectationOf } from './expectation.ts';
import { isInPlace, type Selection } from './selection.ts';

/** Most bytes of a file that are in memory at a time. */
const PIECE_BYTES = 1 << 20;

/** Something of the lower that gets another name. */
interface Move {
  readonly from: TreePath;
  readonly to: TreePath;
  readonly node: Node;
  /** In staging meanwhile; without, it can go at once. */
  readonly slot: number | undefined;
}

/** A file with several names in the tree. */
interface Group {
  /** The name that the file itself gets; the others are links to it. */
  readonly first: TreePath;
  /** 0 where that is a new name, 1 where the lower has the file by it, 2 where the overlay knows it by it too. */
  readonly rank: number;
}

/**
 * From the overlay's tree to what has to be done to the lower, in this order: what moves is taken out of the way (what lies
 * deepest first), or where nothing is in its way moved at once; then each directory from the top down is made what it should be; further names of
 * files come last. Asks the lower for nothing but content: what was there is what the changes were based on.
 */
export class Plan {
  readonly steps: Iterable<Step>;
  private readonly world: World;
  private readonly selection: Selection;
  private readonly moves = new Map<TreePath, Move>();
  private readonly groups = new Map<string, Group>();
  /** Files with several names, of which the tree has one at least. */
  private readonly named = new Set<string>();
  private readonly parked: readonly Move[];

  constructor(world: World, selection: Selection) {
    this.world = world;
    this.selection = selection;
    this.findGroups(world.state.root, ROOT);
    this.findMoves(world.state.root, ROOT);
    for (const move of this.moves.values()) if (!this.isSimple(move)) this.moves.set(move.from, { ...move, slot: this.nextSlot++ });
    this.parked = [...this.moves.values()].filter(({ slot }) => slot !== undefined).sort((a, b) => depthOf(b.from) - depthOf(a.from));
    this.steps = { [Symbol.iterator]: () => this.generate() };
  }

  private nextSlot = 1;

  /** Each lower directory that moves: its path before, then its path now. */
  get directoryMoves(): readonly TreePath[] {
    const pairs: TreePath[] = [];
    for (const { from, to, node } of this.moves.values()) if (node.type === 'directory') pairs.push(from, to);
    return pairs;
  }

  /** Files of the lower that were changed by a name which is gone by now: their other names, which the overlay never met, stay as they are. */
  *forgotten(): Generator<TreePath> {
    for (const key of this.world.state.links.names()) {
      const node = this.world.state.links.get(key);
      if (node?.origin === undefined || node.base === undefined || this.groups.has(key) || this.named.has(key)) continue;
      if (node.content.kind !== 'lower' || Object.keys(attributesOf(node, node.base)).length > 0) yield node.origin;
    }
  }

  private *generate(): Generator<Step> {
    for (const { from, slot } of this.parked) yield { act: 'park', path: from, before: this.movedExpectation(from), slot: slot as number };
    for (const { from, to, slot } of this.moves.values()) {
      if (slot === undefined) yield { act: 'move', from, to, before: this.movedExpectation(from) };
    }
    const { root } = this.world.state, links: Step[] = [];
    if (root.ino !== undefined && this.selection.has(ROOT)) yield* this.kept(ROOT, ROOT, root);
    yield* this.directory(root, ROOT, links);
    yield* links;
  }

  private *directory(directory: Node, path: TreePath, links: Step[]): Generator<Step> {
    for (const name of directory.names?.names() ?? []) {
      const entry = directory.names?.get(name) as Entry, here = childOf(path, name), natural = directory.below(name);
      const node = nodeOf(this.world.state, entry), isChosen = this.selection.has(here);
      const displaced = isChosen && natural !== undefined ? this.displaced(natural, here) : undefined;
      if (node === WHITEOUT) {
        if (displaced !== undefined) yield { act: 'remove', path: here, ...displaced };
        continue;
      }
      if (isInPlace(this.world, entry, node, natural)) {
        if (isChosen) yield* this.keptName(here, natural as TreePath, entry, node, links);
      } else if (!isChosen) continue;
      else yield* this.placed(here, entry, node, displaced, links);
      if (node.type === 'directory') yield* this.directory(node, here, links);
    }
  }

  private *keptName(path: TreePath, natural: TreePath, entry: Entry, node: Node, links: Step[]): Generator<Step> {
    const group = entry instanceof Shared ? this.groups.get(entry.key) : undefined;
    if (group === undefined || group.first === path) {
      yield* this.kept(path, node.origin ?? natural, node);
      return;
    }
    const base = this.world.state.bases.get(natural);
    if (base === undefined || !this.isRewritten(node, this.world.state.bases.get(node.origin as TreePath))) return;
    links.push({ act: 'replace', path, before: expectationOf(base, 'content'), node: { type: 'link', of: group.first }, attributes: 'own' });
  }

  private *placed(path: TreePath, entry: Entry, node: Node, displaced: Displaced | undefined, links: Step[]): Generator<Step> {
    const group = entry instanceof Shared ? this.groups.get(entry.key) : undefined;
    if (group !== undefined && group.first !== path) {
      const link: NewNode = { type: 'link', of: group.first };
      links.push(displaced === undefined ? { act: 'create', path, node: link } : { act: 'replace', path, ...displaced, node: link, attributes: 'own' });
      return;
    }
    const move = node.origin === undefined ? undefined : this.moves.get(node.origin);
    if (move === undefined) {
      const born = this.newNode(node, path);
      yield displaced === undefined ? { act: 'create', path, node: born } : { act: 'replace', path, ...displaced, node: born, attributes: 'own' };
      return;
    }
    if (move.slot !== undefined) {
      if (displaced !== undefined) yield { act: 'remove', path, ...displaced };
      yield { act: 'unpark', slot: move.slot, path };
    }
    yield* this.kept(path, move.from, node);
  }

  /** What has to be done to something of the lower that stays, at its place or at another, for it to be as the tree has it. */
  private *kept(path: TreePath, origin: TreePath, node: Node): Generator<Step> {
    const base = this.world.state.bases.get(origin), found = base?.found;
    if (node.ino === undefined || base === undefined || found === undefined) return;
    const set = attributesOf(node, found), isChanged = Object.keys(set).length > 0;
    if (node.type === 'file' && this.isRewritten(node, base)) {
      const file: NewNode = { type: 'file', content: this.source(node), ...set };
      yield { act: 'replace', path, before: expectationOf(base, 'content'), node: file, attributes: 'kept' };
    } else if (isChanged) yield { act: 'adjust', path, before: expectationOf(base, node.type === 'directory' ? 'metadata' : 'all'), set };
  }

  /** Whether a file of the lower has other bytes than it had. */
  private isRewritten(node: Node, base: Base | undefined): boolean {
    if (node.content.kind === 'lower' || node.type !== 'file') return false;
    const found = base?.found;
    if (found === undefined || this.world.attributes.sizeOf(node) !== found.size) return true;
    const before = found.version ?? (node.origin === undefined ? undefined : this.world.versionOfLower(node.origin));
    return before !== this.world.contents.versionOf(node);
  }

  private displaced(natural: TreePath, path: TreePath): Displaced | undefined {
    const base = this.world.state.bases.get(natural);
    if (base === undefined || this.moves.has(natural)) return undefined;
    const before = expectationOf(base, 'content');
    return base.found?.type === 'directory' ? { before, below: { [Symbol.iterator]: () => this.below(natural, path) } } : { before };
  }

  /** What was known to be in a lower directory that goes away, and is not taken out of it by a move. */
  private *below(natural: TreePath, path: TreePath): Generator<Below> {
    for (const [origin, base] of basesBelow(this.world.state.bases, natural)) {
      if (this.isTakenOut(origin, natural) || base.found === undefined) continue;
      yield { path: (path + origin.slice(natural.length)) as TreePath, expected: expectationOf(base, 'content') };
    }
  }

  private isTakenOut(origin: TreePath, top: TreePath): boolean {
    if (this.moves.size === 0) return false;
    for (let above = origin; above !== top; above = parentOf(above)) if (this.moves.has(above)) return true;
    return false;
  }

  private movedExpectation(origin: TreePath): Expectation {
    const base = this.world.state.bases.get(origin);
    if (base === undefined) return DIRECTORY;
    return expectationOf(base, base.found?.type === 'directory' ? 'type' : 'content');
  }

  private findGroups(directory: Node, path: TreePath): void {
    if (this.world.state.links.size === 0) return;
    for (const name of directory.names?.names() ?? []) {
      const entry = directory.names?.get(name) as Entry, here = childOf(path, name), node = nodeOf(this.world.state, entry);
      if (node === WHITEOUT) continue;
      if (node.type === 'directory') this.findGroups(node, here);
      if (!(entry instanceof Shared)) continue;
      this.named.add(entry.key);
      if (!this.selection.has(here)) continue;
      const natural = directory.below(name), known = this.groups.get(entry.key);
      const isSame = isInPlace(this.world, entry, node, natural), rank = !isSame ? 0 : node.origin === natural ? 2 : 1;
      if (known === undefined || rank > known.rank) this.groups.set(entry.key, { first: here, rank });
    }
  }

  private findMoves(directory: Node, path: TreePath): void {
    directory.names?.forEach((entry, name) => {
      const here = childOf(path, name), node = nodeOf(this.world.state, entry);
      if (node === WHITEOUT) return;
      if (node.type === 'directory') this.findMoves(node, here);
      if (node.origin === undefined || node.ino === undefined || !this.selection.has(here)) return;
      if (isInPlace(this.world, entry, node, directory.below(name))) return;
      const group = entry instanceof Shared ? this.groups.get(entry.key) : undefined;
      if (group !== undefined && (group.first !== here || group.rank > 0)) return;
      this.moves.set(node.origin, { from: node.origin, to: here, node, slot: undefined });
    });
  }

  /** Whether a move can be done before anything else: its target is free, in a directory that stays, and so do those it comes from. */
  private isSimple({ from, to }: Move): boolean {
    const parent = parentOf(to);
    if (!this.standsInPlace(parent) || this.world.state.bases.get(to)?.found !== undefined) return false;
    for (let above = from; above !== ROOT;) {
      above = parentOf(above);
      if (this.moves.has(above) || !this.stays(above)) return false;
    }
    return true;
  }

  /** Whether the directory at `path` is the lower's own, at the place it has always had. */
  private standsInPlace(path: TreePath): boolean {
    let node: Node | undefined = this.world.state.root;
    for (let start = 0; start < path.length && node !== undefined;) {
      const slash = path.indexOf('/', start), end = slash < 0 ? path.length : slash, name = path.slice(start, end);
      const entry: Entry | undefined = node.names?.get(name), natural: TreePath | undefined = node.below(name);
      if (entry === undefined) return natural !== undefined;
      const next: Node | typeof WHITEOUT = nodeOf(this.world.state, entry);
      if (next === WHITEOUT || next.type !== 'directory' || next.origin !== natural) return false;
      node = next;
      start = end + 1;
    }
    return true;
  }

  /** Whether the commit leaves what the lower has at `path` where it is. */
  private stays(path: TreePath): boolean {
    let node: Node = this.world.state.root;
    for (let start = 0; start < path.length;) {
      const slash = path.indexOf('/', start), end = slash < 0 ? path.length : slash, name = path.slice(start, end);
      const entry = node.names?.get(name);
      if (entry === undefined) return true;
      const next = nodeOf(this.world.state, entry);
      const isSame = next !== WHITEOUT && next.origin === node.below(name);
      if (!isSame) return !this.selection.has(path.slice(0, end) as TreePath);
      node = next;
      start = end + 1;
    }
    return true;
  }

  private newNode(node: Node, path: TreePath): NewNode {
    const attributes = this.ownAttributes(node), { type } = node;
    switch (type) {
      case 'file': return { type, content: this.source(node), ...attributes };
      case 'directory': return { type, ...attributes };
      case 'symlink': return { type, target: node.target ?? '', ...attributes, mode: undefined };
      case 'fifo': return { type, ...attributes };
      case 'block': case 'character': return { type, rdev: node.rdev, ...attributes };
      case 'socket': throw new Refusal('ENOTSUP', { reason: `not supported: to publish the socket ${JSON.stringify(path)}` });
      default: return unreachable(type);
    }
  }

  /** Those of something that is new to the lower. */
  private ownAttributes(node: Node): Attributes {
    const attr = this.world.attributes.ofNode(node), { credentials } = this.world;
    return {
      mode: attr.mode & PERMISSION_BITS,
      ...(attr.uid !== credentials.uid && { uid: attr.uid }), ...(attr.gid !== credentials.gid && { gid: attr.gid }),
      ...(node.timesSet && { atime: attr.atime, mtime: attr.mtime }), ...xattrsField(node),
    };
  }

  private source(node: Node): Source {
    const { contents, attributes } = this.world, size = attributes.sizeOf(node);
    return { size, version: node.content.kind === 'lower' ? undefined : node.version, pieces: () => pieces() };

    function* pieces(): Generator<{ at: number; bytes: Uint8Array }> {
      for (const { at, length } of runsOf(node, size)) {
        for (let done = 0; done < length;) {
          const bytes = Buffer.allocUnsafeSlow(Math.min(PIECE_BYTES, length - done));
          const count = contents.read(node, undefined, bytes, 0, bytes.length, at + done);
          if (count === 0) throw new Refusal('EIO', { reason: 'content ends before its size' });
          yield { at: at + done, bytes: bytes.subarray(0, count) };
          done += count;
        }
      }
    }
  }
}

interface Displaced {
  readonly before: Expectation;
  readonly below?: Iterable<Below>;
}

const DIRECTORY: Expectation = { state: { type: 'directory', mode: 0o755, uid: 0, gid: 0 }, aspects: 'type' };

/** What was changed of something that the lower has. */
function attributesOf(node: Node, found: LowerBase): Attributes {
  const set: { -readonly [K in keyof Attributes]: Attributes[K] } = {};
  if (node.type !== 'symlink' && node.mode !== undefined && (node.mode & PERMISSION_BITS) !== (found.mode & PERMISSION_BITS)) {
    set.mode = node.mode & PERMISSION_BITS;
  }
  if (node.uid !== undefined && node.uid !== found.uid) set.uid = node.uid;
  if (node.gid !== undefined && node.gid !== found.gid) set.gid = node.gid;
  if (node.timesSet && node.mtime !== undefined && String(node.mtime) !== found.mtime) {
    set.atime = node.atime;
    set.mtime = node.mtime;
  }
  return Object.assign(set, xattrsField(node));
}

function xattrsField({ xattrs }: Node): { xattrs?: ReadonlyMap<string, string | null> } {
  if (xattrs === undefined || xattrs.size === 0) return {};
  return { xattrs: new Map(Array.from(xattrs, ([name, value]) => [name, value ?? null])) };
}

/** The ranges of a file that are no hole. */
function runsOf({ content }: Node, size: number): Iterable<{ at: number; length: number }> {
  if (content.kind !== 'extents') return size === 0 ? [] : [{ at: 0, length: content.kind === 'lower' ? size : contentSize(content) }];
  return slices(content.map, 0, content.map.size).filter(({ source }) => source.kind !== 'zeros');
}

function depthOf(path: TreePath): number {
  let depth = 0;
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) depth++;
  return depth;
}

import { childOf, type TreePath } from '../core/path.ts';
import { WHITEOUT } from '../core/tree.ts';
import { nodeOf } from '../core/state.ts';
import { originOf } from './attributes.ts';
import { hiddenName, type Gate } from './gate.ts';
import type { Observed } from './recorder.ts';
import { spotType, type Spot } from './spot.ts';
import type { SystemEntry } from './system.ts';
import type { World } from './world.ts';

/** What stands in the way of a move: a hidden name, or a name that would leave the rule that denies something of it. */
interface Obstacle {
  readonly path: TreePath;
  readonly rule: string;
  readonly kind: 'hidden' | 'freed';
}

/** What path rules leave of directories: which names are shown, and whether one may move as a whole. */
export class Sieve {
  private readonly world: World;
  private readonly gate: Gate;

  constructor(world: World, gate: Gate) {
    this.world = world;
    this.gate = gate;
  }

  /** Those of a directory's entries that no rule hides; the same list where that is all of them. */
  shown(directory: Spot, entries: readonly SystemEntry[]): readonly SystemEntry[] {
    if (!this.gate.sifts(directory)) return entries;
    const shown = entries.filter(({ name }) => this.hides(directory, name) === undefined);
    return shown.length === entries.length ? entries : shown;
  }

  /** That a directory, which looks empty, is not: its hidden names are flagged. */
  tellHidden(actor: string, directory: Spot, entries: readonly SystemEntry[], call: string): void {
    for (const { name } of entries) {
      const rule = this.hides(directory, name);
      if (rule !== undefined) this.world.recorder.flag(actor, { path: childOf(directory.path, name), via: undefined }, rule, call);
    }
  }

  /**
   * Throws EACCES where what goes by a spot's name may not be called `to`: it holds something hidden, something in it would
   * be, or what the overlay made under a rule that denies would leave it. (What came from the lower stays under its rules.)
   */
  demandMovable(actor: string, source: Spot, to: TreePath, call: string): void {
    const obstacle = this.obstacle(source, to);
    if (obstacle === undefined) return;
    const at: Observed = { path: obstacle.path, via: undefined };
    if (obstacle.kind === 'freed') throw this.gate.denied(actor, at, call, obstacle.rule);
    this.world.recorder.flag(actor, at, obstacle.rule, call);
    throw hiddenName();
  }

  private obstacle(source: Spot, to: TreePath): Obstacle | undefined {
    const rule = this.gate.freed(source, to);
    if (rule !== undefined) return { path: source.path, rule, kind: 'freed' };
    return spotType(source) === 'directory' ? this.obstacleBelow(source, to) : undefined;
  }

  private obstacleBelow(directory: Spot, to: TreePath): Obstacle | undefined {
    const { rules } = this.gate, origin = originOf(directory);
    const paths = [directory.path, to, ...(origin === undefined ? [] : [origin])];
    if (!paths.some((path) => rules.reach(path) || rules.at(path) !== undefined)) return undefined;
    for (const { name, type } of this.entries(directory)) {
      const path = childOf(directory.path, name), named = childOf(to, name);
      const rule = this.hides(directory, name) ?? rules.at(named)?.hides;
      if (rule !== undefined) return { path, rule, kind: 'hidden' };
      const child = this.childOf(directory, name);
      const freed = this.gate.freed(child, named);
      if (freed !== undefined) return { path, rule: freed, kind: 'freed' };
      const below = type === 'directory' ? this.obstacleBelow(child, named) : undefined;
      if (below !== undefined) return below;
    }
    return undefined;
  }

  /** A directory that may not be listed might hold anything: it stays where it is. */
  private entries(directory: Spot): readonly SystemEntry[] {
    return this.world.entries(directory);
  }

  /** The rule that hides an entry of a directory. */
  private hides(directory: Spot, name: string): string | undefined {
    const { gate } = this, path = childOf(directory.path, name), child = this.childOf(directory, name);
    const hidden = gate.hidesName(path, child.origin);
    if (hidden !== undefined) return hidden;
    if (child.node !== undefined) return gate.hidesNode(child.node);
    if (!gate.hasLinks || child.origin === undefined) return undefined;
    const attr = this.world.lower.lstat(child.origin);
    return typeof attr === 'string' ? undefined : gate.hidesFile(attr);
  }

  /** An entry of a directory, the lower not asked. */
  private childOf(directory: Spot, name: string): Spot {
    const { node } = directory, path = childOf(directory.path, name), entry = node?.names?.get(name);
    const origin = node !== undefined ? node.below(name) : directory.origin && childOf(directory.origin, name);
    const found = entry === undefined ? undefined : nodeOf(this.world.state, entry);
    return { path, node: found === WHITEOUT ? undefined : found, origin, attr: undefined };
  }
}

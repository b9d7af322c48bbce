import type { Attr } from '../core/attr.ts';
import { childOf, ROOT, type TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { linkKey, type Node } from '../core/tree.ts';
import type { Lower } from '../lower/lower.ts';
import { originOf } from './attributes.ts';
import type { Observed, Recorder } from './recorder.ts';
import type { Operation, PathRules, Ruling } from './ruling.ts';
import type { Look, Missing, Spot } from './spot.ts';

const NONE: readonly Ruling[] = [];

/**
 * Rules applied to what look-ups find. A file goes by the name it has now, by the lower path it comes from, and by every
 * name that it has in the lower: neither a rename nor a hard link leads out of a rule. Not seen are further names that an
 * outsider gives a lower file after the first look.
 */
export class Gate {
  readonly rules: PathRules;
  private readonly lower: Lower;
  private readonly recorder: Recorder;
  /** Lower files with several names, one of which some rule speaks of: all names of theirs that it speaks of. */
  private linked: Map<string, TreePath[]> | undefined = undefined;

  constructor(parts: { rules: PathRules; lower: Lower; recorder: Recorder }) {
    this.rules = parts.rules;
    this.lower = parts.lower;
    this.recorder = parts.recorder;
  }

  /** By which rule a name is hidden; `origin`: where the lower would have what goes by it. */
  hidesName(path: TreePath, origin: TreePath | undefined): string | undefined {
    if (!this.rules.hide) return undefined;
    const hidden = this.rules.at(path)?.hides;
    return hidden !== undefined || origin === undefined || origin === path ? hidden : this.rules.at(origin)?.hides;
  }

  /** By which rule a node is hidden, whatever its name. */
  hidesNode(node: Node): string | undefined {
    if (!this.rules.hide || node.origin === undefined) return undefined;
    return this.rules.at(node.origin)?.hides ?? this.byLink(this.namesOfNode(node));
  }

  /** By which rule a lower file is hidden for another name that it has. */
  hidesFile(attr: Attr): string | undefined {
    return this.rules.hide ? this.byLink(this.namesOf(attr)) : undefined;
  }

  /** Whether names in a directory need to be looked at one by one before they are shown. */
  sifts(directory: Spot): boolean {
    if (!this.rules.hide) return false;
    const origin = originOf(directory);
    return this.rules.reach(directory.path) || (origin !== undefined && this.rules.reach(origin)) || directory.node !== undefined
      || this.links().size > 0;
  }

  /** Whether any lower file with several names is one that rules speak of, so that only its attributes can tell. */
  get hasLinks(): boolean {
    return this.links().size > 0;
  }

  /** Throws EACCES where rules deny any of `operations` on what a look-up found; flags them where rules do that. */
  demand(actor: string, at: Observed, spot: Spot, operations: readonly Operation[], call: string): void {
    const rulings = this.of(spot);
    if (rulings.length > 0) this.apply(actor, at, rulings, operations, call);
  }

  /** Flags what a look-up found where rules do that, whatever they deny. */
  mark(actor: string, at: Observed, spot: Spot, operations: readonly Operation[], call: string): void {
    this.flag(actor, at, this.of(spot), operations, call);
  }

  /** The same for what it did not find. Whether that is hidden. */
  markMissing(actor: string, { missing, via }: Look & { kind: 'missing' }, operations: readonly Operation[], call: string): boolean {
    const at = { path: missing.path, via };
    if (missing.hidden !== undefined) this.recorder.flag(actor, at, missing.hidden, call);
    else this.flag(actor, at, this.ofNames(missing.path, naturalOrigin(missing)), operations, call);
    return missing.hidden !== undefined;
  }

  /** Throws EACCES where rules deny any of `operations`, whether something was found or not. Flags nothing. */
  demandUndenied(actor: string, look: Look, operations: readonly Operation[], call: string): void {
    if (look.kind === 'outside') return;
    if (look.kind === 'spot') return this.refuse(actor, { path: look.spot.path, via: look.via }, this.of(look.spot), operations, call);
    const { missing } = look;
    if (missing.hidden !== undefined) return;
    this.refuse(actor, { path: missing.path, via: look.via }, this.ofNames(missing.path, naturalOrigin(missing)), operations, call);
  }

  /** Whether rules say anything of `operation` on what a look-up found. */
  speaks(spot: Spot, operation: Operation): boolean {
    return this.of(spot).some(({ denies, flags }) => denies.has(operation) || flags.has(operation));
  }

  /** The same for a name that nothing goes by, and is not to be made. A hidden one is flagged. Whether it is hidden. */
  demandMissing(actor: string, missing: Missing, via: string | undefined, operations: readonly Operation[], call: string): boolean {
    const at = { path: missing.path, via };
    if (missing.hidden !== undefined) {
      this.recorder.flag(actor, at, missing.hidden, call);
      return true;
    }
    this.apply(actor, at, this.ofNames(missing.path, naturalOrigin(missing)), operations, call);
    return false;
  }

  /** The same for a name that is to be made: EACCES where it is hidden. */
  demandVacant(actor: string, missing: Missing, via: string | undefined, operations: readonly Operation[], call: string): void {
    if (this.demandMissing(actor, missing, via, operations, call)) throw hiddenName();
  }

  /** The same for the symlinks that a look-up followed: to follow one is to read it. */
  demandFollowed(actor: string, look: Pick<Look, 'through'>, call: string): void {
    for (const link of look.through ?? []) this.demand(actor, { path: link.path, via: undefined }, link, ['read'], call);
  }

  /** Whether rules deny `operation` on what a look-up found. Nothing is recorded. */
  denies(spot: Spot, operation: Operation): boolean {
    return this.of(spot).some(({ denies }) => denies.has(operation));
  }

  /** The rule that denies something of what is at a spot now, but would not once it is called `to`. */
  freed(spot: Spot, to: TreePath): string | undefined {
    const now = this.rules.at(spot.path);
    if (now === undefined || now.denies.size === 0) return undefined;
    const then = this.of({ ...spot, path: to });
    for (const [operation, rule] of now.denies) if (!then.some(({ denies }) => denies.has(operation))) return rule;
    return undefined;
  }

  /** Records that a call was refused by `rule`; says so. */
  denied(actor: string, at: Observed, call: string, rule: string): Refusal {
    this.recorder.refuse(actor, { path: at.path, ...(at.via === undefined ? undefined : { via: at.via }), call, code: 'EACCES', rule });
    return new Refusal('EACCES', { fsCode: 'FS_PERMISSION_DENIED', reason: `denied by the rule "${rule}"` });
  }

  private apply(actor: string, at: Observed, rulings: readonly Ruling[], operations: readonly Operation[], call: string): void {
    this.refuse(actor, at, rulings, operations, call);
    this.flag(actor, at, rulings, operations, call);
  }

  private refuse(actor: string, at: Observed, rulings: readonly Ruling[], operations: readonly Operation[], call: string): void {
    for (const { denies } of rulings) {
      for (const operation of operations) {
        const rule = denies.get(operation);
        if (rule !== undefined) throw this.denied(actor, at, call, rule);
      }
    }
  }

  private flag(actor: string, at: Observed, rulings: readonly Ruling[], operations: readonly Operation[], call: string): void {
    let rules: Set<string> | undefined;
    for (const { flags } of rulings) {
      for (const operation of operations) for (const rule of flags.get(operation) ?? []) (rules ??= new Set()).add(rule);
    }
    for (const rule of rules ?? []) this.recorder.flag(actor, at, rule, call);
  }

  /** Every ruling about what a look-up found. */
  private of(spot: Spot): readonly Ruling[] {
    const { node, attr, path } = spot;
    const found = this.ofNames(path, originOf(spot));
    const names = node === undefined ? attr && this.namesOf(attr) : this.namesOfNode(node);
    const borrowed = spot.borrowed === true ? spot.origin : undefined;
    if (names === undefined && borrowed === undefined) return found;
    const all = [...found];
    for (const name of [...(names ?? []), borrowed]) {
      const ruling = name === undefined ? undefined : this.rules.at(name);
      if (ruling !== undefined && !all.includes(ruling)) all.push(ruling);
    }
    return all;
  }

  private ofNames(path: TreePath, origin: TreePath | undefined): readonly Ruling[] {
    const here = this.rules.at(path), below = origin === undefined || origin === path ? undefined : this.rules.at(origin);
    if (here === undefined) return below === undefined ? NONE : [below];
    return below === undefined || below === here ? [here] : [here, below];
  }

  private byLink(names: readonly TreePath[] | undefined): string | undefined {
    for (const name of names ?? []) {
      const hidden = this.rules.at(name)?.hides;
      if (hidden !== undefined) return hidden;
    }
    return undefined;
  }

  private namesOf(attr: Attr): readonly TreePath[] | undefined {
    if (attr.nlink <= 1 || (attr.mode & 0o170000) === 0o040000) return undefined;
    return this.links().get(linkKey(attr.dev, attr.ino));
  }

  private namesOfNode(node: Node): readonly TreePath[] | undefined {
    if (node.base === undefined || node.base.nlink <= 1 || node.type === 'directory') return undefined;
    return this.links().get(linkKey(node.dev, node.ino as bigint));
  }

  private links(): ReadonlyMap<string, readonly TreePath[]> {
    if (this.linked === undefined) {
      this.linked = new Map();
      this.gather(ROOT, this.linked);
    }
    return this.linked;
  }

  /** Looks through those parts of the lower that rules speak of. */
  private gather(directory: TreePath, links: Map<string, TreePath[]>): void {
    for (const { name, type } of listed(this.lower, directory)) {
      const path = childOf(directory, name), isRuled = this.rules.at(path) !== undefined;
      if (type === 'directory') {
        if (isRuled || this.rules.reach(path)) this.gather(path, links);
        continue;
      }
      const attr = isRuled ? this.lower.lstat(path) : 'absent';
      if (typeof attr === 'string' || attr.nlink <= 1) continue;
      const key = linkKey(attr.dev, attr.ino), names = links.get(key);
      if (names === undefined) links.set(key, [path]);
      else names.push(path);
    }
  }
}

/** A name that a rule hides, and that is to be made, moved or taken by something else. */
export function hiddenName(): Refusal {
  return new Refusal('EACCES', { fsCode: 'FS_PERMISSION_DENIED', reason: 'a name that a rule hides' });
}

/** Where the lower would have a name that nothing goes by. */
function naturalOrigin({ path, parent, origin }: Missing): TreePath | undefined {
  if (origin !== undefined || parent === undefined) return origin;
  const name = path.slice(path.lastIndexOf('/') + 1);
  if (parent.node !== undefined) return parent.node.below(name);
  return parent.origin === undefined ? undefined : childOf(parent.origin, name);
}

/** The entries of a lower directory; none where it cannot be listed. */
function listed(lower: Lower, directory: TreePath): ReturnType<Lower['list']> {
  try {
    return lower.list(directory);
  } catch (error) {
    if (error instanceof Refusal) return [];
    throw error;
  }
}

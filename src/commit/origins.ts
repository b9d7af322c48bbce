import { childOf, ROOT, type TreePath } from '../core/path.ts';
import type { Step } from '../core/plan.ts';

/**
 * Where a name of a plan is on the disk before the plan begins: its lower path; `vacant`: an earlier step took away
 * what is there; `new`: an earlier step makes it, or a directory above it.
 */
export type Origin = { readonly kind: 'disk'; readonly path: TreePath } | { readonly kind: 'vacant' } | { readonly kind: 'new' };

const VACANT: Origin = { kind: 'vacant' };
const NEW: Origin = { kind: 'new' };

/** A name that some step so far has changed, or that has such names below it. Without `origin` it is where its parent is. */
interface Spot {
  origin?: Origin;
  below?: Map<string, Spot>;
}

/** Follows a plan step by step; knows of every name where it comes from. Holds what was moved, removed or made a directory. */
export class Origins {
  private readonly top: Spot = {};
  private readonly parked = new Map<number, Spot>();

  of(path: TreePath): Origin {
    let spot: Spot | undefined = this.top;
    let origin: Origin = { kind: 'disk', path: ROOT };
    for (const name of namesOf(path)) {
      spot = spot?.below?.get(name);
      origin = spot?.origin ?? beneath(origin, name);
    }
    return origin;
  }

  /** Lower paths below the lower path of `path` that are not there any more at this point: taken away, moved, or made anew. */
  gone(path: TreePath): ReadonlySet<TreePath> {
    const found = new Set<TreePath>(), origin = this.of(path);
    let top: Spot | undefined = this.top;
    for (const name of namesOf(path)) top = top?.below?.get(name);
    const visit = (spot: Spot, disk: TreePath): void => {
      for (const [name, child] of spot.below ?? []) {
        const natural = childOf(disk, name);
        if (child.origin === undefined || (child.origin.kind === 'disk' && child.origin.path === natural)) visit(child, natural);
        else found.add(natural);
      }
    };
    if (top !== undefined && origin.kind === 'disk') visit(top, origin.path);
    return found;
  }

  /** Goes on past `step`. */
  pass(step: Step): void {
    switch (step.act) {
      case 'create':
      case 'replace':
        // Of what neither was nor is a directory nothing below is ever asked.
        if (step.node.type === 'directory' || (step.act === 'replace' && step.before.state.type === 'directory')) {
          this.put(step.path, { origin: NEW });
        }
        return;
      case 'remove': return this.put(step.path, { origin: VACANT });
      case 'move': {
        const spot = this.take(step.from);
        this.put(step.from, { origin: VACANT });
        return this.put(step.to, spot);
      }
      case 'park':
        this.parked.set(step.slot, this.take(step.path));
        return this.put(step.path, { origin: VACANT });
      case 'unpark': {
        const spot = this.parked.get(step.slot);
        if (spot === undefined) throw new RangeError(`nothing is parked in ${step.slot}`);
        this.parked.delete(step.slot);
        return this.put(step.path, spot);
      }
      case 'adjust': return;
    }
  }

  private take(path: TreePath): Spot {
    const origin = this.of(path);
    let spot: Spot | undefined = this.top;
    for (const name of namesOf(path)) spot = spot?.below?.get(name);
    return spot?.below === undefined ? { origin } : { origin, below: spot.below };
  }

  private put(path: TreePath, spot: Spot): void {
    const names = namesOf(path), last = names.pop();
    if (last === undefined) throw new RangeError('the root is in no directory');
    let holder = this.top;
    for (const name of names) {
      const found: Spot = holder.below?.get(name) ?? {};
      (holder.below ??= new Map()).set(name, found);
      holder = found;
    }
    (holder.below ??= new Map()).set(last, spot);
  }
}

function namesOf(path: TreePath): string[] {
  return path === '' ? [] : path.split('/');
}

function beneath(origin: Origin, name: string): Origin {
  return origin.kind === 'disk' ? { kind: 'disk', path: childOf(origin.path, name) } : origin;
}

import type { Decider, Decision, Intent } from '../core/guard.ts';
import type { Observation } from '../core/observation.ts';

/** How much of a file an actor must have been shown before it may change it. */
export type Requirement = 'any-read' | 'viewed' | 'whole';

export interface ObservationPolicyOptions {
  /**
   * `any-read` (the default): any read of it will do. `viewed`: what an edit replaces must lie in what the actor was shown. `whole`:
   * besides, a write of the whole file needs all of it shown.
   */
  readonly requires?: Requirement;
}

const REQUIREMENTS: readonly unknown[] = ['any-read', 'viewed', 'whole'];

/**
 * What an actor has seen of a path decides what it may change: what it has not seen it may only create, and what it has seen only as
 * long as that is still what is there. It does no I/O: it makes guards, which the overlay checks as it applies the change. Throws
 * TypeError for an option that is unknown or of another kind.
 */
export function observationPolicy(options: ObservationPolicyOptions = {}): Decider {
  if (typeof options !== 'object' || options === null) throw invalid('options', 'an object');
  const unknown = Object.keys(options).find((key) => key !== 'requires');
  if (unknown !== undefined) throw Object.assign(new TypeError(`unknown option "${unknown}"`), { code: 'ERR_UNKNOWN_OPTION' });
  const { requires = 'any-read' } = options;
  if (!REQUIREMENTS.includes(requires)) throw invalid('requires', "'any-read', 'viewed' or 'whole'");
  return { name: 'observation', decide: (intent, seen) => decide(requires, intent, seen) };
}

function decide(requires: Requirement, { verb }: Intent, seen: Observation): Decision {
  // Whoever only moved it, or changed its mode, knows nothing of what is in it.
  const isKnown = seen.kind === 'present' && seen.contentSeq !== undefined;
  if (isKnown) {
    if (verb === 'edit' && requires !== 'any-read') return { kind: 'seen', seen, shown: 'span' };
    if (verb === 'write' && requires === 'whole') return { kind: 'seen', seen, shown: 'whole' };
    return { kind: 'seen', seen };
  }
  if (verb === 'write') return { kind: 'absent' };
  return { kind: 'refuse', code: verb === 'edit' && seen.kind === 'absent' ? 'FS_NOT_FOUND' : 'FS_NOT_OBSERVED' };
}

function invalid(name: string, wanted: string): TypeError {
  return Object.assign(new TypeError(`option "${name}" has to be ${wanted}`), { code: 'ERR_INVALID_OPTION' });
}

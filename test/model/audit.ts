import type { Overlay } from '../../src/index.ts';
import type { Event } from '../../src/core/event.ts';
import type { Audit } from './duel.ts';
import type { Outcome } from './outcome.ts';
import type { Program, Step } from './program.ts';
import { ACTORS } from './world.ts';
import { checkLaws } from '../support/laws.ts';

/** Steps that look at several names, or look before they act: how many misses they make is node's own business. */
const COMPOSITE = new Set<Step['op']>(['rm', 'cp', 'umask', 'reopen', 'realpath', 'readdir', 'opendir']);
const CREATING = new Set<Step['op']>(['mkdir']);

/**
 * Checks the laws of the log against each step, and all laws at the end. `watched` programs have the log read after
 * each step, which also keeps events from growing together; the others leave that to the overlay.
 */
export function auditOf(program: Program, current: () => Overlay): Audit {
  let seq = 0;
  return {
    after(step, expected) {
      if (!program.watched) return;
      const fresh = [...current().events({ from: seq + 1 })];
      seq = fresh.at(-1)?.seq ?? seq;
      // What is done with a descriptor is its opener's.
      if (!('path' in step)) return;
      const actor = ACTORS[step.actor ?? 0];
      const foreign = fresh.filter((event) => event.actor !== actor && event.op !== 'seal');
      if (foreign.length > 0) throw new Error(`events of another actor after ${JSON.stringify(step)}: ${JSON.stringify(foreign)}`);
      checkMisses(step, expected, fresh.filter((event) => event.op === 'miss'));
    },
    end() {
      checkLaws(current());
    },
  };
}

/** A name looked for and not there is one miss; nothing else is. */
function checkMisses(step: Step, expected: Outcome, misses: readonly Event[]): void {
  if (COMPOSITE.has(step.op) || !('path' in step)) return;
  if (CREATING.has(step.op) && 'recursive' in step && step.recursive) return;
  // ENOENT there says that the slash has no business at the end of a name that is to be made.
  if (step.path.endsWith('/') || ('to' in step && step.to.endsWith('/'))) return;
  // These say nothing of why there is nothing: a missing name, or a parent that is no directory.
  if (step.op === 'exists' || ('quiet' in step && step.quiet)) {
    if (misses.length > 1) throw new Error(`${misses.length} misses after ${JSON.stringify(step)}: ${JSON.stringify(misses)}`);
    return;
  }
  const count = missing(step, expected) ? 1 : 0;
  if (misses.length !== count) {
    throw new Error(`${misses.length} misses, not ${count}, after ${JSON.stringify(step)} gave ${JSON.stringify(expected)}: ${JSON.stringify(misses)}`);
  }
}

function missing(step: Step, expected: Outcome): boolean {
  if ('error' in expected) return expected.error['code'] === 'ENOENT' && !(step.op === 'symlink' && step.target === '');
  return false;
}

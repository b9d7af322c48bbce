import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import path from 'node:path';

/** Calls that change something, and those that make sure of it. */
const CALLS = [
  'writeSync', 'writeFileSync', 'openSync', 'renameSync', 'linkSync', 'unlinkSync', 'mkdirSync', 'rmdirSync', 'symlinkSync', 'chmodSync',
  'chownSync', 'lchownSync', 'fchmodSync', 'fchownSync', 'utimesSync', 'futimesSync', 'lutimesSync', 'ftruncateSync', 'fsyncSync',
] as const;

/** Thrown in the place of everything that a dead process would have done. */
class Killed extends Error {}

export interface Watch {
  /** Calls so far, by name and first argument. */
  readonly calls: string[];
  end(): void;
}

type Call = (...args: readonly unknown[]) => unknown;

/**
 * Lets `decide` have a word before each call of `node:fs` that changes something, until `end`: where it throws, the call is not
 * made. What it gives is thrown after the call was made.
 */
export function watch(decide: (index: number, name: string, target: string) => Error | undefined): Watch {
  const calls: string[] = [], originals = new Map<string, Call>(), table = fs as unknown as Record<string, Call>;
  for (const name of CALLS) {
    const original = table[name] as Call;
    originals.set(name, original);
    table[name] = (...args) => {
      // Only an open that may make something changes something.
      const changes = name !== 'openSync' || args[1] === 'wx' || args[1] === 'w' || (typeof args[1] === 'number' && (args[1] & fs.constants.O_CREAT) !== 0);
      if (!changes) return original(...args);
      calls.push(`${name} ${String(args[0])}`);
      const after = decide(calls.length - 1, name, String(args[0]));
      const outcome = original(...args);
      if (after !== undefined) throw after;
      return outcome;
    };
  }
  syncBuiltinESMExports();
  return {
    calls,
    end() {
      for (const [name, original] of originals) table[name] = original;
      syncBuiltinESMExports();
    },
  };
}

/**
 * Does `act` and kills it before the call with this index, or the first of which `when` says so: that one and everything after it is not
 * done. Gives whether it came so far.
 */
export async function killed(when: number | ((name: string, target: string) => boolean), act: () => Promise<unknown>): Promise<boolean> {
  let isDead = false;
  const killer = watch((at, name, target) => {
    isDead ||= typeof when === 'number' ? at >= when : when(name, target);
    if (isDead) throw new Killed('killed');
    return undefined;
  });
  try {
    await act();
  } catch (error) {
    if (!isDead) throw error;
  } finally {
    killer.end();
  }
  return isDead;
}

/** As if the process that has the root's lock had died, and not only this test. */
export function bury(root: string): void {
  const staging = path.join(root, '.palimpsest-commit');
  if (!fs.existsSync(staging)) return;
  for (const name of fs.readdirSync(staging)) if (name.startsWith('lock')) fs.unlinkSync(path.join(staging, name));
}

/** Lets the call with this index fail, and no other. */
export function failAt(index: number, code: string, errno: number): Watch {
  return watch((at, name) => {
    if (at === index) throw Object.assign(new Error(`${code}: injected, ${name}`), { code, errno, syscall: name });
    return undefined;
  });
}

import { isDeepStrictEqual } from 'node:util';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { auditOf } from './audit.ts';
import { Difference, duel } from './duel.ts';
import { layeredWorld } from './layered.ts';
import { buildTree, NOBODY, testimony } from './tree.ts';
import { realWorld } from './world.ts';
import type { Program } from './program.ts';

/** Bytes that a run needs at most; a memory file system with less is left alone. */
const SPACE_BYTES = 256 * 2 ** 20;

/** Where programs are played. The lowers are made once: that they stay as they are is what every program proves. */
export interface Playground {
  /** Throws where the overlay and a real directory differ, a law is broken, or the lower is not as it was. */
  play(program: Program): Promise<void>;
  clear(): void;
}

export function playground(): Playground {
  const scratch = fs.realpathSync(fs.mkdtempSync(path.join(quickDirectory(), 'palimpsest-model-')));
  fs.chmodSync(scratch, 0o777);
  const lowers = new Map<Program['lower'], { root: string; before: string[] }>();
  const lowerOf = (name: Program['lower']): { root: string; before: string[] } => {
    const known = lowers.get(name);
    if (known !== undefined) return known;
    const root = path.join(scratch, `lower-${name}`);
    buildTree(root, name);
    const made = { root, before: testimony(root, name) };
    lowers.set(name, made);
    return made;
  };
  return {
    async play(program) {
      const lower = lowerOf(program.lower);
      // As long as the lower's own path, so that absolute links have the same size in both worlds.
      const oracle = realWorld(path.join(scratch, `oracl-${program.lower}`), program.lower);
      const failure = await playAs(program, async () => {
        const subject = layeredWorld(lower.root, path.join(sessions(scratch), 'session'), program.session);
        try {
          await duel(program, oracle, subject, auditOf(program, () => subject.overlay));
        } finally {
          await subject.close();
        }
      });
      const after = testimony(lower.root, program.lower);
      if (!isDeepStrictEqual(after, lower.before)) {
        lowers.delete(program.lower);
        const changed = after.filter((line, index) => line !== lower.before[index]);
        throw new Difference(`the lower was changed: ${changed.join('\n')}`);
      }
      if (failure !== undefined) throw failure;
    },
    clear: () => fs.rmSync(scratch, { recursive: true, force: true }),
  };
}

/** Where nobody may make a session directory too; each program starts with an empty one. */
function sessions(scratch: string): string {
  const at = path.join(scratch, `sessions-${process.geteuid?.() ?? 0}`);
  fs.mkdirSync(at, { recursive: true });
  return at;
}

/** Does `act` as the program's user; gives what it threw. */
async function playAs(program: Program, act: () => Promise<void>): Promise<Error | undefined> {
  const become = program.user === 'nobody' ? becomeNobody() : undefined;
  try {
    await act();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  } finally {
    become?.root();
  }
}

/** This process, all threads of it, is the overflow user until it is root again. */
function becomeNobody(): { root(): void } {
  const groups = process.getgroups?.() ?? [];
  process.setgroups?.([NOBODY]);
  process.setegid?.(NOBODY);
  process.seteuid?.(NOBODY);
  return {
    root: () => {
      process.seteuid?.(0);
      process.setegid?.(0);
      process.setgroups?.(groups);
    },
  };
}

/** Memory where there is enough of it: programs sync a lot, and a disk would be most of their time. */
function quickDirectory(): string {
  const chosen = process.env['FUZZ_DIR'];
  if (chosen !== undefined) return chosen;
  try {
    const { bavail, bsize } = fs.statfsSync('/dev/shm');
    fs.accessSync('/dev/shm', fs.constants.W_OK);
    return bavail * bsize > SPACE_BYTES ? '/dev/shm' : os.tmpdir();
  } catch (error) {
    if (!['ENOENT', 'EACCES', 'EROFS'].includes(String((error as NodeJS.ErrnoException).code))) throw error;
    return os.tmpdir();
  }
}

import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Overlay } from '../../src/index.ts';
import { verifyBlobs, verifyLog } from '../../src/store/verify.ts';
import { manifest } from '../libraries/twin.ts';
import { CAN_MOUNT, descendants, Launcher, type As } from './launcher.ts';
import { lacking } from './workbench.ts';
import { STEADY, WORKS } from './works.ts';

/** Processes that are killed, as root and as a user each: `KILLS=100` (`npm run kills`) for the whole truth. */
const KILLS = Number(process.env['KILLS'] ?? 3);
/** Milliseconds between a start, or a kill that the run outlived, and the next kill. */
const WITHIN = 2000;
/** Milliseconds in which a run must have ended once what holds it up was killed. */
const PATIENCE = 20_000;
/** Kills that a run may outlive before its server is killed: most processes are the work's own. */
const OUTLIVED = 4;

const SEED = Number(process.env['KILL_SEED'] ?? Date.now() % 1_000_000);

const WANTED = ['git', 'make', 'editors', 'sqlite', 'python', 'tar and find'];
const works = WORKS.filter((work) => WANTED.includes(work.name) && lacking(work).length === 0);

/** All works at once, again and again; what they print and whether they succeed is of no interest here. */
const BUSY = [
  ...works.map(({ name }) => `(cd "${name}" && while :; do sh -c "$(cat ../"${name}.sh")"; done) &`),
  '(cd git && while :; do npm pkg set description=tried; npm ls --all; node -e "fs.writeFileSync(\'x\', fs.readdirSync(\'.\').join())"; done) &', 'wait',
].join('\n');

describe.runIf(CAN_MOUNT).each(['root', 'user'] as const)(`real work as %s, killed with -9 (seed ${SEED})`, (as: As) => {
  let launcher: Launcher, before: string;
  beforeAll(async () => {
    launcher = await Launcher.make(as);
    const { uid, gid } = fs.statSync(launcher.root);
    for (const { name, plant, script } of works) {
      fs.mkdirSync(join(launcher.root, name));
      plant(join(launcher.root, name));
      fs.writeFileSync(join(launcher.root, `${name}.sh`), script);
    }
    execFileSync('chown', ['-Rh', `${uid}:${gid}`, launcher.root]);
    before = manifest(launcher.root);
  }, 120_000);
  afterAll(() => { launcher.close(); });

  const chance = randomBelow(SEED), victims = new Map<string, number>();
  const tally = (words: string): void => {
    const [program = '', script = ''] = words.split(' ').map((word) => basename(word)), name = program === 'node' ? `node ${script}`.trim() : program;
    victims.set(name, (victims.get(name) ?? 0) + 1);
  };

  /** One run, in which random processes are killed until it ends; how many. */
  async function kill(): Promise<number> {
    const env = { PATH: process.env['PATH'], HOME: '/nonexistent', ...STEADY };
    const launched = launcher.start(as, [], ['sh', '-c', `exec >/dev/null 2>&1\n${BUSY}`], { env }), { pid } = launched.child;
    launched.child.stdin?.end();
    if (pid === undefined) throw new Error('not started');
    for (let killed = 1; ; killed++) {
      await sleep(chance(WITHIN));
      const all = [pid, ...descendants(pid, 'none')], chosen = killed > OUTLIVED ? pid : all[chance(all.length)] as number, words = launcher.wordsOf(chosen);
      tally(words);
      const isDone = await endsAfter(chosen, launched.ended, killed > OUTLIVED ? PATIENCE : 0);
      if (!isDone && killed > OUTLIVED) throw new Error(`hangs after the kill of ${chosen} (${words}):\n${launcher.left().join('\n')}`);
      if (isDone) return killed;
    }
  }

  it('leaves nothing behind, a session that is whole, and the directory as it was', async () => {
    let runs = 0, events = 0, kills = 0;
    for (; kills < KILLS; runs++) {
      kills += await kill();
      await launcher.checkNothingLeft();
      expect(manifest(launcher.root)).toBe(before);
      if (fs.existsSync(join(launcher.session, 'log.jsonl'))) events += checkSession(launcher.session);
      fs.rmSync(launcher.session, { recursive: true, force: true });
    }
    // It was real work that was killed.
    expect(events).toBeGreaterThan(100);
    if (KILLS >= 50) process.stderr.write(`${as}: ${kills} kills in ${runs} runs, ${events} events; ${JSON.stringify([...victims].sort((a, b) => b[1] - a[1]))}\n`);
  }, 60_000 + KILLS * 10_000);
});

/** Kills a process, and gives whether the run has ended for that, within `patience` ms or by itself right then. */
async function endsAfter(chosen: number, ended: Promise<unknown>, patience: number): Promise<boolean> {
  try {
    process.kill(chosen, 'SIGKILL');
  } catch (error) {
    // It was done just now.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
  return Promise.race([ended.then(() => true), sleep(Math.max(patience, 300), false, { ref: false })]);
}

/** The log is whole but for its last line, and every content that it names is there; gives the number of events. */
function checkSession(session: string): number {
  expect([verifyLog(session).damage, [...verifyBlobs(session).bad]]).toEqual([undefined, []]);
  const overlay = Overlay.openSync({ session });
  for (const { path, kind, type } of overlay.changes()) {
    if (kind !== 'delete' && type === 'file') overlay.fs.readFileSync(join(overlay.mountPoint, path));
  }
  const { events } = overlay.totals();
  overlay.closeSync();
  return events;
}

/** Numbers below a bound, the same ones for the same seed. */
function randomBelow(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    // The constants of Numerical Recipes.
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor(state / 2 ** 32 * bound);
  };
}

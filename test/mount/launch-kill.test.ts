import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SessionLog } from '../../src/index.ts';
import { CAN_MOUNT, descendants, Launcher } from './launcher.ts';

/** How often each is killed: `KILLS=200` for the whole truth. */
const KILLS = Number(process.env['KILLS'] ?? 8);
/** Milliseconds from the start within which the kill comes: beyond the start of the command. */
const WITHIN = { root: 900, user: 1200 } as const;
/** Milliseconds in which all must have ended. */
const PATIENCE = 10_000;

/** What the command does all the time: ask the server. */
const BUSY = 'while :; do cat file sub/deep/f; ls -l sub; test -e nothing; done >/dev/null 2>&1';

describe.runIf(CAN_MOUNT).each(['root', 'user'] as const)('killed with -9 as %s, at any moment', (as) => {
  let launcher: Launcher;
  beforeAll(async () => { launcher = await Launcher.make(as); });
  afterAll(() => { launcher.close(); });

  /** Starts a run, lets `victim` choose, kills it; answers how far the run had come. */
  async function kill(after: number, victim: (server: number) => number): Promise<string> {
    const launched = launcher.start(as, [], ['sh', '-c', BUSY]);
    launched.child.stdin?.end();
    const { pid } = launched.child;
    if (pid === undefined) throw new Error('not started');
    await sleep(after);
    const chosen = victim(pid), words = launcher.wordsOf(chosen);
    try {
      process.kill(chosen, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      process.kill(pid, 'SIGKILL');
    }
    const ended = await Promise.race([launched.ended, sleep(PATIENCE, undefined, { ref: false })]);
    if (ended === undefined) throw new Error(`hangs after the kill of ${chosen} (${words}):\n${launcher.left().join('\n')}`);
    await launcher.checkNothingLeft();
    // The session is as good as any other, however far it came.
    return fs.existsSync(path.join(launcher.session, 'log.jsonl')) ? [...SessionLog.openSync(launcher.session).events()].at(-1)?.op ?? 'no event' : 'no log';
  }

  it('leaves nothing when it is the server', async () => {
    const reached = new Map<string, number>();
    for (let time = 0; time < KILLS; time++) {
      const stage = await kill(Math.random() * WITHIN[as], (server) => server);
      reached.set(stage, (reached.get(stage) ?? 0) + 1);
    }
    if (KILLS >= 100) process.stderr.write(`${as}: ${JSON.stringify([...reached])}\n`);
    expect([...reached.values()].reduce((sum, count) => sum + count)).toBe(KILLS);
  }, KILLS * 5000);

  it('leaves nothing when it is any process of it', async () => {
    const reached = new Map<string, number>();
    for (let time = 0; time < KILLS; time++) {
      const stage = await kill(Math.random() * WITHIN[as], (server) => {
        const all = [server, ...descendants(server, BUSY)];
        return all[Math.floor(Math.random() * all.length)] ?? server;
      });
      reached.set(stage, (reached.get(stage) ?? 0) + 1);
    }
    if (KILLS >= 100) process.stderr.write(`${as}: ${JSON.stringify([...reached])}\n`);
    expect([...reached.values()].reduce((sum, count) => sum + count)).toBe(KILLS);
  }, KILLS * 5000);
});

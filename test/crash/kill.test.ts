import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildWriter, flawOf, lowerOf, runWriter, stageOf } from './stage.ts';
import type { Stage } from './stage.ts';

/**
 * A session is killed at a system call and opened again: what it holds is a prefix of what happened, with all that was
 * acknowledged. By default at a sample of all system calls that change something, at each one with `CRASH=all`.
 */
const ALL = process.env['CRASH'] === 'all';
/** Kills of one durability in a short run. */
const SAMPLE = 10;
const CALLS = ['write', 'pwrite64', 'writev', 'rename', 'renameat2', 'link', 'unlink', 'mkdir', 'fsync', 'fdatasync', 'openat', 'open', 'ftruncate', 'close'];

describe('a killed session', () => {
  let stage: Stage, lower: string[], built: string;
  beforeAll(async () => {
    built = buildWriter();
    stage = await stageOf();
    lower = lowerOf(stage);
  });
  afterAll(() => {
    expect(lowerOf(stage)).toEqual(lower);
    stage.clear();
    fs.rmSync(built, { recursive: true, force: true });
  });
  const traced = spawnSync('strace', ['-f', '-o', '/dev/null', 'true']).status === 0;

  for (const durability of ['flush', 'write', 'fsync']) {
    it(`opens as a prefix of what it did, wherever it was killed (${durability})`, { timeout: 3_600_000 }, async (context) => {
      if (!traced) {
        if (process.env['CI'] === 'true') throw new Error('strace must be usable in CI');
        context.skip('strace is missing, or may not trace');
        return;
      }
      const calls = await callsOf(durability);
      expect(calls.length).toBeGreaterThan(SAMPLE);
      const every = ALL ? 1 : calls.length / SAMPLE;
      const flaws: string[] = [];
      let killed = 0, last = 0;
      for (let index = 0; index < calls.length; index += every) {
        const { name, count } = calls[Math.floor(index)] as { name: string; count: number };
        const session = path.join(stage.scratch, `${durability}-${last++}`);
        const run = await runWriter(stage, session, durability, [
          'strace', '-f', '-qq', '-o', '/dev/null', '-e', `trace=${name}`, '-e', `inject=${name}:signal=KILL:when=${count}`,
        ]);
        // The counts of a run differ by a few from those of the last: a late one may come after its end.
        if (run.signal === null && run.status === 0) continue;
        killed++;
        const flaw = await flawOf(stage, session, run.safe).catch(String);
        if (flaw !== undefined) flaws.push(`killed at ${name} ${count} (${run.done} done, ${run.safe} safe): ${flaw}`);
        fs.rmSync(session, { recursive: true, force: true });
      }
      expect(flaws).toEqual([]);
      expect(killed).toBeGreaterThan(SAMPLE / 2);
    });
  }

  /** The changing system calls of the main thread once the session is being opened: name, and the how-manieth of that name. */
  async function callsOf(durability: string): Promise<{ name: string; count: number }[]> {
    const trace = path.join(stage.scratch, `trace-${durability}`), session = path.join(stage.scratch, `traced-${durability}`);
    const run = await runWriter(stage, session, durability, ['strace', '-f', '-qq', '-o', trace, '-e', `trace=${CALLS.join(',')}`]);
    if (run.status !== 0) throw new Error(`the traced writer failed: ${run.stderr}`);
    const lines = fs.readFileSync(trace, 'utf8').split('\n');
    const main = lines[0]?.split(' ')[0];
    const counts = new Map<string, number>(), found: { name: string; count: number }[] = [];
    let opened = false;
    for (const line of lines) {
      const [, thread, name] = /^(\d+) +(\w+)\(/.exec(line) ?? [];
      if (name === undefined || thread !== main) continue;
      counts.set(name, (counts.get(name) ?? 0) + 1);
      opened ||= line.includes(session);
      if (opened) found.push({ name, count: counts.get(name) as number });
    }
    return found;
  }

  it('would be noticed to be another, or to have lost what was acknowledged', async () => {
    // Looking is logged, so each look gets its own copy.
    const copy = (name: string): string => {
      fs.cpSync(path.join(stage.scratch, 'unharmed'), path.join(stage.scratch, name), { recursive: true });
      return path.join(stage.scratch, name);
    };
    await expect(flawOf(stage, copy('whole'), stage.events.length)).resolves.toBe(undefined);
    await expect(flawOf({ ...stage, events: stage.events.slice(1) }, copy('other'), 0)).resolves.toMatch(/^event 1 is/);
    await expect(flawOf(stage, copy('short'), 1000)).resolves.toMatch(/acknowledged$/);
  });

  it('leaves a lock that the next owner takes over', async () => {
    const session = path.join(stage.scratch, 'locked');
    // Killed from outside, at some time: no tracer, so that this holds everywhere.
    execFileSync('sh', ['-c', `"$0" "$1" "$2" "$3" flush 3>"$4" & pid=$!; while ! [ -s "$4" ]; do sleep 0.01; done; kill -9 $pid; wait $pid || true`,
      process.execPath, path.join(built, 'test/crash/writer.js'), stage.root, session,
      path.join(stage.scratch, 'progress-locked')], { stdio: 'pipe' });
    await expect(flawOf(stage, session, 0)).resolves.toBe(undefined);
  });
});

import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Tally } from './tally.ts';

/** One of its scripts that lasts longer hangs, in ms. */
const SCRIPT_MS = 300_000;

/** Points that ext4 fails too, on a kernel of ours: who may rename over whose file in a sticky directory. */
const KNOWN = new Set(['rename/21.t 12', 'rename/21.t 13', 'rename/21.t 14']);

/** Scripts at a time: they mostly wait. */
const LANES = 2;

/**
 * pjdfstest: POSIX, point by point. `tree` is its source, built; runs as root, and each script in a directory of its own.
 * Points that it marks as open questions count as skipped, as do those known to fail on every file system here.
 */
export async function pjdfstest(directory: string, tree: string, only: RegExp): Promise<Tally> {
  const tests = resolve(tree, 'tests');
  const queue = readdirSync(tests, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.t') && only.test(name)).sort();
  const failed: string[] = [];
  let passed = 0, skipped = 0;
  const lane = async (): Promise<void> => {
    for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
      const work = mkdtempSync(join(directory, 'pjdfstest-'));
      const { points, words } = await runScript(join(tests, name), work);
      for (const { number, state, detail } of points) {
        if (state === 'ok') passed++;
        else if (state === 'open' || KNOWN.has(`${name} ${number}`)) skipped++;
        else failed.push(`${name} ${number}: ${detail}`);
      }
      if (points.length === 0) failed.push(`${name}: no plan: ${words.slice(0, 200)}`);
      rmSync(work, { recursive: true, force: true });
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return { passed, failed, skipped };
}

interface Point {
  readonly number: number;
  readonly state: 'ok' | 'open' | 'not ok';
  readonly detail: string;
}

async function runScript(script: string, cwd: string): Promise<{ points: Point[]; words: string }> {
  const child = spawn('sh', [script], { cwd, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let words = '';
  const collect = (text: string): void => {
    words += text;
  };
  child.stdout.setEncoding('utf8').on('data', collect);
  child.stderr.setEncoding('utf8').on('data', collect);
  const timer = setTimeout(() => process.kill(-(child.pid as number), 'SIGKILL'), SCRIPT_MS);
  await new Promise((done) => child.on('close', done));
  clearTimeout(timer);
  return { points: pointsOf(words), words };
}

/** The points of a TAP stream; one that was planned and not told failed. */
function pointsOf(tap: string): Point[] {
  const planned = Number(/^1\.\.(\d+)/m.exec(tap)?.[1] ?? 0);
  const told = new Map<number, Point>();
  for (const [, not, digits, rest = ''] of tap.matchAll(/^(not )?ok (\d+)(.*)$/gm)) {
    const number = Number(digits), state = /# *TO[D]O/i.test(rest) ? 'open' : not === undefined ? 'ok' : 'not ok';
    told.set(number, { number, state, detail: rest.replace(/^[\s-]+/, '').replaceAll(/[^\s']{80,}/g, '…') });
  }
  return Array.from({ length: planned }, (_, i) => told.get(i + 1) ?? { number: i + 1, state: 'not ok', detail: 'not told' });
}

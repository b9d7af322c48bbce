import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { recover } from '../../src/commit/recovery.ts';
import { pending } from '../../src/commit/site.ts';
import { buildWriter } from '../crash/stage.ts';
import { census, commit, plant, scratch } from './ground.ts';
import { mixedSteps, plantMixed } from './mixed.ts';

/**
 * A process that commits is killed at a system call, or told that it failed; its recovery too. By default at a sample of
 * them, at each one with `CRASH=all`.
 */
const ALL = process.env['CRASH'] === 'all';
const CALLS = ['write', 'pwrite64', 'rename', 'link', 'symlink', 'unlink', 'mkdir', 'rmdir', 'fsync', 'fdatasync', 'openat', 'fchmod', 'chmod', 'utimensat'];
/** All of them take hours on a busy machine. */
const LONG = { timeout: 7_200_000 };
const ERRORS = ['ENOSPC', 'EACCES', 'EIO', 'EROFS'];

interface Ended { readonly signal: string | null; readonly status: number | null; readonly stderr: string }
interface Call { readonly name: string; readonly count: number }

let base: string, clear: () => void, built: string, before: string[], after: string[], made = 0;

const fresh = (): string => {
  const root = path.join(base, `t${made++}`);
  plantMixed(root);
  return root;
};

function run(args: readonly string[], around: readonly string[] = []): Promise<Ended> {
  const [command, ...rest] = [...around, process.execPath, path.join(built, 'test/commit/committer.js'), ...args];
  const child = spawn(command as string, rest, { stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  child.stderr.on('data', (chunk) => { stderr += String(chunk); });
  return new Promise((resolve, reject) => { child.on('error', reject).on('close', (status, signal) => resolve({ status, signal, stderr })); });
}

const strace = (name: string, what: string): string[] => ['strace', '-f', '-qq', '-o', '/dev/null', '-e', `trace=${name}`, '-e', `inject=${name}:${what}`];

/** The system calls of the main thread that change something, from the first on that is about staging. */
async function callsOf(args: readonly string[]): Promise<Call[]> {
  const trace = path.join(base, `trace${made++}`);
  const { status, stderr } = await run(args, ['strace', '-f', '-qq', '-o', trace, '-e', `trace=${CALLS.join(',')}`]);
  if (status !== 0) throw new Error(`the traced process failed: ${stderr}`);
  const lines = fs.readFileSync(trace, 'utf8').split('\n'), main = lines[0]?.split(' ')[0];
  const counts = new Map<string, number>(), found: Call[] = [];
  let begun = false;
  for (const line of lines) {
    const [, thread, name] = /^(\d+) +(\w+)\(/.exec(line) ?? [];
    if (name === undefined || thread !== main) continue;
    counts.set(name, (counts.get(name) ?? 0) + 1);
    begun ||= line.includes('.palimpsest-commit');
    // Whatever is read is not worth a kill.
    if (begun && !(name === 'openat' && !line.includes('O_CREAT'))) found.push({ name, count: counts.get(name) as number });
  }
  return found;
}

function sampled<T>(all: readonly T[], count: number): T[] {
  if (ALL || all.length <= count) return [...all];
  return Array.from({ length: count }, (_, index) => all[Math.floor((index + 0.5) * all.length / count)] as T);
}

const leftovers = (root: string): string[] => fs.readdirSync(root).filter((name) => name.startsWith('.palimpsest'));

function flawOf(root: string, wanted: readonly (readonly string[])[]): string | undefined {
  const found = census(root);
  if (leftovers(root).length > 0 || pending(root) !== undefined) return `${leftovers(root).join()} stay`;
  if (wanted.some((lines) => lines.length === found.length && lines.every((line, index) => line === found[index]))) return undefined;
  const old = wanted[0] as readonly string[];
  return `neither: ${[...found.filter((line) => !old.includes(line)), ...old.filter((line) => !found.includes(line))].join('; ')}`;
}

describe('a process that commits', () => {
  const traced = spawnSync('strace', ['-f', '-o', '/dev/null', 'true']).status === 0;
  beforeAll(async () => {
    built = buildWriter();
    ({ root: base, clear } = scratch('kill'));
    const root = fresh();
    before = census(root);
    await commit(root, mixedSteps(root));
    after = census(root);
  });
  afterAll(() => {
    clear();
    fs.rmSync(built, { recursive: true, force: true });
  });

  /** Strace has to be there in CI. */
  const demandStrace = (context: TestContext): void => {
    if (!traced && process.env['CI'] === 'true') throw new Error('strace must be usable in CI');
    if (!traced) context.skip('strace is missing, or may not trace');
  };

  for (const durability of ['flush', 'fsync']) {
    it(`leaves the old tree or the new one, wherever it is killed (${durability})`, LONG, async (context) => {
      demandStrace(context);
      const calls = await callsOf(['commit', fresh(), durability]), flaws: string[] = [];
      expect(calls.length).toBeGreaterThan(100);
      let killed = 0;
      for (const { name, count } of sampled(calls, durability === 'flush' ? 8 : 4)) {
        const root = fresh(), { signal } = await run(['commit', root, durability], strace(name, `signal=KILL:when=${count}`));
        if (signal !== null) killed++;
        await recover(root);
        const flaw = flawOf(root, [before, after]);
        if (flaw !== undefined) flaws.push(`${name} ${count}: ${flaw}`);
        fs.rmSync(root, { recursive: true });
      }
      expect(flaws).toEqual([]);
      expect(killed).toBeGreaterThan(2);
    });
  }

  it('is taken back also where its recovery is killed', LONG, async (context) => {
    demandStrace(context);
    const calls = await callsOf(['commit', fresh(), 'flush']), flaws: string[] = [];
    const last = calls.findLastIndex(({ name }) => name === 'link');
    for (const { name, count } of ALL ? calls.filter((_, index) => index % 25 === 0) : [calls[last] as Call]) {
      const broken = async (): Promise<string> => {
        const root = fresh();
        await run(['commit', root, 'flush'], strace(name, `signal=KILL:when=${count}`));
        return root;
      };
      const recovered = await broken();
      if (pending(recovered) === undefined) continue;
      for (const second of sampled(await callsOf(['recover', recovered]), 4)) {
        const root = await broken();
        await run(['recover', root], strace(second.name, `signal=KILL:when=${second.count}`));
        await recover(root);
        const flaw = flawOf(root, [before, after]);
        if (flaw !== undefined) flaws.push(`${name} ${count}, ${second.name} ${second.count}: ${flaw}`);
        fs.rmSync(root, { recursive: true });
      }
    }
    expect(flaws).toEqual([]);
  });

  for (const error of ERRORS) {
    it(`fails and leaves the old tree, wherever it is told ${error}`, LONG, async (context) => {
      demandStrace(context);
      const calls = await callsOf(['commit', fresh(), 'flush']), flaws: string[] = [];
      for (const { name, count } of sampled(calls, 3)) {
        const root = fresh(), { status, stderr } = await run(['commit', root, 'flush'], strace(name, `error=${error}:when=${count}`));
        const flaw = flawOf(root, [status === 0 ? after : before]);
        if (flaw !== undefined) flaws.push(`${name} ${count}, status ${status}: ${flaw}`);
        else if (status !== 0 && !stderr.includes(error)) flaws.push(`${name} ${count}: ${stderr}`);
        fs.rmSync(root, { recursive: true });
      }
      expect(flaws).toEqual([]);
    });
  }

  it('waits for another one, and loses none of its updates', { timeout: 300_000 }, async () => {
    const root = path.join(base, `counted${made++}`), times = 8;
    plant(root, { counter: '0' });
    const ended = await Promise.all([1, 2, 3].map(() => run(['count', root, String(times)])));
    expect(ended.map(({ status, stderr }) => stderr || status)).toEqual([0, 0, 0]);
    expect(fs.readFileSync(path.join(root, 'counter'), 'utf8')).toBe(String(3 * times));
    expect(fs.readdirSync(root)).toHaveLength(1 + 3 * times);
  });

  it('that was killed leaves a lock that the next one takes over', { timeout: 120_000 }, async () => {
    const root = path.join(base, `locked${made++}`);
    plant(root, { counter: '0' });
    const child = spawn(process.execPath, [path.join(built, 'test/commit/committer.js'), 'count', root, '100000'], { stdio: 'ignore' });
    const gone = new Promise((resolve) => { child.on('close', resolve); });
    while (fs.readFileSync(path.join(root, 'counter'), 'utf8') < '3') await new Promise((resolve) => { setTimeout(resolve, 5); });
    child.kill('SIGKILL');
    await gone;
    const { status, stderr } = await run(['count', root, '1']);
    expect(stderr || status).toBe(0);
    expect(Number(fs.readFileSync(path.join(root, 'counter'), 'utf8'))).toBe(fs.readdirSync(root).length - 1);
  });
});

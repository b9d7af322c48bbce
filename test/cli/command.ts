import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { rolldown } from 'rolldown';
import { afterAll } from 'vitest';

/** The command as a user has it: bundled, in a process of its own. */

const cache = resolve('.cache');
mkdirSync(cache, { recursive: true });
const directory = mkdtempSync(join(cache, 'cli-'));
const bundle = await rolldown({ input: { palimpsest: 'src/cli/main.ts', worker: 'src/mount/worker.ts' }, platform: 'node', external: ['immer', 'nanoid', 'picomatch'] });
await bundle.write({ dir: directory, format: 'esm' });
await bundle.close();
const bin = join(directory, 'palimpsest.js');
afterAll(() => rmSync(directory, { recursive: true, force: true }));

export interface Outcome {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** The bytes of standard output. */
  readonly bytes: Buffer;
}

export interface Surroundings {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** What children see of this process's environment: nothing that would paint, and no session of anybody's. */
function environment(env: Surroundings['env']): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'], HOME: '/nonexistent', ...env };
}

/** Runs `palimpsest` with `args` to its end. */
export function palimpsest(args: readonly string[], { cwd, env }: Surroundings = {}): Outcome {
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, ...args], {
    cwd, env: environment(env), maxBuffer: 1024 ** 3, timeout: 30_000,
  });
  return { status, stdout: stdout.toString(), stderr: stderr.toString(), bytes: stdout };
}

/** Runs a line of shell in which `palimpsest` is the command. */
export function shell(line: string, { cwd, env }: Surroundings = {}): Outcome {
  const { status, stdout, stderr } = spawnSync('bash', ['-c', `export PALIMPSEST='${process.execPath} ${bin}'\npalimpsest() { $PALIMPSEST "$@"; }\n${line}`], {
    cwd, env: environment(env), maxBuffer: 1024 ** 3, timeout: 60_000,
  });
  return { status, stdout: stdout.toString(), stderr: stderr.toString(), bytes: stdout };
}

/** A command under way. */
export interface Started {
  readonly child: ChildProcess;
  /** Resolved when its standard output holds `text`; rejected where it ends without. */
  says(text: string): Promise<void>;
  heard(): string;
  complained(): string;
  /** Its exit status, or the signal that ended it. */
  readonly ended: Promise<number | string | null>;
}

/** Starts `palimpsest` with `args`. */
export function started(args: readonly string[], { cwd, env }: Surroundings = {}): Started {
  const child = spawn(process.execPath, [bin, ...args], { cwd, env: environment(env), stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '', errors = '';
  const listening = new Set<() => void>();
  child.stdout.on('data', (chunk) => {
    out += String(chunk);
    for (const look of listening) look();
  });
  child.stderr.on('data', (chunk) => { errors += String(chunk); });
  const ended = new Promise<number | string | null>((resolve) => { child.once('close', (status, signal) => resolve(signal ?? status)); });
  return {
    child, ended, heard: () => out, complained: () => errors,
    says: async (text) => new Promise((resolve, reject) => {
      const look = (): void => {
        if (!out.includes(text)) return;
        listening.delete(look);
        resolve();
      };
      listening.add(look);
      look();
      void ended.then(() => reject(new Error(`ended without ${text}: ${out}${errors}`)));
    }),
  };
}

import { spawn, type ChildProcess } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { rolldown } from 'rolldown';

const PROJECT = path.join(import.meta.dirname, '..', '..');
/** Nobody in particular: a user without a name, for whom everything must go through a user namespace. */
const STRANGER = 4242;

/** How often, and after how many milliseconds each time, is looked whether all is gone. */
const LOOKS = 100, LOOK_MS = 20;
/** Node closes what comes right after the standard streams by itself. */
const GAP = Array.from({ length: 30 }, () => 'ignore' as const);

/** How a process ended, and what it said. */
export interface Ended {
  readonly status: number | null;
  readonly signal: string | null;
  readonly out: string;
  readonly errors: string;
}

/** A process under way. */
export interface Launched {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Resolved when its standard error has this word. */
  said(word: string): Promise<void>;
  /** Its standard output so far. */
  heard(): string;
}

/** Where a run is started. */
export interface Place {
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  /** Descriptors that it is given beyond the standard ones. */
  readonly inherited?: readonly number[];
}

export type As = 'root' | 'user';

/** Whether this machine can mount: tests that need it are counted as skipped elsewhere, but not in CI. */
export const CAN_MOUNT = process.env['CI'] === 'true' || (process.getuid?.() === 0 && fs.existsSync('/dev/fuse'));

/**
 * `palimpsest run` over a directory of its own, as root and as a user, bundled, in processes of its own. The user's has a
 * `/dev/fuse` that anybody may open, in a mount namespace of its own: the machine's stays as it is.
 */
export class Launcher {
  readonly scratch = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'palimpsest-launch-')));
  readonly root = path.join(this.scratch, 'root');
  /** The session of the last run. */
  session = '';
  readonly #bin = path.join(this.scratch, 'package/dist/bundle/cli.js');
  /** Holds the mount namespace of the user's runs. */
  readonly #open: ChildProcess;
  #sessions = 0;

  private constructor(as: As) {
    fs.chmodSync(this.scratch, 0o755);
    fs.mkdirSync(path.join(this.root, 'sub/deep'), { recursive: true });
    const files = { file: 'of the lower\n', script: '#!/bin/sh\necho script "$@"\n', 'no interpreter': '#!/no/such\n', 'sub/deep/f': 'deep\n' };
    for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(this.root, name), text);
    fs.chmodSync(path.join(this.root, 'script'), 0o755);
    fs.chmodSync(path.join(this.root, 'no interpreter'), 0o755);
    fs.mkdirSync(path.join(this.scratch, 'sessions'));
    const owned = ['sessions', 'root', 'root/sub', 'root/sub/deep', ...Object.keys(files).map((file) => `root/${file}`)];
    if (as === 'user') for (const name of owned) fs.chownSync(path.join(this.scratch, name), STRANGER, STRANGER);
    const script = 'mknod "$1" c 10 229 && chmod 666 "$1" && mount --bind "$1" /dev/fuse && echo done && exec cat';
    const device = path.join(this.scratch, 'fuse');
    this.#open = spawn('unshare', ['--mount', 'sh', '-c', script, 'sh', device], { stdio: ['pipe', 'pipe', 'inherit'] });
  }

  static async make(as: As): Promise<Launcher> {
    const launcher = new Launcher(as), made = new Promise((resolve) => launcher.#open.stdout?.once('data', resolve));
    const bundle = await rolldown({ input: { cli: 'src/cli/main.ts', worker: 'src/mount/worker.ts' }, platform: 'node', cwd: PROJECT });
    await bundle.write({ dir: path.dirname(launcher.#bin), format: 'esm' });
    await bundle.close();
    fs.writeFileSync(path.join(launcher.scratch, 'package/package.json'), '{"type":"module","version":"0.0.0"}');
    await made;
    return launcher;
  }

  /** The command line of a run of `command` with these options. Each run has a session of its own. */
  line(as: As, options: readonly string[], command: readonly string[], cwd = this.root): string[] {
    this.session = path.join(this.scratch, 'sessions', String(this.#sessions++));
    const run = [process.execPath, this.#bin, 'run', '--quiet', '--root', this.root, '--session', this.session, ...options, '--', ...command];
    if (as === 'root') return run;
    // No shell, which would change the environment.
    return ['nsenter', '--no-fork', `--mount=/proc/${this.#open.pid}/ns/mnt`, 'env', `--chdir=${cwd}`,
      'setpriv', '--reuid', String(STRANGER), '--regid', String(STRANGER), '--clear-groups', '--', ...run];
  }

  start(as: As, options: readonly string[], command: readonly string[], { env = process.env, cwd = this.root, inherited = [] }: Place = {}): Launched {
    const line = this.line(as, options, command, cwd);
    const child = spawn(line[0] as string, line.slice(1), { cwd, env, stdio: ['pipe', 'pipe', 'pipe', ...GAP, ...inherited] });
    let out = '', errors = '';
    const listening = new Set<() => void>();
    child.stdout?.on('data', (chunk) => { out += String(chunk); });
    child.stderr?.on('data', (chunk) => {
      errors += String(chunk);
      for (const listener of listening) listener();
    });
    return {
      child,
      heard: () => out,
      ended: new Promise((resolve, reject) => {
        child.once('error', reject);
        child.once('close', (status, signal) => { resolve({ status, signal, out, errors }); });
      }),
      said: async (word) => new Promise((resolve, reject) => {
        const look = (): void => {
          if (!errors.includes(word)) return;
          listening.delete(look);
          resolve();
        };
        listening.add(look);
        look();
        child.once('close', () => { reject(new Error(`ended without the word ${word}: ${errors}`)); });
      }),
    };
  }

  async run(as: As, options: readonly string[], command: readonly string[], place?: Place): Promise<Ended> {
    const launched = this.start(as, options, command, place);
    launched.child.stdin?.end();
    return launched.ended;
  }

  /** The command line of a process. */
  wordsOf(pid: number | string): string {
    return textOf(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim();
  }

  /** What there still is of runs: processes that were started for one, or that live in one's mounts. */
  left(): string[] {
    return fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((pid) => {
      const words = this.wordsOf(pid);
      const mounts = textOf(`/proc/${pid}/mountinfo`).split('\n');
      // A zombie whose parent died is its new parent's business.
      if (textOf(`/proc/${pid}/stat`).includes(') Z 1 ')) return [];
      return words.includes(this.scratch) || mounts.some((line) => line.includes(this.scratch) && line.includes('fuse.palimpsest'))
        ? [`${pid} ${words}`] : [];
    });
  }

  /** Throws where something is left of runs that have ended, in a little while at the latest. */
  async checkNothingLeft(): Promise<void> {
    for (let look = 0; this.left().length > 0; look++) {
      if (look === LOOKS) throw new Error(`left behind: ${this.left().join('\n')}`);
      await sleep(LOOK_MS);
    }
  }

  close(): void {
    this.#open.stdin?.end();
    fs.rmSync(this.scratch, { recursive: true, force: true });
  }
}

/** Live processes below another, at the moment; below the one that runs `command` nobody. */
export function descendants(pid: number, command: string): number[] {
  const children = textOf(`/proc/${pid}/task/${pid}/children`).split(' ').filter((word) => word !== '').map(Number);
  const found = children.filter((child) => !/\) [ZX] /.test(textOf(`/proc/${child}/stat`)));
  for (const child of found.slice()) {
    if (!textOf(`/proc/${child}/cmdline`).startsWith(`sh\0-c\0${command}`)) found.push(...descendants(child, command));
  }
  return found;
}

/** A file of /proc; empty where its process has gone. */
function textOf(file: string): string {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ESRCH', 'EINVAL'].includes((error as NodeJS.ErrnoException).code ?? '')) return '';
    throw error;
  }
}

import { spawn, type ChildProcess } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import ts from 'typescript';

const PROJECT = path.join(import.meta.dirname, '..', '..');
/** Nobody in particular: a user without a name, for whom everything must go through a user namespace. */
const STRANGER = 4242;

/** How often, and after how many milliseconds each time, is looked whether all is gone. */
const LOOKS = 100, LOOK_MS = 20;

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
}

export type As = 'root' | 'user';

/** Whether this machine can mount: tests that need it are counted as skipped elsewhere, but not in CI. */
export const CAN_MOUNT = process.env['CI'] === 'true' || (process.getuid?.() === 0 && fs.existsSync('/dev/fuse'));

/**
 * Runs of `tiny-run` over a directory of its own, as root and as a user. That of the user gets a `/dev/fuse` of its own that
 * anybody may open, in a mount namespace of its own: the machine's stays as it is.
 */
export class Launcher {
  readonly scratch = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'palimpsest-launch-')));
  readonly root = path.join(this.scratch, 'root');
  readonly #program: string;
  /** Holds the mount namespace of the user's runs. */
  readonly #open: ChildProcess;

  constructor() {
    fs.chmodSync(this.scratch, 0o755);
    fs.mkdirSync(path.join(this.root, 'sub/deep'), { recursive: true });
    fs.writeFileSync(path.join(this.root, 'secret'), 'of the lower\n');
    fs.chmodSync(this.root, 0o777);
    const built = path.join(this.scratch, 'built');
    const compilerOptions: ts.CompilerOptions = {
      target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true, rewriteRelativeImportExtensions: true,
    };
    for (const top of ['src/mount', 'test/mount']) {
      fs.mkdirSync(path.join(built, top), { recursive: true });
      for (const name of fs.readdirSync(path.join(PROJECT, top)).filter((entry) => entry.endsWith('.ts') && !entry.endsWith('.test.ts'))) {
        const { outputText } = ts.transpileModule(fs.readFileSync(path.join(PROJECT, top, name), 'utf8'), { compilerOptions });
        fs.writeFileSync(path.join(built, top, name.replace(/\.ts$/, '.js')), outputText);
      }
    }
    fs.writeFileSync(path.join(built, 'package.json'), '{"type":"module"}');
    this.#program = path.join(built, 'test/mount/tiny-run.js');
    const script = 'mknod "$1" c 10 229 && chmod 666 "$1" && mount --bind "$1" /dev/fuse && echo done && exec cat';
    const device = path.join(this.scratch, 'fuse');
    this.#open = spawn('unshare', ['--mount', 'sh', '-c', script, 'sh', device], { stdio: ['pipe', 'pipe', 'inherit'] });
  }

  /** The command line of a run of `command` with these options. */
  line(as: As, options: readonly string[], command: readonly string[]): string[] {
    const roots = options.includes('--root') ? [] : ['--root', this.root];
    const run = [process.execPath, this.#program, ...roots, ...options, '--', ...command];
    if (as === 'root') return run;
    // No shell, which would change the environment.
    return ['nsenter', '--no-fork', `--mount=/proc/${this.#open.pid}/ns/mnt`, 'env', `--chdir=${this.root}`,
      'setpriv', '--reuid', String(STRANGER), '--regid', String(STRANGER), '--clear-groups', '--', ...run];
  }

  async opened(): Promise<this> {
    await new Promise((resolve) => this.#open.stdout?.once('data', resolve));
    return this;
  }

  start(as: As, options: readonly string[], command: readonly string[], env: NodeJS.ProcessEnv = process.env): Launched {
    const line = this.line(as, options, command);
    const child = spawn(line[0] as string, line.slice(1), { cwd: this.root, env, stdio: ['pipe', 'pipe', 'pipe'] });
    let out = '', errors = '';
    const listening = new Set<() => void>();
    child.stdout.on('data', (chunk) => { out += String(chunk); });
    child.stderr.on('data', (chunk) => {
      errors += String(chunk);
      for (const listener of listening) listener();
    });
    return {
      child,
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

  async run(as: As, options: readonly string[], command: readonly string[], env?: NodeJS.ProcessEnv): Promise<Ended> {
    const launched = this.start(as, options, command, env);
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

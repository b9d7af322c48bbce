import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, statSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { startCommand, type Command, type CommandOptions, type Namespace } from './command.ts';
import { MachineError } from './device.ts';
import { withoutInherited } from './inherited.ts';
import { INIT_FD, initScript, type SpaceOptions, type Surroundings } from './init.ts';
import { mountTable, type Mount } from './mount-table.ts';
import { Replies } from './replies.ts';
import { TOOL_PATH, toolPath } from './tool.ts';


/**
 * The namespaces of a run: mounts, processes, perhaps the network. It lives as long as its first process, which
 * ends when this process ends, however that ends; with it ends all that runs inside, and nothing stays mounted.
 *
 * This process itself must never touch a path that leads into a root, not even by a thread of the pool: killed while it
 * waits for its own answer it could never be taken away. `ring` is there for that.
 */
export interface Space {
  /** The first process, as the host numbers it. Inside it is 1. */
  readonly init: number;
  /** The run's `/proc` as this process can open it. `stat`, `status` and `comm` of a process never wait for the server. */
  readonly procRoot: string;
  /**
   * Starts a command. What cannot be executed gets a line on its standard error and ends with 126 or 127, as from a shell; a
   * directory that cannot be entered with 125.
   */
  spawn(argv: readonly string[], options: CommandOptions): Command;
  /** The process that looks the bell up, as the header of its requests has it: nobody of the run's numbering. */
  readonly ringer: 0;
  /** Has the bell's name looked up; a look-up begins after each call, several calls may share one. */
  ring(): void;
  /** Ends all that runs inside. Resolved when no process is left. Idempotent. The server must answer until then. */
  end(): Promise<void>;
  /** Resolved when no process is left, for whatever reason. */
  readonly ended: Promise<void>;
}

const BURIAL_LOOK_MS = 5;

/** Where the kernel shows a file per FUSE connection with which it can be aborted. */
const CONTROLS = '/sys/fs/fuse/connections';

/**
 * Makes the namespaces, mounts and waits until all is in place. Throws `MachineError` where the machine lacks something, and
 * leaves nothing behind.
 */
export async function openSpace(options: SpaceOptions): Promise<Space> {
  const own = new OwnSpace(options);
  try {
    await own.open();
    return own;
  } catch (error) {
    await own.end();
    throw error;
  }
}

class OwnSpace implements Space {
  init = 0;
  readonly ringer = 0;
  readonly ended: Promise<void>;
  readonly #options: SpaceOptions;
  readonly #life: Duplex;
  readonly #orders: Duplex;
  readonly #replies: Replies;
  readonly #commands = new Set<Command>();
  readonly #namespaces: Namespace[] = [];
  #over = false;
  #ringing: 'no' | 'yes' | 'again' = 'no';

  constructor(options: SpaceOptions) {
    this.#options = options;
    if (options.roots.some(({ path }) => path === '/')) throw new MachineError('the root of the whole system cannot be a root');
    const table = mountTable('self');
    const apart = ['--mount', '--pid', ...(options.network === 'none' ? ['--net'] : [])];
    const script = initScript(options, surroundings(options, table));
    const holder = spawn(toolPath('unshare'), [...apart, toolPath('sh'), '-c', script, 'palimpsest'], {
      cwd: '/', env: { PATH: TOOL_PATH, LC_ALL: 'C' },
      stdio: withoutInherited({
        0: 'ignore', 1: 'pipe', 2: 'pipe', [INIT_FD.device]: options.device, [INIT_FD.life]: 'pipe', [INIT_FD.orders]: 'pipe',
      }),
      // Its own session: what the terminal sends is for the command alone.
      detached: true,
    });
    const pipes = holder.stdio as readonly unknown[];
    this.#life = pipes[INIT_FD.life] as Duplex;
    this.#orders = pipes[INIT_FD.orders] as Duplex;
    // Read, so that its other end is noticed to be gone. A word to a process that has ended is no fault: `ended` tells of it.
    for (const pipe of [this.#life, this.#orders]) pipe.on('error', () => undefined).resume();
    // Either of the two has ended: so must the other.
    holder.once('exit', () => this.#close());
    this.#life.once('close', () => this.#close());
    this.ended = new Promise<void>((resolve) => {
      holder.once('error', () => resolve());
      // All pipes are closed: init has ended, whether or not the ringer could wait for it.
      holder.once('close', () => resolve());
    }).then(async () => this.#bury());
    this.#replies = new Replies(holder, (line) => {
      if (line === 'rung') this.#rung();
      return line === 'rung';
    });
  }

  get procRoot(): string {
    return `/proc/${this.init}/root/proc`;
  }

  async open(): Promise<void> {
    const pid = /^pid (\d+)$/.exec(await this.#replies.next());
    if (pid === null) throw new MachineError(`the run's namespaces could not be made: ${this.#replies.errors}`);
    this.init = Number(pid[1]);
    // Opened before the word to go on: the answer to that proves that the process of this number was ours all the time.
    this.#namespaces.push(...namespacesOf(this.init, ['mnt', 'pid', ...(this.#options.network === 'none' ? ['net'] : [])]));
    if (this.#over) this.#release();
    this.#life.write('go\n');
    if (await this.#replies.next() === 'attached') this.#options.attached();
    const answer = await this.#replies.next();
    if (answer !== 'mounted') throw new MachineError(`the run's file systems could not be mounted: ${this.#replies.errors}`);
    if (this.#options.outside === 'read-only') this.#checkSealed();
  }

  spawn(argv: readonly string[], options: CommandOptions): Command {
    if (this.#over) throw new MachineError('this run has ended');
    const command = startCommand(this.#namespaces, argv, options);
    this.#commands.add(command);
    const forget = (): void => { this.#commands.delete(command); };
    command.exited.then(forget, forget);
    return command;
  }

  ring(): void {
    if (this.#over) return;
    if (this.#ringing === 'no') this.#orders.write('ring\n');
    this.#ringing = this.#ringing === 'no' ? 'yes' : 'again';
  }

  async end(): Promise<void> {
    this.#close();
    await this.ended;
  }

  /** The end of `life` is the end of init. */
  #close(): void {
    if (this.#over) return;
    this.#over = true;
    this.#release();
    this.#life.end();
    this.#orders.end();
  }

  /** As long as one of these is open, the mounts stay. */
  #release(): void {
    for (const { fd } of this.#namespaces.splice(0)) closeSync(fd);
  }

  #rung(): void {
    const again = this.#ringing === 'again';
    this.#ringing = 'no';
    if (again) this.ring();
  }

  async #bury(): Promise<void> {
    this.#close();
    await Promise.allSettled([...this.#commands].map(async ({ exited }) => exited));
    // Only where the ringer was killed: the kernel may still be at work on init's namespace.
    while (this.init !== 0 && isAlive(this.init)) await sleep(BURIAL_LOOK_MS);
  }

  #checkSealed(): void {
    const { roots, writable } = this.#options;
    const open = ['/dev', '/proc', ...writable, ...roots.map(({ path }) => path)];
    const last = new Map(mountTable(this.init).map((mount) => [mount.path, mount]));
    const left = [...last.values()].filter(({ path, writable: can }) =>
      can && !open.some((top) => path === top || path.startsWith(`${top}/`))).map(({ path }) => path);
    if (left.length > 0) throw new MachineError(`cannot be made read-only: ${left.join(', ')}`);
  }
}

function namespacesOf(pid: number, kinds: readonly string[]): Namespace[] {
  try {
    return kinds.map((kind) => ({ kind, fd: openSync(`/proc/${pid}/ns/${kind}`, 'r') }));
  } catch (error) {
    throw new MachineError(`the run's namespaces ended as soon as they were made (${(error as NodeJS.ErrnoException).code})`, { cause: error });
  }
}

function isAlive(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
    throw error;
  }
}

function surroundings(options: SpaceOptions, table: readonly Mount[]): Surroundings {
  const [first] = options.roots;
  const mountPoints = [...new Set(table.map(({ path }) => path))];
  const controls = new Set(table.filter(({ type }) => type === 'fusectl').map(({ path }) => path));
  if (existsSync(CONTROLS)) controls.add(CONTROLS);
  return {
    uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0, mode: first === undefined ? 0o40755 : statSync(first.path).mode,
    mountPoints, controls: [...controls],
    procs: mountPoints.filter((path) => path !== '/proc' && table.some((mount) => mount.path === path && mount.type === 'proc')),
    writable: options.writable.filter((path) => existsSync(path)),
  };
}

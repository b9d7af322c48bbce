import { spawn } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { MachineError } from './device.ts';
import { withoutInherited, type Standard } from './inherited.ts';
import { toolPath } from './tool.ts';

/** How a process ended: exactly one of the two is not null. */
export interface Outcome {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** How a command is started in a space. */
export interface CommandOptions {
  /** A path as seen inside. */
  readonly cwd: string;
  /** The whole environment; nothing is added to it or taken from it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Standard input, output and error. Other descriptors do not reach the command. */
  readonly stdio: readonly [Standard, Standard, Standard];
}

/** A namespace, held open. */
export interface Namespace {
  readonly kind: string;
  readonly fd: number;
}

/** A command that runs in a space. */
export interface Command {
  /** Rejected with `MachineError` where the command could not be brought into the space. */
  readonly exited: Promise<Outcome>;
  /** Null where not a pipe. */
  readonly stdin: Writable | null;
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
  /** Sends a signal to the command itself; nothing happens once it has ended. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Whether the command is stopped (as by Ctrl-Z). */
  stopped(): boolean;
}

/**
 * Signals that the terminal, or whoever means the whole process group, sends to a command and to all above it. The one that
 * waits for the command must survive them, whatever the command makes of them.
 */
const SHARED = { HUP: 1, INT: 2, QUIT: 3, USR1: 10, USR2: 12, TERM: 15, TSTP: 20 } as const;
const SHARED_MASK = Object.values(SHARED).reduce((mask, number) => mask | (1n << BigInt(number - 1)), 0n);
const SHARED_NAMES = Object.keys(SHARED).join(',');

/** Milliseconds between two looks at a command that is not there yet, and how many looks it is given. */
const LOOK = 3, LOOKS = 1000;

/** Where the command's standard error waits while descriptor 2 is for what goes wrong on the way to it. One digit: sh(1). */
const ERRORS = 9;

/** Variables that a shell sets or changes. */
const SHELLS_OWN = ['PWD', 'OLDPWD', 'SHLVL', '_', 'IFS', 'OPTIND', 'PPID', 'PS1', 'PS2', 'PS4', 'LINENO'];

/** What unshare(1) of older util-linux says, and ends with 1, when its child was killed by SIGKILL. */
const KILLED = /^unshare: sigprocmask unblock failed/m;

/**
 * What root keeps, and nobody else ever has: without it root could not even write a file of another's in the tree, and `tar`,
 * `npm` and package managers do so as a matter of course. None of it leads out of a run: mounting, devices, tracing, other
 * namespaces and `open_by_handle_at` (dac_read_search) take others.
 */
const KEPT = ['chown', 'dac_override', 'fowner', 'fsetid', 'setuid', 'setgid', 'kill'].map((name) => `+${name}`).join(',');

/** Looks for the command `$2` from the directory `$1`, as execvp would, and says in our words what is wrong; then the rest is run. */
const CHECK = `
cwd=$1 name=$2 fault='command not found' status=127
case $name in
*/*)
  case $name in /*) path=$name;; *) path=$cwd/$name;; esac
  if [ -d "$path" ]; then fault='is a directory' status=126
  elif [ -x "$path" ]; then fault=
  elif [ -e "$path" ]; then fault='permission denied' status=126
  else fault='no such file or directory'; fi;;
?*)
  set -f; IFS=:
  for dir in \${PATH-/bin:/usr/bin}; do
    case $dir in /*) ;; *) dir=$cwd/$dir;; esac
    if [ -d "$dir/$name" ]; then continue
    elif [ -x "$dir/$name" ]; then fault=; break
    elif [ -e "$dir/$name" ]; then fault='permission denied' status=126; fi
  done;;
esac
if [ -n "$fault" ]; then printf 'palimpsest: %s: %s\\n' "$name" "$fault" >&${ERRORS}; exit $status; fi
shift 2
exec "$@" 2>&${ERRORS} ${ERRORS}>&-
`;

/**
 * Starts a command in namespaces. A chain of small programs, each of which becomes the next:
 *
 *     env --ignore-signal   what everybody shares is ignored from here on
 *     nsenter               into the run; only children will be in its pid namespace
 *     unshare --fork        stays outside and waits; ends as the command does, by the same signal too
 *       sh                  from here on inside: is there such a command?
 *       env                 signals as they were, the working directory, the environment as before the shell
 *       setpriv             no capabilities but root's over files and over who it is, no way to new ones
 *         the command
 *
 * The namespaces are given as descriptors of this process, so a number that is used again can never lead anywhere else, and
 * nothing is inherited. A shell drops variables whose names are none in its eyes: where there are such it is left out, and
 * with it our own words.
 */
export function startCommand(namespaces: readonly Namespace[], argv: readonly string[], options: CommandOptions): Command {
  const names = Object.keys(options.env).filter((name) => options.env[name] !== undefined);
  const throughShell = names.every((name) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
  const chain = [
    `--ignore-signal=${SHARED_NAMES}`,
    toolPath('nsenter'), '--no-fork', ...namespaces.map(({ kind, fd }) => `${flagOf(kind)}=/proc/${process.pid}/fd/${fd}`),
    toolPath('unshare'), '--fork', '--kill-child',
    ...(throughShell ? [toolPath('sh'), '-c', CHECK, 'palimpsest', options.cwd, argv[0] ?? ''] : []),
    toolPath('env'), `--default-signal=${SHARED_NAMES}`, `--chdir=${options.cwd}`, ...(throughShell ? restored(options.env) : []),
    toolPath('setpriv'), '--no-new-privs', `--bounding-set=-all,${KEPT}`, '--inh-caps=-all', '--ambient-caps=-all', '--', ...argv,
  ];
  const [input, output, errors] = options.stdio;
  const streams = throughShell ? { 0: input, 1: output, 2: 'pipe', [ERRORS]: errors === 'inherit' ? 2 : errors } as const
    : { 0: input, 1: output, 2: errors };
  const waiter = spawn(toolPath('env'), chain, { cwd: '/', env: { ...options.env }, stdio: withoutInherited(streams) });

  const running = { now: true };
  const exited = new Promise<Outcome>((resolve, reject) => {
    let said = '';
    waiter.once('error', (cause) => { reject(new MachineError(`the command cannot be started: ${cause.message}`, { cause })); });
    waiter.once('exit', (status, signal) => {
      running.now = false;
      const settle = (): void => {
        if (KILLED.test(said)) resolve({ status: null, signal: 'SIGKILL' });
        else if (said !== '') reject(new MachineError(`the command cannot be started: ${said.trim()}`));
        else resolve({ status, signal });
      };
      // Nobody but the waiter writes there, so it ends now.
      if (throughShell && waiter.stderr?.readableEnded === false) waiter.stderr.once('end', settle);
      else settle();
    });
    if (throughShell) waiter.stderr?.on('data', (chunk) => { said += String(chunk); });
  });

  const own = (): number | undefined => (running.now && waiter.pid !== undefined ? childOf(waiter.pid) : undefined);
  return {
    exited,
    stdin: waiter.stdin,
    stdout: waiter.stdout,
    stderr: throughShell ? (waiter.stdio as readonly unknown[])[ERRORS] as Readable | null | undefined ?? null : waiter.stderr,
    stopped: () => {
      const pid = own();
      return pid !== undefined && /\) T /.test(textOf(`/proc/${pid}/stat`) ?? '');
    },
    kill: async (signal) => {
      for (let look = 0; look < LOOKS && running.now; look++) {
        const pid = own();
        // Until `env` has put the signals back they would be lost.
        if (pid !== undefined && (signal === 'SIGKILL' || look === LOOKS - 1 || !ignoresShared(pid))) {
          signalTo(pid, signal);
          return;
        }
        await sleep(LOOK);
      }
    },
  };
}

/** Arguments for env(1) that undo what a shell has done to the environment. */
function restored(env: CommandOptions['env']): string[] {
  const unset = SHELLS_OWN.filter((name) => env[name] === undefined), set = SHELLS_OWN.filter((name) => env[name] !== undefined);
  return [...unset.map((name) => `--unset=${name}`), ...set.map((name) => `${name}=${env[name]}`)];
}

function flagOf(kind: string): string {
  return kind === 'mnt' ? '--mount' : `--${kind}`;
}

function childOf(pid: number): number | undefined {
  const children = textOf(`/proc/${pid}/task/${pid}/children`);
  if (children !== undefined) return children === '' ? undefined : Number.parseInt(children, 10);
  // A kernel without CONFIG_PROC_CHILDREN.
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number)
    .find((other) => new RegExp(`\\) \\S ${pid} `).test(textOf(`/proc/${other}/stat`) ?? ''));
}

function ignoresShared(pid: number): boolean {
  const ignored = /^SigIgn:\s*([0-9a-f]+)$/m.exec(textOf(`/proc/${pid}/status`) ?? '');
  return ignored !== null && (BigInt(`0x${ignored[1]}`) & SHARED_MASK) === SHARED_MASK;
}

function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** A file of /proc, or nothing where its process has gone. */
function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, readFileSync, writeSync } from 'node:fs';
import { deviceFault, MachineError } from './device.ts';
import type { Outcome } from './command.ts';
import { endAs, supervise } from './supervisor.ts';
import { toolPath } from './tool.ts';

/** In the environment of the second start: the number of the first process. Never passed on. */
const MARK = 'PALIMPSEST_STARTED_BY';
/** Where the second start says that it has come through. */
const WORD = 3;

/** Bit of CAP_SYS_ADMIN. */
const SYS_ADMIN = 21n;

/**
 * Gives this program what it takes to mount. Root has it: resolves at once. Anybody else gets it in a user namespace in
 * which the own user and group are the same as outside: the program is started once more in there, with its
 * arguments and streams, and this process only stands in for it and ends as it ends; the promise does not resolve then.
 * To be called first of all, before anything is opened or loaded. Throws `MachineError` with what is missing.
 */
export async function gainPrivilege(): Promise<void> {
  const starter = process.env[MARK];
  delete process.env[MARK];
  if (starter !== undefined) {
    // The kernel tells this process of the starter's death, unless that came before this process could ask for it.
    if (process.ppid !== Number(starter)) process.exit(1);
    writeSync(WORD, '.');
    closeSync(WORD);
    if (!canMount()) throw new MachineError(restriction() ?? 'a user namespace gives no capabilities here');
    return;
  }
  if (canMount()) return;
  const fault = userNamespaceFault() ?? deviceFault();
  if (fault !== undefined) throw new MachineError(fault);

  const again = spawn(toolPath('setpriv'), [
    '--pdeathsig', 'KILL', toolPath('unshare'), '--user', '--map-current-user', '--keep-caps',
    process.execPath, ...process.execArgv, ...process.argv.slice(1),
  ], { stdio: ['inherit', 'inherit', 'inherit', 'pipe'], env: { ...process.env, [MARK]: String(process.pid) } });
  let came = false;
  again.stdio[WORD]?.once('data', () => { came = true; });
  const outcome = await supervise({
    exited: endOf(again), kill: async (signal) => { again.kill(signal); }, stopped: () => isStopped(again.pid),
  });
  if (!came) {
    throw new MachineError(process.getuid?.() === 0
      ? 'root may not mount here: this is inside of a run of root, or in a container (which needs --privileged, or --cap-add SYS_ADMIN)'
      : 'no user namespace can be made here: a container or a security module forbids it; try as root');
  }
  endAs(outcome);
  process.exit();
}

/** Whether this process has the capability to mount, as root or in a user namespace. */
export function canMount(): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
  return (BigInt(`0x${effective}`) >> SYS_ADMIN & 1n) === 1n;
}

/** Why there are no user namespaces for ordinary users, as far as the system's settings tell. */
export function userNamespaceFault(): string | undefined {
  if (settingOf('user/max_user_namespaces') === '0') {
    return 'user namespaces are switched off: as root, sysctl user.max_user_namespaces=15000';
  }
  if (settingOf('kernel/unprivileged_userns_clone') === '0') {
    return 'user namespaces are for root only: as root, sysctl kernel.unprivileged_userns_clone=1';
  }
  return undefined;
}

/** The setting of Ubuntu that leaves user namespaces without capabilities, unless a profile names the program. */
export function restriction(): string | undefined {
  return settingOf('kernel/apparmor_restrict_unprivileged_userns') === '1'
    ? 'AppArmor takes the capabilities of user namespaces away: as root, sysctl kernel.apparmor_restrict_unprivileged_userns=0'
    : undefined;
}

function settingOf(name: string): string | undefined {
  try {
    return readFileSync(`/proc/sys/${name}`, 'utf8').trim();
  } catch (error) {
    if (['ENOENT', 'EACCES'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

async function endOf(child: ChildProcess): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (status, signal) => { resolve({ status, signal }); });
  });
}

function isStopped(pid: number | undefined): boolean {
  return pid !== undefined && /\) T /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
}

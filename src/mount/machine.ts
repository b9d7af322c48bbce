import { spawnSync } from 'node:child_process';
import { deviceFault, MachineError } from './device.ts';
import { canMount, restriction, userNamespaceFault } from './privilege.ts';
import { toolPath, type Tool } from './tool.ts';

/** Something of this machine that something of this program needs. */
export interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly neededFor: string;
  /** What to do where it is not there. */
  readonly remedy: string;
}

const MOUNTING = 'run, shell, mount', RUNNING = 'run, shell';

/** Options without which a program is too old for us. */
const OPTIONS: Partial<Record<Tool, readonly string[]>> = {
  env: ['--ignore-signal', '--default-signal', '--chdir'],
  unshare: ['--mount', '--pid', '--fork', '--kill-child', '--keep-caps', '--map-current-user'],
  nsenter: ['--no-fork'],
  setpriv: ['--no-new-privs', '--bounding-set', '--ambient-caps', '--pdeathsig'],
};

/** Looks whether this machine has what mounts and runs need. Takes a few ms for each program; changes nothing. */
export function checkMachine(): Check[] {
  return [
    check('/dev/fuse', MOUNTING, deviceFault()),
    check('root, or user namespaces', MOUNTING, privilegeFault()),
    ...(['mount', 'umount'] as const).map((tool) => check(tool, MOUNTING, toolFault(tool))),
    ...(['sh', 'cat', 'env', 'unshare', 'nsenter', 'setpriv'] as const).map((tool) => check(tool, RUNNING, toolFault(tool))),
    check('ip', 'run --no-network', toolFault('ip')),
    check('getfattr', "extended attributes of the lower's files", toolFault('getfattr')),
    check('git', 'git apply of a patch', toolFault('git')),
  ];
}

function check(name: string, neededFor: string, fault: string | undefined): Check {
  return { name, ok: fault === undefined, neededFor, remedy: fault ?? '' };
}

/** Tried, not read from settings alone: containers and security modules forbid it in many ways. */
function privilegeFault(): string | undefined {
  if (canMount()) return undefined;
  const fault = userNamespaceFault();
  if (fault !== undefined) return fault;
  try {
    const script = 'mount -t tmpfs palimpsest /proc';
    const apart = ['--user', '--map-current-user', '--keep-caps', '--mount', toolPath('sh'), '-c', script];
    const { status } = spawnSync(toolPath('unshare'), apart, { stdio: 'ignore' });
    return status === 0 ? undefined : restriction() ?? 'a user namespace may not mount here: the container or a security module forbids it';
  } catch (error) {
    if (error instanceof MachineError) return error.message;
    throw error;
  }
}

function toolFault(tool: Tool): string | undefined {
  let path: string;
  try {
    path = toolPath(tool);
  } catch (error) {
    if (error instanceof MachineError) return error.message;
    throw error;
  }
  const wanted = OPTIONS[tool];
  if (wanted === undefined) return undefined;
  const { stdout } = spawnSync(path, ['--help'], { encoding: 'utf8', env: { LC_ALL: 'C' } });
  const lacking = wanted.filter((option) => !stdout.includes(option));
  return lacking.length === 0 ? undefined : `${path} is too old, it does not know ${lacking.join(', ')}`;
}

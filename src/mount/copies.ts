import { spawn } from 'node:child_process';
import { readdirSync, readlinkSync } from 'node:fs';
import { mountTable, type Mount } from './mount-table.ts';
import { TOOL_PATH, toolPath } from './tool.ts';

/** Milliseconds between looks at the mount table, which costs some 50 µs, and at those of others once ours has lost the mount. */
const LOOK_MS = 250, OTHERS_MS = 2000;

/** What to say of a process that has gone, or is not ours to look at. */
const GONE: readonly string[] = ['ENOENT', 'ESRCH', 'EACCES', 'EPERM', 'EINVAL'];

/**
 * Sees to it that a mount ends when it is unmounted. A mount namespace that was made while it stood (a run's, a service's) has
 * a copy of it that nobody asked for, and the kernel keeps the connection for that. So once our own namespace has none,
 * and no other has it in a place of its own (a container that it was bound into), the connection is cut.
 */
export class Copies {
  private readonly device: string;
  private readonly where: string;
  private readonly system: string | undefined;
  private timer: ReturnType<typeof setTimeout>;

  /** `where`: the real path of a mount of ours that stands now. */
  constructor(where: string) {
    const table = mountTable('self');
    this.where = where;
    this.device = table.findLast(({ path }) => path === where)?.device ?? '';
    this.system = systemOf(table);
    this.timer = this.after(LOOK_MS);
  }

  /** A line of the shell that ends the mount, whoever else holds it, and whether or not its server still lives. */
  get ending(): string {
    return cutting(this.device);
  }

  /** The mount has ended. */
  close(): void {
    clearTimeout(this.timer);
  }

  private after(pause: number): ReturnType<typeof setTimeout> {
    return setTimeout(() => { this.look(); }, pause).unref();
  }

  private look(): void {
    const isMounted = mountTable('self').some(({ device }) => device === this.device);
    if (!isMounted && !this.isWanted()) cut(this.device);
    this.timer = this.after(isMounted ? LOOK_MS : OTHERS_MS);
  }

  /** Whether another namespace has it elsewhere than a copy would have it: in another place, or in another system. */
  private isWanted(): boolean {
    const seen = new Set<string>();
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number)) {
      const namespace = unlessGone(() => readlinkSync(`/proc/${pid}/ns/mnt`));
      if (namespace === undefined || seen.has(namespace)) continue;
      seen.add(namespace);
      const mounts = unlessGone(() => mountTable(pid)) ?? [];
      const own = mounts.filter(({ device }) => device === this.device);
      if (own.some(({ path }) => path !== this.where) || (own.length > 0 && systemOf(mounts) !== this.system)) return true;
    }
    return false;
  }
}

/** One that fails leaves things as they are: the mount ends with the last copy, and meanwhile it is tried again. */
function cut(device: string): void {
  spawn(toolPath('sh'), ['-c', cutting(device)], { cwd: '/', env: { PATH: TOOL_PATH }, stdio: 'ignore' }).once('error', () => undefined).unref();
}

/**
 * A line of the shell that cuts the FUSE connection of a device: whoever still has it mounted gets ENOTCONN. The kernel's
 * switches need not be mounted here.
 */
function cutting(device: string): string {
  const controls = '/sys/fs/fuse/connections', minor = device.split(':')[1] ?? '';
  const steps = `${toolPath('mount')} -n -i -t fusectl none ${controls}; ! [ -e ${controls}/${minor} ] || echo 1 >${controls}/${minor}/abort`;
  return `${toolPath('unshare')} --mount ${toolPath('sh')} -c '${steps}' 2>/dev/null`;
}

/** The device of what is `/`: a container has another. */
function systemOf(table: readonly Mount[]): string | undefined {
  return table.findLast(({ path }) => path === '/')?.device;
}

function unlessGone<Value>(look: () => Value): Value | undefined {
  try {
    return look();
  } catch (error) {
    if (GONE.includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Control } from './control.ts';
import { Copies } from './copies.ts';
import { MachineError, openDevice } from './device.ts';
import type { Service, ServingOptions } from './orders.ts';
import { Serving } from './serving.ts';
import { TOOL_PATH, toolPath } from './tool.ts';

/** umount(8) is done before the server has written the end of its session: who mounts it again waits for that so long, in ms. */
const HANDOVER_MS = 2000, HANDOVER_STEP_MS = 20;

/** What to mount where. */
export interface MountOptions {
  readonly overlay: ServingOptions['overlay'];
  readonly actor: string;
  readonly exact: boolean;
  readonly writeBack: boolean;
  readonly mountPoint: string;
}

/** A mount served by a thread of this process. */
export interface Mounting {
  /** Resolved with the last event's number when it is unmounted, by whomever, and the session closed. */
  readonly ended: Promise<number>;
  readonly faults: readonly unknown[];
  /** Unmounts. Rejects with what umount(8) says where something is in use. */
  unmount(): Promise<void>;
}

/**
 * Mounts an overlay at a directory, in the mount namespace of this process. Throws `MachineError` where the machine or the
 * mount point does not allow it, and what opening the session throws.
 */
export async function mountOverlay(options: MountOptions): Promise<Mounting> {
  const { root } = options.overlay, where = demandMountable(options.mountPoint, root), until = Date.now() + HANDOVER_MS;
  for (;;) {
    const device = openDevice(), serving = new Serving({ ...options, device });
    try {
      return await mountServed(device, serving, serving.opened, { where, session: options.overlay.session });
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'ERR_SESSION_LOCKED' || Date.now() > until) throw error;
      await sleep(HANDOVER_STEP_MS);
    }
  }
}

/** Mounts what `service` serves on `device`, which is closed in the end. `ready`: when it does. */
export async function mountServed(
  device: number, service: Service, ready: Promise<unknown>, { where, session }: { where: string; session: string | undefined },
): Promise<Mounting> {
  try {
    await ready;
    await mount(device, where);
  } catch (error) {
    service.giveUp();
    closeSync(device);
    throw error;
  }
  const copies = new Copies(where), ringer = startRinger(`${where}/${service.bell}`, copies.ending);
  service.ringBy(ringer.pid ?? 0, () => ringer.stdin?.write('\n'));
  await service.order({ kind: 'processes', proc: '/proc' });
  const control = session === undefined ? undefined : await Control.ofSession(service, session);
  const ended = service.closed.finally(() => {
    copies.close();
    control?.close();
    ringer.stdin?.end();
    closeSync(device);
  });
  ended.catch(() => undefined);
  return { ended, faults: service.faults, unmount: async () => call('umount', [where], []) };
}

/** The real path of a mount point: an empty directory, or the root itself. Throws `MachineError` for any other. */
export function demandMountable(mountPoint: string, root: string | undefined): string {
  let where = resolve(mountPoint), names: readonly string[];
  try {
    where = realpathSync(where);
    if (!statSync(where).isDirectory()) throw new MachineError(`the mount point ${where} is not a directory`);
    names = readdirSync(where);
  } catch (error) {
    if (error instanceof MachineError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new MachineError(code === 'ENOENT' ? `the mount point ${where} does not exist` : `the mount point ${where} cannot be read (${code})`);
  }
  if (names.length > 0 && (root === undefined || where !== realpathSync(root))) throw new MachineError(`the mount point ${where} is not empty`);
  return where;
}

async function mount(device: number, where: string): Promise<void> {
  const mode = statSync(where).mode.toString(8), uid = process.geteuid?.() ?? 0, gid = process.getegid?.() ?? 0;
  const how = `fd=3,rootmode=${mode},user_id=${uid},group_id=${gid},allow_other,default_permissions`;
  await call('mount', ['-i', '-n', '-t', 'fuse.palimpsest', '-o', how, 'palimpsest', where], [device]);
}

/** Runs a program to its end. Rejects with what it said where it fails. `inherited`: descriptors from 3 on. */
async function call(program: string, args: readonly string[], inherited: readonly number[]): Promise<void> {
  const child = spawn(program, args, { cwd: '/', env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' },
    stdio: ['ignore', 'ignore', 'pipe', ...inherited] });
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => said += text);
  await new Promise<void>((done, failed) => {
    child.once('error', failed);
    child.once('close', (status) => status === 0 ? done() : failed(new MachineError(said.trim() || `${program} failed`)));
  });
}

/**
 * A process that looks the bell's name up at each line it gets. This process must not: killed while it waits for its own
 * answer, it could not go. For the same reason it is the ringer that cuts the connection when this process dies with calls into
 * the mount of its own under way (a library's user may have such): the kernel waits for their answers, and nobody is left to give them.
 */
function startRinger(path: string, ending: string): ChildProcess {
  const script = 'trap "$2" TERM; while read -r line; do [ -e "$1" ]; done';
  const ringer = spawn(toolPath('setpriv'), ['--pdeathsig', 'TERM', toolPath('sh'), '-c', script, 'sh', path, ending], {
    cwd: '/', env: { PATH: TOOL_PATH }, stdio: ['pipe', 'ignore', 'ignore'],
  });
  ringer.stdin?.on('error', () => undefined);
  ringer.unref();
  return ringer;
}

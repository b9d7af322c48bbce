import { closeSync, realpathSync } from 'node:fs';
import type { Readable } from 'node:stream';
import type { Mountable, OverlayMount, Processes, RunOptions, RunResult } from '../index/processes.ts';
import { MachineError, openDevice } from './device.ts';
import { LiveService } from './live.ts';
import { demandMountable, mountServed, type Mounting } from './mounting.ts';
import { runServed, WRITABLE } from './run.ts';
import type { Standard } from './inherited.ts';
import { awaitCommand } from './supervisor.ts';

/** Real processes on an overlay that this process has open: `overlay.mount` and `overlay.run`. */
export const processes: Processes = { mount, run };

async function mount(overlay: Mountable, mountPoint: string): Promise<OverlayMount> {
  const where = demandMountable(mountPoint, overlay.root), device = openDevice(), service = new LiveService(overlay, device);
  const mounting = await mountServed(device, service, service.opened, { where, session: overlay.session });
  const ended = endOf(mounting), is = { over: false };
  const over = (): void => { is.over = true; };
  ended.then(over, over);
  const unmount = async (): Promise<void> => {
    if (!is.over) await mounting.unmount();
    await ended;
  };
  return { ended, unmount, [Symbol.asyncDispose]: unmount };
}

async function endOf({ ended, faults }: Mounting): Promise<void> {
  await ended;
  const [fault] = faults;
  if (fault !== undefined) throw fault;
}

async function run(overlay: Mountable, argv: readonly string[], options: RunOptions): Promise<RunResult> {
  const { root, session } = overlay, { stdio = 'inherit', signal } = options;
  if (root === undefined) throw new MachineError('not supported: a command over a lower that is not one directory');
  const device = openDevice(), said: { stdout?: Buffer; stderr?: Buffer } = {};
  const streams: [Standard, Standard, Standard] = stdio === 'pipe' ? ['ignore', 'pipe', 'pipe'] : [stdio, stdio, stdio];
  try {
    const service = new LiveService(overlay, device);
    const result = await runServed(device, service, service.opened, {
      roots: [{ path: root, from: '' }], session, argv, cwd: options.cwd ?? workingDirectory(root), env: options.env ?? process.env, stdio: streams,
      network: options.network ?? 'shared', outside: options.outside === 'readonly' ? 'read-only' : 'as it is', writable: WRITABLE,
    }, async (command) => {
      const heard = [collect(command.stdout), collect(command.stderr)] as const;
      const outcome = await awaitCommand(command, { timeout: options.timeout, signal });
      [said.stdout, said.stderr] = await Promise.all(heard) as [Buffer, Buffer];
      return outcome;
    });
    const { status, timedOut, from, to, faults: [fault] } = result;
    if (fault !== undefined) throw fault;
    return { status, signal: result.signal, timedOut, from, to, stdout: said.stdout, stderr: said.stderr };
  } finally {
    closeSync(device);
  }
}

/** That of this process, where the tree shows there; else the root. */
function workingDirectory(root: string): string {
  const here = realpathSync.native('.');
  return here === root || here.startsWith(root + '/') ? here : root;
}

async function collect(stream: Readable | null): Promise<Buffer | undefined> {
  if (stream === null) return undefined;
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

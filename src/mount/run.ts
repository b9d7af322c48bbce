import { closeSync, mkdirSync } from 'node:fs';
import { openDevice } from './device.ts';
import { Control, SOCKET_VARIABLE } from './control.ts';
import type { Service, ServingOptions } from './orders.ts';
import { Serving } from './serving.ts';
import type { Command, Outcome } from './command.ts';
import type { Standard } from './inherited.ts';
import type { Root } from './init.ts';
import { openSpace, type Space } from './space.ts';
import { supervise, type Supervision } from './supervisor.ts';

/** What stays writable when all outside of the root is read-only, besides /dev and /proc. */
export const WRITABLE: readonly string[] = ['/tmp', '/var/tmp', '/run'];

/** A command over an overlay. */
export interface CommandOptions {
  /** Real paths of the directories below, where the overlay is seen too, and what of the overlay each is. */
  readonly roots: readonly [Root, ...Root[]];
  /** Directory of the session, which the command must not see. */
  readonly session: string | undefined;
  readonly argv: readonly string[];
  /** A path as seen inside. */
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdio: readonly [Standard, Standard, Standard];
  readonly network: 'shared' | 'none';
  readonly outside: 'as it is' | 'read-only';
  /** With `read-only` outside: directories that stay writable. */
  readonly writable: readonly string[];
}

/** The same for a session that nobody has opened yet. */
export interface RunOptions extends CommandOptions {
  readonly overlay: ServingOptions['overlay'];
  readonly actor: string;
  readonly exact: boolean;
  readonly writeBack: boolean;
  /** Seconds, after which the command is ended. */
  readonly timeout: number | undefined;
}

/** How a run ended. */
export interface RunResult extends Outcome {
  readonly timedOut: boolean;
  /** First and last event of the run. */
  readonly from: number;
  readonly to: number;
  /** Bugs: requests that met with a fault without a name. */
  readonly faults: readonly unknown[];
}

/**
 * Runs a command over an overlay, in place, and stands in for it meanwhile: terminal, signals and all. When it has ended, so has
 * all it left behind, and the session is closed. Throws `MachineError` where the machine lacks something, and what
 * opening the session throws.
 */
export async function runOverlay(options: RunOptions): Promise<RunResult> {
  const device = openDevice(), serving = new Serving({ ...options, device });
  try {
    return await runServed(device, serving, serving.opened, options, (command) => supervise(command, options.timeout));
  } finally {
    closeSync(device);
  }
}

/**
 * Runs a command over what `service` serves on `device`. `ready`: when it does. `watch` waits for the command's end. Nothing is
 * left of it afterwards, and the service has ended.
 */
export async function runServed(
  device: number, service: Service, ready: Promise<unknown>, options: CommandOptions, watch: (command: Command) => Promise<Supervision>,
): Promise<RunResult> {
  // Both take their time; neither needs the other until the command starts.
  const space = await bothOrNone(openRun(options, device, service), ready, () => service.giveUp());
  // When it is killed early, the mount can have come and gone before the service saw it.
  void space.ended.then(() => service.giveUp());
  service.ringBy(space.ringer, () => space.ring());
  try {
    return await runIn(space, service, options, watch);
  } finally {
    await space.end();
    await service.closed;
  }
}

function openRun(options: CommandOptions, device: number, { bell }: Service): Promise<Space> {
  const { roots, network, outside, writable, session } = options;
  // It is to be hidden before the serving thread has made it.
  if (session !== undefined) mkdirSync(session, { recursive: true, mode: 0o700 });
  return openSpace({
    device, roots, masked: session === undefined ? [] : [session],
    network, outside, writable, bell, attached: () => undefined,
  });
}

/** The space, once both are there; or the fault of one once nothing of the other is left. */
async function bothOrNone(space: Promise<Space>, ready: Promise<unknown>, giveUp: () => void): Promise<Space> {
  const [first, second] = await Promise.allSettled([space, ready]);
  if (first.status === 'fulfilled' && second.status === 'fulfilled') return first.value;
  giveUp();
  if (first.status === 'fulfilled') await first.value.end();
  throw second.status === 'rejected' ? second.reason : (first as PromiseRejectedResult).reason;
}

async function runIn(
  space: Space, service: Service, options: CommandOptions, watch: (command: Command) => Promise<Supervision>,
): Promise<RunResult> {
  const { argv, cwd, stdio, roots: [{ path: root }] } = options;
  await service.order({ kind: 'processes', proc: space.procRoot });
  const inside = await Control.inside(service, root), env = { ...options.env, [SOCKET_VARIABLE]: inside.path };
  const outside = options.session === undefined ? undefined : await Control.ofSession(service, options.session);
  try {
    const from = await service.order({ kind: 'run', argv, cwd });
    const outcome = await watch(space.spawn(argv, { cwd, env, stdio }));
    const to = await service.order({ kind: 'exit', status: outcome.status, signal: outcome.signal });
    return { ...outcome, from, to, faults: service.faults };
  } finally {
    inside.close();
    outside?.close();
  }
}

import { closeSync } from 'node:fs';
import { openDevice } from './device.ts';
import { Marks, SOCKET_VARIABLE } from './marks.ts';
import type { ServingOptions } from './orders.ts';
import { Serving } from './serving.ts';
import { openSpace, type Outcome, type Space, type Standard } from './space.ts';
import { supervise } from './supervisor.ts';

/** A command over an overlay. */
export interface RunOptions {
  readonly overlay: ServingOptions['overlay'];
  readonly actor: string;
  /** Real path of the lower: where the overlay is seen, too. */
  readonly root: string;
  readonly exact: boolean;
  readonly argv: readonly string[];
  /** A path as seen inside. */
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdio: readonly [Standard, Standard, Standard];
  readonly network: 'shared' | 'none';
  readonly outside: 'as it is' | 'read-only';
  /** With `read-only` outside: directories that stay writable. */
  readonly writable: readonly string[];
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
    // Both take their time; neither needs the other until the command starts.
    const [space] = await bothOrNone(openRun(options, device, serving), serving.opened, () => serving.giveUp());
    serving.ringBy(space.ringer, () => space.ring());
    try {
      return await runIn(space, serving, options);
    } finally {
      await space.end();
      await serving.closed;
    }
  } finally {
    closeSync(device);
  }
}

function openRun(options: RunOptions, device: number, serving: Serving): Promise<Space> {
  const { root, network, outside, writable, overlay } = options;
  return openSpace({
    device, roots: [{ path: root, from: '' }], masked: overlay.session === undefined ? [] : [overlay.session],
    network, outside, writable, bell: serving.bell, attached: () => undefined,
  });
}

/** Both results, or the fault of the first to fail once nothing of the other is left. */
async function bothOrNone(space: Promise<Space>, opened: Promise<number>, giveUp: () => void): Promise<[Space, number]> {
  const [first, second] = await Promise.allSettled([space, opened]);
  if (first.status === 'fulfilled' && second.status === 'fulfilled') return [first.value, second.value];
  giveUp();
  if (first.status === 'fulfilled') await first.value.end();
  throw second.status === 'rejected' ? second.reason : (first as PromiseRejectedResult).reason;
}

async function runIn(space: Space, serving: Serving, options: RunOptions): Promise<RunResult> {
  const { argv, cwd, stdio, root } = options;
  await serving.order({ kind: 'processes', proc: space.procRoot });
  const marks = await Marks.listen(serving, root), env = { ...options.env, [SOCKET_VARIABLE]: marks.path };
  try {
    const from = await serving.order({ kind: 'run', argv, cwd });
    const outcome = await supervise(space.spawn(argv, { cwd, env, stdio }), options.timeout);
    const to = await serving.order({ kind: 'exit', status: outcome.status, signal: outcome.signal });
    return { ...outcome, from, to, faults: serving.faults };
  } finally {
    marks.close();
  }
}

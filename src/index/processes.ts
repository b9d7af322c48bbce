import type { Served } from '../overlay/served.ts';

/** How `overlay.run` runs a command. */
export interface RunOptions {
  /** Default: the working directory of this process where the tree shows there, else the root. */
  readonly cwd?: string;
  /** The whole environment. Default: that of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /**
   * Standard input, output and error: this process's own (default), nothing, or `pipe`: an empty input, and what the command
   * says in the result.
   */
  readonly stdio?: 'inherit' | 'ignore' | 'pipe';
  /** Seconds, after which the command gets SIGTERM, and five seconds later SIGKILL. */
  readonly timeout?: number;
  /** Ends the command in the same way when it is aborted. */
  readonly signal?: AbortSignal;
  /** `none`: nothing but a loopback of its own. Default `shared`. */
  readonly network?: 'shared' | 'none';
  /** `readonly`: outside of the tree only temporary directories can be written. Default: everything is as it is. */
  readonly outside?: 'as it is' | 'readonly';
}

/** How a command ended: with a status or by a signal; and its first and last event. */
export interface RunResult {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly timedOut: boolean;
  readonly from: number;
  readonly to: number;
  /** What it said, with `stdio: 'pipe'`. */
  readonly stdout: Buffer | undefined;
  readonly stderr: Buffer | undefined;
}

/** A live overlay mounted at a directory. */
export interface OverlayMount {
  /** Resolved when it is unmounted, by whomever. */
  readonly ended: Promise<void>;
  /** Rejects with what umount(8) says where something is in use. Idempotent. */
  unmount(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** What of an overlay the mount needs. */
export interface Mountable {
  readonly served: Served;
  readonly actor: string;
  readonly head: { readonly seq: number };
  readonly discard: (paths: readonly string[] | undefined) => void;
  /** Real path of the lower, where it is one directory. */
  readonly root: string | undefined;
  /** Session directory. */
  readonly session: string | undefined;
}

/** The part of the package that brings real processes to an overlay. */
export interface Processes {
  mount(overlay: Mountable, mountPoint: string): Promise<OverlayMount>;
  run(overlay: Mountable, argv: readonly string[], options: RunOptions): Promise<RunResult>;
}

/** Loads that part, which stands above this one, only when it is asked for. */
export async function loadProcesses(): Promise<Processes> {
  const above: string = 'palimpsest/mount';
  return (await import(above) as { processes: Processes }).processes;
}

import type { StdioOptions } from 'node:child_process';

/** A directory at which the FUSE file system shows. */
export interface Root {
  /** Where: an absolute real path of a directory, not `/`; no root lies in another. */
  readonly path: string;
  /** Which directory of the FUSE file system: `''` is its root, otherwise names joined by `/`. */
  readonly from: string;
}

/** What a run's namespaces are made of. */
export interface SpaceOptions {
  /** From `openDevice`; the server answers on it as soon as `openSpace` is called. The caller closes it, after the end. */
  readonly device: number;
  readonly roots: readonly Root[];
  /** Directories that show empty and read-only inside: the session. A missing one is passed over. */
  readonly masked: readonly string[];
  /** `none`: a network of its own, in which there is only the loopback. */
  readonly network: 'shared' | 'none';
  /** `read-only`: nothing but the roots and `writable` can be written, nor created in. */
  readonly outside: 'as it is' | 'read-only';
  /** With `read-only` outside: directories that stay writable. `/dev` and `/proc` always do. */
  readonly writable: readonly string[];
  /** A name in the first root that the server answers with ENOENT and takes as a call for its attention (`ring`). */
  readonly bell: string;
}

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
  readonly stdio: StdioOptions;
}

/** A command that runs in a space. */
export interface Command {
  readonly exited: Promise<Outcome>;
  /** Sends a signal to the command itself; nothing happens once it has ended. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Whether the command is stopped (as by Ctrl-Z). */
  stopped(): boolean;
}

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
  /** What of `name` can be executed inside: `missing` and `denied` as `execvp` would find it. */
  find(name: string, options: CommandOptions): Promise<'found' | 'missing' | 'denied' | 'directory'>;
  spawn(argv: readonly string[], options: CommandOptions): Command;
  /** Makes the first process look the bell's name up; a look-up begins after each call, several calls may share one. */
  ring(): void;
  /** Ends all that runs inside. Resolved when no process is left. Idempotent. The server must answer until then. */
  end(): Promise<void>;
  /** Resolved when no process is left, for whatever reason. */
  readonly ended: Promise<void>;
}

import type { OverlayOptions } from '../index/options.ts';

/** What a serving thread is started with. */
export interface ServingOptions {
  readonly device: number;
  readonly overlay: Omit<OverlayOptions, 'lower' | 'clock'> & { readonly lower?: readonly string[] };
  readonly actor: string;
  readonly exact: boolean;
  /** The kernel may keep what is written, and write it later. */
  readonly writeBack: boolean;
  /** The name in the root whose look-up has the thread read its orders. */
  readonly bell: string;
  /** `DIRTY`, `STOP` and `RINGER` of the loop. */
  readonly shared: Int32Array<SharedArrayBuffer>;
}

/** What the main thread asks of the thread that serves. It is read when the bell is rung. */
export type Order =
  /** Where thread ids in requests can be looked up. */
  | { readonly kind: 'processes'; readonly proc: string }
  | { readonly kind: 'run'; readonly argv: readonly string[]; readonly cwd: string }
  | { readonly kind: 'exit'; readonly status: number | null; readonly signal: string | null }
  | { readonly kind: 'mark'; readonly label: string; readonly data: unknown; readonly actor: string | undefined;
    /** What followed the bell's name in the look-up by which the process showed itself; none from outside. */
    readonly claim: string | undefined; }
  /** Changes at and below `paths` are thrown away; all without. */
  | { readonly kind: 'discard'; readonly paths: readonly string[] | undefined };


/** Whoever serves an overlay to a FUSE connection: a thread, or this process by turns. */
export interface Service {
  /** The name whose look-up in the root wakes it, and with which claims begin. */
  readonly bell: string;
  /** Resolved when the connection has ended, with the last event's number. */
  readonly closed: Promise<number>;
  /** Bugs: faults without a name that requests met with EIO. */
  readonly faults: readonly unknown[];
  /**
   * How to make the kernel ask for the bell's name, from now on. `ringer`: whose number the requests then have; 0 for one
   * whom the mount's pid namespace does not know.
   */
  ringBy(ringer: number, ring: () => void): void;
  /** Resolved with the number of the event that the order made, or of the last one. */
  order(order: Order): Promise<number>;
  /** It came to no mount: nothing is served. */
  giveUp(): void;
}

/** An order with the number that its answer names. */
export type Numbered = Order & { readonly id: number };

/** What the serving thread says. `seq`: of the event that an order made, else of the last one. */
export type Word =
  | { readonly kind: 'open'; readonly seq: number; readonly session: string | undefined }
  | { readonly kind: 'done'; readonly id: number; readonly seq: number }
  | { readonly kind: 'refused'; readonly id: number; readonly code: string; readonly reason: string | undefined }
  | { readonly kind: 'failed'; readonly error: unknown }
  /** What the kernel is to forget, to be written to the device where it may wait. */
  | { readonly kind: 'notices'; readonly notices: readonly Uint8Array[] }
  | { readonly kind: 'closed'; readonly seq: number };

import type { Caller, ProcessInfo } from '../index/front-end.ts';
import type { Processes } from './processes.ts';
import type { Request } from './wire.ts';

/** Who asks: process, ids, and the actor that the process acts for. */
export class Callers {
  private processes: Processes | undefined = undefined;
  private readonly byProcess = new WeakMap<ProcessInfo, Caller>();
  /** Actors given to a process and all that descend from it. */
  private readonly actors = new Map<number, string>();
  private readonly claims = new Map<string, ProcessInfo>();
  private readonly actor: string;

  constructor(actor: string) {
    this.actor = actor;
  }

  /** From here on the numbers in requests can be looked up. */
  know(processes: Processes): void {
    this.processes = processes;
  }

  /** `opener`: to whom a request of the kernel's own is charged. */
  of(request: Request, opener?: Caller): Caller {
    const { thread, uid, gid } = request, process = this.processes?.of(thread);
    if (process === undefined) return opener === undefined ? { actor: this.actor, uid, gid, process } : inferred(opener);
    const known = this.byProcess.get(process);
    if (known !== undefined && known.uid === uid && known.gid === gid) return known;
    const caller = { actor: this.actorOf(process), uid, gid, process };
    this.byProcess.set(process, caller);
    return caller;
  }

  /** A process shows who it is, to be named by `claim` later. */
  claim(claim: string, thread: number): void {
    const process = this.processes?.of(thread);
    if (process !== undefined) this.claims.set(claim, process);
  }

  /**
   * The caller that made `claim`. With `actor`: its parent (whoever called the program that claims), and all that descends
   * from that, act as `actor` from here on.
   */
  claimant(claim: string | undefined, actor: string | undefined): Caller {
    const process = claim === undefined ? undefined : this.claims.get(claim);
    if (claim !== undefined) this.claims.delete(claim);
    if (process === undefined) return { actor: actor ?? this.actor, uid: 0, gid: 0, process };
    if (actor !== undefined) {
      this.actors.set(process.parent ?? process.pid, actor);
      this.processes?.close();
    }
    return { actor: this.actorOf(process), uid: 0, gid: 0, process };
  }

  private actorOf({ pid }: ProcessInfo): string {
    if (this.actors.size === 0) return this.actor;
    const own = this.actors.get(pid);
    if (own !== undefined) return own;
    for (const above of this.processes?.above(pid) ?? []) {
      const actor = this.actors.get(above);
      if (actor !== undefined) return actor;
    }
    return this.actor;
  }
}

function inferred(opener: Caller): Caller {
  return opener.process === undefined ? opener : { ...opener, process: { ...opener.process, inferred: true } };
}

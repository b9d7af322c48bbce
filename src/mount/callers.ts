import type { Caller, ProcessInfo } from '../index/front-end.ts';
import type { Processes } from './processes.ts';
import type { Request } from './wire.ts';

/** Who asks: process, ids, and the actor that the process acts for. */
export class Callers {
  private readonly processes: Processes;
  private readonly byProcess = new WeakMap<ProcessInfo, Caller>();
  /** Actors given to a process and all that descend from it. */
  private readonly actors = new Map<number, string>();
  private readonly actor: string;

  constructor(processes: Processes, actor: string) {
    this.processes = processes;
    this.actor = actor;
  }

  /** `opener`: to whom a request of the kernel's own is charged. */
  of(request: Request, opener?: Caller): Caller {
    const { thread, uid, gid } = request, process = this.processes.of(thread);
    if (process === undefined) return opener === undefined ? { actor: this.actor, uid, gid, process } : inferred(opener);
    const known = this.byProcess.get(process);
    if (known !== undefined && known.uid === uid && known.gid === gid) return known;
    const caller = { actor: this.actorOf(process), uid, gid, process };
    this.byProcess.set(process, caller);
    return caller;
  }

  /** From here on, `pid` and its descendants act as `actor`. */
  assign(pid: number, actor: string): void {
    this.actors.set(pid, actor);
    this.processes.close();
  }

  private actorOf({ pid }: ProcessInfo): string {
    if (this.actors.size === 0) return this.actor;
    const own = this.actors.get(pid);
    if (own !== undefined) return own;
    for (const above of this.processes.above(pid)) {
      const actor = this.actors.get(above);
      if (actor !== undefined) return actor;
    }
    return this.actor;
  }
}

function inferred(opener: Caller): Caller {
  return opener.process === undefined ? opener : { ...opener, process: { ...opener.process, inferred: true } };
}

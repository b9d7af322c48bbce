import { unreachable, type Served } from '../index/front-end.ts';
import type { Callers } from './callers.ts';
import type { Order } from './orders.ts';
import { Processes } from './processes.ts';

/** What whoever serves a connection is asked to do besides. */
export class Duties {
  private readonly served: Served;
  private readonly callers: Callers;
  private readonly actor: string;
  private readonly lastSeq: () => number;
  private readonly discard: (paths: readonly string[] | undefined) => void;
  private processes: Processes | undefined = undefined;

  constructor(parts: { served: Served; callers: Callers; actor: string; lastSeq: () => number;
    discard: (paths: readonly string[] | undefined) => void; }) {
    this.served = parts.served;
    this.callers = parts.callers;
    this.actor = parts.actor;
    this.lastSeq = parts.lastSeq;
    this.discard = parts.discard;
  }

  /** Gives the number of the event that the order made, or of the last one. Throws `Refusal` where there is no room for it. */
  obey(order: Order): number {
    const { served, callers } = this;
    served.acting({ actor: this.actor, uid: 0, gid: 0, process: undefined });
    try {
      switch (order.kind) {
        case 'processes':
          this.close();
          callers.know(this.processes = new Processes(order.proc));
          return this.lastSeq();
        case 'run': return served.tellRun(order.argv, order.cwd);
        case 'exit': return served.tellExit(order.status, order.signal);
        case 'mark':
          served.acting(callers.claimant(order.claim, order.actor));
          return served.tellMark(order.label, order.data);
        case 'discard':
          served.rest();
          this.discard(order.paths);
          return this.lastSeq();
        default: return unreachable(order);
      }
    } finally {
      served.rest();
      // Whoever asked may look into the log now.
      served.flush();
    }
  }

  close(): void {
    this.processes?.close();
  }
}

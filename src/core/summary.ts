import type { Event, ProcessInfo, RuleRecord } from './event.ts';
import { noteIncident, type Incident } from './incident.ts';
import { compareNames, type TreePath } from './path.ts';
import { columnOf, count, initialStatistics, noCounts, type Counts } from './statistics.ts';

/** A history in figures: what a run is asked for first. */
export interface Summary {
  /** First and last event counted; 0 where there was none. */
  readonly from: number;
  readonly to: number;
  readonly events: number;
  /** ISO 8601, of these events. */
  readonly first: string | undefined;
  readonly last: string | undefined;
  readonly total: Counts;
  readonly actors: readonly ({ readonly actor: string } & Counts)[];
  readonly processes: readonly ProcessCounts[];
  /** Paths whose content was read, each once, sorted by their bytes; so are the next three. */
  readonly read: readonly TreePath[];
  readonly listed: readonly TreePath[];
  /** Paths of which attributes or a link's target were asked for. */
  readonly looked: readonly TreePath[];
  /** Paths where nothing was found. What a rule hides is none of them. */
  readonly missed: readonly TreePath[];
  readonly flags: readonly Incident[];
  readonly refusals: readonly Incident[];
  /** The path rules that these events put in force last; of an overlay's own summary, those in force. */
  readonly rules: readonly RuleRecord[];
}

/** What one program of one process did; a process that becomes another program counts for each. */
export interface ProcessCounts extends Counts {
  /** In the run's own count. */
  readonly pid: number;
  readonly name: string;
  readonly parent?: number;
  /** The `run` event it belongs to, as far as these events tell. */
  readonly run?: number;
}

/** Sums `events` up. */
export function summaryOf(events: Iterable<Event>): Summary {
  const statistics = initialStatistics(), processes = new Processes();
  const incidents = new Map<string, Incident>();
  const read = new Set<TreePath>(), listed = new Set<TreePath>(), looked = new Set<TreePath>(), missed = new Set<TreePath>();
  let from = 0, to = 0, rules: readonly RuleRecord[] = [];
  for (const event of events) {
    count(statistics, event);
    if (from === 0) from = event.seq;
    to = event.seq;
    processes.add(event);
    switch (event.op) {
      case 'read': read.add(event.path); break;
      case 'list': listed.add(event.path); break;
      case 'stat': case 'readlink': looked.add(event.path); break;
      case 'miss': missed.add(event.path); break;
      case 'flag': case 'refuse': noteIncident(incidents, event); break;
      case 'rules': rules = event.rules; break;
      default: break;
    }
  }
  const told = (op: Incident['op']): Incident[] => [...incidents.values()].filter((each) => each.op === op);
  return {
    from, to, events: statistics.events, first: statistics.first, last: statistics.last, total: statistics.total,
    actors: Array.from(statistics.actors, ([actor, counts]) => ({ actor, ...counts })), processes: processes.list(),
    read: sorted(read), listed: sorted(listed), looked: sorted(looked), missed: sorted(missed),
    flags: told('flag'), refusals: told('refuse'), rules,
  };
}

function sorted(paths: ReadonlySet<TreePath>): TreePath[] {
  return [...paths].sort(compareNames);
}

class Processes {
  private readonly found = new Map<string, { process: ProcessInfo; run: number | undefined; counts: Counts }>();
  private run: number | undefined = undefined;

  add(event: Event): void {
    // Numbers of processes begin anew with each run.
    if (event.op === 'run') this.run = event.seq;
    const { process } = event, column = columnOf(event);
    if (process === undefined || column === undefined) return;
    const key = `${this.run} ${process.pid} ${process.name}`;
    let known = this.found.get(key);
    if (known === undefined) this.found.set(key, known = { process, run: this.run, counts: noCounts() });
    known.counts[column]++;
  }

  list(): ProcessCounts[] {
    return Array.from(this.found.values(), ({ process: { pid, name, parent }, run, counts }) =>
      ({ pid, name, ...(parent === undefined ? undefined : { parent }), ...(run === undefined ? undefined : { run }), ...counts }));
  }
}

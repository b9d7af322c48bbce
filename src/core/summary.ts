import type { Event, ProcessInfo, RuleRecord } from './event.ts';
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

/** Flags, or refusals, that are the same but for their time and process. */
export interface Incident {
  readonly actor: string;
  readonly call: string;
  readonly path?: TreePath;
  /** The absolute path outside the tree. */
  readonly outside?: string;
  readonly rule?: string;
  readonly code?: string;
  /** Names of the processes, where there were some. */
  readonly programs: readonly string[];
  readonly count: number;
  /** The first one's sequence number. */
  readonly seq: number;
}

/** Sums `events` up. */
export function summaryOf(events: Iterable<Event>): Summary {
  const statistics = initialStatistics(), processes = new Processes();
  const flags = new Incidents(), refusals = new Incidents();
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
      case 'flag': flags.add(event); break;
      case 'refuse': refusals.add(event); break;
      case 'rules': rules = event.rules; break;
      default: break;
    }
  }
  return {
    from, to, events: statistics.events, first: statistics.first, last: statistics.last, total: statistics.total,
    actors: Array.from(statistics.actors, ([actor, counts]) => ({ actor, ...counts })), processes: processes.list(),
    read: sorted(read), listed: sorted(listed), looked: sorted(looked), missed: sorted(missed),
    flags: flags.list(), refusals: refusals.list(), rules,
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

type Told = Extract<Event, { op: 'flag' | 'refuse' }>;

class Incidents {
  private readonly found = new Map<string, { first: Told; count: number; programs: Set<string> }>();

  add(event: Told): void {
    const { actor, call, path, rule } = event, refused = event.op === 'refuse' ? event : undefined;
    const key = JSON.stringify([actor, call, path, rule, refused?.code, refused?.outside]);
    let incident = this.found.get(key);
    if (incident === undefined) this.found.set(key, incident = { first: event, count: 0, programs: new Set() });
    incident.count++;
    if (event.process !== undefined) incident.programs.add(event.process.name);
  }

  list(): Incident[] {
    return Array.from(this.found.values(), ({ first, count: times, programs }) => {
      const { actor, call, path, rule, seq } = first, refused = first.op === 'refuse' ? first : undefined;
      return {
        actor, call, ...(path === undefined ? undefined : { path }), ...(refused?.outside === undefined ? undefined : { outside: refused.outside }),
        ...(rule === undefined ? undefined : { rule }), ...(refused === undefined ? undefined : { code: refused.code }),
        programs: [...programs], count: times, seq,
      };
    });
  }
}

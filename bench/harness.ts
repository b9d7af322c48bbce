import fs from 'node:fs';
import { join } from 'node:path';
import { startClock } from './clock.ts';
import { sampleCold } from './cold.ts';
import { openSubject } from './open.ts';
import { judged, type Figures, type Result } from './result.ts';
import type { ColdRow, Row, WarmRow } from './row.ts';
import { isRaw, SUBJECTS, type SubjectName } from './subject.ts';
import { plant, type Order, type Shape, type Tree } from './tree.ts';

export interface Options {
  /** Files of a tree, and so operations of a round. */
  readonly n: number;
  /** Rounds that count, after one that does not. */
  readonly rounds: number;
  /** Those of a peer; fewer where they take longer than `peerMillis`. */
  readonly peerRounds: number;
  readonly peerMillis: number;
  readonly subjects: readonly SubjectName[];
  /** `cpu`: processor time of the process (all its threads) instead of the clock on the wall, for a busy machine. */
  readonly clock: 'wall' | 'cpu';
  readonly order: Order;
  /** A directory of our own to work in, on the file system to be measured. */
  readonly scratch: string;
}

/** Trees of a shape, made once for all rows: the lower, which nothing may change, and a twin for what raw changes. */
export class Trees {
  private readonly planted = new Map<string, Tree>();
  private readonly options: Options;

  constructor(options: Options) {
    this.options = options;
  }

  of(shape: Shape, twin: 'lower' | 'raw'): Tree {
    const key = `${shape.name}-${twin}`;
    let tree = this.planted.get(key);
    if (tree === undefined) {
      tree = plant(join(this.options.scratch, key), shape, this.options.n, this.options.order);
      this.planted.set(key, tree);
    }
    return tree;
  }
}

/** Measures a row: all subjects in turn, round by round. */
export async function measure(row: Row, options: Options, trees: Trees): Promise<Result> {
  return row.kind === 'warm' ? measureWarm(row, options, trees) : measureCold(row, options);
}

type Taken = { micros: number[]; rounds: number[]; bytes: number[]; sum: number | undefined; failure: string | undefined;
  spent: number; absent: boolean };

async function measureWarm(row: WarmRow, options: Options, trees: Trees): Promise<Result> {
  const lower = trees.of(row.shape, 'lower');
  const taken = new Map<SubjectName, Taken>();
  const paths = row.paths(lower, options.n);
  for (let round = 0; round <= options.rounds; round++) {
    for (const name of inTurn(options.subjects, round)) {
      const so = taken.get(name) ?? nothing();
      taken.set(name, so);
      if (so.absent || so.failure !== undefined || !takesPart(name, round, so, options)) continue;
      const start = performance.now();
      const root = row.changes && (name === 'raw' || name === 'raw again') ? trees.of(row.shape, 'raw') : lower;
      try {
        const sample = await warmSample(row, name, root.root, isPeer(name) ? paths.slice(0, row.peerPaths) : paths, options);
        if (sample === undefined) so.absent = true;
        else note(so, round, sample, 0);
      } catch (error) {
        so.failure = error instanceof Error ? error.message : String(error);
      }
      so.spent += performance.now() - start;
    }
  }
  return resultOf(row, taken, paths.length);
}

type WarmSample = { readonly micros: number; readonly sum: number };

/** One round of one subject, opened for it alone. `undefined`: it has not the calls that the row needs. */
async function warmSample(row: WarmRow, name: SubjectName, root: string, paths: readonly string[],
  options: Options): Promise<WarmSample | undefined> {
  const scratch = join(options.scratch, 'round');
  fs.mkdirSync(scratch);
  const subject = row.open === undefined ? await openSubject(name, root, join(scratch, 'session')) : row.open(name, scratch);
  if (subject === undefined || row.needs.some((call) => subject[call] === undefined)) {
    await subject?.close();
    fs.rmSync(scratch, { recursive: true });
    return undefined;
  }
  const named = paths.map((path) => subject.at(path));
  try {
    await row.prepare?.(subject, named);
    await subject.settle?.();
    const events = subject.events?.() ?? 0;
    globalThis.gc?.();
    const stop = startClock();
    const answer = row.run(subject, named);
    const run = typeof answer === 'number' ? answer : await answer;
    const settled = subject.settle?.();
    if (settled !== undefined) await settled;
    const micros = stop()[options.clock] / paths.length;
    const logged = (subject.events?.() ?? Infinity) - events;
    if (logged < Math.floor(row.events * paths.length)) throw new Error(`only ${logged} events for ${paths.length} operations`);
    const verified = await row.verify?.(subject, named) ?? 0;
    return { micros, sum: run / paths.length + verified };
  } finally {
    await subject.close();
    if (isRaw(subject)) row.restore?.(named);
    fs.rmSync(scratch, { recursive: true });
  }
}

async function measureCold(row: ColdRow, options: Options): Promise<Result> {
  const scratch = join(options.scratch, row.name);
  fs.mkdirSync(scratch);
  const argument = await row.stage(scratch, options.n);
  const taken = new Map<SubjectName, Taken>();
  for (let round = 1; round <= options.rounds; round++) {
    for (const name of inTurn(options.subjects, round)) {
      if (!row.subjects.includes(name)) continue;
      const so = taken.get(name) ?? nothing();
      taken.set(name, so);
      if (so.failure !== undefined || (isPeer(name) && round > (row.peerRounds ?? options.peerRounds))) continue;
      try {
        const sample = sampleCold(row.name, name, argument);
        note(so, round, { micros: sample[options.clock], sum: sample.sum }, sample.bytes);
      } catch (error) {
        so.failure = coldFailure(error);
      }
    }
  }
  fs.rmSync(scratch, { recursive: true });
  return resultOf(row, taken, 1);
}

/** The line of a child's words that names its error. */
function coldFailure(error: unknown): string {
  const words = String((error as { stderr?: unknown }).stderr ?? error);
  return words.split('\n').find((line) => /^\S*Error\b|FATAL/.test(line)) ?? words.slice(0, 400);
}

/** Rotated from round to round, so that none is always the one after another. */
function inTurn(subjects: readonly SubjectName[], round: number): SubjectName[] {
  const first = round % subjects.length;
  return [...subjects.slice(first), ...subjects.slice(0, first)];
}

function isPeer(name: SubjectName): boolean {
  return SUBJECTS.indexOf(name) > SUBJECTS.indexOf('ours on disk');
}

function takesPart(name: SubjectName, round: number, so: Taken, options: Options): boolean {
  if (!isPeer(name) || round <= 1) return !(isPeer(name) && round === 1 && so.spent > options.peerMillis);
  return round <= options.peerRounds && so.spent < options.peerMillis;
}

function nothing(): Taken {
  return { micros: [], rounds: [], bytes: [], sum: undefined, failure: undefined, spent: 0, absent: false };
}

function note(so: Taken, round: number, sample: WarmSample, bytes: number): void {
  so.sum = sample.sum;
  so.micros.push(sample.micros);
  so.rounds.push(round);
  so.bytes.push(bytes);
}

function resultOf(row: Row, taken: ReadonlyMap<SubjectName, Taken>, operations: number): Result {
  const raw = taken.get('raw');
  const subjects: Partial<Record<SubjectName, Figures>> = {};
  for (const name of SUBJECTS) {
    const so = taken.get(name);
    if (so === undefined || so.absent) continue;
    const wrong = so.failure ?? (raw !== undefined && so.sum !== undefined && Math.abs(so.sum - (raw.sum ?? NaN)) > 1e-9
      ? `wrong: ${so.sum} where raw has ${raw.sum}` : undefined);
    // The warm-up counts only for those that were too slow for more.
    const warm = so.rounds.length > 1 && so.rounds[0] === 0 ? 1 : 0;
    const micros = so.micros.slice(warm);
    const ratios = so.rounds.slice(warm).map((round, i) => (micros[i] as number) / rawAt(raw, round));
    const figures: Figures = {
      micros, ratios, ...(row.kind === 'cold' ? { bytes: so.bytes } : {}), ...(wrong === undefined ? {} : { failure: wrong }),
    };
    subjects[name] = judged(figures, row.limits[name]);
  }
  return { name: row.name, work: row.work, kind: row.kind, operations, subjects };
}

function rawAt(raw: Taken | undefined, round: number): number {
  return raw?.micros[raw.rounds.indexOf(round)] ?? NaN;
}


import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { join } from 'node:path';
import { lack, mountUnion, program, type Make } from '../test/mount/union.ts';
import { median } from './result.ts';

/** What works on a mount: the file system beneath it, without one, and the unions over it. */
export const MOUNTED = { 'raw': 'plain', 'kernel overlayfs': 'overlay', 'fuse-overlayfs': 'fuse-overlayfs', 'ours': 'palimpsest' } as const satisfies
  Record<string, Make>;
export type MountedName = keyof typeof MOUNTED;

/** `free`: the scheduler decides; `pinned`: server and programs share one core, so that no wake-up crosses cores. */
export const PLACES = ['free', 'pinned'] as const;
export type Place = (typeof PLACES)[number];

/**
 * Work of real programs on a freshly mounted tree, measured from outside by the clock on the wall: a script of the shell
 * that runs in the tree. What it prints must be what it prints on raw.
 */
export interface MountRow {
  readonly kind: 'mount';
  readonly name: string;
  readonly work: string;
  /** Programs that it needs. */
  readonly needs: readonly string[];
  /** Makes the tree, of about n files, in `root`, and whatever else the script needs in `aside`, which it knows as `$ASIDE`. */
  stage(root: string, aside: string, n: number): void;
  readonly script: string;
  /** Instead of a mount: what ours runs, over the tree, beside the script for raw. */
  readonly run?: readonly string[];
  /** The most that is wanted of ours: as a ratio to fuse-overlayfs, or as ms more than raw. */
  readonly limit: Readonly<Record<Place, number>> & { readonly of: 'fuse-overlayfs' | 'ms over raw' };
  /** Events that ours logs, for each of the n files, at least. */
  readonly events: number;
}

/** Samples of one subject in ms, in the order they were taken. */
export interface Timed {
  readonly millis: readonly number[];
  readonly failure?: string;
}

export interface MountResult {
  readonly name: string;
  readonly work: string;
  readonly kind: 'mount';
  readonly place: Place;
  readonly limit: MountRow['limit'];
  readonly subjects: Partial<Record<MountedName, Timed>>;
}

export interface MountOptions {
  readonly n: number;
  readonly rounds: number;
  readonly scratch: string;
  readonly only: readonly string[] | undefined;
}

/** Measures a row in one place: the subjects in turn, each on a mount of its own, round by round. */
export function measureMounted(row: MountRow, place: Place, options: MountOptions): MountResult {
  const stage = join(options.scratch, row.name), root = join(stage, 'root'), aside = join(stage, 'aside');
  for (const directory of [root, aside]) fs.mkdirSync(directory, { recursive: true });
  row.stage(root, aside, options.n);
  const names = (Object.keys(MOUNTED) as MountedName[]).filter((name) => (row.run === undefined || name === 'raw' || name === 'ours') &&
    lack(MOUNTED[name]) === undefined && (name === 'raw' || options.only?.includes(name) !== false));
  const taken = new Map<MountedName, { millis: number[]; failure?: string; said?: string }>(names.map((name) => [name, { millis: [] }]));
  for (let round = 0; round <= options.rounds; round++) {
    for (const name of [...names.slice(round % names.length), ...names.slice(0, round % names.length)]) {
      const so = taken.get(name);
      if (so === undefined || so.failure !== undefined) continue;
      try {
        const { millis, said } = sample(row, name, place, { root, aside, scratch: join(stage, 'round'), n: options.n });
        // The first round warms the page cache, and the programs.
        if (round > 0) so.millis.push(millis);
        so.said = said;
      } catch (error) {
        so.failure = error instanceof Error ? error.message : String(error);
      }
    }
  }
  fs.rmSync(stage, { recursive: true });
  const said = taken.get('raw')?.said;
  return {
    name: row.name, work: row.work, kind: 'mount', place, limit: row.limit,
    subjects: Object.fromEntries([...taken].map(([name, so]) => {
      const failure = so.failure ?? (row.run === undefined && so.said !== said ? `wrong: said ${so.said} where raw says ${said}` : undefined);
      return [name, { millis: so.millis, ...(failure === undefined ? {} : { failure }) }];
    })),
  };
}

interface Staged {
  readonly root: string;
  readonly aside: string;
  readonly scratch: string;
  readonly n: number;
}

function sample(row: MountRow, name: MountedName, place: Place, { root, aside, scratch, n }: Staged): { millis: number; said: string } {
  fs.mkdirSync(scratch);
  const pin = place === 'pinned' ? ['taskset', '-c', '0'] : [];
  try {
    if (row.run !== undefined) {
      const command = name === 'raw' ? ['sh', '-ec', row.script]
        : [process.execPath, program(), 'run', '--root', root, '--session', join(scratch, 'session'), '--', ...row.run];
      return timed([...pin, ...command], root, aside);
    }
    const union = mountUnion(MOUNTED[name], root, scratch, { prefix: pin });
    try {
      return timed([...pin, 'sh', '-ec', row.script], union.path, aside);
    } finally {
      union.unmount();
      if (union.session !== undefined) demandEvents(union.session, Math.floor(row.events * n));
    }
  } finally {
    fs.rmSync(scratch, { recursive: true });
  }
}

/** A benchmark that leaves out the log is not ours. */
function demandEvents(session: string, least: number): void {
  const log = fs.readFileSync(join(session, 'log.jsonl'), 'latin1');
  const events = log.split('\n').length - 2;
  if (events < least) throw new Error(`only ${events} events where ${least} were due`);
}

function timed([file, ...args]: readonly string[], cwd: string, aside: string): { millis: number; said: string } {
  const start = performance.now();
  const { status, stdout, stderr } = spawnSync(file as string, args, {
    cwd, encoding: 'utf8', maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, LC_ALL: 'C', ASIDE: aside },
  });
  const millis = performance.now() - start;
  if (status !== 0) throw new Error(`exit ${status}: ${stderr.slice(-400)}`);
  return { millis, said: stdout.trim() };
}

/** What ours is judged by: its ratio to fuse-overlayfs, or the ms it takes over raw. NaN where there is nothing to hold it against. */
export function figureOf({ subjects, limit }: MountResult): number {
  const of = (name: MountedName): number => median(subjects[name]?.millis ?? []);
  return limit.of === 'ms over raw' ? of('ours') - of('raw') : of('ours') / of('fuse-overlayfs');
}

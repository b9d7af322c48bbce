import { nameOf, parentOf, toBytes, type TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import type { Xattrs } from '../lower/lower.ts';
import { parseXattrs } from '../lower/xattrs.ts';
import { CommitError } from './fault.ts';
import type { Ground, HeldPlace } from './ground.ts';
import { hasProgram, run } from './program.ts';
import type { Volume } from './volume.ts';

/** Files asked of one run of the tool, and directories: each takes a descriptor. */
const BATCH_FILES = 1024;
const BATCH_DIRECTORIES = 64;
/** Most bytes of names on a command line; more go through xargs. */
const LINE_BYTES = 65_536;

/**
 * What is not taken along: the kernel takes capabilities from a file that is written to, and signatures of content that
 * has changed are none.
 */
const DROPPED = new Set(['security.capability', 'security.ima', 'security.evm']);

export type Wanted = ReadonlyMap<string, string | null>;

interface Job {
  /** Where the attributes come from; undefined: from nowhere. */
  readonly disk: TreePath | undefined;
  readonly volume: Volume;
  readonly name: string;
  readonly wanted: Wanted | undefined;
}

/** Whether extended attributes and access lists can be carried over on this machine. */
export function canCarry(): boolean {
  return process.platform === 'linux' && ['getfattr', 'setfattr', 'xargs'].every(hasProgram);
}

/**
 * Gives files in staging the extended attributes, access lists among them, of those whose place they are going to take.
 * The tools are asked for many files at once, while staging goes on.
 */
export class Carrier {
  private readonly ground: Ground;
  private jobs: Job[] = [];
  private directories = new Set<TreePath>();
  private readonly running: Promise<void>[] = [];

  constructor(ground: Ground) {
    this.ground = ground;
  }

  /** Of `disk`, but as `wanted` says. */
  add(job: Job): void {
    this.jobs.push(job);
    if (job.disk !== undefined) this.directories.add(parentOf(job.disk));
    if (this.jobs.length >= BATCH_FILES || this.directories.size >= BATCH_DIRECTORIES) this.start();
  }

  /** Until all are done. Throws `CommitError`. */
  async finish(): Promise<void> {
    this.start();
    await Promise.all(this.running);
  }

  private start(): void {
    const { jobs } = this;
    this.jobs = [];
    this.directories = new Set();
    if (jobs.length === 0) return;
    const carried = this.carry(jobs);
    // Whoever finishes is told; until then it is not unhandled.
    carried.catch(() => undefined);
    this.running.push(carried);
  }

  private async carry(jobs: readonly Job[]): Promise<void> {
    const found = await this.found(jobs.flatMap(({ disk }) => (disk === undefined ? [] : [disk])));
    for (const { disk, volume, name, wanted } of jobs) {
      const xattrs = merged(disk === undefined ? undefined : found.get(disk), wanted);
      if (xattrs.size > 0) await give(volume.fd, name, xattrs).catch((error: unknown) => this.fail(disk ?? volume.pathOf(name), error));
    }
  }

  /** Attributes of paths, of those that have any. */
  private async found(paths: readonly TreePath[]): Promise<Map<TreePath, Xattrs>> {
    const places: HeldPlace[] = [], numbers = new Map<TreePath, number>(), byName = new Map<string, TreePath>(), found = new Map<TreePath, Xattrs>();
    try {
      for (const path of paths) {
        const directory = parentOf(path);
        let number = numbers.get(directory);
        if (number === undefined) {
          number = places.length;
          places.push(this.ground.hold(directory));
          numbers.set(directory, number);
        }
        byName.set(`${number + 3}/${nameOf(path)}`, path);
      }
      if (byName.size === 0) return found;
      const names = [...byName.keys()].map((name) => `/proc/self/fd/${name}`);
      const { stdout } = await getfattr(names, places.map(({ fd }) => fd));
      for (const [name, xattrs] of parseXattrs(stdout.toString('latin1'), '/proc/self/fd/')) {
        const path = byName.get(name);
        if (path !== undefined) found.set(path, xattrs);
      }
      return found;
    } catch (error) {
      throw CommitError.of(this.ground.root, paths[0] as TreePath, error);
    } finally {
      for (const place of places) place.close();
    }
  }

  private fail(path: TreePath, error: unknown): never {
    throw CommitError.of(this.ground.root, path, error);
  }
}

/** Sets attributes of `name` in the directory `fd`, and takes away those that are `null`. Throws ENOTSUP where that is refused. */
export async function give(fd: number, name: string, xattrs: Wanted): Promise<void> {
  for (const [attribute, value] of xattrs) {
    const what = value === null ? ['-x', attribute] : ['-n', attribute, '-v', `0s${value}`];
    const { status, stderr } = await run('setfattr', ['-h', ...what, '--', `/proc/self/fd/3/${name}`], [fd], undefined);
    // Labels are the system's to give.
    if (status === 0 || value === null || attribute.startsWith('security.')) continue;
    throw new Refusal('ENOTSUP', { reason: `its attribute ${attribute} cannot be kept: ${stderr.trim().replace(/^.*: /, '')}` });
  }
}

/** The attributes of one name in the directory `fd`. */
export async function xattrsOf(fd: number, name: string): Promise<Xattrs> {
  const { stdout } = await getfattr([`/proc/self/fd/3/${name}`], [fd]);
  return parseXattrs(stdout.toString('latin1'), '/proc/self/fd/3/').get(name) ?? new Map<string, string>();
}

function getfattr(names: readonly string[], descriptors: readonly number[]): ReturnType<typeof run> {
  const args = ['-h', '-d', '-m', '-', '-e', 'base64', '--absolute-names', '--'];
  // Names that are not UTF-8 cannot be on a command line of node's.
  const fits = names.reduce((sum, name) => sum + name.length, 0) < LINE_BYTES && names.every((name) => name.isWellFormed());
  if (fits) return run('getfattr', [...args, ...names], descriptors, undefined);
  const input = Buffer.concat(names.map((name) => Buffer.concat([toBytes(name), Buffer.of(0)])));
  return run('xargs', ['-0', 'getfattr', ...args], descriptors, input);
}

function merged(kept: Xattrs | undefined, wanted: Wanted | undefined): Map<string, string | null> {
  const all = new Map<string, string | null>();
  for (const [name, value] of kept ?? []) if (!DROPPED.has(name)) all.set(name, value);
  for (const [name, value] of wanted ?? []) {
    // What the new file never had need not be taken from it.
    if (value !== null) all.set(name, value);
    else all.delete(name);
  }
  return all;
}

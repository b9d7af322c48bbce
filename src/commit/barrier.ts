import { closeSync, constants, fsync, openSync } from 'node:fs';
import { promisify } from 'node:util';
import { typeOf } from '../core/attr.ts';
import { parentOf, ROOT, type TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { codeOf } from '../lower/fault.ts';
import type { Entry } from './entry.ts';
import type { Ground, SystemName } from './ground.ts';
import { hasProgram, run } from './program.ts';
import type { Volume } from './volume.ts';

/** With more files than this one `sync -f` is quicker than each for itself: it takes the whole file system, but once. */
const SINGLE_FILES = 150;
/** Syncs under way at a time where each is done for itself; the system groups them. */
const PARALLEL = 32;
/** O_NONBLOCK for the moment in which a file may have become a FIFO. */
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

const synced = promisify(fsync);

/**
 * What a commit has to bring to the disk before it goes on, where it is to survive a power cut. Never one after the other: a
 * sync by itself takes as long as thirty side by side.
 */
export class Barrier {
  private readonly ground: Ground;
  private readonly volumes: readonly Volume[];
  private readonly files: SystemName[] = [];
  private readonly paths = new Set<TreePath>();
  private count = 0;

  constructor(ground: Ground, volumes: readonly Volume[]) {
    this.ground = ground;
    this.volumes = volumes;
  }

  add(entry: Entry): void {
    this.count++;
    if (this.isGlobal || entry.act === 'below') return;
    const isStaged = entry.act === 'swap' || (entry.act === 'make' && entry.parked === undefined);
    if (isStaged && entry.after.type === 'file') {
      const volume = this.volumes[entry.volume];
      if (volume !== undefined) this.files.push(volume.name(entry.staged));
    }
    this.paths.add(parentOf(entry.path));
    if (entry.act === 'move') this.paths.add(parentOf(entry.to));
    // Names in a directory that was made, metadata of whatever was adjusted.
    if (entry.act === 'adjust' || entry.act === 'make') this.paths.add(entry.path);
  }

  /** All that is staged is on the disk, the journal and the way to it too. */
  async staged(): Promise<void> {
    await this.all(this.files, (name) => openSync(name, FLAGS));
    for (const volume of this.volumes) volume.sync();
    const root = this.ground.hold(ROOT);
    try {
      root.sync();
    } finally {
      root.close();
    }
  }

  /** All that is published is. */
  async published(): Promise<void> {
    await this.all([...this.paths], (path) => this.open(path));
  }

  private async all<T>(items: readonly T[], open: (item: T) => number | undefined): Promise<void> {
    let isRefused = false;
    if (!this.isGlobal) {
      await inParallel(items, (item) => {
        try {
          return open(item);
        } catch (error) {
          // Not even its owner may read it: then all of the file system is synced.
          if (codeOf(error) !== 'EACCES' || !hasProgram('sync')) throw error;
          isRefused = true;
          return undefined;
        }
      });
    }
    if (this.isGlobal || isRefused) await this.syncAll();
  }

  private get isGlobal(): boolean {
    return this.count > SINGLE_FILES && hasProgram('sync');
  }

  /** Only of files and directories: anything else cannot be opened without an effect. */
  private open(path: TreePath): number | undefined {
    const now = this.ground.find(path);
    if (now === undefined) return undefined;
    if (typeOf(now.mode) === 'directory') return this.ground.inside(path, (name) => openSync(name, FLAGS | constants.O_DIRECTORY));
    return typeOf(now.mode) === 'file' ? this.ground.at(path, (name) => openSync(name, FLAGS)) : undefined;
  }

  private async syncAll(): Promise<void> {
    for (const volume of this.volumes) {
      const { status, stderr } = await run('sync', ['-f', '/proc/self/fd/3'], [volume.fd], undefined);
      if (status !== 0) throw new Refusal('EIO', { reason: `sync failed: ${stderr.trim()}` });
    }
  }
}

async function inParallel<T>(items: readonly T[], open: (item: T) => number | undefined): Promise<void> {
  for (let at = 0; at < items.length; at += PARALLEL) {
    const descriptors: number[] = [];
    try {
      for (const item of items.slice(at, at + PARALLEL)) {
        const fd = open(item);
        if (fd !== undefined) descriptors.push(fd);
      }
      await Promise.all(descriptors.map((fd) => synced(fd)));
    } finally {
      for (const fd of descriptors) closeSync(fd);
    }
  }
}

import { linkSync, lstatSync, mkdirSync, readdirSync, rmdirSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { childOf, parentOf, type TreePath } from '../core/path.ts';
import type { Attr } from '../core/attr.ts';
import { codeOf } from '../lower/fault.ts';
import { join } from '../lower/listing.ts';
import { attrOf, LOOK } from '../lower/stats.ts';
import { sweep } from './sweep.ts';
import type { Ground, HeldPlace, SystemName } from './ground.ts';

/** So that no tool that goes by such rules takes what is staged for part of the tree. */
export const IGNORE_FILE = '.gitignore';
const IGNORE_RULES = '*\n';
const PROBE_FILE = 'probe';

/** Where on one file system of the tree things are put before and after they have their place in it. */
export class Volume {
  readonly index: number;
  /** The topmost directory of the tree on that file system. */
  readonly top: TreePath;
  /** Path of the staging directory. */
  readonly path: TreePath;
  /** Whether files can have several names there. */
  links = true;
  private readonly place: HeldPlace;
  private closed = false;
  private readonly ground: Ground;
  /** The top before and after the staging directory was made in it. */
  private readonly before: Attr | undefined;
  private readonly after: Attr | undefined;

  private constructor(ground: Ground, index: number, path: TreePath, before: Attr | undefined) {
    this.ground = ground;
    this.index = index;
    this.path = path;
    this.top = parentOf(path);
    this.place = ground.hold(path);
    this.before = before;
    this.after = before === undefined ? undefined : ground.find(this.top);
  }

  /** Makes the staging directory, or takes the one that is there: an own one is made before anything else. */
  static make(ground: Ground, index: number, path: TreePath): Volume {
    const before = ground.find(parentOf(path));
    let made = true;
    ground.at(path, (name) => {
      try {
        mkdirSync(name, 0o700);
      } catch (error) {
        if (codeOf(error) !== 'EEXIST') throw error;
        made = false;
      }
    });
    return new Volume(ground, index, path, made ? before : undefined);
  }

  /** The staging directory that an earlier process made; undefined where it is gone. */
  static find(ground: Ground, index: number, path: TreePath): Volume | undefined {
    return ground.find(path) === undefined ? undefined : new Volume(ground, index, path, undefined);
  }

  get fd(): number {
    return this.place.fd;
  }

  /** The staging directory as a name for who joins paths himself. */
  get directory(): string {
    const { prefix } = this.place;
    return (typeof prefix === 'string' ? prefix : prefix.toString()).slice(0, -1);
  }

  /** The staging directory as a name for the system, with a slash at its end. */
  get prefix(): SystemName {
    return this.place.prefix;
  }

  /** What a name in the staging directory is called for the system. */
  name(name: string): SystemName {
    return join(this.place.prefix, name);
  }

  find(name: string): Attr | undefined {
    const stats = lstatSync(this.name(name), LOOK);
    return stats === undefined ? undefined : attrOf(stats);
  }

  /** Of a directory in here. */
  isEmpty(name: string): boolean {
    return readdirSync(this.name(name)).length === 0;
  }

  /** Says to others that nothing in here is part of the tree; and finds out whether files can have several names. */
  begin(): void {
    writeFileSync(this.name(IGNORE_FILE), IGNORE_RULES, { mode: 0o600 });
    try {
      linkSync(this.name(IGNORE_FILE), this.name(PROBE_FILE));
      unlinkSync(this.name(PROBE_FILE));
    } catch (error) {
      // Left by a killed one: then they can.
      if (codeOf(error) === 'EEXIST') return;
      if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes(codeOf(error))) throw error;
      this.links = false;
    }
  }

  /** Takes back what `begin` may have done. */
  forsake(): void {
    for (const name of [IGNORE_FILE, PROBE_FILE]) sweep(this.name(name));
  }

  /** The path of a name in here. */
  pathOf(name: string): TreePath {
    return childOf(this.path, name);
  }

  sync(): void {
    this.place.sync();
  }

  /** Removes all names in here but those. */
  clear(keep: (name: string) => boolean): void {
    for (const entry of readdirSync(this.prefix, { withFileTypes: true })) {
      if (keep(entry.name)) continue;
      if (entry.isFile() || entry.isSymbolicLink()) unlinkSync(this.name(entry.name));
      else sweep(this.name(entry.name));
    }
  }

  /**
   * Removes the staging directory, if it is empty, and makes its top look as if it had never been there, unless somebody changed
   * that meanwhile.
   */
  remove(): void {
    const now = this.ground.find(this.top), { before, after } = this;
    try {
      this.ground.at(this.path, (name) => rmdirSync(name));
    } catch (error) {
      // Another committer has just moved in.
      if (codeOf(error) === 'ENOTEMPTY' || codeOf(error) === 'EEXIST' || codeOf(error) === 'ENOENT') return;
      throw error;
    }
    if (before === undefined || now?.mtime !== after?.mtime) return;
    this.ground.inside(this.top, (name) => utimesSync(name, secondsOf(before.atime), secondsOf(before.mtime)));
  }

  /** Idempotent. */
  close(): void {
    if (!this.closed) this.place.close();
    this.closed = true;
  }
}

/** Seconds as node wants them. Exact to a quarter of a µs, which is what a double has. */
export function secondsOf(ns: bigint): number {
  return Number(ns / 1_000_000_000n) + Number(ns % 1_000_000_000n) / 1e9;
}

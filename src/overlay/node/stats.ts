import * as fs from 'node:fs';
import type { Attr } from '../../core/attr.ts';
import type { LowerStatFs } from '../../lower/lower.ts';

/** `Attr` as node shows it: `fs.Stats`, its bigint kin, and `fs.StatsFs`. */

const NodeBigIntStats = fs.statSync('/', { bigint: true }).constructor as new (
  dev: bigint, mode: bigint, nlink: bigint, uid: bigint, gid: bigint, rdev: bigint, blksize: bigint,
  ino: bigint, size: bigint, blocks: bigint, atimeNs: bigint, mtimeNs: bigint, ctimeNs: bigint, birthtimeNs: bigint,
) => fs.BigIntStats;

const DATE_NAMES = ['atime', 'mtime', 'ctime', 'birthtime'] as const;
type DateName = typeof DATE_NAMES[number];

/**
 * `fs.Stats`, with its four Dates made when they are asked for: they take longer than all the rest of a look-up, and
 * hardly anyone wants them all. An instance of node's own class too, whose methods it has.
 */
export class Stats {
  dev: number;
  mode: number;
  nlink: number;
  uid: number;
  gid: number;
  rdev: number;
  blksize: number;
  ino: number;
  size: number;
  blocks: number;
  atimeMs: number;
  mtimeMs: number;
  ctimeMs: number;
  birthtimeMs: number;
  /** Made or set so far: no property of its own, so that what was asked of a Stats does not make it another. */
  #dates: Partial<Record<DateName, unknown>> | undefined;

  constructor(
    dev: number, mode: number, nlink: number, uid: number, gid: number, rdev: number, blksize: number, ino: number,
    size: number, blocks: number, atimeMs: number, mtimeMs: number, ctimeMs: number, birthtimeMs: number,
  ) {
    this.dev = dev;
    this.mode = mode;
    this.nlink = nlink;
    this.uid = uid;
    this.gid = gid;
    this.rdev = rdev;
    this.blksize = blksize;
    this.ino = ino;
    this.size = size;
    this.blocks = blocks;
    this.atimeMs = atimeMs;
    this.mtimeMs = mtimeMs;
    this.ctimeMs = ctimeMs;
    this.birthtimeMs = birthtimeMs;
  }

  toJSON(): object {
    const { atime, mtime, ctime, birthtime } = this as unknown as fs.Stats;
    return Object.assign({}, this, { atime, mtime, ctime, birthtime });
  }

  static {
    for (const name of DATE_NAMES) {
      Object.defineProperty(Stats.prototype, name, {
        get(this: Stats) {
          return (this.#dates ??= {})[name] ??= new Date(Math.round(this[`${name}Ms`]));
        },
        set(this: Stats, value: unknown) {
          (this.#dates ??= {})[name] = value;
        },
        enumerable: true,
        configurable: true,
      });
    }
    Object.setPrototypeOf(Stats.prototype, fs.Stats.prototype);
  }
}

const nsWhole = new BigInt64Array(1);
const nsHalves = new Uint32Array(nsWhole.buffer);

/**
 * ms since 1970, to the last bit as node has it: whole seconds and the rest are turned into ms apart and added. Division
 * of bigints took longer than the look-up itself, so the seconds are guessed from a double, and the rest is what
 * they lack, modulo 2^32.
 */
function milliseconds(ns: bigint): number {
  nsWhole[0] = ns;
  const low = nsHalves[0] as number, high = (nsHalves[1] as number) | 0;
  let seconds = Math.floor((high * 2 ** 32 + low) / 1e9);
  let rest = (low - Math.imul(seconds | 0, 1e9)) >>> 0;
  if (rest >= 2 ** 31) {
    seconds -= 1;
    rest = (rest + 1e9) >>> 0;
  } else if (rest >= 1e9) {
    seconds += 1;
    rest -= 1e9;
  }
  return seconds * 1000 + rest / 1e6;
}

/** `Stats` of attributes: what node gives where no bigint was asked for. */
export function stats(attr: Attr): fs.Stats {
  return new Stats(
    Number(attr.dev), attr.mode, attr.nlink, attr.uid, attr.gid, attr.rdev, attr.blksize, Number(attr.ino),
    attr.size, attr.blocks, milliseconds(attr.atime), milliseconds(attr.mtime), milliseconds(attr.ctime),
    milliseconds(attr.birthtime),
  ) as unknown as fs.Stats;
}

/** `BigIntStats` of attributes. */
export function bigintStats(attr: Attr): fs.BigIntStats {
  return new NodeBigIntStats(
    attr.dev, BigInt(attr.mode), BigInt(attr.nlink), BigInt(attr.uid), BigInt(attr.gid), BigInt(attr.rdev),
    BigInt(attr.blksize), attr.ino, BigInt(attr.size), BigInt(attr.blocks),
    attr.atime, attr.mtime, attr.ctime, attr.birthtime,
  );
}

/** `options.bigint` decides which. */
export function statsAs(attr: Attr, options: unknown): fs.Stats | fs.BigIntStats {
  return (options as { bigint?: unknown } | undefined)?.bigint ? bigintStats(attr) : stats(attr);
}

const STATFS_FIELDS = ['type', 'bsize', 'blocks', 'bfree', 'bavail', 'files', 'ffree'] as const;

const NodeStatFs = fs.statfsSync('/').constructor as new (...fields: (number | bigint)[]) => fs.StatsFs | fs.BigIntStatsFs;

/** `StatFs` in numbers or bigints, as asked. */
export function statFsAs(figures: LowerStatFs, options: unknown): fs.StatsFs | fs.BigIntStatsFs {
  const bigint = (options as { bigint?: unknown } | undefined)?.bigint;
  return new NodeStatFs(...STATFS_FIELDS.map((field) => bigint ? figures[field] : Number(figures[field])));
}

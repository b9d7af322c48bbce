import * as fs from 'node:fs';
import type { Attr } from '../../core/attr.ts';
import type { LowerStatFs } from '../../lower/lower.ts';

/** `Attr` as node shows it: `fs.Stats`, its bigint kin, and `fs.StatsFs`. */

const NS_PER_SECOND = 1_000_000_000n;

/** Node's own classes, so that `instanceof` and every method hold; their constructors are not in the types. */
const NodeStats = fs.Stats as unknown as new (
  dev: number, mode: number, nlink: number, uid: number, gid: number, rdev: number, blksize: number,
  ino: number, size: number, blocks: number, atimeMs: number, mtimeMs: number, ctimeMs: number, birthtimeMs: number,
) => fs.Stats;

const NodeBigIntStats = fs.statSync('/', { bigint: true }).constructor as new (
  dev: bigint, mode: bigint, nlink: bigint, uid: bigint, gid: bigint, rdev: bigint, blksize: bigint,
  ino: bigint, size: bigint, blocks: bigint, atimeNs: bigint, mtimeNs: bigint, ctimeNs: bigint, birthtimeNs: bigint,
) => fs.BigIntStats;

/** Whole seconds and the rest apart, as node adds them up: the same double to the last bit. */
function milliseconds(ns: bigint): number {
  const seconds = ns / NS_PER_SECOND;
  let rest = Number(ns - seconds * NS_PER_SECOND);
  let whole = Number(seconds);
  if (rest < 0) {
    rest += 1e9;
    whole -= 1;
  }
  return whole * 1000 + rest / 1e6;
}

export function stats(attr: Attr): fs.Stats {
  const { mtime, ctime } = attr;
  const mtimeMs = milliseconds(mtime);
  return new NodeStats(
    Number(attr.dev), attr.mode, attr.nlink, attr.uid, attr.gid, attr.rdev, attr.blksize,
    Number(attr.ino), attr.size, attr.blocks,
    attr.atime === mtime ? mtimeMs : milliseconds(attr.atime), mtimeMs,
    ctime === mtime ? mtimeMs : milliseconds(ctime),
    attr.birthtime === mtime ? mtimeMs : milliseconds(attr.birthtime),
  );
}

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

export function statFsAs(figures: LowerStatFs, options: unknown): fs.StatsFs | fs.BigIntStatsFs {
  const bigint = (options as { bigint?: unknown } | undefined)?.bigint;
  return new NodeStatFs(...STATFS_FIELDS.map((field) => bigint ? figures[field] : Number(figures[field])));
}

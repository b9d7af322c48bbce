import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fromBytes } from '../../src/core/path.ts';
import type { Receipt } from '../../src/index.ts';
import { layeredWorld } from '../model/layered.ts';
import { Player } from '../model/player.ts';
import type { Program } from '../model/program.ts';
import { buildTree } from '../model/tree.ts';
import { realWorld } from '../model/world.ts';

/** Seconds since 1970: what is older was not touched, or had its time set on purpose. */
const RECENT = 1_600_000_000;

/** node sets times with a rounding error of some µs, so they are compared to 10 ms. Everything below a directory, a line each; names of one file share a group. Times of directories are left out: what is put in the place of a file touches them. */
export function censusOf(root: string): string[] {
  const lines: string[] = [], groups = new Map<string, number>();
  const visit = (at: Buffer, name: string): void => {
    const stats = fs.lstatSync(at, { bigint: true });
    const key = `${stats.dev}:${stats.ino}`;
    const group = stats.nlink > 1n && !stats.isDirectory() ? groups.get(key) ?? groups.set(key, groups.size).size - 1 : '-';
    const isOld = stats.mtimeNs / 1_000_000_000n < RECENT && !stats.isDirectory();
    const content = stats.isFile() ? fs.readFileSync(at, 'latin1') : stats.isSymbolicLink() ? fs.readlinkSync(at, 'latin1').replaceAll(root, '@') : '';
    lines.push([JSON.stringify(name), stats.mode.toString(8), stats.uid, stats.gid, group, isOld ? (stats.mtimeNs + 5_000_000n) / 10_000_000n : 'now', content].join('|'));
    if (!stats.isDirectory()) return;
    const names = fs.readdirSync(at, { encoding: 'buffer' }).sort(Buffer.compare);
    for (const each of names) visit(Buffer.concat([at, Buffer.from('/'), each]), `${name}/${fromBytes(each)}`);
  };
  visit(Buffer.from(root), '');
  return lines;
}

/** The lines of `after`, without the times of files that were written with the bytes they had: a commit leaves those alone. */
export function untimed(after: readonly string[], oracle: readonly string[]): string[] {
  return after.map((line, index) => {
    const fields = line.split('|'), other = oracle[index]?.split('|') ?? [];
    if (other[5] === 'now') fields[5] = 'now';
    return fields.join('|');
  });
}

export interface Played {
  readonly before: string[];
  readonly after: string[];
  readonly oracle: string[];
  readonly reverted: string[];
  readonly receipts: readonly Receipt[];
  readonly left: number;
}

/** Plays a program over an overlay and in a real directory; commits after each of the steps `at`, and at the end; takes all of it back. */
export async function played(given: Program, at: readonly number[]): Promise<Played> {
  const scratch = fs.realpathSync(fs.mkdtempSync(path.join(fs.existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir(), 'palimpsest-commit-')));
  fs.chmodSync(scratch, 0o777);
  const { user: _, ...rest } = given, program: Program = { ...rest, lower: given.lower === 'guarded' ? 'mixed' : given.lower };
  const root = path.join(scratch, 'lower-root'), umask = process.umask(program.umask);
  try {
    buildTree(root, program.lower);
    const before = censusOf(root);
    const oracle = realWorld(path.join(scratch, 'oracl-root'), program.lower), subject = layeredWorld(root, path.join(scratch, 'session'), program.session);
    const since = Date.now(), players = [new Player(oracle, since), new Player(subject, since)], receipts: Receipt[] = [];
    try {
      for (const [index, step] of program.steps.entries()) {
        for (const player of players) await player.play(step);
        if (at.includes(index)) receipts.push(await subject.overlay.commit());
      }
      for (const player of players) await player.closeAll();
      receipts.push(await subject.overlay.commit());
      const after = censusOf(root), left = subject.overlay.changes().length;
      const seen = censusOf(oracle.root);
      for (const { id, changes } of receipts.toReversed()) if (changes.length > 0) await subject.overlay.revert(id);
      return { before, after, oracle: seen, reverted: censusOf(root), receipts, left };
    } finally {
      await subject.close();
      await oracle.close();
    }
  } finally {
    process.umask(umask);
    fs.rmSync(scratch, { recursive: true, force: true });
  }
}

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { Overlay, type OverlayOptions } from '../../src/index.ts';
import { Player } from '../model/player.ts';
import type { Program, Step } from '../model/program.ts';
import { buildTree } from '../model/tree.ts';
import { ACTORS, type NodeFs, type World } from '../model/world.ts';

/** What exports are held to: trees as others make them of what was exported. */

/** Path, as latin1 → what git keeps of it. */
export type Kept = Record<string, string>;

const ENVIRONMENT = { ...process.env, GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null', GIT_CEILING_DIRECTORIES: '/', LC_ALL: 'C' };

/** Runs git, with a file as its input where one is named; gives what it said. Throws what it complained of, and the start of `subject`. */
export function git(cwd: string, args: readonly string[], subject?: string, input?: string): string {
  const stdin = input === undefined ? 'ignore' : fs.openSync(input, 'r');
  const { status, stdout, stderr } = spawnSync('git', args, { cwd, env: ENVIRONMENT, stdio: [stdin, 'pipe', 'pipe'], encoding: 'latin1', maxBuffer: 1 << 30 });
  if (typeof stdin === 'number') fs.closeSync(stdin);
  if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}\n${subject === undefined ? '' : fs.readFileSync(subject, 'latin1').slice(0, 100_000)}`);
  return stdout;
}

/** What git keeps of a tree: files with their content and whether they are executable, symlinks. */
export function keptIn(face: Pick<NodeFs, 'readdirSync' | 'lstatSync' | 'readlinkSync' | 'readFileSync'>, root: string): Kept {
  const kept: Kept = {};
  const visit = (path: Buffer): void => {
    for (const name of face.readdirSync(path, 'buffer')) {
      const whole = Buffer.concat([path, Buffer.from('/'), name]), stats = face.lstatSync(whole), key = whole.toString('latin1').slice(root.length + 1);
      if (stats.isDirectory()) {
        if (name.toString() !== '.git') visit(whole);
      } else if (stats.isSymbolicLink()) kept[key] = `symlink ${face.readlinkSync(whole, 'latin1')}`;
      else if (stats.isFile()) kept[key] = `${(stats.mode & 0o100) === 0 ? 'file' : 'executable'} ${createHash('sha256').update(face.readFileSync(whole)).digest('hex')}`;
    }
  };
  visit(Buffer.from(root));
  return kept;
}

/** Everything that an archive keeps of a tree: the same, and modes, owners, times, which names are one file. */
export function archivedIn(face: Pick<NodeFs, 'readdirSync' | 'lstatSync' | 'readlinkSync' | 'readFileSync'>, root: string): Kept {
  const found: Kept = {}, first = new Map<string, string>();
  const visit = (path: Buffer): void => {
    for (const name of face.readdirSync(path, 'buffer')) {
      const whole = Buffer.concat([path, Buffer.from('/'), name]), stats = face.lstatSync(whole, { bigint: true });
      const key = whole.toString('latin1').slice(root.length + 1), file = `${stats.dev}:${stats.ino}`;
      // A symlink's mode is not its own.
      const about = `${stats.isSymbolicLink() ? '' : stats.mode.toString(8)} ${stats.uid}:${stats.gid} ${stats.mtimeNs}`;
      const group = stats.isDirectory() || stats.nlink === 1n ? '' : ` one with ${first.get(file) ?? key}`;
      if (!first.has(file)) first.set(file, key);
      const content = stats.isSymbolicLink() ? face.readlinkSync(whole, 'latin1')
        : stats.isFile() ? createHash('sha256').update(face.readFileSync(whole)).digest('hex') : '';
      found[key] = `${about} ${content}${group}`;
      if (stats.isDirectory()) visit(whole);
    }
  };
  visit(Buffer.from(root));
  return found;
}

/** Plays a program over a new tree at `root`, and hands the overlay on; `after` hears of each step. */
export async function played(
  { lower, umask, steps }: Program, root: string, then: (overlay: Overlay) => void | Promise<void>, more: OverlayOptions & { after?: (overlay: Overlay, step: Step) => void } = {},
): Promise<void> {
  const { after, ...options } = more, before = process.umask(umask);
  buildTree(root, lower);
  const overlay = Overlay.openSync({ ...options, root });
  const world: World = {
    root, leaksDescriptors: true, fs: (actor) => overlay.as(ACTORS[actor]).fs as NodeFs, reopen: async () => undefined, close: async () => overlay.close(),
  };
  const player = new Player(world, Date.now());
  try {
    for (const step of steps) {
      await player.play(step);
      after?.(overlay, step);
    }
    await player.closeAll();
    process.umask(0o022);
    await then(overlay);
  } finally {
    process.umask(before);
    await overlay.close();
  }
}

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import * as realFs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { Overlay } from '../../src/index.ts';

/** What a library is given as its fs. */
export type Fs = typeof realFs;

/**
 * The same tree twice: `lower`, seen and changed through `overlay.fs` alone, and `control`, worked on by the real fs. A
 * library has to give the same on both; at the end of the test the lower is as it was.
 */
export interface Twin {
  readonly overlay: Overlay;
  readonly lower: string;
  readonly control: string;
  /** Both sides: the fs to hand to the library, and the directory to work in. */
  readonly sides: readonly [Side, Side];
}

export interface Side {
  readonly fs: Fs;
  readonly dir: string;
}

/** A whole piece of work with a large library, in ms, on a machine that has more to do. */
export const WORK_MS = 180_000;

export const repository = join(import.meta.dirname, '..', '..');

/** Makes twins with `fill`, which is called for each of both directories. */
export function twin(fill: (dir: string) => void, options: { outside?: 'readonly' } = {}): Twin {
  const scratch = realFs.mkdtempSync(join(realFs.realpathSync(tmpdir()), 'palimpsest-libraries-'));
  const lower = join(scratch, 'lower'), control = join(scratch, 'control');
  realFs.mkdirSync(lower);
  fill(lower);
  // A copy keeps what a library may show or store: order of making, modes, times, links.
  execFileSync('cp', ['-a', lower, control]);
  const before = manifest(lower);
  const overlay = Overlay.openSync({ root: lower, ...options });
  onTestFinished(async () => {
    await overlay.close();
    const after = manifest(lower);
    realFs.rmSync(scratch, { recursive: true, force: true });
    if (after !== before) throw new Error(`the lower was changed:\n${firstDifference(before, after)}`);
  });
  return { overlay, lower, control, sides: [{ fs: overlay.fs, dir: lower }, { fs: realFs, dir: control }] };
}

/** A clone of this repository with its history, as `git clone` leaves it. */
export function cloneInto(dir: string): void {
  execFileSync('git', ['clone', '--quiet', '--no-hardlinks', repository, dir], { stdio: ['ignore', 'ignore', 'inherit'] });
}

/** Packages of node_modules, copied below `node_modules` of `dir`. */
export function packagesInto(dir: string, names: readonly string[]): void {
  for (const name of names) {
    const target = join(dir, 'node_modules', name);
    realFs.mkdirSync(join(target, '..'), { recursive: true });
    realFs.cpSync(join(repository, 'node_modules', name), target, { recursive: true });
  }
}

/** Runs the same work on both sides, one after the other, and gives both results. */
export async function onBoth<Result>(sides: Twin['sides'], work: (side: Side) => Result | Promise<Result>): Promise<[Result, Result]> {
  return [await work(sides[0]), await work(sides[1])];
}

/** Path below `dir` → what is there, by this fs: type, permission bits, and digest or target. Leaves out what `skip` says. */
export function treeOf({ fs, dir }: Side, skip: (path: string) => boolean = () => false): Record<string, string> {
  const tree: Record<string, string> = {};
  const visit = (path: string): void => {
    if (skip(path)) return;
    const absolute = join(dir, path), stat = fs.lstatSync(absolute);
    const mode = (stat.mode & 0o7777).toString(8);
    if (stat.isDirectory()) {
      tree[path] = `directory ${mode}`;
      for (const name of fs.readdirSync(absolute).sort()) visit(path === '' ? name : `${path}/${name}`);
    } else if (stat.isSymbolicLink()) tree[path] = `symlink ${fs.readlinkSync(absolute)}`;
    else tree[path] = `file ${mode} ${createHash('sha256').update(fs.readFileSync(absolute)).digest('hex')}`;
  };
  visit('');
  return tree;
}

/** All that a change of the lower would move, one line a path. */
export function manifest(dir: string): string {
  return realFs.readdirSync(dir, { recursive: true, encoding: 'utf8' }).concat('').sort().map((path) => {
    const { ino, mode, size, nlink, mtimeNs, ctimeNs } = realFs.lstatSync(join(dir, path), { bigint: true });
    return [path, ino, mode, size, nlink, mtimeNs, ctimeNs].join(' ');
  }).join('\n');
}

function firstDifference(before: string, after: string): string {
  const known = new Set(before.split('\n')), left = new Set(after.split('\n'));
  const gone = [...known].filter((line) => !left.has(line)), come = [...left].filter((line) => !known.has(line));
  return [...gone.slice(0, 5).map((line) => `- ${line}`), ...come.slice(0, 5).map((line) => `+ ${line}`)].join('\n');
}

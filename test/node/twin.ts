import * as nodeFs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { Overlay } from '../../src/index.ts';

/** Node's fs as the measure: a call is made through it in one directory, and through the subject in its twin. */

type Call = (...args: unknown[]) => unknown;
export type FsLike = Record<string, unknown> & { promises: Record<string, unknown> };

export const FACES = ['sync', 'callback', 'promise'] as const;
export type Face = (typeof FACES)[number];

/** Calls `name` by one of its faces and waits for its answer. */
export async function call(fs: FsLike, face: Face, name: string, args: unknown[]): Promise<unknown> {
  if (face === 'sync') return (fs[`${name}Sync`] as Call)(...args);
  if (face === 'promise') return (fs.promises[name] as Call)(...args);
  return new Promise((resolve, reject) => {
    (fs[name] as Call)(...args, (error: Error | null, value: unknown) => error ? reject(error) : resolve(value));
  });
}

/** What a call came to, without what differs between any two directories. */
export async function outcome(act: () => unknown, dir: string): Promise<unknown> {
  const plain = (text: unknown) => typeof text === 'string' ? text.replaceAll(dir, '<dir>') : text;
  try {
    return { value: await act() };
  } catch (error) {
    const { name, message, code, errno, syscall, path, dest, info } = error as Record<string, unknown>;
    const told = info && Object.fromEntries(Object.entries(info).map(([key, value]) => [key, plain(value)]));
    return { name, message: plain(message), code, errno, syscall, path: plain(path), dest: plain(dest), info: told };
  }
}

/** Every entry below `dir`, as `fs` has it, with all that a copy or a removal could get wrong. */
function tree(fs: typeof nodeFs, dir: string): unknown[] {
  const entries: unknown[] = [];
  const visit = (directory: Buffer) => {
    // Names as bytes: not every one is UTF-8.
    for (const name of fs.readdirSync(directory, 'buffer').sort(Buffer.compare)) {
      const path = Buffer.concat([directory, Buffer.from('/'), name]), { mode, size, nlink } = fs.lstatSync(path);
      const shown = path.toString('latin1', Buffer.byteLength(dir) + 1), kind = mode & 0o170000;
      if (kind === 0o120000) entries.push([shown, 'symlink', fs.readlinkSync(path).replaceAll(dir, '<dir>')]);
      else entries.push([shown, mode.toString(8), kind === 0o100000 ? [size, nlink, fs.readFileSync(path, 'latin1')] : undefined]);
      if (kind === 0o040000) visit(path);
    }
  };
  visit(Buffer.from(dir));
  return entries;
}

export interface Twin {
  readonly fs: FsLike;
  readonly prepare: (dir: string) => void;
  readonly act: (fs: FsLike, dir: string) => unknown;
  /** The call stops half-way, and how far it came hangs on the order in which the directory lists its names. */
  readonly halfway?: boolean;
}

/**
 * Expects of `fs` the same answer, the same error in every word, and the same tree afterwards, as node gives; and of an
 * overlay over a lower in which all was prepared, which stays as it was.
 */
export async function against({ fs, prepare, act, halfway = false }: Twin): Promise<void> {
  const seen = async (subject: FsLike, dir: string, view: typeof nodeFs = nodeFs) =>
    ({ outcome: await outcome(() => act(subject, dir), dir), tree: halfway ? undefined : tree(view, dir) });
  const prepared = (use: (dir: string) => Promise<unknown>) => inTemporary((dir) => {
    prepare(dir);
    return use(dir);
  });
  const node = await prepared((dir) => seen(nodeFs, dir));
  expect(await prepared((dir) => seen(fs, dir))).toEqual(node);
  expect(await prepared((dir) => seenOverlaid(dir, seen))).toEqual(node);
}

async function seenOverlaid(dir: string, seen: (fs: FsLike, dir: string, view: typeof nodeFs) => Promise<unknown>) {
  const before = tree(nodeFs, dir), overlay = Overlay.openSync({ root: dir });
  try {
    return await seen(overlay.fs, dir, overlay.fs);
  } finally {
    await overlay.close();
    expect(tree(nodeFs, dir)).toEqual(before);
  }
}

/** Runs `act` in a new directory that is gone afterwards. */
export async function inTemporary<T>(act: (dir: string) => T | Promise<T>): Promise<T> {
  const dir = nodeFs.realpathSync(nodeFs.mkdtempSync(join(tmpdir(), 'palimpsest-face-')));
  try {
    return await act(dir);
  } finally {
    nodeFs.rmSync(dir, { recursive: true, force: true });
  }
}

/** Makes files (a string: content), directories (`null`) and symlinks (`{ to }`) below `dir`. */
export function make(dir: string, entries: Record<string, string | null | { to: string }>): void {
  for (const [name, entry] of Object.entries(entries)) {
    const path = join(dir, name);
    nodeFs.mkdirSync(entry === null ? path : join(path, '..'), { recursive: true });
    if (typeof entry === 'string') nodeFs.writeFileSync(path, entry);
    else if (entry) nodeFs.symlinkSync(entry.to.replace('<dir>', dir), path);
  }
}

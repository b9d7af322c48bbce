import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { PERMISSION_BITS, typeOf } from '../../src/core/attr.ts';
import { fromBytes, type TreePath } from '../../src/core/path.ts';
import type { Below, Expectation, HostState, NewNode, Source, Step } from '../../src/core/plan.ts';
import type { Version } from '../../src/core/version.ts';
import { transact, type Done, type Transaction } from '../../src/commit/transaction.ts';

/** A directory of its own for one test, removed with `clear`. */
export function scratch(name: string): { root: string; clear(): void } {
  const root = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), `palimpsest-${name}-`)));
  return { root, clear: () => fs.rmSync(root, { recursive: true, force: true }) };
}

/** A name of the tree, for a test that writes it as text. */
export const at = (name: string): TreePath => name as TreePath;

export function versionOf(bytes: Uint8Array | string): Version {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}` as Version;
}

/** New bytes in one piece. */
export function content(text: string | Uint8Array): Source {
  const bytes = Buffer.from(text);
  return { size: bytes.length, version: versionOf(bytes), pieces: () => (bytes.length === 0 ? [] : [{ at: 0, bytes }]) };
}

export function file(text: string | Uint8Array, more: Partial<Omit<Extract<NewNode, { type: 'file' }>, 'type' | 'content'>> = {}): NewNode {
  return { type: 'file', content: content(text), ...more };
}

/** What is there now, as an expectation of all of it. */
export function now(root: string, name: string, aspects: Expectation['aspects'] = 'all'): Expectation {
  const full = path.join(root, name), stats = fs.lstatSync(full, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined) return { state: { type: 'absent' }, aspects };
  const mode = Number(stats.mode) & PERMISSION_BITS, own = { mode, uid: Number(stats.uid), gid: Number(stats.gid) };
  const type = typeOf(Number(stats.mode));
  const state: HostState = type === 'file' ? { type, size: Number(stats.size), version: versionOf(fs.readFileSync(full)), ...own }
    : type === 'directory' ? { type, ...own }
      : type === 'symlink' ? { type, target: fromBytes(fs.readlinkSync(full, 'buffer')), ...own }
        : { type, rdev: Number(stats.rdev), ...own };
  return { state, aspects };
}

/** All that is in a directory now, as expectations. */
export function below(root: string, name: string): Below[] {
  const all: Below[] = [];
  for (const child of fs.readdirSync(path.join(root, name))) {
    const full = `${name}/${child}`, expected = now(root, full);
    all.push({ path: at(full), expected });
    if (expected.state.type === 'directory') all.push(...below(root, full));
  }
  return all;
}

export function transaction(root: string, steps: readonly Step[], more: Partial<Transaction> = {}): Transaction {
  return { id: 'test', root, steps, count: steps.length, reliances: [], guard: 'expectations', durability: 'flush', ...more };
}

/** Commits these steps. */
export function commit(root: string, steps: readonly Step[], more: Partial<Transaction> = {}): Promise<Done> {
  return transact(transaction(root, steps, more));
}

/** Everything in a tree: a line for each name, with type, mode, owner, and bytes or target; of files with several names also which. */
export function census(root: string): string[] {
  const lines: string[] = [], names = new Map<string, string>();
  const visit = (name: Buffer, shown: string): void => {
    const stats = fs.lstatSync(name), type = typeOf(stats.mode);
    const what = type === 'file' ? versionOf(fs.readFileSync(name)) + ` ${stats.size}`
      : type === 'symlink' ? JSON.stringify(fromBytes(fs.readlinkSync(name, 'buffer'))) : `${type === 'directory' ? '' : stats.rdev}`;
    const key = `${stats.dev}:${stats.ino}`, first = names.get(key);
    if (type !== 'directory' && stats.nlink > 1 && first === undefined) names.set(key, shown);
    lines.push(`${JSON.stringify(shown)} ${type} ${(stats.mode & PERMISSION_BITS).toString(8)} ${stats.uid}:${stats.gid} ${what}${first === undefined ? '' : ` = ${first}`}`);
    if (type !== 'directory') return;
    const children = fs.readdirSync(name, { encoding: 'buffer' }).sort(Buffer.compare);
    for (const child of children) visit(Buffer.concat([name, Buffer.from('/'), child]), `${shown}/${fromBytes(child)}`);
  };
  visit(Buffer.from(root), '');
  return lines;
}

/** Writes a tree: texts are files, `null` an empty directory, a `->target` a symlink. */
export function plant(root: string, tree: Readonly<Record<string, string | null>>): void {
  for (const [name, what] of Object.entries(tree)) {
    const full = path.join(root, name);
    fs.mkdirSync(path.dirname(full), { recursive: true });
    if (what === null) fs.mkdirSync(full, { recursive: true });
    else if (what.startsWith('->')) fs.symlinkSync(what.slice(2), full);
    else fs.writeFileSync(full, what);
  }
}

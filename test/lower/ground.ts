import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Attr } from '../../src/core/attr.ts';
import { typeOf } from '../../src/core/attr.ts';
import type { TreePath } from '../../src/core/path.ts';
import { Refusal } from '../../src/core/refusal.ts';
import type { Lower, LowerFile, WholeFile } from '../../src/lower/lower.ts';

/** What is at each path: text of a file, the target of a symlink, or an empty directory (`null`). */
export type Plan = Readonly<Record<string, string | { readonly link: string } | null>>;

/** The part of `node:fs` that makes a tree, real or not. */
export interface Maker {
  mkdirSync(path: string, options: { recursive: true }): unknown;
  writeFileSync(path: string, text: string): void;
  symlinkSync(target: string, path: string): void;
}

/** A fresh directory, removed after the test. */
export function temporary(): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'lower-')));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Makes a tree below `root`. */
export function plant(root: string, plan: Plan, maker: Maker = { mkdirSync, writeFileSync, symlinkSync }): void {
  maker.mkdirSync(root, { recursive: true });
  for (const [path, what] of Object.entries(plan)) {
    const full = join(root, path);
    maker.mkdirSync(what === null ? full : dirname(full), { recursive: true });
    if (typeof what === 'string') maker.writeFileSync(full, what);
    else if (what !== null) maker.symlinkSync(what.link, full);
  }
}

/** A fresh directory with a tree in it. */
export function planted(plan: Plan): string {
  const root = temporary();
  plant(root, plan);
  return root;
}

/** Closes the lower after the test. */
export function kept<T extends Lower>(lower: T): T {
  onTestFinished(() => lower.close());
  return lower;
}

export function at(path: string): TreePath {
  return path as TreePath;
}

/** The outcome of a call in one line: a value, an absence, a type, a text, or a refusal's code. */
export function outcome(call: () => unknown): unknown {
  try {
    return shown(call());
  } catch (error) {
    if (error instanceof Refusal) return `refused ${error.code}`;
    throw error;
  }
}

function shown(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(({ name, type }) => `${name} ${type}`).sort();
  if ('kind' in value && value.kind === 'open') {
    const file = value as LowerFile;
    const text = textOf(file);
    file.close();
    return `open: ${text}`;
  }
  if ('kind' in value) return `whole: ${Buffer.from((value as WholeFile).bytes).toString()}`;
  return `a ${typeOf((value as Attr).mode)}`;
}

/** All of an open file, in steps of a few bytes. */
export function textOf(file: LowerFile): string {
  const into = Buffer.alloc(7);
  let text = '';
  for (let position = 0; ;) {
    const count = file.read(into, 0, into.length, position);
    if (count === 0) return text;
    text += into.toString('latin1', 0, count);
    position += count;
  }
}

/** Descriptors of this process that are open now, as what they lead to. */
export function descriptors(): number {
  return readdirSync('/proc/self/fd').length;
}

import fs from 'node:fs';
import { join } from 'node:path';

/** What a tree is made of. `n` files, `perDirectory` in each directory, each of `bytes` bytes (differing in each file). */
export interface Shape {
  readonly name: string;
  readonly perDirectory: number;
  readonly bytes: number;
  /** Files, of the n that the benchmark was asked for. */
  files(n: number): number;
}

export interface Tree {
  readonly root: string;
  /** Relative to the root. */
  readonly directories: readonly string[];
  readonly files: readonly string[];
}

/** 4 KiB, the size that most source files are below. */
export const FILE_BYTES = 4096;

/** 20,000 files of 4 KiB, 100 in a directory, three levels deep. */
export const SOURCES: Shape = { name: 'sources', perDirectory: 100, bytes: FILE_BYTES, files: (n) => n };
/** 100,000 files in ten large directories. */
export const CROWD: Shape = { name: 'crowd', perDirectory: 10_000, bytes: 16, files: (n) => n * 5 };
/** As many directories as `SOURCES` has, of ten files each. */
export const SPARSE: Shape = { name: 'sparse', perDirectory: 10, bytes: 16, files: (n) => Math.ceil(n / 10) };
/** A few files of 64 MiB; of 64 KiB where n is small. */
export const BULK: Shape = { name: 'bulk', perDirectory: 4, bytes: 64 << 20, files: () => 4 };

/** The order in which a tree's files are worked on: all of a directory and then the next, or jumping about. */
export type Order = 'walk' | 'shuffled';

/** Makes a tree of that shape in `root`, which must not exist. */
export function plant(root: string, shape: Shape, n: number, order: Order = 'walk'): Tree {
  const count = shape.files(n);
  const bytes = shape === BULK && n < 1000 ? 64 << 10 : shape.bytes;
  const perDirectory = Math.min(shape.perDirectory, Math.max(1, Math.ceil(count / 10)));
  const directories: string[] = [], files: string[] = [];
  const content = seeded(bytes);
  for (let i = 0; i < count; i++) {
    const d = Math.floor(i / perDirectory);
    const directory = shape === SOURCES ? `packages/p${Math.floor(d / 10)}/lib${d % 10}` : `d${d}`;
    if (i % perDirectory === 0) {
      fs.mkdirSync(join(root, directory), { recursive: true });
      directories.push(directory);
    }
    const file = `${directory}/module-${i}.ts`;
    content.writeUInt32LE(i, 0);
    fs.writeFileSync(join(root, file), content);
    files.push(file);
  }
  return { root, directories, files: order === 'walk' ? files : shuffled(files) };
}

/** Bytes that do not repeat, the same in every run. */
export function seeded(length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  let x = 0x9e3779b9;
  for (let i = 0; i < length; i++) {
    x = (Math.imul(x ^ (x >>> 15), 0x2c1b3c6d) + 0x6d2b79f5) | 0;
    bytes[i] = x >>> 24;
  }
  return bytes;
}

/** `items` in an order that jumps about, the same in every run. */
function shuffled<T>(items: readonly T[]): T[] {
  const result = [...items];
  let x = 1;
  for (let i = result.length - 1; i > 0; i--) {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    const j = x % (i + 1);
    [result[i], result[j]] = [result[j] as T, result[i] as T];
  }
  return result;
}

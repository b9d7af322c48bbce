import type { Subject, SubjectName } from './subject.ts';

/** As much of `node:fs` as the rows call: what raw, ours, memfs and unionfs have in common. */
export interface NodeFs {
  readFileSync(path: string): unknown;
  writeFileSync(path: string, bytes: Uint8Array): void;
  appendFileSync(path: string, bytes: Uint8Array): void;
  existsSync(path: string): boolean;
  statSync(path: string): unknown;
  readdirSync(path: string): readonly unknown[];
  renameSync(from: string, to: string): void;
  openSync(path: string, flags: string): number;
  writeSync(fd: number, bytes: Uint8Array, offset: number, length: number, position: number): number;
  closeSync(fd: number): void;
  readonly promises: { readFile(path: string): Promise<unknown> };
}

interface Entry {
  readonly name: string;
  isDirectory(): boolean;
}

type TypedListing = (path: string, options: { withFileTypes: true }) => readonly Entry[];

const ONE_BYTE = Buffer.from('!');

/** A subject over a `node:fs`-shaped object, which knows the tree's root as `root`. */
export function nodeSubject(name: SubjectName, fs: NodeFs, root: string,
  more: Pick<Subject, 'settle' | 'events'> & { close?: () => void | Promise<void> } = {}): Subject {
  const listTyped = fs.readdirSync.bind(fs) as unknown as TypedListing;
  const walk = (directory: string): number => {
    let files = 0;
    for (const entry of listTyped(directory, { withFileTypes: true })) {
      if (entry.isDirectory()) files += walk(directory + '/' + entry.name);
      else files++;
    }
    return files;
  };
  return {
    name,
    waits: false,
    at: (path) => (path === '' ? root : root + '/' + path),
    read: (path) => (fs.readFileSync(path) as Uint8Array).length,
    readLater: async (path) => (await fs.promises.readFile(path) as Uint8Array).length,
    write: (path, bytes) => {
      fs.writeFileSync(path, bytes);
      return bytes.length;
    },
    append: (path, bytes) => {
      fs.appendFileSync(path, bytes);
      return bytes.length;
    },
    exists: (path) => (fs.existsSync(path) ? 1 : 0),
    stat: (path) => (fs.statSync(path) as { size: number }).size,
    statMiss: (path) => {
      try {
        fs.statSync(path);
        return 1;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
        return 0;
      }
    },
    list: (path) => fs.readdirSync(path).length,
    walk,
    rename: (from, to) => {
      fs.renameSync(from, to);
      return 1;
    },
    poke: (path, position) => {
      const fd = fs.openSync(path, 'r+');
      const written = fs.writeSync(fd, ONE_BYTE, 0, 1, position);
      fs.closeSync(fd);
      return written;
    },
    close: () => undefined,
    ...more,
  };
}

import fs from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Volume } from 'memfs';
import { Union } from 'unionfs';
import { nodeSubject, type NodeFs } from './node-subject.ts';
import { PROJECT } from './project.ts';
import type { Subject, SubjectName } from './subject.ts';

/**
 * The peers, each used as its own documentation says. just-bash and nx are large and wanted here alone, so they have a
 * manifest of their own in this directory (`npm run bench:peers`); without it they are left out.
 */

/** The peers that are installed. */
export function installedPeers(): SubjectName[] {
  const large = (['just-bash', 'nx'] as const).filter((name) => fs.existsSync(join(PEERS, 'node_modules', name)));
  return ['memfs', 'unionfs', ...large];
}

/** A peer over the tree in `root`, as new. */
export async function openPeer(name: SubjectName, root: string): Promise<Subject> {
  switch (name) {
    case 'memfs': return nodeSubject(name, filledVolume(root), '/tree');
    case 'unionfs': return nodeSubject(name, unionOver(root), root);
    case 'just-bash': return justBash(root);
    case 'nx': return nx(root);
    default: throw new Error(`${name} is no peer`);
  }
}

/** Loads a peer's code, so that opening it does not. */
export async function loadPeer(name: SubjectName): Promise<void> {
  if (name === 'just-bash') await import(fromPeers.resolve('just-bash'));
  if (name === 'nx') fromPeers('nx/src/generators/tree');
}

const PEERS = join(PROJECT, 'bench');
const fromPeers = createRequire(join(PEERS, 'package.json'));

/** memfs has no lower: all of the tree goes in first. */
function filledVolume(root: string): NodeFs {
  const volume = new Volume();
  const fill = (from: string, to: string): void => {
    volume.mkdirSync(to);
    for (const entry of fs.readdirSync(from, { withFileTypes: true })) {
      if (entry.isDirectory()) fill(join(from, entry.name), to + '/' + entry.name);
      else volume.writeFileSync(to + '/' + entry.name, fs.readFileSync(join(from, entry.name)));
    }
  };
  fill(root, '/tree');
  return volume;
}

/**
 * A memfs volume over the directory. unionfs hands a write on until someone takes it: the volume gets the directories, and
 * the real file system is read-only, so that nothing reaches the tree.
 */
function unionOver(root: string): NodeFs {
  const upper = new Volume();
  const make = (directory: string): void => {
    upper.mkdirSync(directory, { recursive: true });
    for (const entry of fs.readdirSync(directory, { withFileTypes: true })) {
      if (entry.isDirectory()) make(join(directory, entry.name));
    }
  };
  make(root);
  const readOnly = { ...fs };
  const refuse = (): never => {
    throw Object.assign(new Error('EROFS: read-only file system'), { code: 'EROFS' });
  };
  for (const call of ['writeFileSync', 'appendFileSync', 'renameSync', 'writeSync'] as const) readOnly[call] = refuse;
  const { openSync } = fs;
  readOnly.openSync = (path, flags, mode) => (flags === 'r' ? openSync(path, flags, mode) : refuse());
  const union = new Union();
  union.use(readOnly).use(upper as unknown as typeof fs);
  return union;
}

/** As much of just-bash's OverlayFs as the rows call. */
interface JustBash {
  readFileBuffer(path: string): Promise<Uint8Array>;
  writeFile(path: string, bytes: Uint8Array): Promise<void>;
  appendFile(path: string, bytes: Uint8Array): Promise<void>;
  exists(path: string): Promise<boolean>;
  stat(path: string): Promise<{ size: number }>;
  readdir(path: string): Promise<string[]>;
  readdirWithFileTypes(path: string): Promise<{ name: string; isDirectory: boolean }[]>;
  mv(from: string, to: string): Promise<void>;
}

const JUST_BASH_ROOT = '/tree';
/** Its default, 10 MiB, would refuse the large files. */
const JUST_BASH_FILE_BYTES = 2 ** 31;

async function justBash(root: string): Promise<Subject> {
  const { OverlayFs } = await import(fromPeers.resolve('just-bash')) as {
    OverlayFs: new (options: object) => JustBash;
  };
  const overlay = new OverlayFs({
    root, mountPoint: JUST_BASH_ROOT, maxFileReadSize: JUST_BASH_FILE_BYTES, maxMemoryBytes: 2 * JUST_BASH_FILE_BYTES,
  });
  const walk = async (directory: string): Promise<number> => {
    let files = 0;
    for (const entry of await overlay.readdirWithFileTypes(directory)) {
      if (entry.isDirectory) files += await walk(directory + '/' + entry.name);
      else files++;
    }
    return files;
  };
  const read = async (path: string): Promise<number> => (await overlay.readFileBuffer(path)).length;
  return {
    name: 'just-bash',
    waits: true,
    at: (path) => (path === '' ? JUST_BASH_ROOT : JUST_BASH_ROOT + '/' + path),
    read,
    readLater: read,
    write: async (path, bytes) => {
      await overlay.writeFile(path, bytes);
      return bytes.length;
    },
    append: async (path, bytes) => {
      await overlay.appendFile(path, bytes);
      return bytes.length;
    },
    exists: async (path) => (await overlay.exists(path) ? 1 : 0),
    stat: async (path) => (await overlay.stat(path)).size,
    statMiss: async (path) => {
      try {
        await overlay.stat(path);
        return 1;
      } catch (error) {
        if (!String(error).includes('ENOENT')) throw error;
        return 0;
      }
    },
    list: async (path) => (await overlay.readdir(path)).length,
    walk,
    rename: async (from, to) => {
      await overlay.mv(from, to);
      return 1;
    },
    poke: async (path, position) => {
      const bytes = Buffer.from(await overlay.readFileBuffer(path));
      bytes[position] = 33;
      await overlay.writeFile(path, bytes);
      return 1;
    },
    close: () => undefined,
  };
}

/**
 * As much of nx's FsTree as the rows call. Paths are relative to its root. It renames files only: a directory file by file, each
 * of which lists that directory again, so that one of 10,000 takes minutes.
 */
interface NxTree {
  read(path: string): Buffer | null;
  write(path: string, bytes: Buffer): void;
  exists(path: string): boolean;
  children(path: string): string[];
  isFile(path: string): boolean;
}

function nx(root: string): Subject {
  const { FsTree } = fromPeers('nx/src/generators/tree') as { FsTree: new (root: string, verbose: boolean) => NxTree };
  const tree = new FsTree(root, false);
  const read = (path: string): Buffer => {
    const bytes = tree.read(path);
    if (bytes === null) throw new Error(`nx cannot read ${path}`);
    return bytes;
  };
  const walk = (directory: string): number => {
    let files = 0;
    for (const name of tree.children(directory)) {
      const path = directory === '' ? name : directory + '/' + name;
      if (tree.isFile(path)) files++;
      else files += walk(path);
    }
    return files;
  };
  return {
    name: 'nx',
    waits: false,
    at: (path) => path,
    read: (path) => read(path).length,
    write: (path, bytes) => {
      tree.write(path, bytes as Buffer);
      return bytes.length;
    },
    append: (path, bytes) => {
      tree.write(path, Buffer.concat([tree.exists(path) ? read(path) : Buffer.alloc(0), bytes]));
      return bytes.length;
    },
    exists: (path) => (tree.exists(path) ? 1 : 0),
    list: (path) => tree.children(path).length,
    walk,
    poke: (path, position) => {
      const bytes = read(path);
      bytes[position] = 33;
      tree.write(path, bytes);
      return 1;
    },
    close: () => undefined,
  };
}

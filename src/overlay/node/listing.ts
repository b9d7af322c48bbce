import type { Buffer } from 'node:buffer';
import type { Dirent } from 'node:fs';
import { posix } from 'node:path';
import { typeOf } from '../../core/attr.ts';
import type { PathName } from '../../core/path.ts';
import { Refusal } from '../../core/refusal.ts';
import type { System, SystemEntry } from '../system.ts';
import { encoded, getOptions, pathName, validateBoolean, type CommonOptions, type Encoding } from './arguments.ts';
import { dirent } from './dirent.ts';
import { failure, nodeError } from './errors.ts';
import type { Call } from './lift.ts';

/** Calls that tell names: readdir and realpath. */
export function listingCalls(system: System) {
  function listed(path: PathName): readonly SystemEntry[] {
    try {
      return system.readdir(path);
    } catch (error) {
      throw failure(error, 'scandir', path);
    }
  }

  function readdirSync(path: unknown, options?: unknown): unknown {
    const { encoding, withFileTypes, recursive } = getOptions<ReaddirOptions>(options, NO_OPTIONS);
    const name = pathName(path);
    if (recursive !== undefined && recursive !== null) validateBoolean(recursive, 'options.recursive');
    if (recursive) return withFileTypes ? entriesBelow(name, encoding) : namesBelow(name, encoding);
    const entries = listed(name);
    if (withFileTypes) {
      const parent = path instanceof Uint8Array ? path : name.toWellFormed();
      return entries.map((entry) => dirent(encoded(entry.name, encoding), entry.type, parent));
    }
    return entries.map((entry) => encoded(entry.name, encoding));
  }

  /** With types a directory is what is one itself: symlinks are listed and not entered. */
  function entriesBelow(path: PathName, encoding: Encoding | null | undefined): Dirent[] {
    const found: Dirent[] = [];
    const directories = [path];
    for (const directory of directories) {
      for (const { name, type } of listed(directory)) {
        found.push(dirent(encoded(name, encoding), type, directory.toWellFormed()));
        if (type === 'directory') directories.push(posix.join(directory, name) as PathName);
      }
    }
    return found;
  }

  /** Without types node enters whatever turns out to be a directory, through symlinks too. */
  function namesBelow(path: PathName, encoding: Encoding | null | undefined): (string | Buffer)[] {
    const found: (string | Buffer)[] = [];
    const directories = [''];
    for (const directory of directories) {
      for (const { name, type } of listed(directory === '' ? path : posix.join(path, directory) as PathName)) {
        const below = directory === '' ? name : `${directory}/${name}`;
        found.push(encoded(below, encoding));
        if (type === 'directory' || (type === 'symlink' && leadsToDirectory(posix.join(path, below) as PathName))) {
          directories.push(below);
        }
      }
    }
    return found;
  }

  function leadsToDirectory(path: PathName): boolean {
    try {
      const attr = system.stat(path);
      return attr !== undefined && typeOf(attr.mode) === 'directory';
    } catch (error) {
      if (error instanceof Refusal) return false;
      throw error;
    }
  }

  /** `native` is realpath(3); the other is node's own walk, whose errors name the component that failed. */
  function realpath(path: PathName, options: unknown, native: boolean): string | Buffer {
    const { encoding } = getOptions<CommonOptions>(options, NO_OPTIONS);
    // Node's own walk takes `..` away by the letter before it looks at anything.
    const asked = native ? path : posix.resolve(system.cwd(), path) as PathName;
    try {
      return encoded(system.realpath(asked), encoding);
    } catch (error) {
      if (native) throw failure(error, 'realpath', path);
      throw failedWalk(path, error);
    }
  }

  function failedWalk(path: PathName, error: unknown): Error {
    if (!(error instanceof Refusal)) throw error;
    let current = '';
    for (const component of posix.resolve(system.cwd(), path).split('/').filter(Boolean)) {
      const next = `${current}/${component}` as PathName;
      try {
        const { mode } = system.mustStat(next, { follow: false });
        current = typeOf(mode) === 'symlink' ? system.realpath(next) : next;
      } catch (refusal) {
        const isLink = refusal instanceof Refusal && isThere(next);
        return failure(refusal, isLink ? 'stat' : 'lstat', next);
      }
    }
    return nodeError(error, 'lstat', path);
  }

  function isThere(path: PathName): boolean {
    try {
      return system.lstat(path) !== undefined;
    } catch (error) {
      if (error instanceof Refusal) return false;
      throw error;
    }
  }

  function realpathSync(path: unknown, options?: unknown): unknown {
    return realpath(pathName(isPathLike(path) ? path : String(path)), options, false);
  }

  function realpathNativeSync(path: unknown, options?: unknown): unknown {
    return realpath(pathName(path), options, true);
  }

  return {
    readdir: { sync: readdirSync, callback: [1, 2], promise: true },
    realpath: { sync: realpathSync, callback: [1, 2], promise: false },
    realpathNative: { sync: realpathNativeSync, callback: [1, 2], promise: false },
  } satisfies Record<string, Call>;
}

interface ReaddirOptions extends CommonOptions {
  readonly withFileTypes?: unknown;
  readonly recursive?: unknown;
}

const NO_OPTIONS = {};

/** Node's realpath takes the string form of whatever is no path by itself. */
function isPathLike(value: unknown): boolean {
  return typeof value === 'string' || value instanceof Uint8Array ||
    (typeof value === 'object' && value !== null && 'href' in value && 'protocol' in value);
}

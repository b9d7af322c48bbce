import { constants } from 'node:fs';
import type { Attr } from '../../core/attr.ts';
import type { PathName } from '../../core/path.ts';
import { Refusal } from '../../core/refusal.ts';
import type { System } from '../system.ts';
import {
  bitMode, encoded, fileMode, getOptions, pathName, timeNs, validateBoolean, validateId, type CommonOptions,
} from './arguments.ts';
import { codedError, failure } from './errors.ts';
import type { Call } from './lift.ts';
import { statFsAs, statsAs } from './stats.ts';

/** Calls that look up or change a name, each as one synchronous body. Reading directories is in listing.ts. */
export function nameCalls(system: System) {
  function accessSync(path: unknown, mode?: unknown): void {
    const name = pathName(path);
    const wanted = bitMode(mode, ACCESS_BITS);
    try {
      system.access(name, wanted);
    } catch (error) {
      throw failure(error, 'access', name);
    }
  }

  function existsSync(path: unknown): boolean {
    let name: PathName;
    try {
      name = pathName(path);
    } catch (error) {
      // Node's never throws, not even for arguments that are no paths.
      if (!(error instanceof TypeError)) throw error;
      return false;
    }
    try {
      return system.exists(name);
    } catch (error) {
      // Ours does where the look could not be recorded: "not there" would be a lie.
      throw failure(error, 'access', name);
    }
  }

  /** stat and lstat that throw where nothing is there. */
  function must(path: unknown, follow: boolean): Attr {
    const name = pathName(path);
    try {
      return system.mustStat(name, follow ? FOLLOW : NO_FOLLOW);
    } catch (error) {
      throw failure(error, follow ? 'stat' : 'lstat', name);
    }
  }

  function stat(path: unknown, options?: unknown): unknown {
    return statsAs(must(path, true), options);
  }

  function lstat(path: unknown, options?: unknown): unknown {
    return statsAs(must(path, false), options);
  }

  /** Nothing for ENOENT alone: a path through a file is an error to node also here. */
  function quietly(path: unknown, options: unknown, follow: boolean): unknown {
    const name = pathName(path);
    try {
      return statsAs(system.mustStat(name, follow ? FOLLOW : NO_FOLLOW), options);
    } catch (error) {
      if (error instanceof Refusal && error.code === 'ENOENT') return undefined;
      throw failure(error, follow ? 'stat' : 'lstat', name);
    }
  }

  function statSync(path: unknown, options?: StatOptions): unknown {
    return options?.throwIfNoEntry === false ? quietly(path, options, true) : statsAs(must(path, true), options);
  }

  function lstatSync(path: unknown, options?: StatOptions): unknown {
    return options?.throwIfNoEntry === false ? quietly(path, options, false) : statsAs(must(path, false), options);
  }

  function statfsSync(path: unknown, options?: unknown): unknown {
    const name = pathName(path);
    try {
      return statFsAs(system.statfs(name), options);
    } catch (error) {
      throw failure(error, 'statfs', name);
    }
  }

  function readlinkSync(path: unknown, options?: unknown): unknown {
    const { encoding } = getOptions<CommonOptions>(options, NO_OPTIONS);
    const name = pathName(path, 'oldPath');
    try {
      return encoded(system.readlink(name), encoding);
    } catch (error) {
      throw failure(error, 'readlink', name);
    }
  }

  function mkdirSync(path: unknown, options?: unknown): unknown {
    const { mode: givenMode = 0o777, recursive = false } = typeof options === 'number' || typeof options === 'string'
      ? { mode: options }
      : optionsOf(options);
    const name = pathName(path);
    validateBoolean(recursive, 'options.recursive');
    const mode = fileMode(givenMode, 'mode');
    try {
      if (recursive) return makeDirectories(system, name, mode)?.toWellFormed();
      return system.mkdir(name, mode);
    } catch (error) {
      throw failure(error, 'mkdir', name);
    }
  }

  function mkdtempSync(prefix: unknown, options?: unknown): unknown {
    const { encoding } = getOptions<CommonOptions>(options, NO_OPTIONS);
    const name = pathName(prefix, 'prefix');
    if (name.endsWith('X')) warnOfTemplate();
    try {
      return encoded(makeTemporary(system, name), encoding);
    } catch (error) {
      throw failure(error, 'mkdtemp', `${name}XXXXXX`);
    }
  }

  function renameSync(oldPath: unknown, newPath: unknown): void {
    const from = pathName(oldPath, 'oldPath'), to = pathName(newPath, 'newPath');
    try {
      system.rename(from, to);
    } catch (error) {
      throw failure(error, 'rename', from, to);
    }
  }

  function linkSync(existingPath: unknown, newPath: unknown): void {
    const from = pathName(existingPath, 'existingPath'), to = pathName(newPath, 'newPath');
    try {
      system.link(from, to);
    } catch (error) {
      throw failure(error, 'link', from, to);
    }
  }

  function symlinkSync(target: unknown, path: unknown, type?: unknown): void {
    const to = pathName(target, 'target'), name = pathName(path);
    if (typeof type === 'string' && !SYMLINK_TYPES.has(type)) {
      throw codedError(Error, 'ERR_FS_INVALID_SYMLINK_TYPE',
        `Symlink type must be one of "dir", "file", or "junction". Received "${type}"`);
    }
    try {
      system.symlink(to, name);
    } catch (error) {
      throw failure(error, 'symlink', to, name);
    }
  }

  function unlinkSync(path: unknown): void {
    const name = pathName(path);
    try {
      system.unlink(name);
    } catch (error) {
      throw failure(error, 'unlink', name);
    }
  }

  function chmodSync(path: unknown, mode: unknown): void {
    const name = pathName(path), bits = fileMode(mode, 'mode');
    try {
      system.chmod(name, bits, FOLLOW);
    } catch (error) {
      throw failure(error, 'chmod', name);
    }
  }

  function chown(path: unknown, uid: unknown, gid: unknown, follow: boolean): void {
    const name = pathName(path);
    validateId(uid, 'uid');
    validateId(gid, 'gid');
    try {
      system.chown(name, uid, gid, { follow });
    } catch (error) {
      throw failure(error, follow ? 'chown' : 'lchown', name);
    }
  }

  function utimes(path: unknown, atime: unknown, mtime: unknown, follow: boolean): void {
    const name = pathName(path), accessed = timeNs(atime), modified = timeNs(mtime);
    try {
      system.utimes(name, accessed, modified, { follow });
    } catch (error) {
      throw failure(error, follow ? 'utime' : 'lutime', name);
    }
  }

  return {
    access: { sync: accessSync, callback: [1, 2], promise: true },
    stat: { sync: statSync as Call['sync'], lifted: stat, callback: [1, 2], promise: true },
    lstat: { sync: lstatSync as Call['sync'], lifted: lstat, callback: [1, 2], promise: true },
    statfs: { sync: statfsSync, callback: [1, 2], promise: true },
    readlink: { sync: readlinkSync, callback: [1, 2], promise: true },
    mkdir: { sync: mkdirSync, callback: [1, 2], promise: true },
    mkdtemp: { sync: mkdtempSync, callback: [1, 2], promise: true },
    rename: { sync: renameSync, callback: [2, 2], promise: true },
    link: { sync: linkSync, callback: [2, 2], promise: true },
    symlink: { sync: symlinkSync, callback: [2, 3], promise: true },
    unlink: { sync: unlinkSync, callback: [1, 1], promise: true },
    chmod: { sync: chmodSync, callback: [2, 2], promise: true },
    chown: { sync: function chownSync(path, uid, gid) { chown(path, uid, gid, true); }, callback: [3, 3], promise: true },
    lchown: { sync: function lchownSync(path, uid, gid) { chown(path, uid, gid, false); }, callback: [3, 3], promise: true },
    utimes: { sync: function utimesSync(path, atime, mtime) { utimes(path, atime, mtime, true); }, callback: [3, 3], promise: true },
    lutimes: { sync: function lutimesSync(path, atime, mtime) { utimes(path, atime, mtime, false); }, callback: [3, 3], promise: true },
    exists: { sync: existsSync, callback: [1, 1], promise: false },
  } satisfies Record<string, Call>;
}

interface StatOptions {
  readonly bigint?: unknown;
  readonly throwIfNoEntry?: unknown;
}

interface MkdirOptions {
  readonly mode?: unknown;
  readonly recursive?: unknown;
}

const NO_OPTIONS = {};

function optionsOf(value: unknown): MkdirOptions {
  return value ?? NO_OPTIONS;
}
const FOLLOW = { follow: true } as const;
const NO_FOLLOW = { follow: false } as const;
const ACCESS_BITS = constants.R_OK | constants.W_OK | constants.X_OK;
const SYMLINK_TYPES = new Set(['dir', 'file', 'junction']);

/** Refusals that looking at parents would not change. */
const FINAL = new Set(['EACCES', 'ENOSPC', 'ENOTDIR', 'EPERM']);

/** `mkdir -p`: gives the first directory that it made, as it named it, or `undefined` where all were there. */
export function makeDirectories(system: System, path: PathName, mode: number): PathName | undefined {
  const wanted: PathName[] = [path];
  let first: PathName | undefined;
  let above: PathName | undefined;
  for (let next = wanted.pop(); next !== undefined; next = wanted.pop()) {
    try {
      system.mkdir(next, mode);
      first ??= next;
      continue;
    } catch (error) {
      if (!(error instanceof Refusal) || FINAL.has(error.code)) throw error;
      const slash = next.lastIndexOf('/');
      // A name under a directory that is there by now and still missing will not come.
      if (error.code === 'ENOENT' && slash > 0 && next !== above) {
        above = next;
        wanted.push(next, next.slice(0, slash) as PathName);
        continue;
      }
      if (error.code !== 'EEXIST') throw error;
      const { mode: found } = system.mustStat(next, FOLLOW);
      if ((found & constants.S_IFMT) === constants.S_IFDIR) continue;
      if (wanted.length > 0) throw new Refusal('ENOTDIR');
      throw error;
    }
  }
  return first;
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
/** As mkdtemp(3) gives up: so many names all taken is no chance. */
const TEMPORARY_TRIES = 10_000;

function makeTemporary(system: System, prefix: PathName): PathName {
  for (let tries = 0; ; tries++) {
    let name: string = prefix;
    for (let i = 0; i < 6; i++) name += LETTERS[Math.floor(Math.random() * LETTERS.length)];
    try {
      system.mkdir(name as PathName, 0o700);
      return name as PathName;
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== 'EEXIST' || tries >= TEMPORARY_TRIES) throw error;
    }
  }
}

let warnedOfTemplate = false;

function warnOfTemplate(): void {
  if (warnedOfTemplate) return;
  warnedOfTemplate = true;
  process.emitWarning('mkdtemp() templates ending with X are not portable. For details see: https://nodejs.org/api/fs.html');
}

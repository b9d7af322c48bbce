import { toBytes, type PathName } from '../../core/path.ts';
import { Refusal } from '../../core/refusal.ts';
import { typeOf } from '../../core/attr.ts';
import type { System } from '../system.ts';
import {
  pathName, validateBoolean, validateFunction, validateInt32, validateObject, validateUint32, type PathArgument,
} from './arguments.ts';
import { nodeError } from './errors.ts';
import { conclude, settled } from './lift.ts';
import { settleLater, settleNow, TURN, type Face, type Steps } from './steps.ts';
import { systemError } from './system-error.ts';

/** `fs.rm` and `fs.rmdir` in all their faces. */

export interface RmdirOptions {
  readonly maxRetries: number;
  readonly recursive: boolean;
  /** In ms; the n-th retry waits n times as long. */
  readonly retryDelay: number;
}

export interface RmOptions extends RmdirOptions {
  readonly force: boolean;
}

const RMDIR_DEFAULTS: RmdirOptions = { retryDelay: 100, maxRetries: 0, recursive: false };
const RM_DEFAULTS: RmOptions = { ...RMDIR_DEFAULTS, force: false };

/** Failures that another try may not meet. */
const PASSING = new Set(['EBUSY', 'EMFILE', 'ENFILE', 'ENOTEMPTY', 'EPERM']);
/** What rmdir(2) says where there is something in the directory. */
const NOT_EMPTY = new Set(['ENOTEMPTY', 'EEXIST', 'EPERM']);

export type Callback = (error?: unknown) => void;

/** The face as its users see it and may have patched it. */
export interface Exported {
  rmdirSync?(path: PathArgument): void;
}

/** The calls that remove, over `system`. Emptied directories go through the exported `rmdirSync`, as node has it. */
export function removals(system: System, exported: Exported = {}) {
  const now: Remover = {
    system,
    rmdir(path) {
      const patched = exported.rmdirSync;
      if (patched === undefined || patched === rmdirSync) return refused(() => system.rmdir(path));
      patched(path.isWellFormed() ? path : toBytes(path));
      return undefined;
    },
  };
  const later: Remover = { system, rmdir: (path) => refused(() => system.rmdir(path)) };

  function* rmSteps(path: PathName, options: RmOptions, face: Face): Steps<void> {
    const attr = lookedUp(system, path, { follow: false });
    if (attr instanceof Refusal) {
      if (attr.code === 'ENOENT' && options.force) return;
      // Node's synchronous call does not look first where nothing could stop it.
      const unlooked = face === 'sync' && options.force && options.recursive;
      throw nodeError(attr, unlooked ? 'unlink' : 'lstat', path);
    }
    const isDirectory = typeOf(attr.mode) === 'directory';
    if (isDirectory && !options.recursive) throw systemError('ERR_FS_EISDIR', 'rm', 'EISDIR', 'is a directory', path);
    yield* removeEntry(face === 'sync' ? now : later, path, isDirectory, options);
  }

  function* rmdirSteps(path: PathName, options: RmdirOptions, face: Face | 'promise'): Steps<void> {
    if (options.recursive) {
      const looks = face === 'promise' ? 'stat' : 'lstat';
      const attr = lookedUp(system, path, { follow: looks === 'stat' });
      if (attr instanceof Refusal) throw nodeError(attr, looks, path);
      if (typeOf(attr.mode) === 'directory') {
        // The promise face looks through a symlink and then removes the link, as node's does.
        const entry = looks === 'stat' ? lookedUp(system, path, { follow: false }) : attr;
        if (entry instanceof Refusal) return;
        yield* removeEntry(face === 'sync' ? now : later, path, typeOf(entry.mode) === 'directory', options);
        return;
      }
    }
    const refusal = refused(() => system.rmdir(path));
    if (refusal) throw nodeError(refusal, 'rmdir', path);
  }

  function rmSync(path: PathArgument, options?: Partial<RmOptions>): void {
    settleNow(rmSteps(pathName(path), rmOptions(options), 'sync'));
  }

  function rm(path: PathArgument, options?: Partial<RmOptions> | Callback, callback?: Callback): void {
    if (typeof options === 'function') [callback, options] = [options, undefined];
    const name = pathName(path), checked = rmOptions(options);
    validateFunction(callback);
    conclude(() => settleLater(rmSteps(name, checked, 'later')), [], callback);
  }

  function rmdirSync(path: PathArgument, options?: Partial<RmdirOptions>): void {
    settleNow(rmdirSteps(pathName(path), rmdirOptions(options), 'sync'));
  }

  function rmdir(path: PathArgument, options?: Partial<RmdirOptions> | Callback, callback?: Callback): void {
    if (typeof options === 'function') [callback, options] = [options, undefined];
    validateFunction(callback);
    const name = pathName(path), checked = rmdirOptions(options);
    conclude(() => settleLater(rmdirSteps(name, checked, 'later')), [], callback);
  }

  const promises = {
    async rm(path: PathArgument, options?: Partial<RmOptions>): Promise<void> {
      await settled(() => settleLater(rmSteps(pathName(path), rmOptions(options), 'later')), []);
    },
    async rmdir(path: PathArgument, options?: Partial<RmdirOptions>): Promise<void> {
      await settled(() => settleLater(rmdirSteps(pathName(path), rmdirOptions(options), 'promise')), []);
    },
  };
  return { rm, rmSync, rmdir, rmdirSync, promises };
}

interface Remover {
  readonly system: System;
  /** Removes a directory that was emptied. */
  rmdir(path: PathName): Refusal | undefined;
}

/**
 * Removes what is at `path`, and all beneath it first. What is gone by itself is no failure. Stops at the first entry
 * that cannot be removed; what was removed until then stays removed.
 */
function* removeEntry(remover: Remover, path: PathName, isDirectory: boolean, options: RmdirOptions): Steps<void> {
  const { system } = remover;
  for (let attempt = 1; ; attempt++) {
    yield TURN;
    let refusal = isDirectory ? undefined : refused(() => system.unlink(path));
    if (refusal?.code === 'EISDIR') isDirectory = true;
    let syscall = 'unlink';
    if (isDirectory) {
      syscall = 'rmdir';
      refusal = refused(() => system.rmdir(path));
      if (refusal !== undefined && NOT_EMPTY.has(refusal.code)) {
        yield* removeChildren(remover, path, options);
        refusal = remover.rmdir(path);
      }
    }
    if (refusal === undefined || refusal.code === 'ENOENT') return;
    if (attempt > options.maxRetries || !PASSING.has(refusal.code)) throw nodeError(refusal, syscall, path);
    yield { kind: 'sleep', ms: attempt * options.retryDelay };
  }
}

function* removeChildren(remover: Remover, path: PathName, options: RmdirOptions): Steps<void> {
  let entries;
  try {
    entries = remover.system.readdir(path);
  } catch (error) {
    const refusal = Refusal.of(error);
    if (refusal.code === 'ENOENT') return;
    throw nodeError(refusal, 'scandir', path);
  }
  const prefix = path.endsWith('/') ? path : `${path}/`;
  for (const { name, type } of entries) {
    yield* removeEntry(remover, prefix + name as PathName, type === 'directory', options);
  }
}

function lookedUp(system: System, path: PathName, options: { follow: boolean }) {
  try {
    return system.mustStat(path, options);
  } catch (error) {
    return Refusal.of(error);
  }
}

function refused(act: () => void): Refusal | undefined {
  try {
    act();
    return undefined;
  } catch (error) {
    return Refusal.of(error);
  }
}

function rmOptions(options: Partial<RmOptions> | undefined): RmOptions {
  const checked = checkedOptions(options, RM_DEFAULTS);
  validateBoolean(checked.force, 'options.force');
  return checked;
}

function rmdirOptions(options: Partial<RmdirOptions> | undefined): RmdirOptions {
  const checked = checkedOptions(options, RMDIR_DEFAULTS);
  if (checked.recursive) warnOfRecursion();
  return checked;
}

function checkedOptions<T extends RmdirOptions>(options: Partial<T> | undefined, defaults: T): T {
  if (options === undefined) return defaults;
  validateObject(options, 'options');
  const checked = { ...defaults, ...options };
  validateBoolean(checked.recursive, 'options.recursive');
  validateInt32(checked.retryDelay, 'options.retryDelay', 0);
  validateUint32(checked.maxRetries, 'options.maxRetries');
  return checked;
}

let warned = false;

/** Once a process, as node does it. */
function warnOfRecursion(): void {
  if (warned || (process as { noDeprecation?: boolean }).noDeprecation) return;
  warned = true;
  process.emitWarning(
    'In future versions of Node.js, fs.rmdir(path, { recursive: true }) will be removed. ' +
    'Use fs.rm(path, { recursive: true }) instead', 'DeprecationWarning', 'DEP0147');
}

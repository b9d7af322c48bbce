import { constants } from 'node:fs';
import { constants as os } from 'node:os';
import { posix } from 'node:path';
import { PERMISSION_BITS, typeOf, type Attr } from '../../core/attr.ts';
import type { PathName } from '../../core/path.ts';
import { Refusal } from '../../core/refusal.ts';
import type { System } from '../system.ts';
import {
  callMode, incompatibleOptions, pathName, validateBoolean, validateFunction, validateObject, type PathArgument,
} from './arguments.ts';
import { invalidType, nodeError } from './errors.ts';
import { conclude, settled } from './lift.ts';
import { makeDirectories } from './names.ts';
import type { Callback } from './rm.ts';
import { settleLater, settleNow, TURN, type Face, type Steps } from './steps.ts';
import { systemError, type SystemErrorCode } from './system-error.ts';

/** `fs.cp` in all its faces. Content is shared, not copied: `System.copyFile` knows how. */

export interface CopyOptions {
  /** Of symlinks, copy what they lead to. */
  readonly dereference: boolean;
  /** With `force: false`, an existing file is an error. */
  readonly errorOnExist: boolean;
  /** Whether to copy an entry, and all beneath it; asked once for each, before it is looked at. */
  readonly filter: ((source: string, destination: string) => unknown) | undefined;
  /** Existing files are replaced. */
  readonly force: boolean;
  /** As of `fs.copyFile`. */
  readonly mode: number;
  readonly preserveTimestamps: boolean;
  readonly recursive: boolean;
  /** Relative targets of symlinks stay relative. */
  readonly verbatimSymlinks: boolean;
}

const DEFAULTS: CopyOptions = {
  dereference: false, errorOnExist: false, filter: undefined, force: true, mode: 0, preserveTimestamps: false,
  recursive: false, verbatimSymlinks: false,
};
const BOOLEANS = [
  'dereference', 'errorOnExist', 'force', 'preserveTimestamps', 'recursive', 'verbatimSymlinks',
] as const;
const COPY_MODES = constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE | constants.COPYFILE_FICLONE_FORCE;

/** The calls that copy trees, over `system`. */
export function copies(system: System) {
  function cpSync(source: PathArgument, destination: PathArgument, options?: Partial<CopyOptions>): void {
    settleNow(steps(source, destination, options, 'sync'));
  }

  function cp(
    source: PathArgument, destination: PathArgument, options?: Partial<CopyOptions> | Callback, callback?: Callback,
  ): void {
    if (typeof options === 'function') [callback, options] = [options, undefined];
    validateFunction(callback);
    const copying = steps(source, destination, options, 'later');
    conclude(() => settleLater(copying), [], callback);
  }

  function steps(source: PathArgument, destination: PathArgument, options: unknown, face: Face): Steps<void> {
    const checked = copyOptions(options);
    return new Copy(system, checked, face).run(namedByString(source, 'src'), namedByString(destination, 'dest'));
  }

  const promises = {
    async cp(source: PathArgument, destination: PathArgument, options?: Partial<CopyOptions>): Promise<void> {
      await settled(() => settleLater(steps(source, destination, options, 'later')), []);
    },
  };
  return { cp, cpSync, promises };
}

/** A pair that may be copied: what is at the source, and at the destination if anything is. */
interface Pair {
  readonly source: PathName;
  readonly target: PathName;
  readonly from: Attr;
  readonly onto: Attr | undefined;
}

class Copy {
  readonly #system: System;
  readonly #options: CopyOptions;
  readonly #face: Face;

  constructor(system: System, options: CopyOptions, face: Face) {
    this.#system = system;
    this.#options = options;
    this.#face = face;
  }

  * run(source: PathName, target: PathName): Steps<void> {
    const pair = yield* this.#examine(source, target);
    if (pair === undefined) return;
    this.#makeParents(pair);
    yield* this.#copy(pair);
  }

  /** The pair, or `undefined` where the filter does not want it. Throws where the two cannot be. */
  * #examine(source: PathName, target: PathName): Steps<Pair | undefined> {
    const { filter, dereference } = this.#options;
    if (filter) {
      const value = filter(source.toWellFormed(), target.toWellFormed());
      if (!(yield { kind: 'answer', from: 'filter', value })) return undefined;
    }
    const from = this.#look(source, { follow: dereference });
    const onto = this.#lookFor(target, { follow: dereference });
    const directory = isDirectory(from);
    if (onto) {
      if (from.ino === onto.ino && from.dev === onto.dev) throw invalid('src and dest cannot be the same', target);
      if (directory && !isDirectory(onto)) {
        throw systemError('ERR_FS_CP_DIR_TO_NON_DIR', 'cp', 'EISDIR',
          `cannot overwrite non-directory ${target} with directory ${source}`, target);
      }
      if (!directory && isDirectory(onto)) {
        throw systemError('ERR_FS_CP_NON_DIR_TO_DIR', 'cp', 'ENOTDIR',
          `cannot overwrite directory ${target} with non-directory ${source}`, target);
      }
    }
    if (directory && this.#isBelow(target, source)) throw intoItself(source, target, target);
    return { source, target, from, onto };
  }

  /**
   * Makes the missing directories above the target. A directory cannot be copied below itself, also where a symlink
   * leads there: told by the real path of the nearest directory that exists, since the ones above it may lie outside
   * the tree and be none of our business.
   */
  #makeParents({ source, target, from }: Pair): void {
    const parent = posix.dirname(target) as PathName;
    let there = parent;
    while (this.#lookFor(there, { follow: true }) === undefined && there !== posix.dirname(there)) {
      there = posix.dirname(there) as PathName;
    }
    if (isDirectory(from)) {
      const within = this.#called('realpath', there, () => this.#system.realpath(there));
      const real = this.#called('realpath', source, () => this.#system.realpath(source));
      if (this.#isBelow(within, real)) throw intoItself(source, target, target);
    }
    if (there !== parent) this.#called('mkdir', parent, () => makeDirectories(this.#system, parent, 0o777));
  }

  * #copy(pair: Pair): Steps<void> {
    yield TURN;
    const { source, target, from } = pair;
    switch (typeOf(from.mode)) {
      case 'directory':
        if (!this.#options.recursive) {
          throw systemError('ERR_FS_EISDIR', 'cp', 'EISDIR', `${source} is a directory (not copied)`, source,
            this.#face === 'sync' ? os.errno.EINVAL : os.errno.EISDIR);
        }
        yield* this.#copyDirectory(pair);
        return;
      case 'file':
      case 'character':
      case 'block':
        this.#copyFile(pair);
        return;
      case 'symlink':
        this.#copyLink(pair);
        return;
      case 'socket':
        throw uncopied('ERR_FS_CP_SOCKET', 'a socket file', target);
      case 'fifo':
        throw uncopied('ERR_FS_CP_FIFO_PIPE', 'a FIFO pipe', target);
    }
  }

  * #copyDirectory({ source, target, from, onto }: Pair): Steps<void> {
    const system = this.#system;
    if (!onto) this.#called('mkdir', target, () => system.mkdir(target, 0o777));
    for (const { name } of this.#called('opendir', source, () => system.readdir(source))) {
      const [from, to] = [posix.join(source, name) as PathName, posix.join(target, name) as PathName];
      const pair = yield* this.#examine(from, to);
      if (pair) yield* this.#copy(pair);
    }
    // Last, since a mode may forbid to write into the new directory.
    const mode = from.mode & PERMISSION_BITS;
    if (!onto) this.#called('chmod', target, () => system.chmod(target, mode, { follow: true }));
  }

  /** Content and permission bits; a file in the way is unlinked first, so that its other names keep what they have. */
  #copyFile({ source, target, from, onto }: Pair): void {
    const { force, errorOnExist, mode, preserveTimestamps } = this.#options, system = this.#system;
    if (onto) {
      if (!force) {
        if (!errorOnExist) return;
        throw systemError('ERR_FS_CP_EEXIST', 'cp', 'EEXIST', `${target} already exists`, target);
      }
      this.#called('unlink', target, () => system.unlink(target));
    }
    const exclusive = (mode & constants.COPYFILE_EXCL) !== 0;
    this.#called('copyfile', source, () => system.copyFile(source, target, { exclusive }), target);
    if (!preserveTimestamps) return;
    this.#called('utime', target, () => system.utimes(target, from.atime, from.mtime, { follow: true }));
  }

  #copyLink(pair: Pair): void {
    const { source, target, onto } = pair, system = this.#system;
    let leadsTo = this.#called('readlink', source, () => system.readlink(source));
    if (!this.#options.verbatimSymlinks) leadsTo = this.#resolved(leadsTo, source);
    if (onto) {
      if (typeOf(onto.mode) !== 'symlink') {
        this.#link(leadsTo, target);
        return;
      }
      this.#checkLinks(pair, leadsTo);
      this.#called('unlink', target, () => system.unlink(target));
    }
    this.#link(leadsTo, target);
  }

  /** Refuses to replace a symlink where either of the two leads below the other. */
  #checkLinks({ source, target }: Pair, leadsTo: string): void {
    const before = this.#resolved(this.#called('readlink', target, () => this.#system.readlink(target)), target);
    if (this.#isBelow(before, leadsTo)) throw intoItself(leadsTo, before, target);
    const seen = this.#look(this.#face === 'sync' ? target : source, { follow: true });
    if (isDirectory(seen) && this.#isBelow(leadsTo, before)) {
      throw systemError('ERR_FS_CP_SYMLINK_TO_SUBDIRECTORY', 'cp', 'EINVAL',
        `cannot overwrite ${before} with ${leadsTo}`, target);
    }
  }

  #link(leadsTo: string, path: PathName): void {
    this.#called('symlink', leadsTo, () => this.#system.symlink(leadsTo, path), path);
  }

  #resolved(leadsTo: string, link: PathName): string {
    return posix.isAbsolute(leadsTo) ? leadsTo : this.#absolute(posix.join(posix.dirname(link), leadsTo));
  }

  #absolute(path: string): string {
    return posix.isAbsolute(path) ? posix.resolve(path) : posix.resolve(this.#system.cwd(), path);
  }

  /** Whether `path` is `above` or below it, by name alone. */
  #isBelow(path: string, above: string): boolean {
    const outer = this.#absolute(above), inner = this.#absolute(path);
    return inner === outer || outer === '/' || inner.startsWith(`${outer}/`);
  }

  #look(path: PathName, options: { follow: boolean }): Attr {
    return this.#called(options.follow ? 'stat' : 'lstat', path, () => this.#system.mustStat(path, options));
  }

  #lookFor(path: PathName, options: { follow: boolean }): Attr | undefined {
    try {
      return this.#system.mustStat(path, options);
    } catch (error) {
      const refusal = Refusal.of(error);
      if (refusal.code === 'ENOENT') return undefined;
      throw nodeError(refusal, options.follow ? 'stat' : 'lstat', path);
    }
  }

  #called<T>(syscall: string, path: string, act: () => T, dest?: string): T {
    try {
      return act();
    } catch (error) {
      throw nodeError(Refusal.of(error), syscall, path, dest);
    }
  }
}

function isDirectory(attr: Attr): boolean {
  return typeOf(attr.mode) === 'directory';
}

function invalid(message: string, path: string): Error {
  return systemError('ERR_FS_CP_EINVAL', 'cp', 'EINVAL', message, path);
}

function intoItself(source: string, target: string, path: string): Error {
  return invalid(`cannot copy ${source} to a subdirectory of self ${target}`, path);
}

function uncopied(key: SystemErrorCode, what: string, target: string): Error {
  return systemError(key, 'cp', 'EINVAL', `cannot copy ${what}: ${target}`, target);
}

/** Node's cp works on the text of paths and refuses Buffers. */
function namedByString(path: PathArgument, name: string): PathName {
  const checked = pathName(path, name);
  if (path instanceof Uint8Array) throw invalidType('paths[0]', 'string', path);
  return checked;
}

function copyOptions(options: unknown): CopyOptions {
  if (options === undefined) return DEFAULTS;
  validateObject(options, 'options');
  const checked: CopyOptions = { ...DEFAULTS, ...options };
  for (const name of BOOLEANS) validateBoolean(checked[name], `options.${name}`);
  const mode = callMode(checked.mode, COPY_MODES);
  if (checked.dereference && checked.verbatimSymlinks) throw incompatibleOptions('dereference', 'verbatimSymlinks');
  if (checked.filter !== undefined) validateFunction(checked.filter, 'options.filter');
  return { ...checked, mode };
}

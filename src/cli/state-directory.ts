import { randomBytes } from 'node:crypto';
import { existsSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, isAbsolute, join, resolve } from 'node:path';
import { Misuse } from './failure.ts';

/**
 * Where session directories are made, which is all that a run has to know of them. A new one is named after its root and
 * the time, with something of its own behind: `repo-20261201-100203-9f3a61c2`.
 */

const LOG_NAME = 'log.jsonl';
/** Longer names of roots are cut: the name has to fit into a line. */
const NAME_LENGTH = 40;

/** The directory of session directories: `$XDG_STATE_HOME/palimpsest`, else `~/.local/state/palimpsest`. */
export function stateDirectory(): string {
  const given = process.env['XDG_STATE_HOME'];
  // The XDG specification: a relative one is as none.
  const base = given !== undefined && isAbsolute(given) ? given : join(homedir(), '.local/state');
  return join(base, 'palimpsest');
}

/**
 * The directory of a session to write to, which need not be there yet: as `--session` says (a name that `sessions` lists means
 * that session), else a new one about `root`. Opening an overlay makes it, mode 0700. Throws `Misuse` as `newSessionDirectory`.
 */
export function sessionToWrite(given: string | undefined, root: string): string {
  if (given === undefined) return newSessionDirectory(root);
  const named = join(stateDirectory(), given);
  return isName(given) && !isSession(resolve(given)) && isSession(named) ? named : resolve(given);
}

/** A directory for a new session about `root`, nobody else's, not yet made. Throws `Misuse` where it would lie inside the root. */
export function newSessionDirectory(root: string): string {
  const real = existsSync(root) ? realpathSync.native(root) : resolve(root), state = stateDirectory();
  if (isBelow(state, real)) throw new Misuse(`sessions are kept in ${state}, which is part of ${real}: give a place outside with --session`);
  const name = basename(real).replace(/[^A-Za-z0-9._]+/g, '-').replace(/^[-.]+/, '').slice(0, NAME_LENGTH) || 'root';
  const time = new Date().toISOString().replace(/[-:]/g, '').replace('T', '-').slice(0, 15);
  return join(state, `${name}-${time}-${randomBytes(4).toString('hex')}`);
}

/** The working directory as it really is. Throws where it has been removed. */
export function workingDirectory(): string {
  return realpathSync.native('.');
}

/** Whether `path` is `ancestor` or lies below it; both absolute. */
export function isBelow(path: string, ancestor: string): boolean {
  return path === ancestor || path.startsWith(ancestor.endsWith('/') ? ancestor : ancestor + '/');
}

/** Whether a session is in a directory. */
export function isSession(directory: string): boolean {
  return existsSync(join(directory, LOG_NAME));
}

/** Whether this can only be a name, not a path. */
export function isName(given: string): boolean {
  return given !== '' && !given.includes('/') && given !== '.' && given !== '..';
}

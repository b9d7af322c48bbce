import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, isAbsolute, join, resolve } from 'node:path';
import { glance, lowerOf, type SessionGlance } from '../index.ts';
import { Misuse } from './failure.ts';

/**
 * Where session directories are. A new one is named after its root and the time, with something of its own behind:
 * `repo-20261201-100203-9f3a61c2`.
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

/**
 * The directory of the session to look at: as `--session` says (a directory, or a name that `sessions` lists), else the newest
 * session about the working directory or the nearest directory above it. Throws `Error` where there is none.
 */
export function sessionToRead(given: string | undefined): string {
  if (given !== undefined) return namedSession(given);
  const here = workingDirectory();
  let best: SessionGlance | undefined;
  for (const each of sessionsIn(stateDirectory())) {
    if (each instanceof Error || !rootsOf(each).some((root) => isBelow(here, root))) continue;
    if (best === undefined || order(each, best) < 0) best = each;
  }
  if (best === undefined) throw new Error(`no session is about ${here}: give one with --session, or see palimpsest sessions`);
  return best.directory;
}

/** The session that a directory or a name as `sessions` lists it stands for. Throws `Error` where none is there. */
export function namedSession(given: string): string {
  const directory = resolve(given), named = join(stateDirectory(), given);
  if (!isSession(directory) && isName(given) && isSession(named)) return named;
  if (!isSession(directory)) throw new Error(`no session is at ${directory}`);
  return directory;
}

/** All sessions whose directories are in `directory`; an error for each whose header cannot be read. In no order. */
export function* sessionsIn(directory: string): Generator<SessionGlance | (Error & { directory: string })> {
  if (!existsSync(directory)) return;
  for (const name of readdirSync(directory)) {
    const path = join(directory, name);
    if (!isSession(path)) continue;
    try {
      yield glance(path);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      yield Object.assign(error, { directory: path });
    }
  }
}

/** The working directory as it really is. Throws where it has been removed. */
export function workingDirectory(): string {
  return realpathSync.native('.');
}

/** The directories that a session is about; none where its lower was no directory. */
function rootsOf({ header }: SessionGlance): readonly string[] {
  const named = lowerOf(header);
  if (named === undefined) return [];
  return 'root' in named ? [named.root] : 'lower' in named ? named.lower : Object.values(named.roots);
}

/** Whether `path` is `ancestor` or lies below it; both absolute. */
export function isBelow(path: string, ancestor: string): boolean {
  return path === ancestor || path.startsWith(ancestor.endsWith('/') ? ancestor : ancestor + '/');
}

/** Nearest root first, then the newest. */
function order(a: SessionGlance, b: SessionGlance): number {
  const depth = (session: SessionGlance): number => Math.max(0, ...rootsOf(session).map(({ length }) => length));
  return depth(b) - depth(a) || (a.header.created < b.header.created ? 1 : a.header.created > b.header.created ? -1 : b.modified - a.modified);
}

function isSession(directory: string): boolean {
  return existsSync(join(directory, LOG_NAME));
}

function isName(given: string): boolean {
  return given !== '' && !given.includes('/') && given !== '.' && given !== '..';
}

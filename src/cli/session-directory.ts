import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { glance, isParcel, lowerOf, type SessionGlance } from '../index.ts';
import { isBelow, isName, isSession, stateDirectory, workingDirectory } from './state-directory.ts';

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
  if (isParcel(directory)) throw new Error(`${directory} is a file: if a session is packed in it, palimpsest import makes a directory of it`);
  if (!isSession(directory)) throw new Error(`no session is at ${directory}${isName(given) ? `, and none in ${stateDirectory()} has this name` : ''}`);
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

/** The directories that a session is about; none where its lower was no directory. */
function rootsOf({ header }: SessionGlance): readonly string[] {
  const named = lowerOf(header);
  if (named === undefined) return [];
  return 'root' in named ? [named.root] : 'lower' in named ? named.lower : Object.values(named.roots);
}

/** Nearest root first, then the newest. */
function order(a: SessionGlance, b: SessionGlance): number {
  const depth = (session: SessionGlance): number => Math.max(0, ...rootsOf(session).map(({ length }) => length));
  return depth(b) - depth(a) || (a.header.created < b.header.created ? 1 : a.header.created > b.header.created ? -1 : b.modified - a.modified);
}

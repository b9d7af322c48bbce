import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import { nanoid } from 'nanoid';

/** Where sessions are kept that nobody has given a place. Made when it is not there, for its owner alone. */
export function stateDirectory(): string {
  const home = process.env['XDG_STATE_HOME'], above = home === undefined || home === '' ? join(homedir(), '.local', 'state') : home;
  const directory = join(above, 'palimpsest');
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  return directory;
}

/** A place for a new session over `root`: readable, and nobody else's. Not yet made. */
export function newSessionDirectory(root: string): string {
  return join(stateDirectory(), `${basename(root) || 'root'}-${nanoid(10)}`);
}

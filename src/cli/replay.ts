import { existsSync, mkdtempSync, realpathSync, rmSync, statSync, type Stats } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { driftOfSession, glance, Overlay, pathFromBytes } from '../index.ts';
import { FAILED, Misuse, tellFailure } from './failure.ts';
import { manual } from './manual.ts';
import { MOMENT, momentOption, withFormats, withSession, type SessionOption } from './options.ts';
import { out, say } from './output.ts';
import { fileName, nameField, nulRecord } from './path.ts';
import { withDirectory } from './reading.ts';
import { OWN_FAILURE } from './run.ts';
import { isBelow } from './state-directory.ts';
import { quoted } from './text.ts';

interface Options extends SessionOption {
  readonly at?: string;
  readonly root?: string;
  readonly into?: string;
  readonly verify?: true;
  readonly json?: boolean;
  readonly z?: boolean;
}

/** `palimpsest replay`. */
export function replay(command: Command): void {
  manual(command, {
    description: 'Shows the recorded tree from the session alone: what the overlay held, over what was kept of the directory beneath. Without a command it lists ' +
      'it; with one, it runs the command over it as palimpsest run does, onto a fresh overlay. The session has to be recorded with --record content. What it has ' +
      'not kept is an input/output error for the command, and an error that says so elsewhere; it is never taken for absent or empty.\n\n' +
      'The tree is seen where it was recorded if there is a directory, else in a temporary one; --root says where.',
    examples: [
      ['palimpsest replay --session 42', 'all paths that are known'],
      ["palimpsest replay --session 42 --at 'turn 3' -- npm test", 'run the tests over the tree as it was then'],
      ['palimpsest cat --replay --session 42 src/a.js', 'one file; ls and diff take --replay, too'],
      ['palimpsest replay --session 42 --verify', 'where is the directory not any more what was recorded?'],
    ],
    exit: 'With a command, as that; 125 for a failure of our own. --verify: 1 where something differs.',
  });
  withSession(command).argument('[command...]', 'a command and its arguments, after --').passThroughOptions()
    .option('--at <moment>', MOMENT)
    .option('--root <dir>', 'an existing directory in which the command sees the tree')
    .option('--into <dir>', 'keep what the command does as a session there; default: it is thrown away')
    .option('--verify', 'compare the directory beneath with what was recorded of it');
  withFormats(command, { json: 'JSON Lines', z: 'only paths, each ended by NUL' });
  command.action((argv: readonly string[], options: Options) => withDirectory(options, async (session) => {
    if (options.verify === true) return tellDrift(session, options);
    if (argv.length === 0) return list(session, options);
    process.exitCode = await run(session, argv, options);
  }));
}

function tellDrift(session: string, { json, z }: Options): void {
  const found = driftOfSession(session);
  for (const { path, words } of found) {
    if (json === true) out.line(JSON.stringify({ ...nameField('path', path), drift: words }));
    else if (z === true) out.write(nulRecord([], path));
    else out.line(`${path === '' ? '.' : quoted(path)}: ${words}`);
  }
  if (found.length > 0) process.exitCode = FAILED;
}

function list(session: string, { at, json, z }: Options): void {
  const overlay = Overlay.replaySync(session, at === undefined ? {} : { at: momentOption(at) });
  let unknown = 0;
  const visit = (directory: string): void => {
    for (const bytes of namesIn(overlay, directory, () => unknown++)) {
      const name = pathFromBytes(bytes), path = directory === '' ? name : `${directory}/${name}`, stats = overlay.fs.lstatSync(fileName(overlay.mountPoint, path)) as Stats;
      if (z === true) out.write(nulRecord([], path));
      else if (json === true) out.line(JSON.stringify({ ...nameField('path', path), mode: stats.mode.toString(8), size: stats.size }));
      else out.line(quoted(path) + (stats.isDirectory() ? '/' : ''));
      if (stats.isDirectory()) visit(path);
    }
  };
  visit('');
  overlay.closeSync();
  if (unknown > 0) say(`palimpsest: ${unknown} directories were never listed: what else is in them is not known`);
}

/** Names in a directory; of one that was never listed, those that are known all the same. */
function namesIn(overlay: Overlay, directory: string, unknown: () => void): readonly Buffer[] {
  try {
    return overlay.fs.readdirSync(fileName(overlay.mountPoint, directory), { encoding: 'buffer' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_NOT_RECORDED') throw error;
    unknown();
    return overlay.knownNames(directory).map((name) => Buffer.from(name));
  }
}

async function run(session: string, argv: readonly string[], { at, root, into }: Options): Promise<number> {
  const recorded = glance(session).header.root, scratch = mkdtempSync(join(tmpdir(), 'palimpsest-replay-'));
  try {
    if (root !== undefined && !isDirectory(root)) throw new Misuse(`${quoted(root)} is no directory`);
    const place = realpathSync.native(root ?? (recorded.startsWith('/') && isDirectory(recorded) ? recorded : mkdtempSync(join(scratch, 'tree-'))));
    const [{ gainPrivilege }, { endAs }] = await Promise.all([import('../mount/privilege.ts'), import('../mount/supervisor.ts')]);
    await gainPrivilege();
    const { runOverlay, WRITABLE } = await import('../mount/run.ts');
    const fresh = into === undefined ? join(scratch, 'session') : resolve(into), here = process.cwd();
    const result = await runOverlay({
      overlay: { replay: { session, ...(at !== undefined && { at: momentOption(at) }) }, mountPoint: place, session: fresh },
      actor: 'main', roots: [{ path: place, from: '' }], session: fresh, exact: false, writeBack: false, argv, cwd: isBelow(here, place) ? here : place, env: process.env,
      stdio: ['inherit', 'inherit', 'inherit'], network: 'shared', outside: 'as it is', writable: WRITABLE, timeout: undefined,
    });
    rmSync(scratch, { recursive: true, force: true });
    endAs(result);
    return Number(process.exitCode);
  } catch (error) {
    tellFailure(error);
    return OWN_FAILURE;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function isDirectory(path: string): boolean {
  return existsSync(path) && statSync(path).isDirectory();
}

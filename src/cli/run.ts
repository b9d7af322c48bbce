import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { Misuse, tellFailure } from './failure.ts';
import { manual } from './manual.ts';
import { rootsOf } from './roots.ts';
import { addRuleFlags, rulesOfFlags, type RuleFlags } from './rule-flags.ts';
import { newSessionDirectory } from './state-directory.ts';

/** Exit statuses of `run` and `shell` that are their own. */
const TIMED_OUT = 124;
export const OWN_FAILURE = 125;

/** What `run` and `shell` may be given. */
export interface RunFlags extends RuleFlags {
  readonly root: readonly string[];
  readonly session?: string;
  readonly actor: string;
  readonly exact?: true;
  readonly writeBack?: true;
  readonly outside?: string;
  readonly record?: string;
  readonly network: boolean;
  readonly timeout?: string;
  readonly quiet?: true;
  readonly commit?: true;
}

/** `palimpsest run`. */
export function run(command: Command): void {
  manual(command, {
    description: 'Runs a command over the overlay of a directory, in place: it sees its usual absolute paths, and the directory stays as it is. ' +
      'Afterwards the summary tells what the command read, looked for in vain and changed.',
    examples: [
      ['palimpsest run -- npm test', 'what do the tests read? the working tree stays as it is'],
      ['palimpsest run --session runs/42 -- ./agent', 'keep the session where you want it'],
      ['palimpsest run --root ~/app --root ~/lib -- make', 'over two directories; paths in the log begin with app/ and lib/'],
      ["palimpsest run --hide 'tests/hidden/**' --flag .env -- ./agent", 'hide some paths, tell of every touch of others'],
    ],
    exit: 'As the command; 124 when --timeout ended it, 125 for a failure of our own or a refused --commit, 126 and 127 as a shell has it.',
  });
  addRunOptions(command).argument('<command...>', 'the command and its arguments, after --').passThroughOptions()
    .action(async (argv: readonly string[], flags: RunFlags) => {
      process.exitCode = await runCommand(argv, flags);
    });
}

/** The options that `run` and `shell` share. */
export function addRunOptions(command: Command): Command {
  return addRuleFlags(command)
    .option('--root <dir>', 'the directory beneath; may be given several times (default: .)', (dir: string, before: readonly string[]) => [...before, dir], [])
    .option('--session <dir>', 'session directory, made or resumed; default: a new one')
    .option('--actor <name>', 'who acts', 'main')
    .option('--record <what>', 'content: keep what is read, listed and shown, so that the session can be replayed without the directory')
    .option('--exact', 'let the kernel keep no names and attributes: every look is recorded')
    .option('--write-back', 'let the kernel gather what is written until a file is closed: faster, and fewer events')
    .option('--outside <how>', 'ro: what lies outside of the root cannot be changed')
    .option('--no-network', 'no network but the loopback')
    .option('--timeout <seconds>', 'end the command after so many seconds')
    .option('--commit', 'publish what was changed, if the command succeeds and nobody changed it meanwhile')
    .option('-q, --quiet', 'no summary');
}

/** Throws `Misuse` where `--record` says what it does not know. */
export function demandRecord(record: string | undefined): void {
  if (record !== undefined && record !== 'content' && record !== 'hash') throw new Misuse('--record knows only content and hash');
}

/** Runs a command as the flags say, tells of it, and gives the exit status. */
export async function runCommand(argv: readonly string[], flags: RunFlags): Promise<number> {
  const rules = await rulesOfFlags(flags);
  demandRecord(flags.record);
  const timeout = flags.timeout === undefined ? undefined : Number(flags.timeout);
  if (timeout !== undefined && !(timeout > 0)) throw new Misuse('--timeout takes seconds, more than 0');
  if (flags.outside !== undefined && flags.outside !== 'ro') throw new Misuse('--outside knows only ro');
  try {
    const [{ gainPrivilege }, { endAs }] = await Promise.all([import('../mount/privilege.ts'), import('../mount/supervisor.ts')]);
    // First of all: without root this process goes no further, and another does all that follows.
    await gainPrivilege();
    const { runOverlay, WRITABLE } = await import('../mount/run.ts');
    const { lower, places } = rootsOf(flags.root);
    if (places.some(({ path }) => existsSync(`${path}/.palimpsest-commit`))) {
      await (await import('./recover.ts')).recoverFirst(places.map(({ path }) => path));
    }
    const session = resolve(flags.session ?? newSessionDirectory(places[0].path));
    const result = await runOverlay({
      overlay: { ...lower, session, ...(rules && { rules }), ...(flags.record === 'content' && { record: 'content' }) }, actor: flags.actor, roots: places, session, exact: flags.exact === true, writeBack: flags.writeBack === true, argv,
      cwd: process.cwd(), env: process.env,
      stdio: ['inherit', 'inherit', 'inherit'], network: flags.network ? 'shared' : 'none',
      outside: flags.outside === 'ro' ? 'read-only' : 'as it is', writable: WRITABLE, timeout,
    });
    if (flags.quiet !== true) {
      // What tells of a run loads the whole library; the command should not have to wait for that.
      const { tellRun } = await import('./run-summary.ts');
      tellRun(session, result);
    }
    if (flags.commit === true && !result.timedOut && result.status === 0) {
      const { commitRun } = await import('./run-commit.ts');
      if (!await commitRun(session)) return OWN_FAILURE;
    }
    endAs(result.timedOut ? { status: TIMED_OUT, signal: null } : result);
    return Number(process.exitCode);
  } catch (error) {
    tellFailure(error);
    return OWN_FAILURE;
  }
}

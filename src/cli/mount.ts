import { spawn } from 'node:child_process';
import { writeSync, closeSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { DONE, FAILED } from './failure.ts';
import { manual } from './manual.ts';
import { out, say } from './output.ts';
import { demandRecord } from './run.ts';
import { addRuleFlags, ruleArguments, rulesOfFlags, type RuleFlags } from './rule-flags.ts';
import { sessionToWrite } from './state-directory.ts';

interface Flags extends RuleFlags {
  readonly root: string;
  readonly session?: string;
  readonly actor: string;
  readonly record?: string;
  readonly exact?: true;
  readonly writeBack?: true;
  readonly foreground?: true;
  readonly readyFd?: string;
}

/** `palimpsest mount`. */
export function mount(command: Command): void {
  manual(command, {
    description: 'Mounts the overlay of a directory and returns. It is served until it is unmounted (umount MOUNTPOINT), by a process of ' +
      'its own; mounted again with the same session, it goes on as it was.\n\n' +
      'The mount point is an empty directory, or the root itself. It is seen by everybody in this mount namespace: bind it into a ' +
      'container, or give it to a harness.',
    examples: [
      ['palimpsest mount --root repo --session runs/42 /mnt/42', 'mount, to be used by anybody'],
      ['umount /mnt/42', 'end it; the session can be opened and mounted again'],
      ['palimpsest status --session runs/42', 'what was changed meanwhile'],
    ],
  });
  addRuleFlags(command)
    .argument('<mountpoint>', 'an empty directory, or the root itself')
    .option('--root <dir>', 'the lower', '.')
    .option('--session <dir>', 'session directory, made or resumed; default: a new one')
    .option('--actor <name>', 'who acts', 'main')
    .option('--record <what>', 'content: keep what is read, listed and shown, so that the session can be replayed without the directory')
    .option('--exact', 'let the kernel keep no names and attributes: every look is recorded')
    .option('--write-back', 'let the kernel gather what is written until a file is closed: faster, and fewer events')
    .option('--foreground', 'serve in this process, until it is unmounted or a signal comes')
    .option('--ready-fd <fd>', 'write a line there once it is mounted')
    .action(async (mountPoint: string, flags: Flags) => {
      await rulesOfFlags(flags);
      demandRecord(flags.record);
      const session = sessionToWrite(flags.session, flags.root);
      process.exitCode = flags.foreground === true ? await serve(mountPoint, session, flags) : await detach(mountPoint, session, flags);
    });
}

async function serve(mountPoint: string, session: string, flags: Flags): Promise<number> {
  const { root, actor, exact, writeBack, readyFd } = flags, rules = await rulesOfFlags(flags);
  const { mountOverlay } = await import('../mount/mounting.ts');
  const mounting = await mountOverlay({ mountPoint, overlay: { root: resolve(root), session, ...(rules && { rules }), ...(flags.record === 'content' && { record: 'content' }) }, actor, exact: exact === true, writeBack: writeBack === true });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => void mounting.unmount().catch((error: Error) => say(`palimpsest: ${error.message}`)));
  }
  if (readyFd !== undefined) {
    writeSync(Number(readyFd), 'mounted\n');
    closeSync(Number(readyFd));
  }
  await mounting.ended;
  for (const fault of mounting.faults) say(`palimpsest: fault while serving: ${fault instanceof Error ? fault.stack ?? fault.message : String(fault)}`);
  return mounting.faults.length === 0 ? DONE : FAILED;
}

/** The same in a process of its own; this one is done once it is mounted. */
async function detach(mountPoint: string, session: string, flags: Flags): Promise<number> {
  const args = [process.argv[1] as string, 'mount', '--foreground', '--ready-fd', '3', '--root', flags.root, '--session', session,
    '--actor', flags.actor, ...(flags.exact === true ? ['--exact'] : []), ...(flags.record === undefined ? [] : ['--record', flags.record]), ...(flags.writeBack === true ? ['--write-back'] : []), ...ruleArguments(flags), '--', mountPoint];
  const child = spawn(process.execPath, args, { detached: true, stdio: ['ignore', 'ignore', 'pipe', 'pipe'] });
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => said += text);
  const ready = child.stdio[3] as NodeJS.ReadableStream;
  const isMounted = await new Promise<boolean>((done) => {
    ready.once('data', () => done(true));
    child.once('close', () => done(false));
  });
  if (!isMounted) {
    say(said.trimEnd());
    return FAILED;
  }
  child.unref();
  child.stderr?.destroy();
  out.line(session);
  return DONE;
}

import { existsSync, mkdtempSync, rmdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Command } from 'commander';
import type { Check } from '../mount/machine.ts';
import { FAILED } from './failure.ts';
import { manual } from './manual.ts';
import { withFormats } from './options.ts';
import { out } from './output.ts';
import { paint } from './paint.ts';
import { stateDirectory } from './state-directory.ts';
import { visible } from './text.ts';

/** `palimpsest doctor`. */
export function doctor(command: Command): void {
  manual(command, {
    description: 'Tells what of this machine is there and what is missing, what it is needed for, and how to get it.',
    examples: [
      ['palimpsest doctor', 'a line for each check'],
      ["palimpsest doctor --json | jq -r 'select(.ok | not).name'", 'what is missing'],
    ],
    exit: '0 nothing is missing; 1 something is; 2 wrong use.',
  });
  withFormats(command, { json: 'JSON Lines' });
  command.action(async (options: { json?: boolean }) => {
    const { checkMachine } = await import('../mount/machine.ts'), checks = [...checksHere(), ...checkMachine()];
    if (options.json === true) for (const check of checks) out.line(JSON.stringify(check));
    else for (const check of checks) print(check);
    if (checks.some(({ ok }) => !ok)) process.exitCode = FAILED;
  });
}

function print({ name, ok, neededFor, remedy }: Check): void {
  out.line(`${ok ? paint.green('ok     ') : paint.red('missing')}  ${visible(name)}${paint.dim(`, for ${neededFor}`)}`);
  if (!ok) out.line(`         ${visible(remedy)}`);
}

/** What the overlay and its sessions need. */
function checksHere(): readonly Check[] {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number), state = stateDirectory();
  return [
    { name: `Node ${process.versions.node}`, ok: major > 20 || (major === 20 && minor >= 19), neededFor: 'everything', remedy: 'install Node 20.19 or later' },
    {
      name: '/proc', ok: existsSync('/proc/self/fd'), neededFor: 'containment at full strength; locks that outlive their owner',
      remedy: 'mount it: mount -t proc proc /proc',
    },
    {
      name: `a place for sessions, ${state}`, ok: isWritable(state), neededFor: 'sessions without --session',
      remedy: 'make it writable, or set XDG_STATE_HOME to a directory that is',
    },
    {
      name: 'no interrupted commit to this directory', ok: !existsSync('.palimpsest-commit/journal'), neededFor: 'whatever reads it',
      remedy: 'palimpsest recover ends it',
    },
  ];
}

/** Whether `directory` can be written to, or made. */
function isWritable(directory: string): boolean {
  let there = directory;
  while (!existsSync(there) && dirname(there) !== there) there = dirname(there);
  try {
    // By trying: root may do anything by the bits, and is refused all the same by a read-only file system.
    rmdirSync(mkdtempSync(join(there, '.palimpsest-')));
    return true;
  } catch {
    return false;
  }
}

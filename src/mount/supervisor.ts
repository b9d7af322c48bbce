import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import type { Command, Outcome } from './command.ts';

/** Signals that are passed on to the command whoever sent them: they come to this process alone. */
const PASSED = ['SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const;
/** Signals that the terminal sends to everybody in front of it. Passed on only where it was not the terminal. */
const TYPED = ['SIGINT', 'SIGQUIT'] as const;
/** Signals whose death writes a core file. */
const CORE: readonly NodeJS.Signals[] = [
  'SIGQUIT', 'SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV', 'SIGXCPU', 'SIGXFSZ', 'SIGSYS',
];

/** Milliseconds between looks whether the command has stopped itself: always, and after the terminal has asked for it. */
const STOP_LOOK = 250, STOP_LOOK_SOON = 10;
/** For how many milliseconds after the terminal's request. */
const SOON = 2000;
/** Milliseconds from the request to end to the end by force. */
const GRACE = 5000;

/** What is supervised: a command, or anything that ends, can be stopped and takes signals. */
export type Supervised = Pick<Command, 'exited' | 'kill' | 'stopped'>;

/** How a supervised command ended. */
export interface Supervision extends Outcome {
  readonly timedOut: boolean;
}

/**
 * Lets this process stand in for a command until that has ended: to the shell and the terminal it looks as if the command
 * itself had been started. Ctrl-C and Ctrl-\ reach the command and leave this process alone; signals that are sent to this
 * process are passed on; when the command is stopped, so is this process, and it goes on with it. `timeout` is in
 * seconds: SIGTERM then, SIGKILL five seconds later.
 */
export async function supervise(command: Supervised, timeout?: number): Promise<Supervision> {
  const undo: (() => void)[] = [];
  const on = (signal: NodeJS.Signals, act: () => void): void => {
    process.on(signal, act);
    undo.push(() => process.off(signal, act));
  };
  for (const signal of PASSED) on(signal, () => void command.kill(signal));
  for (const signal of TYPED) on(signal, () => { if (!isInFront()) void command.kill(signal); });

  if (hasTerminal()) {
    const soon = { until: 0 };
    const follow = (): void => {
      if (command.stopped()) {
        // The server stops with it; so the command must have come to rest first, which it may need the server for.
        process.kill(process.pid, 'SIGSTOP');
        // Here this process goes on. Whoever continued it meant the command.
        void command.kill('SIGCONT');
      }
      timer = setTimeout(follow, performance.now() < soon.until ? STOP_LOOK_SOON : STOP_LOOK);
    };
    let timer = setTimeout(follow, STOP_LOOK);
    undo.push(() => { clearTimeout(timer); });
    on('SIGTSTP', () => {
      soon.until = performance.now() + SOON;
      clearTimeout(timer);
      timer = setTimeout(follow, STOP_LOOK_SOON);
    });
  }

  try {
    return await awaitCommand(command, { timeout });
  } finally {
    for (const step of undo) step();
  }
}

/** Waits for a command's end. After `timeout` seconds, or when `signal` is aborted: SIGTERM, and SIGKILL five seconds later. */
export async function awaitCommand(
  command: Supervised, { timeout, signal }: { readonly timeout: number | undefined; readonly signal?: AbortSignal | undefined },
): Promise<Supervision> {
  let timedOut = false;
  const timers: ReturnType<typeof setTimeout>[] = [];
  const stop = (): void => {
    void command.kill('SIGTERM').then(async () => command.kill('SIGCONT'));
    timers.push(setTimeout(() => void command.kill('SIGKILL'), GRACE));
  };
  if (timeout !== undefined) timers.push(setTimeout(() => {
    timedOut = true;
    stop();
  }, timeout * 1000));
  if (signal?.aborted === true) stop();
  else signal?.addEventListener('abort', stop, { once: true });
  try {
    return { ...await command.exited, timedOut };
  } finally {
    for (const timer of timers) clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}

/**
 * Ends this process as a command ended: with its status, or by its signal. A death that would write a core file of this
 * process becomes the status a shell would show. Call it when everything is tidied up.
 */
export function endAs({ status, signal }: Outcome): void {
  if (signal === null) {
    process.exitCode = status ?? 1;
    return;
  }
  process.exitCode = 128 + constants.signals[signal];
  if (CORE.includes(signal) && writesCores()) return;
  // A handler that comes and goes leaves the default behind, for those too that Node ignores.
  const nothing = (): void => undefined;
  if (signal !== 'SIGKILL' && signal !== 'SIGSTOP') process.on(signal, nothing).off(signal, nothing);
  process.kill(process.pid, signal);
}

/** Fields of this process's stat: its group, its terminal, the group in front of that. */
function standing(): { group: number; terminal: number; front: number } {
  const fields = readFileSync('/proc/self/stat', 'utf8').replace(/^.*\) /s, '').split(' ').map(Number);
  return { group: fields[2] ?? 0, terminal: fields[4] ?? 0, front: fields[5] ?? -1 };
}

function hasTerminal(): boolean {
  return standing().terminal !== 0;
}

function isInFront(): boolean {
  const { group, terminal, front } = standing();
  return terminal !== 0 && group === front;
}

function writesCores(): boolean {
  const piped = readFileSync('/proc/sys/kernel/core_pattern', 'utf8').startsWith('|');
  return piped || !/^Max core file size\s+0\s/m.test(readFileSync('/proc/self/limits', 'utf8'));
}

import { CommanderError } from 'commander';
import { getSystemErrorMap } from 'node:util';
import { ClosedPipe, say } from './output.ts';
import { quoted, visible } from './text.ts';

/** Exit statuses of every verb but `run` and `shell`. */
export const DONE = 0;
/** Refused, a conflict, a fault or damage. */
export const FAILED = 1;
export const WRONG_USE = 2;

/** The command line asks for what cannot be meant: exit status 2. */
export class Misuse extends Error {
  override readonly name = 'Misuse';
}

/** Does `act`, which looks at what the user calls `name`; what the system says against that is said of it, in words. */
export function lookingAt<T>(name: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    const { errno, code, reason } = error as NodeJS.ErrnoException & { reason?: string };
    const words = code === 'ERR_NOT_RECORDED' ? reason : errno === undefined ? undefined : OUR_WORDS.get(String(code)) ?? getSystemErrorMap().get(errno)?.[1];
    if (words === undefined) throw error;
    throw new Error(`${quoted(name)}: ${words}`, { cause: error });
  }
}

/** Where node's words are about its own call. */
const OUR_WORDS: ReadonlyMap<string, string> = new Map([
  ['EISDIR', 'is a directory'],
  ['EIO', 'its content was not kept, is damaged, or rests on a file of the directory beneath that has changed'],
]);

/** Tells the user of `error` on stderr, never with a stack, and gives the exit status it stands for. */
export function tellFailure(error: unknown): number {
  if (error instanceof ClosedPipe) return DONE;
  if (error instanceof CommanderError) {
    // Commander has said it already; help and version end this way too.
    return error.exitCode === 0 ? DONE : WRONG_USE;
  }
  const message = error instanceof Error ? error.message : String(error);
  say(`palimpsest: ${visible(message)}`);
  return error instanceof Misuse ? WRONG_USE : FAILED;
}

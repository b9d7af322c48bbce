import { CommanderError } from 'commander';
import { say } from './output.ts';
import { ClosedPipe } from './output.ts';
import { visible } from './text.ts';

/** Exit statuses of every verb but `run` and `shell`. */
export const DONE = 0;
/** Refused, a conflict, a fault or damage. */
export const FAILED = 1;
export const WRONG_USE = 2;

/** The command line asks for what cannot be meant: exit status 2. */
export class Misuse extends Error {
  override readonly name = 'Misuse';
}

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

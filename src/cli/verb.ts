import type { Command } from 'commander';

/** A verb of the command line. Its own file is loaded when it is asked for. */
export interface Verb {
  readonly name: string;
  /** One line for the list of verbs. */
  readonly summary: string;
  /** Gives what adds arguments, options, help and action to the verb's command; it is told of all verbs. */
  readonly load: () => Promise<(command: Command, all: readonly Verb[]) => void>;
}

import type { Command } from 'commander';

/** A verb of the command line. Its own file is loaded when it is asked for. */
export interface Verb {
  readonly name: string;
  /** One line for the list of verbs. */
  readonly summary: string;
  /** Gives what adds arguments, options, help and action to the verb's command. */
  readonly load: () => Promise<(command: Command) => void>;
}

/** All verbs, in the order in which help lists them, by heading. */
export const VERBS: Readonly<Record<string, readonly Verb[]>> = {
  'Real processes': [
    { name: 'run', summary: 'run a command over the overlay of a directory', load: async () => (await import('./run.ts')).run },
    { name: 'shell', summary: 'start a shell over the overlay of a directory', load: async () => (await import('./shell.ts')).shell },
    { name: 'mount', summary: 'mount the overlay of a directory', load: async () => (await import('./mount.ts')).mount },
  ],
  'The machine and this program': [
    { name: 'schema', summary: 'print the JSON Schema of the log', load: async () => (await import('./schema.ts')).schema },
  ],
};

import type { Verb } from './verb.ts';

/** All verbs, in the order in which help lists them, by heading. */
export const VERBS: Readonly<Record<string, readonly Verb[]>> = {
  'Real processes': [
    { name: 'run', summary: 'run a command over the overlay of a directory', load: async () => (await import('./run.ts')).run },
    { name: 'shell', summary: 'start a shell over the overlay of a directory', load: async () => (await import('./shell.ts')).shell },
    { name: 'mount', summary: 'mount the overlay of a directory', load: async () => (await import('./mount.ts')).mount },
  ],
  'See what happened': [
    { name: 'status', summary: 'counts, the change list, flags and refusals', load: async () => (await import('./status.ts')).status },
    { name: 'diff', summary: 'what changed, as a unified diff', load: async () => (await import('./diff.ts')).diff },
    { name: 'log', summary: 'the events', load: async () => (await import('./log.ts')).log },
    { name: 'seen', summary: 'who saw what at which version, and what was missed', load: async () => (await import('./seen.ts')).seen },
    { name: 'why', summary: 'how a file came to be what it is', load: async () => (await import('./why.ts')).why },
    { name: 'cat', summary: 'the content of a file as the session has it', load: async () => (await import('./cat.ts')).cat },
    { name: 'replay', summary: 'the recorded tree, or a command over it, from the session alone', load: async () => (await import('./replay.ts')).replay },
    { name: 'ls', summary: 'a directory as the session has it', load: async () => (await import('./ls.ts')).ls },
  ],
  'Go on with it': [
    { name: 'mark', summary: 'name this point of the log', load: async () => (await import('./mark.ts')).mark },
    { name: 'commit', summary: 'publish changes to the directory beneath', load: async () => (await import('./commit.ts')).commit },
    { name: 'revert', summary: 'take a commit back', load: async () => (await import('./revert.ts')).revert },
    { name: 'discard', summary: 'throw changes away', load: async () => (await import('./discard.ts')).discard },
  ],
  'Hand it on': [
    { name: 'export', summary: 'a patch, a git history, a prediction, a tar, or the session as one file', load: async () => (await import('./export.ts')).exporting },
    { name: 'import', summary: 'make a session of such a file', load: async () => (await import('./import.ts')).importing },
  ],
  'Keep house': [
    { name: 'verify', summary: 'check log, contents and checkpoint; name what is damaged', load: async () => (await import('./verify.ts')).verify },
    { name: 'recover', summary: 'end a commit that was interrupted', load: async () => (await import('./recover.ts')).recover },
    { name: 'sessions', summary: 'list the sessions', load: async () => (await import('./sessions.ts')).sessions },
    { name: 'rm', summary: 'remove sessions', load: async () => (await import('./rm.ts')).rm },
    { name: 'schema', summary: 'the JSON Schema of the log', load: async () => (await import('./schema.ts')).schema },
    { name: 'doctor', summary: 'what of this machine is missing for what', load: async () => (await import('./doctor.ts')).doctor },
    { name: 'completion', summary: 'a completion script for a shell', load: async () => (await import('./completion.ts')).completion },
  ],
};

import type { Command } from 'commander';
import type { Rule } from '../index.ts';
import { Misuse } from './failure.ts';

/** What `addRuleFlags` leaves in a command's options. */
export interface RuleFlags {
  readonly flag?: readonly string[];
  readonly deny?: readonly string[];
  readonly hide?: readonly string[];
}

/** `--flag`, `--deny` and `--hide`, each as often as wanted. */
export function addRuleFlags(command: Command): Command {
  return command
    .option('--flag <glob>', 'tell of every touch of these paths, which are allowed', gather)
    .option('--deny <glob>', 'refuse every touch of these paths, and tell of it', gather)
    .option('--hide <glob>', 'these paths do not exist; tell of every touch', gather);
}

/** The rules that were asked for; `undefined` where none were, so that those of the session hold. Throws `Misuse` for a malformed glob. */
export async function rulesOfFlags({ flag, deny, hide }: RuleFlags): Promise<readonly Rule[] | undefined> {
  if (flag === undefined && deny === undefined && hide === undefined) return undefined;
  // Only now: it takes as long to load as all the rest.
  const { rulesOf } = await import('../index.ts');
  try {
    return rulesOf({ flag: flag ?? [], deny: deny ?? [], hide: hide ?? [] });
  } catch (error) {
    if (error instanceof TypeError) throw new Misuse(error.message);
    throw error;
  }
}

/** The same flags as arguments of another call. */
export function ruleArguments(flags: RuleFlags): string[] {
  return (['flag', 'deny', 'hide'] as const).flatMap((effect) => (flags[effect] ?? []).map((glob) => `--${effect}=${glob}`));
}

/** Of an option that may be given often: all its values. */
export function gather(glob: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), glob];
}

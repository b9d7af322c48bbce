import type { Command } from 'commander';
import { manual } from './manual.ts';
import { out } from './output.ts';

/** `palimpsest schema`. */
export function schema(command: Command): void {
  manual(command, {
    description: 'Prints the JSON Schema that every line of a session\'s log.jsonl satisfies.',
    examples: [
      ['palimpsest schema > log.schema.json', 'keep it for a validator'],
      ["palimpsest schema | jq '.oneOf | length'", 'how many kinds of line there are'],
    ],
  });
  command.action(async () => {
    const { LOG_SCHEMA } = await import('../index.ts');
    out.line(JSON.stringify(LOG_SCHEMA, undefined, 2));
  });
}

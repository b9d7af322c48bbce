import type { Command } from 'commander';
import { Misuse } from './failure.ts';
import { manual } from './manual.ts';
import { withFormats, withSession, type SessionOption } from './options.ts';
import { out } from './output.ts';
import { withWriter } from './reading.ts';

interface Options extends SessionOption {
  readonly data?: string;
  readonly actor: string;
  readonly json?: boolean;
}

/** `palimpsest mark`. */
export function mark(command: Command): void {
  manual(command, {
    description: 'Names this point of the log, and prints the number of the event that does so.',
    examples: [
      ["palimpsest mark 'turn 3'", 'a turn of a conversation'],
      [`palimpsest mark tests --data '{"passed":17}'`, 'with data of your own'],
    ],
  });
  withSession(command)
    .argument('<label>', 'any text')
    .option('--data <json>', 'kept with the mark')
    .option('--actor <name>', 'who makes the mark', 'main');
  withFormats(command, { json: 'the number as a JSON object' });
  command.action((label: string, options: Options) => {
    const data = options.data === undefined ? undefined : parsed(options.data);
    return withWriter(options, options.actor, (overlay) => {
      const seq = overlay.mark(label, data);
      out.line(options.json === true ? JSON.stringify({ seq }) : String(seq));
    });
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new Misuse(`--data takes JSON: ${error.message}`);
  }
}

import type { Command } from 'commander';
import { SOCKET_VARIABLE, type ControlRequest } from '../mount/control.ts';
import { Misuse } from './failure.ts';
import { manual } from './manual.ts';
import { withFormats, withSession, type SessionOption } from './options.ts';
import { out } from './output.ts';
import { withWriter } from './reading.ts';

interface Options extends SessionOption {
  readonly data?: string;
  readonly actor?: string;
  readonly json?: boolean;
}

/** `palimpsest mark`. */
export function mark(command: Command): void {
  manual(command, {
    description: 'Names this point of the log, and prints the number of the event that does so.',
    examples: [
      ["palimpsest mark 'turn 3'", 'a turn of a conversation'],
      ['palimpsest mark --actor reviewer review', 'inside of a run: what follows is the reviewer\'s doing'],
      [`palimpsest mark tests --data '{"passed":17}'`, 'with data of your own'],
    ],
  });
  withSession(command)
    .argument('<label>', 'any text')
    .option('--data <json>', 'kept with the mark')
    .option('--actor <name>', 'who makes the mark; inside of a run: who acts from here on, for the shell that says so and all it starts');
  withFormats(command, { json: 'the number as a JSON object' });
  command.action(async (label: string, options: Options) => {
    const data = options.data === undefined ? undefined : parsed(options.data);
    const seq = await marked({ kind: 'mark', label, ...(data === undefined ? undefined : { data }), ...(options.actor && { actor: options.actor }) }, options);
    out.line(options.json === true ? JSON.stringify({ seq }) : String(seq));
  });
}

/** Inside of a run, in its session, by the process that asks; else in the session asked for. */
async function marked(request: ControlRequest & { kind: 'mark' }, options: Options): Promise<number> {
  const socket = process.env[SOCKET_VARIABLE];
  if (options.session === undefined && socket !== undefined && socket !== '') {
    const { askInside } = await import('../mount/ask.ts');
    return askInside(socket, request);
  }
  const made = await withWriter(options, options.actor ?? 'main', request, (overlay) => overlay.mark(request.label, request.data));
  return 'done' in made ? made.done : made.asked;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new Misuse(`--data takes JSON: ${error.message}`);
  }
}

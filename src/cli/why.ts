import type { Command } from 'commander';
import { causesOf, eventJson, type Event } from '../index.ts';
import { manual } from './manual.ts';
import { withFormats, withSession, type SessionOption } from './options.ts';
import { out } from './output.ts';
import { placesOf, treePath } from './path.ts';
import { withLog } from './reading.ts';
import { sentences } from './sentence.ts';
import { quoted } from './text.ts';

interface Options extends SessionOption {
  readonly json?: boolean;
}

/** `palimpsest why`. */
export function why(command: Command): void {
  manual(command, {
    description: 'Tells how a file came to be what it is: the events that made it so, in order, across renames, links and other names of it. Under each change of its content: ' +
      'what its actor had read, listed and looked for in vain since its last change before, and the read that the content is a copy of, where it is one.',
    examples: [
      ['palimpsest why src/index.js', 'its chain of events'],
      ['palimpsest why --json src/index.js | jq .event.seq', 'their numbers'],
    ],
  });
  withSession(command).argument('<path>', 'relative to the working directory if that is below the root, else to the root; or absolute');
  withFormats(command, { json: 'JSON Lines: the event, what was seen before it, the read it is a copy of' });
  command.action((path: string, options: Options) => withLog(options, (log) => {
    const causes = causesOf(() => log.events(), treePath(path, placesOf(log.header)) as Parameters<typeof causesOf>[1]), line = sentences();
    const json = (event: Event): unknown => JSON.parse(eventJson(event));
    for (const { event, seen, copied } of causes) {
      if (options.json === true) {
        out.line(JSON.stringify({ event: json(event), seen: seen.map((each) => json(each)), ...(copied && { copied: json(copied) }) }));
        continue;
      }
      out.line(line(event));
      for (const each of seen) out.line(`    had seen  ${line(each)}`);
      if (copied !== undefined) out.line(`    copy of   ${line(copied)}`);
    }
    if (causes.length === 0 && options.json !== true) out.line(`no event changed ${quoted(path)}: it is as the directory beneath has it`);
  }));
}

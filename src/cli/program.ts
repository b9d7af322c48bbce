import { Command } from 'commander';
import { exactArguments } from './arguments.ts';
import { DONE, tellFailure, WRONG_USE } from './failure.ts';
import { formatManual } from './manual.ts';
import { out, say } from './output.ts';
import { paint } from './paint.ts';
import type { Verb } from './verb.ts';
import { VERBS } from './verbs.ts';

const all: readonly Verb[] = Object.values(VERBS).flat();

/** Runs the command line `args` and gives the exit status. Says on stderr what goes wrong; never throws. */
export async function runCommand(args: readonly string[], version: string): Promise<number> {
  try {
    const program = await makeProgram(args, version);
    if (args.length === 0) {
      say(program.helpInformation().trimEnd());
      return WRONG_USE;
    }
    await program.parseAsync(await exactArguments(args), { from: 'user' });
    out.flush();
    return Number(process.exitCode ?? DONE);
  } catch (error) {
    try {
      out.flush();
    } catch (more) {
      return tellFailure(more);
    }
    return tellFailure(error);
  }
}

/** The program with all its verbs; only the one that `args` ask for is loaded. */
async function makeProgram(args: readonly string[], version: string): Promise<Command> {
  const program = new Command('palimpsest');
  program
    .description('A copy-on-write overlay over a directory that records every read, miss and change.')
    .usage('VERB [OPTION…] [ARGUMENT…]')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help; after a verb, its page')
    .helpCommand('help [VERB]', 'print the page of a verb')
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => out.write(text),
      writeErr: (text) => say(text.trimEnd()),
      outputError: (text, write) => write(text.replace(/^error: /, 'palimpsest: ')),
    })
    .configureHelp({ formatHelp: (command, help) => command === program ? overview(program) : formatManual(command, help) });
  const wanted = args[0] === 'help' ? args[1] : args[0];
  for (const verb of all) {
    const command = program.command(verb.name).summary(verb.summary);
    if (verb.name === wanted) (await verb.load())(command, all);
  }
  return program;
}

function overview(program: Command): string {
  const column = Math.max(...all.map(({ name }) => name.length)) + 2;
  const groups = Object.entries(VERBS).map(([heading, verbs]) =>
    `${paint.bold(heading + ':')}\n${verbs.map(({ name, summary }) => `  ${name.padEnd(column)}${summary}\n`).join('')}`);
  return `Usage: palimpsest ${program.usage()}\n\n${program.description()}\n\n${groups.join('\n')}\n` +
    'Every verb has --help. Exit status: 0 done; 1 refused, conflict, fault or damage; 2 wrong use.\n';
}

import type { Command, Help } from 'commander';
import { paint } from './paint.ts';

/** What a verb's `--help` says besides its arguments and options. */
export interface Manual {
  /** Paragraphs, separated by blank lines. */
  readonly description: string;
  /** Command lines, and what each is for. */
  readonly examples: readonly (readonly [command: string, purpose: string])[];
  /** Further sections: heading and text. */
  readonly more?: Readonly<Record<string, string>>;
  /** Where exit statuses differ from everybody's. */
  readonly exit?: string;
}

const EXIT = '0 done; 1 refused, conflict, fault or damage; 2 wrong use.';
const manuals = new WeakMap<Command, Manual>();

/** Gives `command` its page. */
export function manual(command: Command, page: Manual): void {
  manuals.set(command, page);
  command.description(page.description.split('\n')[0] as string);
}

/** The page of a verb, as `--help` prints it. */
export function formatManual(command: Command, help: Help): string {
  const page = manuals.get(command) as Manual, width = Math.min(help.helpWidth ?? 80, 100);
  const sections: [string, string][] = [
    ['NAME', `palimpsest ${command.name()} – ${command.summary()}`],
    ['SYNOPSIS', help.commandUsage(command)],
    ['DESCRIPTION', paragraphs(page.description, help, width - 4)],
    ['ARGUMENTS', terms(help.visibleArguments(command).map((each) => [help.argumentTerm(each), help.argumentDescription(each)]), help, width)],
    ['OPTIONS', terms(help.visibleOptions(command).map((each) => [help.optionTerm(each), help.optionDescription(each)]), help, width)],
    ...Object.entries(page.more ?? {}).map(([heading, text]): [string, string] => [heading.toUpperCase(), paragraphs(text, help, width - 4)]),
    ['EXAMPLES', page.examples.map(([line, purpose]) => `${line}\n    ${purpose}`).join('\n')],
    ['EXIT STATUS', paragraphs(page.exit ?? EXIT, help, width - 4)],
  ];
  return sections.filter(([, text]) => text !== '').map(([heading, text]) => `${paint.bold(heading)}\n${indented(text)}`).join('\n\n') + '\n';
}

function paragraphs(text: string, help: Help, width: number): string {
  return text.split('\n').map((line) => line === '' || line.startsWith('  ') ? line : help.boxWrap(line, width)).join('\n');
}

function terms(rows: readonly [string, string][], help: Help, width: number): string {
  const column = Math.max(0, ...rows.map(([term]) => term.length)) + 2;
  return rows.map(([term, text]) => {
    const lines = help.boxWrap(text, Math.max(30, width - column - 4)).split('\n');
    return [term.padEnd(column) + (lines[0] ?? ''), ...lines.slice(1).map((line) => ' '.repeat(column) + line)].join('\n');
  }).join('\n');
}

function indented(text: string): string {
  return text.split('\n').map((line) => line === '' ? line : '    ' + line).join('\n');
}

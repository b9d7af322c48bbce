import { Argument, Command } from 'commander';
import { manual } from './manual.ts';
import { out } from './output.ts';
import type { Verb } from './verb.ts';

/** A verb as a shell has to know it. */
interface Known {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly { readonly flag: string; readonly text: string }[];
}

/** `palimpsest completion`. */
export function completion(command: Command, all: readonly Verb[]): void {
  manual(command, {
    description: 'Prints a script that completes verbs, options and paths in a shell.',
    examples: [
      ['palimpsest completion bash > ~/.local/share/bash-completion/completions/palimpsest', 'for bash, in every new shell'],
      ['palimpsest completion zsh > "${fpath[1]}/_palimpsest"', 'for zsh'],
      ['palimpsest completion fish > ~/.config/fish/completions/palimpsest.fish', 'for fish'],
    ],
  });
  command.addArgument(new Argument('<shell>').choices(Object.keys(SCRIPTS)));
  command.action(async (shell: keyof typeof SCRIPTS) => {
    out.write(SCRIPTS[shell](await known(all)));
  });
}

/** All verbs with their options. */
async function known(all: readonly Verb[]): Promise<readonly Known[]> {
  const found: Known[] = [];
  for (const { name, summary, load } of all) {
    const command = new Command(name);
    (await load())(command, all);
    const options = command.options.flatMap(({ short, long, description }) =>
      [short, long].flatMap((flag) => flag === undefined ? [] : [{ flag, text: description }]));
    found.push({ name, summary, options: [...options, { flag: '--help', text: 'print the page of this verb' }] });
  }
  return found;
}

const SCRIPTS = { bash, zsh, fish };

function bash(verbs: readonly Known[]): string {
  const cases = verbs.map(({ name, options }) => `    ${name}) options='${options.map(({ flag }) => flag).join(' ')}' ;;\n`).join('');
  return `# Completion of palimpsest for bash.
_palimpsest() {
  local word=\${COMP_WORDS[COMP_CWORD]} options=''
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '${verbs.map(({ name }) => name).join(' ')} help --help --version' -- "$word"))
    return
  fi
  case \${COMP_WORDS[1]} in
${cases}  esac
  case $word in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=() ;;
  esac
}
complete -o default -o bashdefault -F _palimpsest palimpsest
`;
}

function zsh(verbs: readonly Known[]): string {
  const names = verbs.map(({ name, summary }) => `    '${name}:${single(summary)}'\n`).join('');
  const cases = verbs.map(({ name, options }) =>
    `    ${name}) _arguments ${options.map(({ flag, text }) => `'${flag}[${single(text).replace(/[[\]:]/g, '\\$&')}]'`).join(' ')} '*:path:_files' ;;\n`).join('');
  return `#compdef palimpsest
# Completion of palimpsest for zsh.
_palimpsest() {
  local -a verbs=(
${names}  )
  if (( CURRENT == 2 )); then
    _describe verb verbs
    return
  fi
  local verb=$words[2]
  shift words
  (( CURRENT-- ))
  case $verb in
${cases}    *) _files ;;
  esac
}
_palimpsest "$@"
`;
}

function fish(verbs: readonly Known[]): string {
  const lines = verbs.flatMap(({ name, summary, options }) => [
    `complete -c palimpsest -n __fish_use_subcommand -f -a ${name} -d '${single(summary)}'`,
    ...options.map(({ flag, text }) => {
      const how = flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`;
      return `complete -c palimpsest -n '__fish_seen_subcommand_from ${name}' ${how} -d '${single(text)}'`;
    }),
  ]);
  return `# Completion of palimpsest for fish.\n${lines.join('\n')}\n`;
}

/** Text inside single quotes, in which no shell here has an escape that all share. */
function single(text: string): string {
  return text.replaceAll("'", '’');
}

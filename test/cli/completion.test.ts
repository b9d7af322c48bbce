import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { VERBS } from '../../src/cli/verbs.ts';
import { palimpsest, shell } from './command.ts';

const verbs = Object.values(VERBS).flat().map(({ name }) => name);

/** Whether a shell is here; in CI it has to be. */
function has(name: string): boolean {
  return process.env['CI'] === 'true' || spawnSync('sh', ['-c', `command -v ${name}`]).status === 0;
}

describe('completion', () => {
  it('is for shells it knows', () => {
    const { status, stderr } = palimpsest(['completion', 'tcsh']);
    expect([status, stderr]).toEqual([2, "palimpsest: command-argument value 'tcsh' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish.\n"]);
  });

  it('completes verbs, options and nothing that bash would do itself', () => {
    const line = `source <(palimpsest completion bash)
      complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _palimpsest; echo "\${COMPREPLY[*]}"; }
      complete_words palimpsest ''; complete_words palimpsest di; complete_words palimpsest diff --st; complete_words palimpsest run --; complete_words palimpsest nosuch --
      complete_words palimpsest cat src/; complete -p palimpsest`;
    const [all, started, option, options = '', unknown, path, how] = shell(line).stdout.split('\n');
    expect(all?.split(' ')).toEqual([...verbs, 'help', '--help', '--version']);
    expect([started, option, unknown, path]).toEqual(['diff discard', '--stat', '', '']);
    for (const flag of ['--root', '--session', '--hide', '--timeout', '--help']) expect(options.split(' ')).toContain(flag);
    expect(how).toContain('-o default');
  });

  it.runIf(has('fish'))('completes verbs and options in fish', () => {
    const { status, stdout, stderr } = spawnSync('fish', ['--no-config', '-c', `source (echo $SCRIPT | psub)
      complete -C 'palimpsest di'; complete -C 'palimpsest diff --st'; complete -C 'palimpsest se'`], {
      encoding: 'utf8', env: { PATH: process.env['PATH'], HOME: '/nonexistent', XDG_DATA_HOME: '/nonexistent', SCRIPT: palimpsest(['completion', 'fish']).stdout },
    });
    const given = stdout.trim().split('\n').map((each) => each.split('\t'));
    expect([status, stderr.includes('rror')]).toEqual([0, false]);
    expect(given.map(([word]) => word)).toEqual(['diff', 'discard', '--stat', 'seen', 'sessions']);
    expect(given[0]?.[1]).toBe('what changed, as a unified diff');
  });

  it.runIf(has('zsh'))('completes verbs and options in zsh, as keys are typed', () => {
    const functions = fs.mkdtempSync(join(tmpdir(), 'palimpsest-zsh-'));
    fs.writeFileSync(join(functions, '_palimpsest'), palimpsest(['completion', 'zsh']).stdout);
    // A shell in a terminal of its own; what it is asked to run prints its words.
    const session = `
      zmodload zsh/zpty
      zpty -b z "PS1='ready> ' zsh -f -i"
      until_() { local all='' part; repeat 200; do zpty -rt z part && all+=$part || sleep 0.05; [[ $all == *$1* ]] && break; done; print -r -- $all; }
      until_ 'ready> ' >/dev/null
      zpty -w z 'fpath=($FUNCTIONS $fpath); autoload -Uz compinit && compinit -u -D; palimpsest() { print -r -- "<$*>" }; print loaded'
      until_ loaded >/dev/null
      # A shell that has more to read completes nothing: key by key.
      zpty -n -w z $'palimpsest compl\\t'; until_ completion >/dev/null
      zpty -n -w z $'zsh --he\\t'; until_ --help >/dev/null
      zpty -n -w z $'\\n'; until_ '>' | tr -d '\\r' | grep -a -o '<[^>]*>'
      zpty -d z`;
    const { stdout, stderr } = spawnSync('zsh', ['-f', '-c', session], {
      encoding: 'utf8', timeout: 60_000, env: { PATH: process.env['PATH'], HOME: '/nonexistent', TERM: 'dumb', FUNCTIONS: functions },
    });
    fs.rmSync(functions, { recursive: true });
    expect([stdout.trim(), stderr]).toEqual(['<completion zsh --help>', '']);
  });
});

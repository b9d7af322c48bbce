import * as fs from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lack, program } from '../mount/union.ts';
import { palimpsest, shell } from './command.ts';
import { smallSession, type SmallSession } from './small-session.ts';

const missing = lack('palimpsest');
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(`CI must be able to mount: ${missing}`);

describe('the options of run and shell', () => {
  let small: SmallSession;
  beforeEach(() => { small = smallSession(); });
  afterEach(() => small.clear());

  it.each([
    [['run'], 2, "missing required argument 'command'"],
    [['run', '--frob', '--', 'true'], 2, "unknown option '--frob'"],
    [['run', '--timeout', 'soon', '--', 'true'], 2, '--timeout takes seconds, more than 0'],
    [['run', '--outside', 'rw', '--', 'true'], 2, '--outside knows only ro'],
    [['run', '--root', 'nosuch', '--', 'true'], 125, 'the root nosuch does not exist'],
    [['run', '--root', 'README.md', '--', 'true'], 125, 'the root README.md is not a directory'],
    [['run', '--root', '.', '--root', 'src', '--', 'true'], 125, 'the root @/repo/src lies in the root @/repo'],
    [['shell', '--timeout', '0'], 2, '--timeout takes seconds, more than 0'],
    [['mount'], 2, "missing required argument 'mountpoint'"],
  ])('%j is refused with %d', (args: string[], status, words) => {
    const { stdout, stderr, ...rest } = palimpsest(args, small.surroundings);
    expect({ status: rest.status, stdout, stderr: stderr.replaceAll(small.scratch, '@') }).toEqual({ status, stdout: '', stderr: `palimpsest: ${words}\n` });
  });

  describe.runIf(missing === undefined)('on a mount', () => {
    /** Of the built program: its serving thread is a file of its own. */
    function run(line: string): { status: number | null; stdout: string; stderr: string } {
      const { status, stdout, stderr } = shell(line, { cwd: small.root, env: { ...small.surroundings.env, P: `${process.execPath} ${program()}` } });
      return { status, stdout: stdout.replaceAll(small.scratch, '@'), stderr: stderr.replaceAll(small.scratch, '@') };
    }

    it('tell in the end what was read, missed, changed, flagged and refused', () => {
      const script = `cat README.md >/dev/null; mv src/old src/new; rm data.bin; echo x >'"a'; cat secret src/index.js; test -e nosuch`;
      const { status, stdout, stderr } = run(`$P run --session ../s --flag secret --deny src/index.js -- sh -c ${JSON.stringify(script)}`);
      expect({ status, stdout }).toEqual({ status: 1, stdout: 'hush\n' });
      expect(stderr.split('\n').filter((line) => !line.includes('missed') && !line.startsWith('cat: '))).toEqual([
        '  read README.md', '  read secret', '  changed create "\\"a"', '  changed delete data.bin', '  changed rename src/old/ → src/new/',
        '  flagged secret (open, rule secret, by cat)', '  refused src/index.js (lookup, rule src/index.js, by cat)', 'palimpsest: session @/s', '',
      ]);
      expect(stderr).toMatch(/^palimpsest: read 2 files, listed 0 directories, missed \d+ names?; 3 changes, 1 flag, 1 refusal$/m);
      expect(stderr).toMatch(/^ {2}missed nosuch$/m);
      // In the log the columns stand from the beginning.
      const columns = run('$P log --session ../s --op run,read,delete').stdout.split('\n').filter((line) => line !== '').map((line) => line.search(/ (?:run|read|delete) /));
      expect([columns.length, new Set(columns).size]).toEqual([4, 1]);
    });

    it('say that the time is up, and end with 124', () => {
      const { status, stderr } = run('$P run --timeout 0.3 -- sleep 100');
      expect([status, stderr.split('\n')[0]]).toEqual([124, 'palimpsest: the time is up, and the command was ended']);
      expect(run('$P run -q --timeout 0.3 -- sleep 100')).toEqual({ status: 124, stdout: '', stderr: '' });
    });

    it('name the actor, and the session that other verbs then mean', () => {
      run('$P run -q --actor coder -- sh -c "echo new >made"');
      expect(run('$P log --op write --json').stdout).toContain('"actor":"coder"');
      expect(run('$P status -z').stdout).toBe('create\tmade\0');
      expect(run('$P cat made && $P mark done && $P discard made && $P status | tail -n 1')).toMatchObject({ stdout: expect.stringMatching(/^new\n\d+\nNo changes\n$/) });
      expect(fs.existsSync(join(small.root, 'made'))).toBe(false);
    });

    it('start the shell that the environment names, else sh', () => {
      expect(run(`echo 'echo "$0"; exit 3' | SHELL=/bin/bash $P shell -q; echo $?; echo 'exit 4' | env -u SHELL $P shell -q; echo $?`).stdout).toBe('/bin/bash\n3\n4\n');
    });
  });
});

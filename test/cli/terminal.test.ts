import * as fs from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Overlay } from '../../src/index.ts';
import { palimpsest, shell } from './command.ts';
import { smallSession, type SmallSession } from './small-session.ts';

const ESCAPE = '\x1b[';

describe('what is printed where', () => {
  let small: SmallSession;
  beforeAll(() => { small = smallSession(); });
  afterAll(() => small.clear());

  /** What a terminal of script(1) shows. */
  function onTerminal(line: string, env: Readonly<Record<string, string>> = {}): string {
    const { status, stdout, stderr } = shell(`script -qec '$PALIMPSEST ${line}' /dev/null </dev/null`, {
      cwd: small.root, env: { ...small.surroundings.env, TERM: 'xterm', ...env },
    });
    expect([status, stderr]).toEqual([0, '']);
    return stdout.replaceAll('\r\n', '\n');
  }

  it('colours only on a terminal', () => {
    for (const verb of ['status', 'diff', 'log', 'seen', 'ls', 'sessions', '--help', 'status --help']) {
      expect([verb, onTerminal(verb)]).toEqual([verb, expect.stringContaining(ESCAPE)]);
    }
    for (const env of [{}, { FORCE_COLOR: '1' }, { CLICOLOR_FORCE: '1', COLORTERM: 'truecolor' }]) {
      const { stdout } = palimpsest(['status'], { ...small.surroundings, env: { ...small.surroundings.env, ...env } });
      expect(stdout).not.toContain('\x1b');
    }
  });

  it('colours nothing where NO_COLOR is set to something, or the terminal is dumb', () => {
    expect(onTerminal('status', { NO_COLOR: '1' })).not.toContain('\x1b');
    expect(onTerminal('status', { TERM: 'dumb' })).not.toContain('\x1b');
    expect(onTerminal('status', { NO_COLOR: '' })).toContain(ESCAPE);
  });

  it('shows a diff in colours on a terminal, of a binary file only that it differs', () => {
    const shown = onTerminal('diff');
    expect(shown).toContain('\x1b[32m+export default 2;\x1b[39m\n');
    expect(shown).toContain('\x1b[31m-export default 1;\x1b[39m\n');
    expect(shown).toContain('\nBinary files a/data.bin and /dev/null differ\n');
    expect(shown).not.toContain('GIT binary patch');
  });

  it('ends without a word when the reader of a long output leaves', () => {
    const session = join(small.scratch, 'long');
    const overlay = Overlay.openSync({ root: small.root, session });
    for (let i = 0; i < 20_000; i++) overlay.fs.existsSync(join(small.root, `missing-${i}`));
    overlay.closeSync();
    const { env } = small.surroundings;
    for (const verb of ['log', 'log --json', 'seen', 'seen -z', 'status']) {
      const line = `palimpsest ${verb} --session "$LONG" | head -n 1 -z | head -c 20 | wc -c; echo "\${PIPESTATUS[0]}"`;
      expect([verb, shell(line, { cwd: small.root, env: { ...env, LONG: session } })]).toMatchObject([verb, { stdout: '20\n0\n', stderr: '' }]);
    }
  });

  it('prints all of a long output, however slowly it is read, through a pipe that does not wait', () => {
    const line = 'palimpsest log --session "$LONG" --op miss | (sleep 0.5; wc -l)';
    expect(shell(line, { cwd: small.root, env: { ...small.surroundings.env, LONG: join(small.scratch, 'long') } })).toMatchObject({ stdout: '20000\n', stderr: '' });
  });

  it('says in one line that the disk is full', () => {
    for (const verb of ['status', 'log', 'cat README.md']) {
      expect(shell(`palimpsest ${verb} > /dev/full`, small.surroundings)).toMatchObject({ status: 1, stderr: 'palimpsest: ENOSPC: no space left on device, write\n' });
    }
  });

  it('does without its standard streams', () => {
    expect(shell('palimpsest status <&- >/dev/null; echo $?', small.surroundings).stdout).toBe('0\n');
    expect(shell('palimpsest status nosuch 2>&- ; echo $?', small.surroundings).stdout).toBe('2\n');
  });
});

describe('names that no terminal shows', () => {
  let small: SmallSession;
  const NAMES = ['new\nline', 'tab\there', '\x1b[31mred', 'quote"s', 'back\\slash', 'right\u202eleft', ' space ', '-rf', 'é😀', '\udcff\udcfe.bin'];
  const bytesOf = (name: string): Buffer => name.startsWith('\udcff') ? Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('.bin')]) : Buffer.from(name);
  const SHOWN = ['"new\\nline"', '"tab\\there"', '"\\033[31mred"', '"quote\\"s"', '"back\\\\slash"', '"right\\342\\200\\256left"', ' space ', '-rf', 'é😀', '"\\377\\376.bin"'];
  beforeAll(() => {
    small = smallSession();
    const overlay = Overlay.openSync({ session: small.session });
    overlay.discard();
    overlay.fs.mkdirSync(join(small.root, 'odd'));
    for (const name of NAMES) overlay.fs.writeFileSync(Buffer.concat([Buffer.from(join(small.root, 'odd/')), bytesOf(name)]), 'content\n');
    overlay.closeSync();
  });
  afterAll(() => small.clear());
  const run = (...args: readonly string[]): ReturnType<typeof palimpsest> => palimpsest(args, small.surroundings);

  it('are quoted in lines', () => {
    const listed = run('ls', 'odd').stdout.trimEnd().split('\n');
    expect(listed.toSorted()).toEqual(SHOWN.toSorted());
    const changed = run('status').stdout;
    for (const shown of SHOWN) expect(changed).toContain(shown.startsWith('"') ? `"odd/${shown.slice(1)}` : `odd/${shown}`);
    for (const verb of ['status', 'log', 'seen', 'diff', 'diff --stat', 'ls odd']) expect(run(...verb.split(' ')).bytes.includes(0x1b)).toBe(false);
  });

  it('are as they are with -z, and as JSON', () => {
    const listed = run('ls', '-z', 'odd').bytes.toString('latin1').split('\0').slice(0, -1);
    expect(listed.toSorted()).toEqual(NAMES.map((name) => bytesOf(name).toString('latin1')).toSorted());
    const json = run('ls', '--json', 'odd').stdout.trimEnd().split('\n').map((line) => JSON.parse(line) as { name?: string; name64?: string });
    expect(json.map(({ name, name64 }) => name === undefined ? Buffer.from(name64 as string, 'base64').toString('latin1') : Buffer.from(name).toString('latin1')).toSorted()).toEqual(listed.toSorted());
    for (const verb of [['status', '-z'], ['seen', '-z'], ['diff', '--stat', '-z']]) {
      const text = run(...verb).bytes.toString('latin1');
      for (const name of NAMES) expect(text).toContain(`\todd/${bytesOf(name).toString('latin1')}\0`);
    }
  });

  it('can be asked for', () => {
    for (const name of ['new\nline', '\x1b[31mred', '-rf', 'é😀']) expect(run('cat', '--', `odd/${name}`)).toMatchObject({ status: 0, stdout: 'content\n' });
    expect(shell(`palimpsest cat $'odd/\\xff\\xfe.bin' && palimpsest seen -z $'odd/\\xff\\xfe.bin'`, small.surroundings).bytes.toString('latin1'))
      .toBe('content\npresent\tmain\todd/\xff\xfe.bin\0');
    expect(run('cat', 'odd/no\x1b[2Jsuch').stderr).toBe('palimpsest: "odd/no\\033[2Jsuch": no such file or directory\n');
  });

  it('are in a patch that git takes', () => {
    const line = `cp -a . "$COPY" && palimpsest diff | git -C "$COPY" apply && ls "$COPY/odd" | wc -l && cat "$COPY"/odd/* | wc -l`;
    expect(shell(line, { ...small.surroundings, env: { ...small.surroundings.env, COPY: join(small.scratch, 'copy') } })).toMatchObject({ stdout: '11\n10\n', stderr: '' });
    expect(fs.readdirSync(join(small.root, 'src'))).toContain('old');
  });
});

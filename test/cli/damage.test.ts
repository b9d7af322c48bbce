import * as fs from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { palimpsest } from './command.ts';
import { smallSession, type SmallSession } from './small-session.ts';

describe('a session that is not as it should be', () => {
  let small: SmallSession, log: string;
  beforeEach(() => {
    small = smallSession();
    log = join(small.session, 'log.jsonl');
  });
  afterEach(() => small.clear());

  function run(...args: readonly string[]): { status: number | null; stdout: string; stderr: string } {
    const cwd = fs.statSync(small.root, { throwIfNoEntry: false })?.isDirectory() === true ? small.root : small.scratch;
    const { status, stdout, stderr } = palimpsest(args, { ...small.surroundings, cwd });
    return { status, stdout, stderr: stderr.replaceAll(small.scratch, '@') };
  }
  const here = (...args: readonly string[]): ReturnType<typeof run> => run(...args, '--session', small.session);

  it('is read up to its torn last line, which the next writer cuts off', () => {
    fs.truncateSync(log, fs.statSync(log).size - 20);
    expect(here('log', '--from', '16')).toEqual({ status: 0, stdout: '    16 2025-12-01T10:00:00.120Z eve symlink     to notes -> notes.txt\n', stderr: '' });
    expect(here('status').stdout).toContain('Events   16 events');
    expect(run('sessions').stdout).toContain('  16  ');
    expect(here('mark', 'on')).toEqual({ status: 0, stdout: '17\n', stderr: '' });
  });

  it.each<[string, (path: string) => void, string]>([
    ['has a line that was changed', (path) => fs.writeFileSync(path, fs.readFileSync(path, 'utf8').replace('tsconfig', 'tsconfug')),
      '@/state/palimpsest/repo-1/log.jsonl line 5: bad crc; good up to line 4 (seq 3, '],
    ['lacks a line', (path) => fs.writeFileSync(path, fs.readFileSync(path, 'utf8').replace(/^\{"seq":4,.*\n/m, '')),
      '@/state/palimpsest/repo-1/log.jsonl line 5: seq gap'],
    ['is of a newer format', (path) => fs.writeFileSync(path, '{"palimpsest":9,"x":1}\n'), 'is of format 9, newer than 1, the newest known here'],
    ['is something else', (path) => fs.writeFileSync(path, '{"a":1}\n{"b":2}\n'), 'does not begin with {"palimpsest":1,…}'],
    ['is empty', (path) => fs.writeFileSync(path, ''), '@/state/palimpsest/repo-1/log.jsonl line 1: bad header (it does not end); nothing before it can be used'],
    ['has a directory for a log', (path) => {
      fs.rmSync(path);
      fs.mkdirSync(path);
    }, 'session @/state/palimpsest/repo-1: its log is a directory (EISDIR)'],
  ])('is refused by every verb, and can be removed, where it %s', (_, damage, words) => {
    damage(log);
    for (const verb of [['status'], ['log'], ['mark', 'x'], ['discard']]) {
      expect(here(...verb)).toEqual({ status: 1, stdout: '', stderr: expect.stringMatching(/^palimpsest: [^\n]*\n$/) });
      expect(here(...verb).stderr).toContain(words);
    }
    const listed = run('sessions');
    expect([listed.status, listed.stdout + listed.stderr]).toEqual([listed.stdout === '' ? 1 : 0, expect.stringContaining('repo-1')]);
    expect(run('rm', 'repo-1')).toEqual({ status: 0, stdout: '', stderr: '' });
    expect(fs.existsSync(small.session)).toBe(false);
  });

  it('has seen nothing where only its header is left', () => {
    fs.writeFileSync(log, fs.readFileSync(log, 'utf8').replace(/\n[^]*/, '\n'));
    expect(here('status').stdout).toMatch(/Events {3}0 events\n[^]*No changes\n$/);
    expect(here('log')).toEqual({ status: 0, stdout: '', stderr: '' });
    expect(here('mark', 'first').stdout).toBe('1\n');
  });

  it.each([
    ['nowhere', 'no session is at @/nowhere'],
    ['.', 'no session is at @'],
    ['repo/README.md', 'session @/repo/README.md: is no packed session, which palimpsest export session makes'],
  ])('is not found at %s', (place, words) => {
    const { status, stderr } = run('status', '--session', join(small.scratch, place));
    expect([status, stderr.replace('@/\n', '@\n')]).toEqual([1, `palimpsest: ${words}\n`]);
  });

  it('tells its log without the directory it is about, and says what else lacks', () => {
    fs.renameSync(small.root, join(small.scratch, 'moved'));
    expect(here('log', '--op', 'miss').stdout).toContain('tsconfig.json');
    expect(here('seen', 'tsconfig.json')).toMatchObject({ status: 0, stdout: 'main  absent   #4  -                    tsconfig.json\n' });
    for (const verb of ['status', 'diff', 'ls']) expect(here(verb)).toEqual({ status: 1, stdout: '', stderr: 'palimpsest: the root "@/repo" does not exist\n' });
    fs.writeFileSync(small.root, '');
    expect(here('status').stderr).toBe('palimpsest: the root "@/repo" is not a directory\n');
  });

  it('whose contents are lost gives none, and says so', () => {
    fs.rmSync(join(small.session, 'blobs'), { recursive: true });
    expect(here('cat', 'notes.txt')).toMatchObject({ status: 1, stdout: '', stderr: expect.stringContaining('notes.txt: its content was not kept, is damaged, or') });
    expect(here('diff', 'notes.txt', 'README.md')).toEqual({
      status: 1, stderr: 'palimpsest: notes.txt is in no patch: it cannot be read\n',
      stdout: expect.stringMatching(/^diff --git a\/README.md b\/README.md\nold mode 100644\nnew mode 100755\n# .*notes.txt, which cannot be read: .*\n$/),
    });
    expect(here('status').status).toBe(0);
  });
});

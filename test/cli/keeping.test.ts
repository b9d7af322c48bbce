import * as fs from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Overlay, SessionLog } from '../../src/index.ts';
import { palimpsest, started } from './command.ts';
import { smallSession, type SmallSession } from './small-session.ts';

describe('verbs that go on with a session, and that keep house', () => {
  let small: SmallSession;
  beforeEach(() => { small = smallSession(); });
  afterEach(() => small.clear());

  function run(...args: readonly string[]): { status: number | null; stdout: string; stderr: string } {
    const { status, stdout, stderr } = palimpsest(args, small.surroundings);
    return { status, stdout: stdout.replaceAll(small.scratch, '@'), stderr: stderr.replaceAll(small.scratch, '@') };
  }
  const refuses = (status: number, words: string): object => ({ status, stdout: '', stderr: `palimpsest: ${words}\n` });

  it('mark: names this point of the log', () => {
    expect(run('mark', 'turn 2')).toEqual({ status: 0, stdout: '18\n', stderr: '' });
    expect(run('mark', '--actor', 'eve', '--data', '{"passed":17}', '--json', '--', '-- odd\n')).toEqual({ status: 0, stdout: '{"seq":20}\n', stderr: '' });
    const marks = [...SessionLog.openSync(small.session).events({ op: 'mark' })].map(({ actor, label, data }) => ({ actor, label, data }));
    expect(marks.slice(1)).toEqual([{ actor: 'main', label: 'turn 2', data: undefined }, { actor: 'eve', label: '-- odd\n', data: { passed: 17 } }]);
    expect(run('mark', 'x', '--data', '{').stderr).toMatch(/^palimpsest: --data takes JSON: /);
    expect(run('mark')).toEqual(refuses(2, "missing required argument 'label'"));
  });

  it('discard: throws away what is asked for, then everything', () => {
    expect(run('discard', 'nosuch')).toEqual(refuses(1, 'no change at or below "nosuch"'));
    expect(run('discard', '/etc')).toEqual(refuses(2, '/etc lies outside @/repo'));
    expect(run('discard', 'src/new', 'notes.txt')).toEqual({ status: 0, stdout: '', stderr: '2 changes thrown away, 4 left\n' });
    expect(run('status', '-z').stdout).toBe('mode\tREADME.md\0delete\tdata.bin\0update\tsrc/index.js\0create\tto notes\0');
    expect(run('discard')).toEqual({ status: 0, stdout: '', stderr: '4 changes thrown away, 0 left\n' });
    expect(run('status').stdout).toContain('\nNo changes\n');
    expect(run('log', '--op', 'discard').stdout).toMatch(/discard +src\/new src\/old|discard +notes.txt/);
  });

  it('rm: removes sessions by name and by directory, and tells which are none', () => {
    const elsewhere = join(small.scratch, 'elsewhere');
    fs.cpSync(small.session, elsewhere, { recursive: true });
    expect(run('rm', 'nosuch', elsewhere, 'repo-1')).toEqual(refuses(1, 'no session is at @/repo/nosuch, and none in @/state/palimpsest has this name'));
    expect([fs.existsSync(elsewhere), fs.existsSync(small.session)]).toEqual([false, false]);
    expect(fs.readdirSync(small.root)).toContain('data.bin');
    expect(run('status')).toEqual(refuses(1, 'no session is about @/repo: give one with --session, or see palimpsest sessions'));
    expect(run('sessions')).toEqual({ status: 0, stdout: '', stderr: '' });
  });

  it('rm: leaves what is no part of the session', () => {
    fs.writeFileSync(join(small.session, 'mine.txt'), 'kept');
    expect(run('rm', 'repo-1')).toMatchObject({ status: 1, stderr: expect.stringContaining('the directory holds other files and stays') });
    expect(fs.readdirSync(small.session)).toEqual(['mine.txt']);
  });

  it('beside a live writer: looks, and names it where only the writer could', async () => {
    const writer = Overlay.openSync({ session: small.session });
    try {
      writer.fs.writeFileSync(join(small.root, 'late.txt'), 'late');
      await writer.flush();
      expect(run('status').stdout).toContain(`(open in process ${process.pid})`);
      expect(run('status', '-z').stdout).toContain('create\tlate.txt\0');
      expect(run('cat', 'late.txt').stdout).toBe('late');
      expect(run('sessions').stdout).toContain(`(open in process ${process.pid})`);
      for (const verb of [['mark', 'x'], ['discard'], ['rm', 'repo-1']]) {
        expect(run(...verb)).toEqual(refuses(1, `session @/state/palimpsest/repo-1 is open in process ${process.pid}`));
      }
    } finally {
      writer.closeSync();
    }
  });

  it('log --follow: goes on with what a live writer appends, and ends with it where asked to', async () => {
    const writer = Overlay.openSync({ session: small.session });
    try {
      const follower = started(['log', '--follow', '--from', '18', '--to', '20', '--json'], small.surroundings);
      await follower.says('');
      for (const label of ['one', 'two', 'three']) {
        writer.mark(label);
        await follower.says(label);
      }
      expect(await follower.ended).toBe(0);
      expect(follower.heard().trimEnd().split('\n').map((line) => (JSON.parse(line) as { label: string }).label)).toEqual(['one', 'two', 'three']);
      // Without an end it is ended by a key, without a word.
      const endless = started(['log', '--follow', '--from', '20'], small.surroundings);
      await endless.says('three');
      endless.child.kill('SIGINT');
      expect([await endless.ended, endless.complained()]).toEqual(['SIGINT', '']);
    } finally {
      writer.closeSync();
    }
  });

  it('means the newest session of the nearest directory above', () => {
    const state = join(small.scratch, 'state/palimpsest'), src = join(small.root, 'src');
    const make = (name: string, root: string, created: string): void => {
      Overlay.openSync({ root, session: join(state, name), clock: () => Date.parse(created) }).closeSync();
    };
    make('older', small.root, '2025-12-01T09:00:00Z');
    make('newer', small.root, '2025-12-02T09:00:00Z');
    const meant = (cwd: string): string | undefined => /palimpsest\/(\S+)/.exec(palimpsest(['status'], { ...small.surroundings, cwd }).stdout)?.[1];
    expect(meant(small.root)).toBe('newer');
    expect(meant(join(src, 'old'))).toBe('newer');
    make('nearest', src, '2025-12-01T08:00:00Z');
    expect([meant(src), meant(small.root)]).toEqual(['nearest', 'newer']);
    // A damaged one is not the newest, nor in the way.
    fs.mkdirSync(join(state, 'broken'));
    fs.writeFileSync(join(state, 'broken/log.jsonl'), '?');
    expect(meant(small.root)).toBe('newer');
  });
});

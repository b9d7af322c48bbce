import * as fs from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Overlay } from '../../src/index.ts';
import { palimpsest } from './command.ts';
import { smallSession, type SmallSession } from './small-session.ts';

describe('verbs that publish', () => {
  let small: SmallSession;
  beforeEach(() => { small = smallSession(); });
  afterEach(() => small.clear());

  function run(...args: readonly string[]): { status: number | null; stdout: string; stderr: string } {
    const { status, stdout, stderr } = palimpsest(args, small.surroundings);
    return { status, stdout: stdout.replaceAll(small.scratch, '@'), stderr: stderr.replaceAll(small.scratch, '@') };
  }
  const read = (name: string): string => fs.readFileSync(join(small.root, name), 'utf8');

  it('commit: publishes what is asked for, then the rest, then nothing; revert takes each back', () => {
    const first = run('commit', 'src', '--json');
    expect(first).toMatchObject({ status: 0, stderr: '' });
    const receipt = JSON.parse(first.stdout) as { id: string; changes: { kind: string; path: string }[] };
    expect(receipt.changes.map(({ kind, path }) => `${kind} ${path}`)).toEqual(['update src/index.js', 'rename src/new']);
    expect([read('src/index.js'), read('src/new/a.js'), fs.existsSync(join(small.root, 'notes.txt'))]).toEqual(['export default 2;\n', 'a\n', false]);
    expect(run('status', '-z').stdout).toBe('mode\tREADME.md\0delete\tdata.bin\0create\tnotes.txt\0create\tto notes\0');
    const second = run('commit');
    expect(second.stdout).toMatch(/^mode +README.md.*\ndelete +data.bin\ncreate +notes.txt\ncreate +"?to notes"?.*\n$/);
    expect(second.stderr).toMatch(/^4 changes published as [\w-]+\n$/);
    expect(fs.statSync(join(small.root, 'README.md')).mode & 0o777).toBe(0o755);
    expect(run('commit')).toEqual({ status: 0, stdout: '', stderr: 'nothing to commit\n' });
    expect(run('revert', receipt.id)).toEqual({ status: 0, stdout: '', stderr: `commit ${receipt.id} is taken back: 2 paths written\n` });
    expect([read('src/index.js'), read('src/old/a.js'), read('notes.txt')]).toEqual(['export default 1;\n', 'a\n', 'one\ntwo']);
    expect(run('revert', receipt.id)).toMatchObject({ status: 1, stderr: expect.stringContaining('was taken back already') });
  });

  it('commit --dry-run: writes nothing, and tells what stands in the way', () => {
    const before = fs.readdirSync(small.root);
    expect(run('commit', '--dry-run')).toMatchObject({ status: 0, stderr: expect.stringContaining('6 changes would be published') });
    fs.writeFileSync(join(small.root, 'src/index.js'), 'somebody else\n');
    const { status, stderr } = run('commit', '--dry-run');
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringMatching(/conflict: src\/index.js is .*, expected was sha256:|conflict: src\/index.js/) });
    expect(fs.readdirSync(small.root)).toEqual(before);
  });

  it('commit: refuses all of it where somebody changed one of its files, and names who saw what', () => {
    fs.writeFileSync(join(small.root, 'src/index.js'), 'export default 3;\n');
    fs.writeFileSync(join(small.root, 'notes.txt'), 'mine');
    const { status, stdout, stderr } = run('commit');
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(/^conflict: notes.txt .*\n/m);
    expect(stderr).toMatch(/^conflict: src\/index.js .*\(main saw that in event \d+, \d{4}-\d\d-\d\dT.*\)$/m);
    expect(stderr).toContain('palimpsest: 2 conflicts: nothing was published\n');
    expect([read('src/index.js'), fs.existsSync(join(small.root, 'src/new')), fs.existsSync(join(small.root, 'data.bin'))]).toEqual(['export default 3;\n', false, true]);
    expect(run('commit', '--guard', 'none').status).toBe(0);
    expect([read('src/index.js'), read('notes.txt')]).toEqual(['export default 2;\n', 'one\ntwo']);
  });

  it('says what is wrong: an unknown id, a path without a change, an unknown guard, a session that is open elsewhere', async () => {
    expect(run('revert', 'nosuch')).toMatchObject({ status: 1, stderr: 'palimpsest: ENOENT: this session has no commit "nosuch"\n' });
    expect(run('commit', 'nosuch')).toMatchObject({ status: 1, stderr: expect.stringContaining('no change at or below "nosuch"') });
    expect(run('commit', '--guard', 'all').status).toBe(2);
    expect(run('recover')).toEqual({ status: 0, stdout: '', stderr: 'nothing to recover\n' });
    const writer = Overlay.openSync({ session: small.session });
    try {
      expect(run('commit')).toMatchObject({ status: 1, stderr: expect.stringContaining(`process ${process.pid}`) });
    } finally {
      await writer.close();
    }
  });
});

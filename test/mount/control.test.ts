import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { askWriter } from '../../src/mount/ask.ts';
import { SessionLog } from '../../src/index.ts';

const CLI = path.resolve('dist/bundle/cli.js');
const canMount = fs.existsSync('/dev/fuse') && process.getuid?.() === 0;

// In CI they have to run.
describe.skipIf(!canMount && process.env['CI'] === undefined)('a session that is being served (needs root and FUSE)', () => {
  let scratch: string, root: string, session: string, where: string;

  beforeEach(() => {
    scratch = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'palimpsest-control-')));
    // Longer than a socket's path may be.
    [root, session, where] = [path.join(scratch, 'root'), path.join(scratch, 's'.repeat(120)), path.join(scratch, 'mnt')];
    fs.mkdirSync(path.join(root, 'd'), { recursive: true });
    fs.mkdirSync(where);
    fs.writeFileSync(path.join(root, 'd', 'f'), 'below\n');
    const { status, stderr } = spawnSync(process.execPath, [CLI, 'mount', '--root', root, '--session', session, where], { encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
  });

  afterEach(async () => {
    spawnSync('umount', [where]);
    while (await askWriter(session, { kind: 'mark', label: 'still there?' }).catch(() => undefined) !== undefined) await new Promise((done) => { setTimeout(done, 20); });
    fs.rmSync(scratch, { recursive: true });
  });

  it('takes a mark from outside', async () => {
    const seq = await askWriter(session, { kind: 'mark', label: 'turn 1', data: { n: 1 }, actor: 'judge' });
    expect([...SessionLog.openSync(session).events({ op: 'mark' })]).toMatchObject([{ seq, label: 'turn 1', data: { n: 1 }, actor: 'judge' }]);
    await expect(askWriter(session, { kind: 'mark', label: 1 as unknown as string })).rejects.toThrow('a mark needs a label');
  });

  it('throws changes away, and what the kernel has kept of them', async () => {
    const file = path.join(where, 'd', 'f');
    expect(fs.readFileSync(file, 'utf8')).toBe('below\n');
    fs.writeFileSync(file, 'changed\n');
    fs.writeFileSync(path.join(where, 'd', 'new'), 'new\n');
    expect([fs.readFileSync(file, 'utf8'), fs.readdirSync(path.join(where, 'd'))]).toEqual(['changed\n', ['f', 'new']]);
    await expect(askWriter(session, { kind: 'discard', paths: ['d/none'] })).rejects.toThrow('d/none');
    expect(await askWriter(session, { kind: 'discard' })).toBeGreaterThan(0);
    // Told to the kernel by another thread, a moment later.
    while (fs.existsSync(path.join(where, 'd', 'new'))) await new Promise((done) => { setTimeout(done, 5); });
    while (fs.statSync(file).size !== 6) await new Promise((done) => { setTimeout(done, 5); });
    expect([fs.readFileSync(file, 'utf8'), fs.readdirSync(path.join(where, 'd'))]).toEqual(['below\n', ['f']]);
  });
});

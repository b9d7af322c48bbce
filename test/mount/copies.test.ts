import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { program } from './union.ts';

const canMount = fs.existsSync('/dev/fuse') && process.getuid?.() === 0;

// In CI they have to run.
describe.skipIf(!canMount && process.env['CI'] === undefined)('a mount that other namespaces hold (needs root and FUSE)', () => {
  let scratch: string, session: string, where: string, holder: ChildProcess | undefined;
  const isLocked = (): boolean => fs.existsSync(path.join(session, 'lock'));
  const umount = (): void => {
    // A look of the server's own makes it busy for a moment.
    while (spawnSync('umount', [where]).status !== 0) if (!fs.readFileSync('/proc/self/mountinfo', 'utf8').includes(` ${where} `)) break;
  };
  const hold = async (script: string): Promise<void> => {
    holder = spawn('unshare', ['--mount', 'sh', '-c', `${script} echo held; exec sleep 1000`], { stdio: ['ignore', 'pipe', 'inherit'] });
    await new Promise((held) => holder?.stdout?.once('data', held));
  };

  beforeEach(() => {
    scratch = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'palimpsest-copies-')));
    [session, where] = [path.join(scratch, 'session'), path.join(scratch, 'mnt')];
    for (const name of ['root', 'mnt', 'elsewhere']) fs.mkdirSync(path.join(scratch, name));
    fs.writeFileSync(path.join(scratch, 'root', 'f'), 'below\n');
    const { status, stderr } = spawnSync(process.execPath, [program(), 'mount', '--root', path.join(scratch, 'root'), '--session', session, where], { encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
  });

  afterEach(async () => {
    umount();
    holder?.kill('SIGKILL');
    for (const until = Date.now() + 20_000; isLocked() && Date.now() < until;) await new Promise((done) => { setTimeout(done, 20); });
    fs.rmSync(scratch, { recursive: true });
  });

  it('ends when it is unmounted, though a namespace made meanwhile has a copy', async () => {
    await hold('');
    umount();
    await expect.poll(isLocked, { timeout: 20_000 }).toBe(false);
  });

  it('goes on while another namespace has it in a place of its own', async () => {
    await hold(`mount --bind ${where} ${scratch}/elsewhere; umount ${where};`);
    umount();
    await new Promise((done) => { setTimeout(done, 1500); });
    expect(isLocked()).toBe(true);
    const inside = ['--target', String(holder?.pid), '--mount', 'cat', `${scratch}/elsewhere/f`];
    expect(spawnSync('nsenter', inside, { encoding: 'utf8' }).stdout).toBe('below\n');
  });
});

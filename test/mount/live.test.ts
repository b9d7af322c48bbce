import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Overlay as SourceOverlay } from '../../src/index.ts';

/** The built package: a mount is loaded from there. */
const BUNDLE: string = path.resolve('dist/bundle/palimpsest.js');
const { Overlay } = await import(BUNDLE) as { Overlay: typeof SourceOverlay };
const canMount = fs.existsSync('/dev/fuse') && process.getuid?.() === 0;

// In CI they have to run.
describe.skipIf(!canMount && process.env['CI'] === undefined)('a live overlay and real processes (needs root and FUSE)', () => {
  let scratch: string, root: string, overlay: SourceOverlay;

  beforeEach(async () => {
    scratch = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'palimpsest-live-')));
    root = path.join(scratch, 'root');
    fs.mkdirSync(root);
    fs.writeFileSync(path.join(root, 'a'), 'alpha\n');
    overlay = await Overlay.open({ root });
  });

  afterEach(async () => {
    await overlay.close();
    fs.rmSync(scratch, { recursive: true });
  });

  it('runs a command that sees what this process has changed, and shows here what the command changed', async () => {
    overlay.fs.writeFileSync(path.join(root, 'mine'), 'from here\n');
    const { status, stdout, from, to } = await overlay.run('sh', ['-c', 'cat a mine; echo theirs > theirs; rm a'], { stdio: 'pipe' });
    expect({ status, said: stdout?.toString() }).toEqual({ status: 0, said: 'alpha\nfrom here\n' });
    expect(overlay.fs.readFileSync(path.join(root, 'theirs'), 'utf8')).toBe('theirs\n');
    expect(overlay.changes()).toMatchObject([{ kind: 'delete', path: 'a' }, { kind: 'create', path: 'mine' }, { kind: 'create', path: 'theirs' }]);
    const ops = [...overlay.events({ from, to })].map(({ op }) => op);
    expect([ops[0], ops.at(-1)]).toEqual(['run', 'exit']);
    expect(fs.readdirSync(root)).toEqual(['a']);
  });

  it('shows changes of either side to the other at once while a command runs', async () => {
    const running = overlay.run('sh', ['-c', 'echo 1 > ready; until [ -e go ]; do sleep .02; done; cat go'], { stdio: 'pipe' });
    while (!overlay.fs.existsSync(path.join(root, 'ready'))) await new Promise((done) => { setTimeout(done, 10); });
    overlay.fs.writeFileSync(path.join(root, 'go'), 'gone\n');
    expect((await running).stdout?.toString()).toBe('gone\n');
  });

  it('ends a command after its time, and when it is aborted', async () => {
    expect(await overlay.run('sleep', ['100'], { timeout: 0.2 })).toMatchObject({ signal: 'SIGTERM', timedOut: true });
    expect(await overlay.run('sleep', ['100'], { signal: AbortSignal.timeout(200) })).toMatchObject({ signal: 'SIGTERM', timedOut: false });
  });

  it('is mounted for everybody, until it is unmounted', async () => {
    const where = path.join(scratch, 'mnt');
    fs.mkdirSync(where);
    const mounted = await overlay.mount(where);
    expect(await fs.promises.readFile(path.join(where, 'a'), 'utf8')).toBe('alpha\n');
    overlay.fs.appendFileSync(path.join(root, 'a'), 'beta\n');
    expect(await fs.promises.readFile(path.join(where, 'a'), 'utf8')).toBe('alpha\nbeta\n');
    // Far more calls at a time than the thread pool has threads.
    await Promise.all(Array.from({ length: 50 }, async (_, at) => fs.promises.writeFile(path.join(where, `f${at}`), String(at))));
    expect(overlay.fs.readdirSync(root)).toHaveLength(51);
    await expect(overlay.mount(scratch)).rejects.toThrow(`the mount point ${scratch} is not empty`);
    await mounted.unmount();
    expect(fs.readdirSync(where)).toEqual([]);
  });

  it('answers this process when its calls come by the dozen, from the first moment on', async () => {
    const where = path.join(scratch, 'mnt'), at = (name: string): string => path.join(where, name);
    fs.mkdirSync(where);
    const mounted = await overlay.mount(where);
    await Promise.all(Array.from({ length: 64 }, async (_, n) => {
      for (let round = 0; round < 8; round++) {
        await fs.promises.writeFile(at(`f${n}`), `${n} ${round}`);
        await fs.promises.rename(at(`f${n}`), at(`g${n}`));
        expect(await fs.promises.readFile(at(`g${n}`), 'utf8')).toBe(`${n} ${round}`);
        expect((await fs.promises.readdir(where)).includes(`g${n}`)).toBe(true);
        await fs.promises.unlink(at(`g${n}`));
      }
    }));
    await mounted.unmount();
    expect(overlay.changes()).toEqual([]);
  });

  it('can be killed while its own calls wait for its answer', async () => {
    const where = path.join(scratch, 'mnt');
    fs.mkdirSync(where);
    const program = `
      import fs from 'node:fs';
      const { Overlay } = await import(${JSON.stringify(BUNDLE)});
      const overlay = await Overlay.open({ root: ${JSON.stringify(root)} });
      await overlay.mount(${JSON.stringify(where)});
      for (let n = 0; n < 4; n++) void fs.promises.readFile(${JSON.stringify(path.join(where, 'a'))});
      console.log('mounted');
      // The event loop, which would answer, is kept busy.
      for (;;);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
    await new Promise((done) => child.stdout.once('data', done));
    const ended = new Promise((done) => child.once('exit', (_, signal) => done(signal)));
    child.kill('SIGKILL');
    expect(await ended).toBe('SIGKILL');
    expect(spawnSync('umount', [where]).status).toBe(0);
  });
});

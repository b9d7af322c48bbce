import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MachineError, openDevice } from '../../src/mount/device.ts';
import { openSpace, type Space } from '../../src/mount/space.ts';
import { CAN_MOUNT } from './launcher.ts';
import { serveTiny } from './tiny-server.ts';

describe.runIf(CAN_MOUNT)('the namespaces of a run (needs root and FUSE)', () => {
  let scratch: string, device: number, served: Promise<void> | undefined, names: string[];
  beforeEach(() => {
    scratch = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'palimpsest-space-')));
    for (const name of ['a', 'b', 'hidden']) fs.mkdirSync(path.join(scratch, name));
    fs.writeFileSync(path.join(scratch, 'hidden/secret'), 'secret');
    [device, served, names] = [openDevice(), undefined, []];
  });
  afterEach(async () => {
    await served;
    fs.closeSync(device);
    fs.rmSync(scratch, { recursive: true });
  });

  const tree = { one: { in1: 'first' }, two: { deep: { in2: 'second' } } };

  async function open(roots: Readonly<Record<string, string>>, masked: readonly string[] = []): Promise<Space> {
    return openSpace({
      device, roots: Object.entries(roots).map(([name, from]) => ({ path: path.join(scratch, name), from })),
      masked: masked.map((name) => path.join(scratch, name)), network: 'shared', outside: 'as it is', writable: [], bell: '.bell',
      attached: () => { served = serveTiny(device, tree, (name) => { names.push(name); }); },
    });
  }

  async function output(space: Space, script: string): Promise<string> {
    const command = space.spawn(['sh', '-c', script], { cwd: scratch, env: process.env, stdio: ['ignore', 'pipe', 'inherit'] });
    const said = command.stdout === null ? '' : await text(command.stdout);
    expect(await command.exited).toEqual({ status: 0, signal: null });
    return said;
  }

  it('shows several directories through one connection, and only those', async () => {
    const space = await open({ a: 'one', b: 'two/deep' });
    try {
      expect(await output(space, 'cat a/* b/*; ls a b')).toBe('firstseconda:\nin1\n\nb:\nin2\n');
      expect(await output(space, 'cd b; ls ..')).toBe('a\nb\nhidden\n');
    } finally {
      await space.end();
    }
  });

  it('rings as often as is asked, though several calls may be one look-up', async () => {
    const space = await open({ a: '' });
    try {
      for (let call = 0; call < 100; call++) space.ring();
      await expect.poll(() => names.filter((name) => name === '.bell').length).toBeGreaterThanOrEqual(2);
      const before = names.length;
      space.ring();
      await expect.poll(() => names.length).toBeGreaterThan(before);
    } finally {
      await space.end();
    }
  });

  it('rings though the path of the root has come to lead elsewhere', async () => {
    const space = await open({ a: '' });
    try {
      space.ring();
      await expect.poll(() => names).toContain('.bell');
      const before = names.length;
      fs.renameSync(scratch, `${scratch}.moved`);
      fs.mkdirSync(path.join(scratch, 'a'), { recursive: true });
      space.ring();
      await expect.poll(() => names.length).toBeGreaterThan(before);
    } finally {
      fs.rmSync(scratch, { recursive: true });
      fs.renameSync(`${scratch}.moved`, scratch);
      await space.end();
    }
  });

  it('runs several commands, and ends those that still run', async () => {
    const space = await open({ a: '' });
    const options = { cwd: '/', env: process.env, stdio: ['pipe', 'pipe', 'pipe'] } as const;
    const endless = space.spawn(['sleep', '1000'], options);
    const both = space.spawn(['sh', '-c', 'cat; echo error >&2; exit 3'], options);
    both.stdin?.end('through');
    expect(await Promise.all([both.stdout, both.stderr].map(async (stream) => stream === null ? '' : text(stream)))).toEqual(['through', 'error\n']);
    expect(await both.exited).toEqual({ status: 3, signal: null });
    await space.end();
    expect(await endless.exited).toEqual({ status: null, signal: 'SIGKILL' });
    expect(() => space.spawn(['true'], options)).toThrow(MachineError);
    await space.end();
  });

  it('hides what is to be hidden, and refuses where that is not there', async () => {
    const space = await open({ a: '' }, ['hidden']);
    try {
      expect(await output(space, 'ls -A hidden; touch hidden/x 2>/dev/null || echo cannot')).toBe('cannot\n');
    } finally {
      await space.end();
    }
    expect(fs.readFileSync(path.join(scratch, 'hidden/secret'), 'utf8')).toBe('secret');
    await served;
    fs.closeSync(device);
    device = openDevice();
    await expect(open({ a: '' }, ['not there'])).rejects.toThrow(/not there/);
  });

  it('refuses the root of the whole system', async () => {
    await expect(open({ '../../../../../..': '' })).rejects.toThrow(MachineError);
  });

  it('tells when init has ended', async () => {
    const space = await open({ a: '' });
    process.kill(space.init, 'SIGKILL');
    await space.ended;
    await space.end();
    expect(fs.readFileSync('/proc/self/mounts', 'utf8')).not.toContain(scratch);
  });
});

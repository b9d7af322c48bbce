import fs from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { CAN_MOUNT, Launcher } from './launcher.ts';

describe.runIf(CAN_MOUNT).each(['root', 'user'] as const)('a run as %s', (as) => {
  let launcher: Launcher;
  beforeAll(async () => { launcher = await new Launcher().opened(); });
  afterEach(async () => launcher.checkNothingLeft());
  afterAll(() => { launcher.close(); });

  const sh = async (script: string, ...options: string[]) => launcher.run(as, options, ['sh', '-c', script]);

  it('shows the overlay where the lower is, and leaves the lower alone', async () => {
    const { out, status } = await sh('pwd; ls; cat file; test -e secret || echo no secret');
    expect(out).toBe(`${launcher.root}\nfile\nno interpreter\nscript\nsub\noverlay\nno secret\n`);
    expect(status).toBe(0);
    expect(fs.readdirSync(launcher.root).sort()).toEqual(['secret', 'sub']);
  });

  it('starts in a directory deep below the root', async () => {
    const cwd = path.join(launcher.root, 'sub/deep');
    const { out } = await sh('pwd; cat f', '--cwd', cwd);
    expect(out).toBe(`${cwd}\ndeep\n`);
  });

  it('says that the directory cannot be entered', async () => {
    const { status, errors } = await sh('true', '--cwd', path.join(launcher.root, 'gone'));
    expect(status).toBe(125);
    expect(errors).toContain('gone');
  });

  it('keeps user, group and umask', async () => {
    const own = as === 'root' ? 0 : 4242;
    const { out } = await sh('id -u; id -g; umask');
    expect(out).toBe(`${own}\n${own}\n${process.umask().toString(8).padStart(4, '0')}\n`);
  });

  it('hands the environment on as it is', async () => {
    const env = { PATH: process.env['PATH'], OLDPWD: '/nowhere', IFS: ',', 'npm_config_//host/:_token': 'x y', EMPTY: '', LINES: 'a\nb' };
    const names = async (given: NodeJS.ProcessEnv): Promise<string[]> =>
      (await launcher.run(as, [], ['env', '-0'], given)).out.split('\0').filter((line) => line !== '').sort();
    const expected = (given: NodeJS.ProcessEnv): string[] => Object.entries(given).map(([name, value]) => `${name}=${value}`).sort();
    expect(await names(env)).toEqual(expected(env));
    const { 'npm_config_//host/:_token': token, ...plain } = env;
    expect(token).toBe('x y');
    expect(await names(plain)).toEqual(expected(plain));
  });

  it('hands on standard input and output', async () => {
    const launched = launcher.start(as, [], ['sh', '-c', 'cat; echo error >&2']);
    launched.child.stdin?.end('through\n');
    expect(await launched.ended).toEqual({ status: 0, signal: null, out: 'through\n', errors: 'error\n' });
  });

  it.each([0, 1, 2, 77, 124, 130, 137, 255])('ends with status %d as the command did', async (status) => {
    expect(await sh(`exit ${status}`)).toEqual({ status, signal: null, out: '', errors: '' });
  });

  it.each(['TERM', 'INT', 'HUP', 'KILL', 'PIPE', 'USR1', 'ALRM'])('dies of SIG%s as the command did', async (name) => {
    expect(await sh(`kill -${name} $$`)).toEqual({ status: null, signal: `SIG${name}`, out: '', errors: '' });
  });

  it.each([
    ['nosuch', 127, 'command not found'],
    ['./nosuch', 127, 'no such file or directory'],
    ['/nosuch/file', 127, 'no such file or directory'],
    ['./sub', 126, 'is a directory'],
    ['', 127, 'command not found'],
    ['/etc/passwd', 126, 'permission denied'],
  ])('cannot run %j: %d', async (command, status, words) => {
    expect(await launcher.run(as, [], [command])).toEqual({ status, signal: null, out: '', errors: `palimpsest: ${command}: ${words}\n` });
  });

  it('runs a script of the overlay, by path and by PATH', async () => {
    expect((await launcher.run(as, [], ['./script', 'a b', '$c'])).out).toBe('script a b $c\n');
    const found = await launcher.run(as, [], ['script', 'd'], { PATH: `/nosuch:${launcher.root}:${process.env['PATH']}` });
    expect(found).toMatchObject({ status: 0, out: 'script d\n' });
    expect(await launcher.run(as, [], ['./no interpreter'])).toMatchObject({ status: 127 });
  });

  it('starts no earlier than the reserved name can be rung', async () => {
    expect(await sh('echo rung', '--ring')).toMatchObject({ status: 0, out: 'rung\n' });
  });

  it('ends what the command left running', async () => {
    const { out, status } = await sh('(trap "" TERM HUP; sleep 1000) >/dev/null 2>&1 & setsid sleep 1000 >/dev/null 2>&1 & echo left');
    expect({ out, status }).toEqual({ out: 'left\n', status: 0 });
  });

  it('buries orphans', async () => {
    const { out } = await sh('for i in 1 2 3; do (sh -c "sleep 0.01 &" ); done; sleep 0.3; ps -eo stat= | grep -c Z');
    expect(out).toBe('0\n');
  });

  it('shows several directories through one connection', async () => {
    const other = path.join(launcher.scratch, 'other');
    fs.mkdirSync(other, { recursive: true });
    const { out } = await sh(`ls; ls ${other}; cat ${other}/file`, '--root', launcher.root, '--root', other);
    expect(out.split('\n')).toEqual(['file', 'in0', 'no interpreter', 'script', 'sub', 'file', 'in1', 'no interpreter', 'script', 'sub', 'overlay', '']);
  });

  it('says why it cannot mount', async () => {
    const { status, errors } = await launcher.run(as, ['--root', path.join(launcher.scratch, 'gone')], ['true']);
    expect(status).toBe(1);
    expect(errors).toMatch(/gone/);
  });
});

import fs from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { CAN_MOUNT, Launcher } from './launcher.ts';

describe.runIf(CAN_MOUNT).each(['root', 'user'] as const)('a run as %s', (as) => {
  let launcher: Launcher;
  beforeAll(async () => { launcher = await Launcher.make(as); });
  afterEach(async () => launcher.checkNothingLeft());
  afterAll(() => { launcher.close(); });

  const sh = async (script: string, ...options: string[]) => launcher.run(as, options, ['sh', '-c', script]);

  it('shows the overlay where the lower is, and leaves the lower alone', async () => {
    const { out, status } = await sh('pwd; echo new >made; echo more >>file; rm script; ls; cat file');
    expect(out).toBe(`${launcher.root}\nfile\nmade\nno interpreter\nsub\nof the lower\nmore\n`);
    expect(status).toBe(0);
    expect(fs.readdirSync(launcher.root).sort()).toEqual(['file', 'no interpreter', 'script', 'sub']);
    expect(fs.readFileSync(path.join(launcher.root, 'file'), 'utf8')).toBe('of the lower\n');
  });

  it('starts in a directory deep below the root', async () => {
    const cwd = path.join(launcher.root, 'sub/deep');
    const { out } = await launcher.run(as, [], ['sh', '-c', 'pwd; cat f'], { cwd });
    expect(out).toBe(`${cwd}\ndeep\n`);
  });

  it('keeps user, group and umask', async () => {
    const own = as === 'root' ? 0 : 4242;
    const { out } = await sh('id -u; id -g; umask');
    expect(out).toBe(`${own}\n${own}\n${process.umask().toString(8).padStart(4, '0')}\n`);
  });

  it('hands the environment on as it is', async () => {
    const env = { PATH: process.env['PATH'], OLDPWD: '/nowhere', IFS: ',', 'npm_config_//host/:_token': 'x y', EMPTY: '', LINES: 'a\nb' };
    const names = async (given: NodeJS.ProcessEnv): Promise<string[]> =>
      (await launcher.run(as, [], ['env', '-0'], { env: given })).out.split('\0').filter((line) => line !== '' && !line.startsWith('PALIMPSEST_')).sort();
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

  it.each([0, 1, 77, 130, 255])('ends with status %d as the command did', async (status) => {
    expect(await sh(`exit ${status}`)).toEqual({ status, signal: null, out: '', errors: '' });
  });

  it.each(['TERM', 'INT', 'KILL', 'PIPE', 'USR1'])('dies of SIG%s as the command did', async (name) => {
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
    const found = await launcher.run(as, [], ['script', 'd'], {
      env: { PATH: `/nosuch:${launcher.root}:${process.env['PATH']}` },
    });
    expect(found).toMatchObject({ status: 0, out: 'script d\n' });
    expect(await launcher.run(as, [], ['./no interpreter'])).toMatchObject({ status: 127 });
  });

  it('ends what the command left running', async () => {
    const { out, status } = await sh('(trap "" TERM HUP; sleep 1000) >/dev/null 2>&1 & setsid sleep 1000 >/dev/null 2>&1 & echo left');
    expect({ out, status }).toEqual({ out: 'left\n', status: 0 });
  });

  it('buries orphans', async () => {
    const { out } = await sh('for i in 1 2 3; do (sh -c "sleep 0.01 &" ); done; sleep 0.3; ps -eo stat= | grep -c Z');
    expect(out).toBe('0\n');
  });

  it('ends a command that takes too long', async () => {
    expect(await launcher.run(as, ['--timeout', '0.2'], ['sleep', '100'])).toMatchObject({ status: 124 });
    expect(await launcher.run(as, ['--timeout', '30'], ['true'])).toMatchObject({ status: 0 });
  });

  it('keeps what lies outside from being changed, where that is asked for', async () => {
    const script = 'for d in / /etc /usr /var "$HOME" ..; do touch $d/zz 2>/dev/null && echo $d; done; echo x >made && cat made; ' +
      'for d in /tmp /var/tmp /dev/shm; do touch $d/zz.$$ && rm $d/zz.$$ && echo $d; done; echo null >/dev/null; echo $?';
    const home = { ...process.env, HOME: launcher.scratch };
    const { out } = await launcher.run(as, ['--outside', 'ro'], ['sh', '-c', `cd ${launcher.root}; ${script}`], { env: { ...home, TMPDIR: '/var/tmp' } });
    // The root lies in /tmp here, which stays as it is.
    const writable = launcher.scratch.startsWith('/tmp/') && as === 'root' ? `${launcher.scratch}\n..\n` : '';
    expect(out).toBe(`${writable}x\n/tmp\n/var/tmp\n/dev/shm\n0\n`);
  });

  it('has no network but the loopback, where that is asked for', async () => {
    const { out } = await sh('tail -n +3 /proc/net/dev | cut -d: -f1; grep -c lo /proc/net/if_inet6', '--no-network');
    expect(out.replaceAll(' ', '').split('\n')[0]).toBe('lo');
    const listen = "require('net').createServer((s) => s.end('there')).listen(0, '127.0.0.1', function () { require('net').connect(this.address().port).pipe(process.stdout).on('close', process.exit); setTimeout(process.exit, 500) })";
    expect((await launcher.run(as, ['--no-network'], [process.execPath, '-e', listen])).out).toBe('there');
  });

  it('runs inside a run of a user; inside one of root it is refused with the reason', async () => {
    const inner = launcher.line('root', [], ['sh', '-c', 'cat file; echo inner >in; cat in']);
    const { out, errors, status } = await launcher.run(as, [], inner);
    if (as === 'user') {
      // eslint-disable-next-line vitest/no-conditional-expect -- one case, two rightful ends
      expect({ out, status }).toEqual({ out: 'of the lower\ninner\n', status: 0 });
    } else {
      // eslint-disable-next-line vitest/no-conditional-expect -- as above
      expect({ errors: errors.trim().split('\n').at(-1), status }).toEqual({ errors: expect.stringContaining('inside of a run of root'), status: 125 });
    }
  });

  it('says that there is no such root', async () => {
    const { status, errors } = await launcher.run(as, ['--root', path.join(launcher.scratch, 'gone')], ['true']);
    expect(status).toBe(125);
    expect(errors).toMatch(/gone/);
  });
});

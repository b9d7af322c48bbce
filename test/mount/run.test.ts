import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Overlay, SessionLog } from '../../src/index.ts';

const CLI = path.resolve('dist/bundle/cli.js');
const canMount = fs.existsSync('/dev/fuse') && process.getuid?.() === 0;

// In CI they have to run.
describe.skipIf(!canMount && process.env['CI'] === undefined)('run (needs root and FUSE)', () => {
  let scratch: string, root: string, session: string;

  beforeEach(() => {
    scratch = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'palimpsest-run-')));
    root = path.join(scratch, 'root');
    session = path.join(scratch, 'session');
    fs.mkdirSync(path.join(root, 'sub'), { recursive: true });
    fs.writeFileSync(path.join(root, 'a'), 'alpha\n');
    fs.writeFileSync(path.join(root, 'sub', 'b'), 'beta\n');
  });

  afterEach(() => {
    fs.rmSync(scratch, { recursive: true, force: true });
  });

  function run(script: string, ...options: string[]) {
    return spawnSync(process.execPath, [CLI, 'run', '--session', session, ...options, '--', 'sh', '-c', script], { cwd: root, encoding: 'utf8' });
  }

  it('shows a command its usual paths, and leaves the directory as it is', () => {
    const { status, stdout, stderr } = run(`pwd; cat ${root}/a sub/b; echo new > c; rm a; ls`);
    expect({ status, stdout }).toEqual({ status: 0, stdout: `${root}\nalpha\nbeta\nc\nsub\n` });
    expect(stderr).toContain('create c');
    expect(fs.readdirSync(root)).toEqual(['a', 'sub']);
  });

  it('ends as the command does', () => {
    expect(run('exit 7').status).toBe(7);
    expect(run('kill -TERM $$').signal).toBe('SIGTERM');
    expect(spawnSync(process.execPath, [CLI, 'run', '--session', session, '--', 'no-such-command'], { cwd: root }).status).toBe(127);
  });

  it('tells what was read, missed and changed, by which process, between run and exit', () => {
    run('cat a; cat nothing; echo x >> sub/b');
    const events = [...SessionLog.openSync(session).events()];
    expect(events[0]).toMatchObject({ op: 'run', argv: ['sh', '-c', expect.any(String)], cwd: root });
    expect(events.filter(({ op }) => op === 'read' || op === 'miss')).toMatchObject([
      { op: 'read', path: 'a', process: { name: 'cat' } }, { op: 'miss', path: 'nothing', process: { name: 'cat' } },
    ]);
    expect(events.filter(({ op }) => op === 'write')).toMatchObject([{ path: 'sub/b', size: 7, process: { name: 'sh' } }]);
    expect(events.at(-2)).toMatchObject({ op: 'exit', status: 0 });
  });

  it('lets the kernel gather what is written, when asked to', () => {
    const script = 'exec 3>&1 >>sub/b; for n in 1 2 3 4 5 6 7 8; do printf %s $n; read -r line <a; printf x; done; exec >&3; cat sub/b; touch -m -d @77 a';
    const { status, stdout } = run(script, '--write-back');
    expect({ status, stdout }).toEqual({ status: 0, stdout: 'beta\n1x2x3x4x5x6x7x8x' });
    const events = [...SessionLog.openSync(session).events()];
    // Gathered, though another file was opened between the writes; not told as read where it was opened to be written.
    expect(events.filter(({ op }) => op === 'write')).toMatchObject([{ path: 'sub/b', size: 21, process: { name: 'sh' } }]);
    expect(events.filter((event) => event.op === 'read' && event.path === 'sub/b')).toMatchObject([{ process: { name: 'cat' } }]);
    expect(events.filter(({ op }) => op === 'utimes')).toMatchObject([{ path: 'a', mtime: '77000000000' }]);
  });

  it('runs over several directories, each in its place, under its name in the log', () => {
    const other = path.join(scratch, 'other');
    fs.mkdirSync(other);
    fs.writeFileSync(path.join(other, 'o'), 'omega\n');
    const { status, stdout } = run(`cat ${other}/o a; echo x > ${other}/new; rm a`, '--root', root, '--root', other);
    expect({ status, stdout }).toEqual({ status: 0, stdout: 'omega\nalpha\n' });
    expect([fs.readdirSync(root), fs.readdirSync(other)]).toEqual([['a', 'sub'], ['o']]);
    // The session knows its roots.
    const overlay = Overlay.openSync({ session });
    expect(overlay.changes()).toMatchObject([{ kind: 'create', path: 'other/new' }, { kind: 'delete', path: 'root/a' }]);
    overlay.closeSync();
    expect(run('true', '--root', root, '--root', path.join(root, 'sub')).status).toBe(125);
  });

  it('starts the shell that the user has', () => {
    const { status } = spawnSync(process.execPath, [CLI, 'shell', '--session', session], {
      cwd: root, input: 'echo x > made\nexit 3\n', env: { ...process.env, SHELL: '/bin/sh' },
    });
    expect(status).toBe(3);
    expect(fs.existsSync(path.join(root, 'made'))).toBe(false);
  });

  it('goes on with the same session', () => {
    run('echo one > c');
    expect(run('cat c').stdout).toBe('one\n');
  });
});

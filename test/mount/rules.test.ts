import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Overlay, SessionLog } from '../../src/index.ts';
import { CAN_MOUNT } from './launcher.ts';

const CLI = path.resolve('dist/bundle/cli.js');

// With CI=true it has to run.
describe.runIf(CAN_MOUNT)('rules on a mount (needs root and FUSE)', () => {
  let scratch: string, root: string, session: string;

  beforeEach(() => {
    scratch = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'palimpsest-rules-')));
    root = path.join(scratch, 'root');
    session = path.join(scratch, 'session');
    for (const [name, content] of [['tests/hidden/a', 'secret'], ['tests/hidden/d/b', 'deep'], ['tests/pub', 'pub'], ['src/main', 'main']] as const) {
      fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
      fs.writeFileSync(path.join(root, name), content);
    }
    fs.linkSync(path.join(root, 'tests/hidden/a'), path.join(root, 'src/twin'));
  });

  afterEach(() => {
    fs.rmSync(scratch, { recursive: true, force: true });
  });

  /** Runs a script in bash; what fails in it says so among its output. */
  function run(script: string, ...options: string[]): { out: string; status: number | null; summary: string } {
    const { stdout, status, stderr } = spawnSync(process.execPath, [CLI, 'run', '--session', session, ...options, '--', 'bash', '-c', `exec 2>&1\n${script}`],
      { cwd: root, encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } });
    return { out: stdout, status, summary: stderr };
  }

  function told(): string[] {
    return [...SessionLog.openSync(session).events({ op: ['flag', 'refuse', 'miss'] })].map((event) => {
      const name = event.process?.name ?? 'nobody';
      if (event.op === 'miss') return `${name}: miss ${event.path}`;
      return `${name}: ${event.op} ${event.path} by ${event.rule}`;
    });
  }

  it('hides: not looked up, not listed, not made, not moved, not removed, in whatever way it is asked for', () => {
    const { out, summary } = run(`
      cat tests/hidden/a
      find . | sort
      ls -la tests | wc -l
      cat src/../tests/hidden/d/b
      ln -s ../tests/hidden/a src/soft; cat src/soft
      cat src/twin
      ls src
      echo x > tests/hidden || true
      mkdir tests/hidden
      mv src/main tests/hidden
      mv tests t
      rm -r tests
      rmdir tests
      test -e tests/hidden/a; echo $?
      exec 3< tests; cat /proc/self/fd/3/hidden/a
      node -e 'console.log(require("fs").readdirSync("tests"), require("fs").existsSync("tests/hidden"))'
    `, '--hide', 'tests/hidden/**');
    expect(out.split('\n').map((line) => line.trim()).filter((line) => line !== '')).toEqual([
      'cat: tests/hidden/a: No such file or directory',
      '.', './src', './src/main', './tests', './tests/pub',
      '4',
      'cat: src/../tests/hidden/d/b: No such file or directory',
      'cat: src/soft: No such file or directory',
      'cat: src/twin: No such file or directory',
      'main', 'soft',
      'bash: line 10: tests/hidden: Permission denied',
      "mkdir: cannot create directory 'tests/hidden': Permission denied",
      "mv: cannot move 'src/main' to 'tests/hidden': Permission denied",
      "mv: cannot move 'tests' to 't': Permission denied",
      "rm: cannot remove 'tests': Directory not empty",
      "rmdir: failed to remove 'tests': Directory not empty",
      '1',
      'cat: /proc/self/fd/3/hidden/a: No such file or directory',
      '[] false',
    ]);
    expect(summary).toMatch(/flagged tests\/hidden \(lookup, rule tests\/hidden\/\*\*, by [^)]*cat/);
    const overlay = Overlay.openSync({ session, readOnly: true });
    expect(overlay.changes().map(({ kind, path: name }) => `${kind} ${name}`)).toEqual(['create src/soft', 'delete tests/pub']);
    overlay.closeSync();
    expect(told().filter((line) => line.includes('miss') && /hidden|twin/.test(line))).toEqual([]);
    expect(told()).toContain('cat: flag tests/hidden by tests/hidden/**');
    expect(told()).toContain('cat: flag src/twin by tests/hidden/**');
    expect(told()).toContain('mkdir: flag tests/hidden by tests/hidden/**');
    expect(told()).toContain('mv: flag tests/hidden by tests/hidden/**');
    expect(told()).toContain('rm: flag tests/hidden by tests/hidden/**');
  });

  it('denies: refused to every call by name, link and rename, told with the process', () => {
    const { out } = run(`
      cat tests/hidden/a
      echo x > tests/hidden/a
      ls tests/hidden
      stat tests/hidden
      cat src/twin
      rm -rf tests/hidden
      mv tests t; cat t/hidden/a
      ls t
    `, '--deny', 'tests/hidden');
    expect(out.split('\n').filter((line) => line.includes('Permission denied'))).toHaveLength(7);
    expect(out).toMatch(/hidden\npub\n$/);
    expect(out).not.toMatch(/secret/);
    expect(told()).toContain('cat: refuse tests/hidden by tests/hidden');
    expect(told()).toContain('cat: refuse src/twin by tests/hidden');
    expect(told()).toContain('cat: refuse t/hidden by tests/hidden');
  });

  it('denies what a rule names, though the kernel keeps names and pages', () => {
    const config = path.join(root, 'src/main');
    spawnSync(process.execPath, [CLI, 'run', '--session', session, '-q', '--', 'true'], { cwd: root });
    const overlay = Overlay.openSync({ root, session, rules: [{ match: 'src/main', on: ['write', 'delete', 'rename', 'attributes'], effect: 'deny' },
      { match: 'tests/pub', on: ['read'], effect: 'deny' }] });
    overlay.closeSync();
    const { out } = run(`
      cat src/main; echo; stat -c %s src/main
      echo x > src/main; echo x >> src/main; truncate -s 0 src/main; rm -f src/main; mv src/main src/x; chmod 600 src/main; touch src/main
      echo x > src/new; mv src/new src/main
      cat tests/pub; stat -c %s tests/pub; cp tests/pub x; ln tests/pub y; cat y; mv tests/pub z; cat z
      cat src/main
    `);
    const lines = out.split('\n');
    expect(lines.slice(0, 2)).toEqual(['main', '4']);
    expect(lines.filter((line) => line.includes('Permission denied'))).toHaveLength(12);
    expect(lines.at(-1)).toBe('main');
    expect(out).not.toMatch(/^pub/m);
    expect(fs.readFileSync(config, 'utf8')).toBe('main');
  });

  it('flags what is read, listed, looked at and missed, also what a listing brought into the kernel before', () => {
    run(`
      ls -l tests/hidden > /dev/null
      cat tests/hidden/a > /dev/null
      cat tests/pub > /dev/null
      stat tests/hidden/d/b > /dev/null
      ls tests/hidden/no
    `, '--flag', 'tests/hidden/**');
    const flags = told().filter((line) => line.includes(' flag '));
    expect(flags.every((line) => line.endsWith('by tests/hidden/**'))).toBe(true);
    for (const [name, touched] of [['ls', ''], ['ls', '/a'], ['cat', '/a'], ['stat', '/d/b'], ['ls', '/no']]) {
      expect(flags).toContain(`${name}: flag tests/hidden${touched} by tests/hidden/**`);
    }
    expect(flags.filter((line) => line.includes('pub'))).toEqual([]);
    expect(told()).toContain('ls: miss tests/hidden/no');
  });

  it('hold on a plain mount, and for a session that is mounted again', () => {
    const at = path.join(scratch, 'mnt');
    fs.mkdirSync(at);
    for (const options of [['--hide', 'tests/**'], []]) {
      execFileSync(process.execPath, [CLI, 'mount', '--root', root, '--session', session, ...options, at]);
      const names = execFileSync('ls', [at], { encoding: 'utf8' });
      execFileSync('umount', [at]);
      expect(names).toBe('src\n');
    }
    expect(spawnSync(process.execPath, [CLI, 'mount', '--root', root, '--hide', '[a', at], { encoding: 'utf8' })).toMatchObject(
      { status: 2, stderr: expect.stringContaining('"[a"') });
    expect(run('true', '--deny', '{a').status).toBe(2);
  });
});

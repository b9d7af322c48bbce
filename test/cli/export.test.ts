import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Overlay } from '../../src/index.ts';
import { palimpsest, shell } from './command.ts';

describe('export and import', () => {
  let scratch: string, root: string, session: string, env: Record<string, string>;
  beforeAll(() => {
    scratch = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'palimpsest-exports-')));
    root = join(scratch, 'root');
    session = join(scratch, 'session');
    env = { XDG_STATE_HOME: join(scratch, 'state'), GIT_CONFIG_NOSYSTEM: '1', GIT_CEILING_DIRECTORIES: '/', TMPDIR: join(scratch, 'tmp') };
    fs.mkdirSync(join(scratch, 'tmp'));
    fs.mkdirSync(root);
    for (const name of ['a', 'b', 'key']) fs.writeFileSync(join(root, name), `${name}\n`);
    const overlay = Overlay.openSync({ root, session, actor: 'ann' });
    overlay.fs.writeFileSync(join(root, 'a'), 'changed\n');
    overlay.fs.renameSync(join(root, 'b'), join(root, 'moved'));
    overlay.mark('turn 1');
    overlay.fs.writeFileSync(join(root, 'key'), 'secret\n');
    overlay.fs.mkdirSync(join(root, 'empty'));
    overlay.closeSync();
  });
  afterAll(() => fs.rmSync(scratch, { recursive: true, force: true }));

  const run = (...args: string[]): ReturnType<typeof palimpsest> => palimpsest(args, { env, cwd: scratch });

  it('writes a patch that git apply takes, and says what is not in it', () => {
    const { status, bytes, stderr } = run('export', 'patch', '--session', session, '--redact', 'key');
    expect(status).toBe(0);
    expect(stderr).toMatch(/^palimpsest: left out: new directory empty \(mode 755\)\npalimpsest: left out: update of key, redacted: sha256:\w{64} → sha256:\w{64}\n$/m);
    const copy = join(scratch, 'copy');
    execFileSync('cp', ['-a', root, copy]);
    execFileSync('git', ['apply'], { cwd: copy, input: bytes, env: { ...process.env, ...env } });
    expect(fs.readdirSync(copy).sort()).toEqual(['a', 'key', 'moved']);
    expect(fs.readFileSync(join(copy, 'a'), 'utf8')).toBe('changed\n');
    expect(fs.readFileSync(join(copy, 'key'), 'utf8')).toBe('key\n');
    expect(run('export', 'patch', '--session', session, join(root, 'a')).stdout).not.toMatch(/moved|key/);
    expect(run('export', 'patch', '--session', session, '--at', 'turn 1').stdout).toBe(run('export', 'patch', '--session', session, 'a', 'moved').stdout);
    expect(run('export', 'patch', '--session', session, '--at', 'turn 9')).toMatchObject({ status: 1, stdout: '', stderr: expect.stringMatching(/turn 9/) as string });
    const diff = run('diff', '--patch', '--session', session);
    expect(diff.stderr).toBe('palimpsest: not in the patch: new directory empty (mode 755)\n');
    expect(diff.bytes).toEqual(run('export', 'patch', '--session', session).bytes);
  });

  it('writes a history, a prediction and an archive, to a file that is whole or not there', () => {
    const history = shell('git init -q h && palimpsest export git --session session --branch x | git -C h fast-import --quiet && git -C h log --format="%an %s" x', { env, cwd: scratch });
    expect(history.stdout).toBe(`ann 2 changes, not marked\nann turn 1\npalimpsest What was there before: ${root}\n`);
    const line = JSON.parse(run('export', 'swebench', '--session', session, '--instance', 'i-1', '--model', 'm').stdout) as Record<string, string>;
    expect(Object.keys(line)).toEqual(['instance_id', 'model_name_or_path', 'model_patch']);
    expect(line).toMatchObject({ instance_id: 'i-1', model_name_or_path: 'm', model_patch: run('export', 'patch', '--session', session).stdout });
    expect(run('export', 'tar', '--session', session, '-o', 'tree.tar').status).toBe(0);
    expect(execFileSync('tar', ['-tf', join(scratch, 'tree.tar')], { encoding: 'utf8' }).trim().split('\n')).toEqual(['a', 'empty/', 'key', 'moved']);
    expect(run('export', 'tar', '--session', session, '-o', 'no/such/file').status).toBe(1);
  });

  it('packs a session into a file that reading verbs take, and makes a session of it again', () => {
    expect(run('export', 'session', '--session', session, '-o', 'run.tar').status).toBe(0);
    const log = run('log', '--json', '--session', session).stdout;
    expect(run('log', '--json', '--session', 'run.tar').stdout).toBe(log);
    expect(run('cat', '--session', 'run.tar', join(root, 'moved')).stdout).toBe('b\n');
    expect(fs.readdirSync(join(scratch, 'tmp'))).toEqual([]);
    expect(run('mark', '--session', 'run.tar', 'no').stderr).toMatch(/palimpsest import makes a directory of it/);
    expect(run('import', 'run.tar').stdout).toBe(join(scratch, 'state/palimpsest/run') + '\n');
    expect(run('log', '--json', '--session', 'run').stdout).toBe(log);
    expect(run('import', 'run.tar')).toMatchObject({ status: 2 });
    expect(run('import', 'run.tar', 'elsewhere').status).toBe(0);
    fs.truncateSync(join(scratch, 'run.tar'), 3000);
    expect(run('log', '--session', 'run.tar')).toMatchObject({ status: 1, stdout: '', stderr: expect.stringMatching(/is cut short/) as string });
    expect(run('import', 'tree.tar', 'x')).toMatchObject({ status: 1, stderr: expect.stringMatching(/is no packed session/) as string });
    expect(run('sessions').stdout).not.toMatch(/tar/);
  });

  it('prints events by the schema that it prints', () => {
    const validate = new Ajv2020({ strict: false }).compile(JSON.parse(run('schema').stdout) as object);
    const lines = run('log', '--json', '--session', session).stdout.trim().split('\n');
    expect(lines.length).toBeGreaterThan(4);
    for (const line of lines) expect(validate(JSON.parse(line)), `${line}: ${JSON.stringify(validate.errors)}`).toBe(true);
  });

  it('says what is not there: the directory, the session', () => {
    const elsewhere = join(scratch, 'elsewhere root'), orphan = join(scratch, 'orphan');
    fs.mkdirSync(elsewhere);
    Overlay.openSync({ root: elsewhere, session: orphan }).closeSync();
    fs.rmdirSync(elsewhere);
    expect(run('export', 'git', '--session', orphan)).toMatchObject({ status: 1, stdout: '', stderr: `palimpsest: the root "${elsewhere}" does not exist\n` });
    expect(run('export', 'session', '--session', orphan, '-o', 'orphan.tar').status).toBe(0);
    expect(run('export', 'tar', '--session', 'nowhere')).toMatchObject({ status: 1, stdout: '', stderr: expect.stringMatching(/no session is at/) as string });
  });

  it.each<[string[], RegExp, number?]>([
    [['export', 'zip'], /one of patch, git, swebench, tar, session/],
    [['export', 'git', 'a'], /takes no paths/],
    [['export', 'patch', 'nothing'], /nothing: no such path/, 1],
    [['export', 'session', '--at', '1'], /--at does not go with session/],
    [['export', 'patch', '--branch', 'x'], /--branch does not go with patch/],
    [['export', 'session', '--model', 'x'], /--model does not go with session/],
    [['export', 'patch', '--redact', '[a'], /malformed glob/, 1],
  ])('refuses %j', (args, words, status = 2) => {
    const found = run(...args, '--session', session);
    expect(found).toMatchObject({ status, stdout: '' });
    expect(found.stderr).toMatch(words);
  });
});

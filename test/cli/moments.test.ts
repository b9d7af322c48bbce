import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Overlay } from '../../src/index.ts';
import { palimpsest } from './command.ts';

let scratch: string, root: string, session: string;
beforeAll(async () => {
  scratch = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'palimpsest-moments-')));
  root = join(scratch, 'root');
  session = join(scratch, 'session');
  fs.mkdirSync(root);
  fs.writeFileSync(join(root, 'a'), 'zero\n');
  const overlay = Overlay.openSync({ root, session });
  overlay.fs.writeFileSync(join(root, 'a'), 'one\n');
  overlay.mark('one');
  overlay.fs.writeFileSync(join(root, 'a'), 'two\n');
  overlay.fs.writeFileSync(join(root, 'b'), 'b\n');
  overlay.mark('two');
  overlay.fs.unlinkSync(join(root, 'b'));
  await overlay.close();
});
afterAll(() => fs.rmSync(scratch, { recursive: true, force: true }));

const said = (...args: readonly string[]): string => {
  const { status, stdout, stderr } = palimpsest([args[0] as string, '--session', session, ...args.slice(1)], { cwd: root });
  return status === 0 ? stdout : `${status} ${stderr}`;
};

describe('moments on the command line', () => {
  it('are files and listings as they were', () => {
    expect(said('cat', 'a')).toBe('two\n');
    expect(said('cat', '--at', '0', 'a')).toBe('zero\n');
    expect(said('cat', '--at', 'one', 'a')).toBe('one\n');
    expect(said('ls')).toBe('a\n');
    expect(said('ls', '--at', '4')).toBe('a\nb\n');
  });

  it('are compared with each other, with the directory beneath and with now', () => {
    expect(said('diff', '--stat', '--from', 'one', '--to', 'two', '-z')).toBe('1\t1\ta\u00001\t0\tb\0');
    expect(said('diff', '--from', '5', '-z', '--stat')).toBe('0\t1\tb\0');
    expect(said('diff', '--to', 'one')).toContain('-zero\n+one\n');
    expect(said('diff', '--from', 'two', 'b')).toContain('deleted file mode');
  });

  it('are refused where there are none', () => {
    expect(said('cat', '--at', '99', 'a')).toBe('1 palimpsest: no event 99: they are 1 to 7\n');
    expect(said('diff', '--from', 'turn')).toBe('1 palimpsest: no mark "turn": the last are "one", "two"\n');
    expect(said('cat', '--at', '0', 'b')).toMatch(/^1 palimpsest: b: no such file or directory/);
  });
});

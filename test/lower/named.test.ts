import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Overlay } from '../../src/index.ts';

describe('several directories side by side', () => {
  let scratch: string;

  beforeEach(() => {
    scratch = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'palimpsest-named-')));
    for (const name of ['a', 'b']) {
      fs.mkdirSync(path.join(scratch, name, 'd'), { recursive: true });
      fs.writeFileSync(path.join(scratch, name, 'd', 'f'), name);
    }
  });

  afterEach(() => {
    fs.rmSync(scratch, { recursive: true });
  });

  const open = (more = {}): Overlay =>
    Overlay.openSync({ roots: { one: path.join(scratch, 'a'), two: path.join(scratch, 'b') }, ...more });

  it('shows each under its name, and nothing else', () => {
    const { fs: ofs } = open();
    expect(ofs.readdirSync('/')).toEqual(['one', 'two']);
    expect(ofs.readdirSync('/', { recursive: true })).toEqual(['one', 'two', 'one/d', 'two/d', 'one/d/f', 'two/d/f']);
    expect([ofs.readFileSync('/one/d/f', 'utf8'), ofs.readFileSync('/two/d/f', 'utf8')]).toEqual(['a', 'b']);
    expect(ofs.statSync('/').nlink).toBe(4);
    expect(ofs.existsSync('/three')).toBe(false);
    expect(() => ofs.readdirSync('/three/x')).toThrow('ENOENT');
    expect(() => ofs.readlinkSync('/one')).toThrow('EINVAL');
  });

  it('moves between them, and leaves them as they are', () => {
    const overlay = open(), { fs: ofs } = overlay;
    ofs.renameSync('/one/d', '/two/moved');
    ofs.writeFileSync('/two/moved/g', 'new');
    expect(ofs.readFileSync('/two/moved/f', 'utf8')).toBe('a');
    expect(overlay.changes()).toMatchObject([{ kind: 'rename', path: 'two/moved', from: 'one/d' }, { kind: 'create', path: 'two/moved/g' }]);
    expect(fs.readdirSync(path.join(scratch, 'a'))).toEqual(['d']);
  });

  it('is known to its session', () => {
    const session = path.join(scratch, 'session');
    const first = open({ session });
    first.fs.writeFileSync('/one/x', 'x');
    first.closeSync();
    const again = Overlay.openSync({ session });
    expect(again.fs.readFileSync('/one/x', 'utf8') + again.fs.readFileSync('/two/d/f', 'utf8')).toBe('xb');
    again.closeSync();
    expect(() => Overlay.openSync({ roots: { one: path.join(scratch, 'a') }, session })).toThrow('belongs to root');
  });

  it('refuses names that are none, and a session inside of one', () => {
    for (const roots of [{}, { 'a/b': scratch }, { '..': scratch }, { a: '' }]) {
      expect(() => Overlay.openSync({ roots })).toThrow('option "roots" has to be');
    }
    expect(() => open({ session: path.join(scratch, 'a', 's') })).toThrow('has to lie outside the lower');
  });
});

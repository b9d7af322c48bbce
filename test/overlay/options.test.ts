import fs from 'node:fs';
import path from 'node:path';
import { createFsFromVolume, Volume } from 'memfs';
import { describe, expect, it } from 'vitest';
import { Overlay } from '../../src/index.ts';
import { lowerWith, opened } from './ground.ts';

/** All bytes of all files of a session. */
function textOf(session: string): string {
  return fs.readdirSync(session, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    .map((entry) => fs.readFileSync(path.join(entry.parentPath, entry.name), 'latin1')).join('');
}

describe('opening', () => {
  it('refuses an unknown option, and one of the wrong kind, by name', () => {
    const root = lowerWith({});
    expect(() => Overlay.openSync({ root, sesion: 'x' } as never)).toThrow('unknown option "sesion"');
    expect(() => Overlay.openSync({ root, durability: 'always' } as never)).toThrow(/"durability" has to be/);
    expect(() => Overlay.openSync({} as never)).toThrow(/"root"/);
    expect(() => Overlay.openSync({ root, lower: [root] })).toThrow(/"root"/);
  });

  it('names a root that is not there, or is no directory', async () => {
    const root = lowerWith({ a: 'x' });
    expect(() => Overlay.openSync({ root: path.join(root, 'none') })).toThrow(/none/);
    await expect(Overlay.open({ root: path.join(root, 'a') })).rejects.toThrow(/not a directory|no directory/);
  });

  it('refuses a session of another root, of a newer format, and a directory of something else', () => {
    const root = lowerWith({ 'one/a': '', 'two/a': '', 'files/a': '' }), session = path.join(root, '../session');
    opened({ root: path.join(root, 'one'), session }).closeSync();
    expect(() => Overlay.openSync({ root: path.join(root, 'two'), session })).toThrow(/belongs to root/);
    const log = path.join(session, 'log.jsonl'), text = fs.readFileSync(log, 'utf8');
    fs.writeFileSync(log, text.replace('{"palimpsest":1', '{"palimpsest":9'));
    expect(() => Overlay.openSync({ root: path.join(root, 'one'), session })).toThrow();
    expect(() => Overlay.openSync({ root: path.join(root, 'one'), session: path.join(root, 'files') })).toThrow(/no log|other files/);
    expect(fs.readdirSync(path.join(root, 'files'))).toEqual(['a']);
  });

  it('names the process that holds a session', () => {
    const root = lowerWith({}), session = path.join(root, '../session');
    opened({ root, session });
    expect(() => Overlay.openSync({ root, session })).toThrow(new RegExp(`open in process ${process.pid}`));
  });

  it('names the methods that a Volume lacks', () => {
    expect(() => Overlay.openSync({ lower: { readFileSync() {} } as never })).toThrow(/lacks lstatSync/);
  });

  it('overlays a memfs Volume, and several directories of which the first wins', () => {
    const volume = createFsFromVolume(Volume.fromJSON({ '/d/a': 'one' }));
    const virtual = opened({ lower: volume as never });
    virtual.fs.appendFileSync('/d/a', ' two');
    expect(virtual.fs.readFileSync('/d/a', 'utf8')).toBe('one two');
    expect(volume.readFileSync('/d/a', 'utf8')).toBe('one');
    const root = lowerWith({ 'top/d/a': 'top', 'bottom/d/a': 'bottom', 'bottom/d/b': 'b' });
    const stacked = opened({ lower: [path.join(root, 'top'), path.join(root, 'bottom')], mountPoint: '/tree' });
    expect(stacked.fs.readdirSync('/tree/d')).toEqual(['a', 'b']);
    expect(stacked.fs.readFileSync('/tree/d/a', 'utf8')).toBe('top');
    stacked.fs.rmSync('/tree/d', { recursive: true });
    expect(stacked.fs.existsSync('/tree/d/b')).toBe(false);
  });

  it('stops at its limits with EFBIG, and what was before stays', () => {
    const root = lowerWith({}), overlay = opened({ root, limits: { blobBytes: 10_000 }, durability: 'write', session: path.join(root, '../session') });
    overlay.fs.writeFileSync(path.join(root, 'a'), 'x'.repeat(5_000));
    expect(() => overlay.fs.writeFileSync(path.join(root, 'b'), 'y'.repeat(50_000))).toThrow(expect.objectContaining({ code: 'EFBIG' }) as Error);
    expect(overlay.fs.readdirSync(root)).toEqual(['a']);
  });

  it('refuses the operation that would exceed a limit, and only that one, whatever the durability', () => {
    const root = lowerWith({ there: 'x' }), session = path.join(root, '../session');
    const overlay = opened({ root, session, limits: { blobBytes: 10_000 } });
    const tooLarge = expect.objectContaining({ code: 'EFBIG' }) as Error;
    expect(() => overlay.fs.writeFileSync(path.join(root, 'a'), 'y'.repeat(50_000))).toThrow(tooLarge);
    overlay.fs.writeFileSync(path.join(root, 'b'), 'small');
    const fd = overlay.fs.openSync(path.join(root, 'c'), 'w');
    expect(() => { for (let turn = 0; turn < 100; turn++) overlay.fs.writeSync(fd, 'z'.repeat(1000)); }).toThrow(tooLarge);
    expect(overlay.fs.readFileSync(path.join(root, 'there'), 'utf8')).toBe('x');
    const size = overlay.fs.statSync(path.join(root, 'c')).size;
    overlay.closeSync();
    const again = opened({ root, session });
    expect(again.fs.readdirSync(root)).toEqual(['b', 'c', 'there']);
    expect(again.fs.statSync(path.join(root, 'c')).size).toBe(size);
    const short = opened({ root, limits: { logBytes: 6000 } });
    expect(() => { for (let turn = 0; turn < 100; turn++) short.fs.existsSync(path.join(root, `none${turn}`)); }).toThrow(tooLarge);
  });

  it('stores no redacted content under another name either', () => {
    const root = lowerWith({ 'keys/old': 'secret-zero' }), session = path.join(root, '../session');
    const overlay = opened({ root, session, redact: ['keys/**'] });
    overlay.fs.writeFileSync(path.join(root, 'keys/new'), 'secret-one');
    overlay.fs.renameSync(path.join(root, 'keys/new'), path.join(root, 'plain'));
    overlay.fs.appendFileSync(path.join(root, 'plain'), ' and more');
    overlay.fs.linkSync(path.join(root, 'keys/old'), path.join(root, 'linked'));
    overlay.fs.appendFileSync(path.join(root, 'linked'), ' and more');
    overlay.closeSync();
    expect(textOf(session)).not.toContain('secret-');
  });

  it('refuses a session inside the directory that is never written', () => {
    const root = lowerWith({});
    expect(() => Overlay.openSync({ root, session: path.join(root, 'runs/1') })).toThrow(/outside the lower/);
    expect(fs.readdirSync(root)).toEqual([]);
  });

  it('stores no content of redacted paths, only digests', async () => {
    const root = lowerWith({ 'keys/old': 'secret-zero' }), session = path.join(root, '../session');
    const overlay = opened({ root, session, redact: ['keys/**'] });
    overlay.fs.writeFileSync(path.join(root, 'keys/new'), 'secret-one');
    overlay.fs.appendFileSync(path.join(root, 'keys/old'), 'secret-two');
    overlay.fs.writeFileSync(path.join(root, 'keys/large'), 'secret-three'.repeat(10_000));
    expect(overlay.fs.readFileSync(path.join(root, 'keys/new'), 'utf8')).toBe('secret-one');
    const version = overlay.version('keys/new');
    await overlay.close();
    expect(textOf(session)).not.toContain('secret-');
    const reopened = opened({ root, session });
    expect(reopened.version('keys/new')).toBe(version);
    expect(() => reopened.fs.readFileSync(path.join(root, 'keys/new'))).toThrow(expect.objectContaining({ code: 'EIO' }) as Error);
  });

  it('throws away all changes, or some with what they need', () => {
    const root = lowerWith({ 'd/a': 'x', 'd/b': 'y' }), overlay = opened({ root });
    const change = (): void => {
      overlay.fs.renameSync(path.join(root, 'd'), path.join(root, 'e'));
      overlay.fs.writeFileSync(path.join(root, 'new'), 'n');
    };
    change();
    overlay.discard({ paths: ['e'] });
    expect(overlay.changes().map(({ path: name, kind }) => `${kind} ${name}`)).toEqual(['create new']);
    expect(overlay.fs.readFileSync(path.join(root, 'd/a'), 'utf8')).toBe('x');
    overlay.discard();
    expect(overlay.changes()).toEqual([]);
    expect(() => overlay.discard({ paths: ['d'] })).toThrow(/ENOENT/);
    expect(() => overlay.discard({ path: ['d'] } as never)).toThrow(/unknown option "path"/);
  });

  it('refuses to discard a part of what went as one, and names the whole', () => {
    const root = lowerWith({ 'd/a': 'x', 'd/b': 'y' }), overlay = opened({ root });
    overlay.fs.rmSync(path.join(root, 'd'), { recursive: true });
    expect(() => overlay.discard({ paths: ['d/b'] })).toThrow(/EBUSY: the change of "d\/b" is part of that of "d"/);
    overlay.fs.mkdirSync(path.join(root, 'd'));
    expect(() => overlay.discard({ paths: ['d/b'] })).toThrow(/EBUSY/);
    expect(overlay.fs.readdirSync(path.join(root, 'd'))).toEqual([]);
    overlay.discard({ paths: ['d'] });
    expect(overlay.fs.readdirSync(path.join(root, 'd'))).toEqual(['a', 'b']);
  });

  it('keeps what an open descriptor writes after others were discarded', () => {
    const root = lowerWith({}), session = path.join(root, '../session');
    const overlay = opened({ root, session, durability: 'write' });
    overlay.fs.writeFileSync(path.join(root, 'x'), '');
    const fd = overlay.fs.openSync(path.join(root, 'y'), 'w');
    overlay.fs.writeSync(fd, 'one ');
    overlay.discard({ paths: ['x'] });
    overlay.fs.writeSync(fd, 'two');
    overlay.closeSync();
    fs.rmSync(path.join(session, 'checkpoint'), { force: true });
    expect(opened({ root, session }).fs.readFileSync(path.join(root, 'y'), 'utf8')).toBe('one two');
  });
});

import fs from 'node:fs';
import path from 'node:path';
import { Volume, createFsFromVolume } from 'memfs';
import { describe, expect, it } from 'vitest';
import type { Overlay, Rule } from '../../src/index.ts';
import { lowerWith, opened } from './ground.ts';

/** How far rules reach: into every call that the table of everyday acts has not, into reopened sessions, and into odd places. */

const HIDE: Rule[] = [{ match: 'tests/hidden/**', effect: 'hide' }];
const DENY: Rule[] = [{ match: 'tests/hidden/**', effect: 'deny' }];
const TREE = { 'tests/hidden/a': 'secret', 'tests/hidden/d/b': 'deep', 'tests/pub': 'pub', 'src/main': 'main' };

function flags(overlay: Overlay): string[] {
  return [...overlay.events({ op: 'flag' })].map(({ call, path: name }) => `${call} ${name}`);
}

describe('a hidden directory', () => {
  it('is in no listing, walk, copy or removal', async () => {
    const root = lowerWith(TREE), overlay = opened({ root, rules: HIDE }), face = overlay.fs;
    expect(face.readdirSync(root, { recursive: true })).toEqual(['src', 'tests', 'src/main', 'tests/pub']);
    expect(face.readdirSync(path.join(root, 'tests'), { withFileTypes: true }).map(({ name }) => name)).toEqual(['pub']);
    const seen: string[] = [];
    for await (const entry of await face.promises.opendir(root, { recursive: true })) seen.push(entry.name);
    expect(seen.sort()).toEqual(['main', 'pub', 'src', 'tests']);
    expect(() => face.opendirSync(path.join(root, 'tests/hidden'))).toThrow(/ENOENT/);
    face.cpSync(path.join(root, 'tests'), path.join(root, 'copy'), { recursive: true });
    expect(face.readdirSync(path.join(root, 'copy'), { recursive: true })).toEqual(['pub']);
    face.rmSync(path.join(root, 'tests/hidden'), { recursive: true, force: true });
    expect(() => face.rmSync(path.join(root, 'tests'), { recursive: true })).toThrow(/ENOTEMPTY/);
    expect(overlay.changes().map(({ kind, path: name }) => `${kind} ${name}`)).toEqual(['create copy', 'create copy/pub', 'delete tests/pub']);
  });

  it('has the version of what is listed', () => {
    const root = lowerWith(TREE), overlay = opened({ root, rules: HIDE });
    overlay.fs.readdirSync(path.join(root, 'tests'));
    const [list] = [...overlay.events({ op: 'list' })];
    expect(list).toMatchObject({ path: 'tests', count: 1, version: overlay.version('tests') });
    const bare = lowerWith({ 'tests/pub': 'x' });
    expect(opened({ root: bare }).version('tests')).toBe(list?.version);
    expect(overlay.version('tests/hidden/a')).toBeUndefined();
  });

  it('is not there for the calls that ask for existence, access and real paths', () => {
    const root = lowerWith(TREE), overlay = opened({ root, rules: HIDE }), face = overlay.fs, a = path.join(root, 'tests/hidden/a');
    expect(face.existsSync(a)).toBe(false);
    expect(face.statSync(a, { throwIfNoEntry: false })).toBeUndefined();
    expect(() => face.accessSync(a)).toThrow(/ENOENT/);
    expect(() => face.realpathSync(a)).toThrow(/ENOENT/);
    expect(() => face.realpathSync.native(a)).toThrow(/ENOENT/);
    expect(() => face.statfsSync(a)).toThrow(/ENOENT/);
    expect(() => face.utimesSync(a, 1, 1)).toThrow(/ENOENT/);
    expect(() => face.chownSync(a, 0, 0)).toThrow(/ENOENT/);
    expect(() => face.watch(a)).toThrow(/ENOENT/);
    expect(() => face.openSync(a, 'r+')).toThrow(/ENOENT/);
    expect(() => face.mkdirSync(path.join(root, 'tests/hidden/x/y'), { recursive: true })).toThrow(/EACCES/);
    expect(flags(overlay).filter((line) => !line.includes('tests/hidden'))).toEqual([]);
    expect([...overlay.events({ op: 'miss' })]).toEqual([]);
    expect([...overlay.events({ op: 'refuse' })]).toEqual([]);
  });

  it('tells no watcher', async () => {
    const root = lowerWith(TREE), overlay = opened({ root, rules: HIDE }), told: (string | null)[] = [];
    const watcher = overlay.fs.watch(path.join(root, 'tests'), { recursive: true }, (_, name) => { told.push(name); });
    fs.writeFileSync(path.join(root, 'tests/hidden/a'), 'by an outsider');
    fs.writeFileSync(path.join(root, 'tests/pub'), 'by an outsider');
    await expect.poll(() => told).toContain('pub');
    watcher.close();
    expect(told.filter((name) => name?.startsWith('hidden'))).toEqual([]);
  });

  it('keeps a lookalike beside it, and its own name with another rule', () => {
    const root = lowerWith({ ...TREE, 'tests/hidden2/a': 'x', 'other/tests/hidden/a': 'y' });
    const face = opened({ root, rules: HIDE }).fs;
    expect(face.readdirSync(path.join(root, 'tests'))).toEqual(['hidden2', 'pub']);
    expect(face.readFileSync(path.join(root, 'other/tests/hidden/a'), 'utf8')).toBe('y');
  });

  it('is hidden by names with newlines and bytes that are no UTF-8', () => {
    const root = lowerWith({ 'a\nb/x.key': '1', 'c/ok': '2' });
    fs.writeFileSync(Buffer.from(`${root}/c/bad\xff.key`, 'latin1'), '3');
    const overlay = opened({ root, rules: [{ match: '**/*.key', effect: 'hide' }] });
    expect(overlay.fs.readdirSync(path.join(root, 'a\nb'))).toEqual([]);
    expect(overlay.fs.readdirSync(path.join(root, 'c'))).toEqual(['ok']);
    expect(overlay.fs.existsSync(Buffer.from(`${root}/c/bad\xff.key`, 'latin1'))).toBe(false);
    expect(flags(overlay)).toEqual(['access c/bad\udcff.key']);
  });

  it('is hidden in several lowers and in an fs-shaped one', () => {
    const [a, b] = [lowerWith(TREE), lowerWith({ 'tests/hidden/only': 'x', 'tests/more': 'y' })];
    const stacked = opened({ lower: [a, b], rules: HIDE });
    expect(stacked.fs.readdirSync(path.join(a, 'tests'))).toEqual(['more', 'pub']);
    const shaped = opened({ lower: createFsFromVolume(Volume.fromJSON(TREE, '/')) as never, rules: HIDE });
    expect(shaped.fs.readdirSync('/tests')).toEqual(['pub']);
    expect(() => shaped.fs.readFileSync('/tests/hidden/a')).toThrow(/ENOENT/);
  });

  it('hides what an earlier opening changed there, and what it moved from there', () => {
    const root = lowerWith(TREE), session = path.join(root, '../session');
    const before = opened({ root, session });
    before.fs.writeFileSync(path.join(root, 'tests/hidden/a'), 'changed');
    before.fs.renameSync(path.join(root, 'tests/hidden/d'), path.join(root, 'moved'));
    before.fs.writeFileSync(path.join(root, 'moved/new'), 'new');
    before.closeSync();
    const overlay = opened({ root, session, rules: HIDE });
    expect(overlay.changes()).toEqual([]);
    expect(overlay.fs.readdirSync(root)).toEqual(['src', 'tests']);
    expect(overlay.fs.existsSync(path.join(root, 'moved/new'))).toBe(false);
    expect(overlay.fs.existsSync(path.join(root, 'moved/b'))).toBe(false);
    overlay.closeSync();
    expect(opened({ root, session, rules: [] }).changes()).toHaveLength(3);
  });
});

describe('a descriptor', () => {
  it('keeps what its open was granted, and may not change what is denied', () => {
    const root = lowerWith(TREE), a = path.join(root, 'tests/hidden/a');
    const overlay = opened({ root, rules: [{ match: 'tests/hidden/**', on: ['stat', 'attributes'], effect: 'deny' }] }), face = overlay.fs;
    const fd = face.openSync(a, 'r+');
    expect(face.readFileSync(fd, 'utf8')).toBe('secret');
    expect(face.fstatSync(fd).size).toBe(6);
    face.writeSync(fd, 'S', 0);
    expect(() => face.fchmodSync(fd, 0o600)).toThrow(/EACCES/);
    expect(() => face.fchownSync(fd, 0, 0)).toThrow(/EACCES/);
    expect(() => face.futimesSync(fd, 1, 1)).toThrow(/EACCES/);
    face.closeSync(fd);
    expect([...overlay.events({ op: 'refuse' })].map(({ call, path: name, rule }) => [call, name, rule])).toEqual(
      ['fchmod', 'fchown', 'futime'].map((call) => [call, 'tests/hidden/a', 'tests/hidden/**']));
  });
});

describe('a denial', () => {
  it('has the error of a permission, with the rule as reason', () => {
    const root = lowerWith(TREE), face = opened({ root, rules: DENY }).fs;
    expect(() => face.readFileSync(path.join(root, 'tests/hidden/a'))).toThrow(expect.objectContaining({
      code: 'EACCES', errno: -13, syscall: 'open', path: path.join(root, 'tests/hidden/a'), fsCode: 'FS_PERMISSION_DENIED',
    }));
    expect(face.existsSync(path.join(root, 'tests/hidden/a'))).toBe(false);
  });

  it('counts in access', () => {
    const root = lowerWith(TREE), overlay = opened({ root, rules: [{ match: 'src', on: ['write'], effect: 'deny' }] });
    const main = path.join(root, 'src/main');
    overlay.fs.accessSync(main, fs.constants.R_OK);
    expect(() => overlay.fs.accessSync(main, fs.constants.W_OK)).toThrow(/EACCES/);
  });

  it('stops a copy and a removal at what it denies', () => {
    const root = lowerWith(TREE), face = opened({ root, rules: DENY }).fs;
    expect(() => face.cpSync(path.join(root, 'tests'), path.join(root, 'copy'), { recursive: true })).toThrow(/EACCES/);
    expect(() => face.rmSync(path.join(root, 'tests'), { recursive: true })).toThrow(/EACCES/);
    expect(face.readdirSync(path.join(root, 'tests'))).toContain('hidden');
  });

  it('keeps a file from being replaced by a rename, as editors save', () => {
    const root = lowerWith(TREE), face = opened({ root, rules: [{ match: 'src/main', on: ['write'], effect: 'deny' }] }).fs;
    face.writeFileSync(path.join(root, 'src/tmp'), 'x');
    expect(() => face.renameSync(path.join(root, 'src/tmp'), path.join(root, 'src/main'))).toThrow(/EACCES/);
    face.renameSync(path.join(root, 'src/main'), path.join(root, 'src/old'));
    expect(() => face.renameSync(path.join(root, 'src/tmp'), path.join(root, 'src/main'))).toThrow(/EACCES/);
    expect(() => face.writeFileSync(path.join(root, 'src/old'), 'x')).toThrow(/EACCES/);
  });

  it('holds for the names that a file has in the lower, found out at the first of them', () => {
    const root = lowerWith(TREE);
    fs.linkSync(path.join(root, 'tests/hidden/d/b'), path.join(root, 'twin'));
    const overlay = opened({ root, rules: DENY }), face = overlay.fs, twin = path.join(root, 'twin');
    for (const act of [() => face.readFileSync(twin), () => face.appendFileSync(twin, 'x'), () => face.openSync(twin, 'r'), () => face.unlinkSync(twin), () => face.statSync(twin),
      () => face.linkSync(twin, path.join(root, 'third'))]) {
      expect(act).toThrow(/EACCES/);
    }
    expect([...overlay.events({ op: 'refuse' })].every(({ path: name }) => name === 'twin')).toBe(true);
  });
});

describe('a session', () => {
  it('keeps its rules until it is opened with others', () => {
    const root = lowerWith(TREE), session = path.join(root, '../session'), tests = path.join(root, 'tests');
    const shows = (options: { rules?: Rule[] }): string[] => {
      const overlay = opened({ root, session, ...options });
      const names = overlay.fs.readdirSync(tests);
      overlay.closeSync();
      return names;
    };
    expect(shows({ rules: HIDE })).toEqual(['pub']);
    expect(shows({})).toEqual(['pub']);
    fs.rmSync(path.join(session, 'checkpoint'), { force: true });
    expect(shows({})).toEqual(['pub']);
    expect(shows({ rules: HIDE })).toEqual(['pub']);
    expect(shows({ rules: [{ match: 'tests/pub', effect: 'hide' }] })).toEqual(['hidden']);
    expect(shows({ rules: [] })).toEqual(['hidden', 'pub']);
    expect(shows({})).toEqual(['hidden', 'pub']);
    const told = [...opened({ root, session }).events({ op: 'rules' })].map(({ rules }) => rules);
    expect(told).toEqual([HIDE, [{ match: 'tests/pub', effect: 'hide' }], []]);
  });

  it('that never had rules says nothing of them', () => {
    const root = lowerWith(TREE), overlay = opened({ root, rules: [] });
    overlay.fs.readFileSync(path.join(root, 'src/main'));
    expect([...overlay.events()].map(({ op }) => op)).toEqual(['read']);
  });

  it('is not made where a rule is malformed', () => {
    const root = lowerWith(TREE), session = path.join(root, '../session');
    expect(() => opened({ root, session, rules: [{ match: '[a', effect: 'deny' }] })).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION' }));
    expect(() => opened({ root, session, rules: 'x' as never })).toThrow('rules');
    expect(fs.existsSync(session)).toBe(false);
  });
});

describe('a summary', () => {
  it('tells what was seen, what rules said, and what is different now', () => {
    const root = lowerWith(TREE), overlay = opened({ root, rules: [...HIDE, { match: 'src', on: ['write'], effect: 'deny' }] }), face = overlay.fs;
    face.readFileSync(path.join(root, 'tests/pub'));
    face.existsSync(path.join(root, 'tests/hidden/a'));
    face.existsSync(path.join(root, 'nothing'));
    expect(() => face.writeFileSync(path.join(root, 'src/main'), 'x')).toThrow(/EACCES/);
    face.writeFileSync(path.join(root, 'new'), 'x');
    face.unlinkSync(path.join(root, 'tests/pub'));
    expect(overlay.summary()).toMatchObject({
      read: ['tests/pub'], missed: ['nothing'], changes: { create: 1, delete: 1 }, rules: [{ match: 'tests/hidden/**' }, { match: 'src' }],
      flags: [{ path: 'tests/hidden/a', rule: 'tests/hidden/**', count: 1 }], refusals: [{ path: 'src/main', rule: 'src', code: 'EACCES' }],
    });
    expect(overlay.summary({ op: 'miss' })).toMatchObject({ read: [], missed: ['nothing'] });
  });
});

import nodeFs from 'node:fs';
import { describe, expect } from 'vitest';
import { inEveryFace, once, refuses } from './ground.ts';
import type { Ground } from './ground.ts';

/** CASES.md, 1 to 12. */
describe('namespace', () => {
  inEveryFace('1. hides all of a deleted lower directory and nothing beside it', {
    'd/secret': 'secret', 'd/deep/er': 'deeper', 'd2/kept': 'kept',
  }, async ({ at, face, fs, overlay, changes }) => {
    await face.removeTree(at('d'));
    for (const name of ['d', 'd/secret', 'd/deep/er']) {
      await refuses(() => face.read(at(name)), 'ENOENT');
      await refuses(() => face.stat(at(name)), 'ENOENT');
    }
    await refuses(() => face.list(at('d')), 'ENOENT');
    expect(await face.list(at(''))).toEqual(['d2']);
    expect(fs.readdirSync(at(''), { recursive: true, encoding: 'utf8' }).sort()).toEqual(['d2', 'd2/kept']);
    expect(String(await face.read(at('d2/kept')))).toBe('kept');
    expect(changes()).toContain('delete d');
    expect(changes().some((row) => row.includes('d2'))).toBe(false);
    expect(overlay.observation('d2/kept')).toMatchObject({ kind: 'present' });
  });

  inEveryFace('2. shows a path that was deleted and made again, once', { 'a': 'old', 'd/x': 'x' }, async ({ at, face, changes }) => {
    await face.removeFile(at('a'));
    await face.write(at('a'), 'new');
    await face.removeTree(at('d'));
    await face.makeDirectory(at('d'));
    expect((await face.stat(at('a'))).size).toBe(3);
    expect(String(await face.read(at('a')))).toBe('new');
    expect(await face.list(at(''))).toEqual(['a', 'd']);
    expect(await face.list(at('d'))).toEqual([]);
    expect(changes()).toEqual(['update a', 'delete d/x']);
  });

  inEveryFace('3. keeps only the new file of a directory removed and made again', { 'd/old': 'old', 'd/e/f': 'f' }, async (ground) => {
    const { at, face, changes } = ground;
    await face.removeTree(at('d'));
    await face.makeDirectory(at('d'));
    await face.write(at('d/new'), '');
    const check = async ({ face: now }: Ground): Promise<void> => {
      expect(await now.list(at('d'))).toEqual(['new']);
      await refuses(() => now.read(at('d/old')), 'ENOENT');
      await refuses(() => now.stat(at('d/e/f')), 'ENOENT');
    };
    await check(ground);
    expect(changes()).toEqual(['delete d/e', 'delete d/e/f', 'create d/new', 'delete d/old']);
    await ground.reopen();
    await check(ground);
  });

  inEveryFace('4. refuses rmdir of a lower directory that is not empty', { 'd/x': 'x' }, async ({ at, face, changes }) => {
    await refuses(() => face.removeDirectory(at('d')), 'ENOTEMPTY');
    expect(await face.list(at('d'))).toEqual(['x']);
    expect(String(await face.read(at('d/x')))).toBe('x');
    expect(changes()).toEqual([]);
  });

  inEveryFace('5. renames a lower directory as a whole', {
    'a/x': 'x', 'a/deep/er': 'deeper', 'a/gone': 'gone', 'empty': null, 'full/y': 'y',
  }, async ({ at, face, changes }) => {
    await face.removeFile(at('a/gone'));
    await refuses(() => face.rename(at('a'), at('full')), 'ENOTEMPTY');
    await face.rename(at('a'), at('b'));
    expect(String(await face.read(at('b/x')))).toBe('x');
    expect(String(await face.read(at('b/deep/er')))).toBe('deeper');
    expect(await face.list(at('b'))).toEqual(['deep', 'x']);
    await refuses(() => face.stat(at('a')), 'ENOENT');
    await refuses(() => face.stat(at('b/gone')), 'ENOENT');
    await face.rename(at('b'), at('empty'));
    expect(await face.list(at('empty'))).toEqual(['deep', 'x']);
    expect(await face.list(at(''))).toEqual(['empty', 'full']);
    expect(String(await face.read(at('full/y')))).toBe('y');
    expect(changes().filter((row) => row.includes('deep') || row.includes('/x'))).toEqual([]);
  });

  inEveryFace('6. lets a backup take the place of a removed lower directory', { 'a/x': 'old', 'a/y': 'y', 'bak/x': 'backup' }, async ({ at, face }) => {
    await face.removeTree(at('a'));
    await face.rename(at('bak'), at('a'));
    expect(await face.list(at('a'))).toEqual(['x']);
    expect(String(await face.read(at('a/x')))).toBe('backup');
    expect(await face.list(at(''))).toEqual(['a']);
  });

  inEveryFace('7. lets a directory take the place of a file or link, empty, and the other way round', {
    'file': 'file', 'link': { target: 'full' }, 'full/x': 'x', 'other/y': 'y',
  }, async ({ at, face, changes }) => {
    for (const name of ['file', 'link']) {
      await face.removeFile(at(name));
      await face.makeDirectory(at(name));
      expect((await face.lstat(at(name))).type).toBe('directory');
      expect(await face.list(at(name))).toEqual([]);
    }
    await face.removeTree(at('full'));
    await face.write(at('full'), 'now a file');
    await face.removeTree(at('other'));
    await face.symlink('file', at('other'));
    expect((await face.lstat(at('full'))).type).toBe('file');
    expect((await face.lstat(at('other'))).type).toBe('symlink');
    await refuses(() => face.read(at('full/x')), 'ENOTDIR');
    expect(changes().filter((row) => row.startsWith('type'))).toEqual(['type file', 'type full', 'type link', 'type other']);
  });

  inEveryFace('8. knows a new file renamed over a lower one as one update', { 'a': 'old', 'b': 'b' }, async ({ at, face, changes }) => {
    await face.write(at('sedXXXX'), 'new');
    await face.rename(at('sedXXXX'), at('a'));
    expect(changes()).toEqual(['update a']);
    expect(await face.list(at(''))).toEqual(['a', 'b']);
    expect(String(await face.read(at('a')))).toBe('new');
    await refuses(() => face.stat(at('sedXXXX')), 'ENOENT');
  });

  inEveryFace('9. lists what exists in one layer only, and what exists in both once', {
    'lower/x': 'x', 'empty': null, 'both/lower': 'l', 'both/name': 'lower file',
  }, async ({ at, face, fs }) => {
    await face.makeDirectory(at('upper'));
    expect(await face.list(at('upper'))).toEqual([]);
    expect(await face.list(at('empty'))).toEqual([]);
    expect(await face.list(at('lower'))).toEqual(['x']);
    await face.write(at('both/upper'), 'u');
    await face.removeFile(at('both/name'));
    await face.makeDirectory(at('both/name'));
    expect(await face.list(at('both'))).toEqual(['lower', 'name', 'upper']);
    const types = fs.readdirSync(at('both'), { withFileTypes: true }).map((entry) => `${entry.name} ${entry.isDirectory()}`);
    expect(types.sort()).toEqual(['lower false', 'name true', 'upper false']);
  });

  inEveryFace('10. refuses to list a file, and records no miss', { 'a': 'a' }, async ({ at, face, overlay }) => {
    await refuses(() => face.list(at('a')), 'ENOTDIR');
    await refuses(() => face.read(at('a/b')), 'ENOTDIR');
    await refuses(() => face.stat(at('a/b')), 'ENOTDIR');
    expect([...overlay.events()].filter(({ op }) => op === 'miss')).toEqual([]);
    expect(overlay.observation('a/b')).toEqual({ kind: 'unseen' });
  });

  const hard = ['sp ace', 'new\nline', `q'u"ote`, 'back\\slash', '100%41', '-rf', 'x'.repeat(255), 'é', 'e\u0301', ' '];
  inEveryFace('11. remembers deletions of hard names across a reopening', Object.fromEntries(hard.flatMap((name) => [
    [`f/${name}`, 'lower'], [`d/${name}/x`, 'x'],
  ])), async (ground) => {
    const { at } = ground;
    for (const name of hard) {
      await ground.face.removeFile(at(`f/${name}`));
      await ground.face.removeTree(at(`d/${name}`));
    }
    const before = ground.changes();
    await ground.reopen();
    for (const name of hard) await refuses(() => ground.face.lstat(at(`f/${name}`)), 'ENOENT');
    expect(await ground.face.list(at('f'))).toEqual([]);
    expect(await ground.face.list(at('d'))).toEqual([]);
    expect(ground.changes()).toEqual(before);
    expect(before.filter((row) => row.startsWith('delete f/'))).toHaveLength(hard.length);
  });

  once('11. remembers deletions of names that are not UTF-8', { 'd/x': 'x' }, async (ground) => {
    const raw = (name: string): Buffer => Buffer.concat([Buffer.from(`${ground.root}/d/`), Buffer.from(name, 'latin1')]);
    nodeFs.writeFileSync(raw('\xff\xfe'), 'raw');
    nodeFs.writeFileSync(raw('caf\xe9'), 'raw');
    ground.lowerChanged();
    ground.fs.unlinkSync(raw('\xff\xfe'));
    await ground.reopen();
    await refuses(() => ground.fs.lstatSync(raw('\xff\xfe')), 'ENOENT');
    const names = ground.fs.readdirSync(ground.at('d'), { encoding: 'buffer' }).map((name) => name.toString('latin1'));
    expect(names.sort()).toEqual(['caf\xe9', 'x']);
    expect(ground.fs.readFileSync(raw('caf\xe9'), 'utf8')).toBe('raw');
  });

  inEveryFace('12. lets a directory take the place of a deleted file and keeps old children deleted', {
    'folder/abc': 'file', 'folder/dir/old': 'old',
  }, async (ground) => {
    const { at } = ground;
    await ground.face.removeFile(at('folder/abc'));
    await ground.face.makeDirectory(at('folder/abc'));
    await ground.face.write(at('folder/abc/def'), 'def');
    expect(await ground.face.list(at('folder'))).toEqual(['abc', 'dir']);
    await ground.face.removeTree(at('folder/dir'));
    await ground.face.makeDirectory(at('folder/dir'));
    await ground.face.write(at('folder/dir/new'), 'new');
    for (const again of [false, true]) {
      if (again) await ground.reopen();
      expect(await ground.face.list(at('folder/dir'))).toEqual(['new']);
      expect(ground.changes()).toEqual(['type folder/abc', 'create folder/abc/def', 'create folder/dir/new', 'delete folder/dir/old']);
    }
  });
});

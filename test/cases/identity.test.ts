import { describe, expect } from 'vitest';
import type { Seen } from './face.ts';
import { inEveryFace, OLD, once, refuses } from './ground.ts';

/** CASES.md, 13, 14 and 16 to 20; 15 and 21 are in containment.test.ts. */
describe('identity, links, metadata', () => {
  // The ground checks bytes, size, mode and times of the lower after every case: here are the ways to write.
  inEveryFace('13. leaves the lower inode as it is when a lower file is written', {
    'a': 'lower', 'b': 'lower', 'c': 'lower', 'd': 'lower', 'e': 'lower',
  }, async ({ at, face, fs }) => {
    await face.write(at('a'), 'upper');
    await face.append(at('b'), '!');
    await face.truncate(at('c'), 2);
    await face.chmod(at('d'), 0o600);
    fs.utimesSync(at('e'), 1, 1);
    expect(String(await face.read(at('a')))).toBe('upper');
    expect(String(await face.read(at('b')))).toBe('lower!');
    expect(String(await face.read(at('c')))).toBe('lo');
    expect((await face.stat(at('d'))).permissions).toBe(0o600);
    expect((await face.stat(at('e'))).mtimeNs).toBe(1_000_000_000n);
  });

  inEveryFace('14. keeps ino, dev and nlink of a path across copy-up, and gives no two files the same', {
    'a': 'a', 'b': { linkTo: 'a' }, 'c': 'c', 'd/x': 'x', 'link': { target: 'a' },
  }, async (ground) => {
    const { at } = ground;
    const identity = async (name: string): Promise<string> => {
      const { ino, dev, nlink } = await ground.face.lstat(at(name));
      return `${dev}:${ino} ${nlink}`;
    };
    const names = ['a', 'b', 'c', 'd', 'd/x', 'link'];
    const before = await Promise.all(names.map(identity));
    expect(before[0]).toBe(before[1]);
    expect(before[0]).toMatch(/ 2$/);
    await ground.face.append(at('a'), '!');
    await ground.face.chmod(at('c'), 0o600);
    await ground.face.write(at('d/x'), 'new');
    await ground.face.chmod(at('d'), 0o700);
    expect(await Promise.all(names.map(identity))).toEqual(before);
    await ground.face.write(at('new1'), '');
    await ground.face.write(at('new2'), '');
    await ground.face.makeDirectory(at('new3'));
    await ground.face.symlink('x', at('new4'));
    const all = [...names, '', 'new1', 'new2', 'new3', 'new4'];
    const inos = (await Promise.all(all.map(identity))).map((each) => each.split(' ')[0]);
    expect(new Set(inos).size).toBe(all.length - 1);
    await ground.face.rename(at('d'), at('moved'));
    await ground.reopen();
    const after = ['a', 'b', 'c', 'moved', 'moved/x', 'link'];
    expect(await Promise.all(after.map(identity))).toEqual(before);
  });

  inEveryFace('16. edits the target through a link and lets the link be', {
    'd/target': 'old', 'link': { target: 'd/target' }, 'chain': { target: 'link' },
  }, async ({ at, face, changes }) => {
    await face.write(at('link'), 'new');
    expect((await face.lstat(at('link'))).type).toBe('symlink');
    expect(String(await face.read(at('d/target')))).toBe('new');
    await face.append(at('chain'), '!');
    expect(String(await face.read(at('d/target')))).toBe('new!');
    expect(await face.readlink(at('chain'))).toBe('link');
    expect(changes()).toEqual(['update d/target']);
  });

  inEveryFace('17. shows an edit of one of two hard-linked names under both', {
    'a': 'old', 'd/b': { linkTo: 'a' },
  }, async (ground) => {
    const { at } = ground;
    await ground.face.write(at('a'), 'new');
    for (const again of [false, true]) {
      if (again) await ground.reopen();
      expect(String(await ground.face.read(at('d/b')))).toBe('new');
      expect((await ground.face.stat(at('d/b'))).nlink).toBe(2);
    }
    await ground.face.removeFile(at('a'));
    expect(String(await ground.face.read(at('d/b')))).toBe('new');
    expect((await ground.face.stat(at('d/b'))).nlink).toBe(1);
    await ground.face.link(at('d/b'), at('c'));
    await ground.face.append(at('c'), '!');
    expect(String(await ground.face.read(at('d/b')))).toBe('new!');
  });

  inEveryFace('18. tells of a new file and of the link to it', {}, async ({ at, face, changes }) => {
    await face.write(at('a'), '');
    await face.symlink('a', at('b'));
    expect(changes()).toEqual(['create a', 'create b']);
  });

  inEveryFace('19. keeps the mode through edit, rewrite, append and rename', {
    'x': { file: 'x', mode: 0o755 }, 'suid': { file: 'x', mode: 0o4711 }, 'dir/f': 'f',
  }, async (ground) => {
    const { at } = ground;
    const mode = async (name: string): Promise<number> => (await ground.face.stat(at(name))).permissions;
    await ground.face.write(at('x'), 'rewritten');
    await ground.face.append(at('x'), '!');
    await ground.face.rename(at('x'), at('y'));
    await ground.face.append(at('suid'), '!');
    await ground.face.chmod(at('dir'), 0o1777);
    await ground.face.append(at('dir/f'), '!');
    const umask = process.umask(0o027);
    try {
      await ground.face.write(at('new'), 'new');
      await ground.face.makeDirectory(at('newdir'));
    } finally {
      process.umask(umask);
    }
    await ground.reopen();
    expect(await Promise.all(['y', 'suid', 'dir', 'dir/f', 'new', 'newdir'].map(mode)))
      // The process is root, whose writes leave setuid alone (CAP_FSETID); anyone else's would clear it.
      .toEqual([0o755, process.getuid?.() === 0 ? 0o4711 : 0o711, 0o1777, 0o644, 0o640, 0o750]);
  });

  inEveryFace('20. takes identical content for no change', { 'a': 'same', 'd/b': 'same' }, async (ground) => {
    const { at } = ground;
    const before = ground.overlay.treeVersion();
    await ground.face.write(at('a'), 'same');
    await ground.face.write(at('d/b'), 'other');
    await ground.face.write(at('d/b'), 'same');
    expect(ground.changes()).toEqual([]);
    expect(ground.overlay.treeVersion()).toBe(before);
    await ground.reopen();
    expect(ground.changes()).toEqual([]);
  });

  once('20. takes a file moved away and back for no change', { 'a': 'a', 'd/x': 'x' }, async ({ at, fs, changes, overlay }) => {
    const before = overlay.treeVersion();
    fs.renameSync(at('a'), at('b'));
    fs.renameSync(at('b'), at('a'));
    fs.renameSync(at('d'), at('e'));
    fs.renameSync(at('e'), at('d'));
    expect(changes()).toEqual([]);
    expect(overlay.treeVersion()).toBe(before);
  });

  once('19. gives a new file its times and an untouched one the times of the lower', { 'a': 'a' }, async ({ at, face }) => {
    const times = (stats: Seen): number => Number(stats.mtimeNs / 1_000_000_000n);
    expect(times(await face.stat(at('a')))).toBe(OLD);
    const start = Math.floor(Date.now() / 1000) - 1;
    await face.write(at('b'), 'b');
    await face.append(at('a'), '!');
    expect(times(await face.stat(at('a')))).toBeGreaterThanOrEqual(start);
    expect(times(await face.stat(at('b')))).toBeGreaterThanOrEqual(start);
    await refuses(() => face.stat(at('c')), 'ENOENT');
  });
});

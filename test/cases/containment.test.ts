import nodeFs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { describe, expect } from 'vitest';
import { inEveryFace, once, refuses } from './ground.ts';
import type { Ground } from './ground.ts';

/** CASES.md, 15 and 21. The ground checks after each case that nothing beside the root was changed either. */
describe('containment', () => {
  function linkOut({ root, outside, lowerChanged }: Ground): void {
    nodeFs.symlinkSync(path.join(outside, 'secret'), path.join(root, 'absolute'));
    nodeFs.symlinkSync('../outside/secret', path.join(root, 'relative'));
    nodeFs.symlinkSync('../outside', path.join(root, 'directory'));
    nodeFs.symlinkSync('directory', path.join(root, 'chain'));
    nodeFs.symlinkSync('../outside/new', path.join(root, 'dangling'));
    lowerChanged();
  }
  const ways = ['absolute', 'relative', 'directory/secret', 'chain/secret', 'd/../relative'];

  inEveryFace('15. refuses to read or write through a lower link to outside', { 'd/x': 'x' }, async (ground) => {
    const { at, face } = ground;
    linkOut(ground);
    for (const name of ways) {
      await refuses(() => face.read(at(name)), 'EACCES');
      await refuses(() => face.write(at(name), 'overwritten'), 'EACCES');
      await refuses(() => face.append(at(name), 'overwritten'), 'EACCES');
      await refuses(() => face.truncate(at(name), 0), 'EACCES');
      await refuses(() => face.stat(at(name)), 'EACCES');
      await refuses(() => face.chmod(at(name), 0o777), 'EACCES');
      await refuses(() => face.copy(at('d/x'), at(name)), 'EACCES');
      await refuses(() => face.copy(at(name), at('stolen')), 'EACCES');
    }
    await refuses(() => face.write(at('dangling'), 'new'), 'EACCES');
    for (const name of ['directory', 'chain']) {
      await refuses(() => face.list(at(name)), 'EACCES');
      await refuses(() => face.write(at(`${name}/new`), 'new'), 'EACCES');
      await refuses(() => face.makeDirectory(at(`${name}/new`)), 'EACCES');
      await refuses(() => face.removeFile(at(`${name}/secret`)), 'EACCES');
      await refuses(() => face.rename(at(`${name}/secret`), at('stolen')), 'EACCES');
      await refuses(() => face.rename(at('d/x'), at(`${name}/x`)), 'EACCES');
      await refuses(() => face.link(at(`${name}/secret`), at('stolen')), 'EACCES');
      await refuses(() => face.symlink('x', at(`${name}/new`)), 'EACCES');
    }
    // The links themselves are as good as any.
    expect(await face.readlink(at('relative'))).toBe('../outside/secret');
    expect((await face.lstat(at('relative'))).type).toBe('symlink');
    await face.removeFile(at('directory'));
    await refuses(() => face.lstat(at('directory')), 'ENOENT');
  });

  inEveryFace('15. refuses to go out through a link that was made in the overlay', { 'd/x': 'x' }, async ({ at, face, outside }) => {
    await face.symlink(outside, at('out'));
    await face.symlink('../../outside', at('d/out'));
    for (const name of ['out/secret', 'd/out/secret', 'd/out/../outside/secret']) {
      await refuses(() => face.read(at(name)), 'EACCES');
      await refuses(() => face.write(at(name), 'overwritten'), 'EACCES');
    }
  });

  once('15. never reads outside while a component is swapped for a link to there', { 'd/secret': 'inside' }, async (ground) => {
    const { root, at, fs, lowerChanged } = ground;
    // Other names, another size, other bytes than inside: whatever got out would show.
    const trap = nodeFs.mkdtempSync(path.join(os.tmpdir(), 'palimpsest-trap-'));
    nodeFs.writeFileSync(path.join(trap, 'secret'), 'stolen bytes');
    nodeFs.writeFileSync(path.join(trap, 'loot'), '');
    const worker = new Worker(`
      const fs = require('node:fs'), { workerData: { root, trap, stop } } = require('node:worker_threads');
      const flag = new Int32Array(stop);
      while (Atomics.load(flag, 0) === 0) {
        fs.renameSync(root + '/d', root + '/away');
        fs.symlinkSync(trap, root + '/d');
        fs.unlinkSync(root + '/d');
        fs.renameSync(root + '/away', root + '/d');
        Atomics.add(flag, 1, 1);
      }
    `, { eval: true, workerData: { root, trap, stop: new SharedArrayBuffer(8) } });
    const stopped = new Promise((resolve) => worker.once('exit', resolve));
    const seen = new Map<string, number>();
    const count = (what: string): void => void seen.set(what, (seen.get(what) ?? 0) + 1);
    const end = Date.now() + 1500;
    while (Date.now() < end) {
      for (const look of [
        () => fs.readFileSync(at('d/secret'), 'utf8'),
        () => {
          const fd = fs.openSync(at('d/secret'), 'r');
          try {
            return fs.readFileSync(fd, 'utf8');
          } finally {
            fs.closeSync(fd);
          }
        },
        () => fs.readdirSync(at('d')).join(),
        () => String(fs.statSync(at('d/secret')).size),
      ]) {
        try {
          count(look());
        } catch (error) {
          count(String((error as NodeJS.ErrnoException).code));
        }
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    await worker.terminate();
    await stopped;
    nodeFs.rmSync(path.join(root, 'd'), { recursive: true, force: true });
    nodeFs.rmSync(path.join(root, 'away'), { recursive: true, force: true });
    nodeFs.rmSync(trap, { recursive: true });
    lowerChanged();
    expect([...seen.keys()]).toContain('inside');
    const allowed = ['inside', 'secret', '6', 'ENOENT', 'EACCES', 'ENOTDIR', 'ELOOP', 'EIO'];
    // 'secret' is what a listing of `d` gives; as content it would be the outside's.
    expect([...seen.keys()].filter((what) => !allowed.includes(what))).toEqual([]);
  });

  inEveryFace('21. refuses every spelling of a path that leads outside', { 'a': 'a', 'd/x': 'x' }, async ({ at, face, root, outside, fs }) => {
    const secret = path.join(outside, 'secret');
    const spellings = [
      `${root}/../outside/secret`, `${root}/../../../../../../../../..${secret}`, `${root}/./.././outside/secret`, secret,
      `${root}//..//outside//secret`, `${root}/d/../../outside/secret`,
    ];
    for (const spelling of spellings) {
      for (const form of [spelling, Buffer.from(spelling), pathToFileURL(spelling)]) {
        await refuses(() => face.read(form), 'EACCES');
        await refuses(() => face.write(form, 'overwritten'), 'EACCES');
        await refuses(() => face.removeFile(form), 'EACCES');
      }
    }
    await refuses(() => face.rename(at('a'), `${outside}/stolen`), 'EACCES');
    await refuses(() => face.link(secret, at('stolen')), 'EACCES');
    await refuses(() => face.copy(secret, at('stolen')), 'EACCES');
    expect(fs.existsSync(secret)).toBe(false);
    for (const broken of [`${root}/a\0b`, Buffer.from(`${root}/a\0b`), `${secret}\0`]) {
      await refuses(() => face.read(broken), 'ERR_INVALID_ARG_VALUE');
      await refuses(() => face.write(broken, 'x'), 'ERR_INVALID_ARG_VALUE');
    }
    await refuses(() => face.read(new URL('file:///a%00b')), 'ERR_INVALID_ARG_VALUE');
    await refuses(() => face.read(new URL('http://host/a')), 'ERR_INVALID_URL_SCHEME');
  });

  once('21. keeps relative paths inside too', { 'a': 'a', 'd/x': 'x' }, async ({ root, fs, outside }) => {
    const before = process.cwd();
    process.chdir(path.join(root, 'd'));
    try {
      expect(fs.readFileSync('x', 'utf8')).toBe('x');
      expect(fs.readFileSync('../a', 'utf8')).toBe('a');
      fs.writeFileSync('./new', 'new');
      expect(fs.readFileSync(path.join(root, 'd/new'), 'utf8')).toBe('new');
      await refuses(() => fs.readFileSync('../../outside/secret'), 'EACCES');
      await refuses(() => fs.writeFileSync('../../outside/new', ''), 'EACCES');
      process.chdir(outside);
      await refuses(() => fs.readFileSync('secret'), 'EACCES');
    } finally {
      process.chdir(before);
    }
  });
});

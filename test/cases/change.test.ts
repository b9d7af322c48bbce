import { execFileSync } from 'node:child_process';
import nodeFs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { Overlay } from '../../src/index.ts';
import { inEveryFace, once, refuses } from './ground.ts';

/** CASES.md, 36, 37, 39 and 40: what exists of them before commit and command line. */
describe('change lists, faults, watching', () => {
  const hard = ['new\nline', 'tab\t', '"quoted"', 'a b', '\u2028', '{"seq":1}', 'back\\slash'];
  inEveryFace('36. keeps names with newlines apart in changes and in the log', {}, async (ground) => {
    for (const name of hard) await ground.face.write(ground.at(name), name);
    const paths = [...ground.overlay.changes()].map((row) => row.path);
    expect(new Set(paths)).toEqual(new Set(hard));
    expect(paths).toHaveLength(hard.length);
    expect(JSON.parse(JSON.stringify(paths))).toEqual(paths);
    await ground.overlay.close();
    const lines = nodeFs.readFileSync(path.join(ground.session, 'log.jsonl'), 'utf8').trimEnd().split('\n');
    const written = lines.map((line) => JSON.parse(line) as { op?: string; path?: string }).filter(({ op }) => op === 'write');
    expect(new Set(written.map((event) => event.path))).toEqual(new Set(hard));
    await ground.reopen();
    expect([...ground.overlay.changes()].map((row) => row.path)).toEqual(paths);
  });

  inEveryFace('39. gives one correct list for a rename followed by an edit', { 'a': 'old', 'd/x': 'x', 'd/y': 'y' }, async ({ at, face, changes }) => {
    await face.rename(at('a'), at('b'));
    await face.write(at('b'), 'edited');
    await face.rename(at('d'), at('e'));
    await face.write(at('e/x'), 'edited');
    expect(changes()).toEqual(['rename b from a', 'rename e from d', 'update e/x']);
    expect(String(await face.read(at('b')))).toBe('edited');
  });

  inEveryFace('39. gives one correct list for a rename and a new file of the old name', { 'a': 'old', 'd/x': 'x' }, async (ground) => {
    const { at } = ground;
    await ground.face.rename(at('a'), at('b'));
    await ground.face.write(at('a'), 'another');
    await ground.face.rename(at('d'), at('e'));
    await ground.face.makeDirectory(at('d'));
    await ground.face.write(at('d/x'), 'another');
    for (const again of [false, true]) {
      if (again) await ground.reopen();
      expect(ground.changes()).toEqual(['create a', 'rename b from a', 'create d', 'create d/x', 'rename e from d']);
      expect(String(await ground.face.read(at('a')))).toBe('another');
      expect(String(await ground.face.read(at('b')))).toBe('old');
      expect(String(await ground.face.read(at('d/x')))).toBe('another');
      expect(String(await ground.face.read(at('e/x')))).toBe('x');
    }
  });

  inEveryFace('39. gives one creation for a file created and then moved', {}, async ({ at, face, changes }) => {
    await face.write(at('a'), 'new');
    await face.rename(at('a'), at('b'));
    expect(changes()).toEqual(['create b']);
    await face.makeDirectory(at('d'));
    await face.write(at('d/x'), 'x');
    await face.rename(at('d'), at('e'));
    expect(changes()).toEqual(['create b', 'create e', 'create e/x']);
    await face.removeFile(at('b'));
    await face.removeTree(at('e'));
    expect(changes()).toEqual([]);
  });

  once('40. tells of a rename as one pair of events', { 'a': 'a', 'd/x': 'x' }, async ({ at, fs }) => {
    const told: string[] = [];
    const watcher = fs.watch(at(''), (event, name) => void told.push(`${event} ${String(name)}`));
    fs.renameSync(at('a'), at('b'));
    await settled(() => told.length >= 2);
    watcher.close();
    expect(told.sort()).toEqual(['rename a', 'rename b']);
  });

  once('40. ends a recursive watch on a renamed directory well', { 'd/e/x': 'x' }, async ({ at, fs }) => {
    const told: string[] = [], errors: unknown[] = [];
    const watcher = fs.watch(at('d'), { recursive: true }, (event, name) => void told.push(`${event} ${String(name)}`));
    watcher.on('error', (error) => errors.push(error));
    fs.writeFileSync(at('d/e/x'), 'changed');
    await settled(() => told.includes('change e/x'));
    fs.renameSync(at('d'), at('moved'));
    fs.mkdirSync(at('d'));
    fs.writeFileSync(at('moved/e/x'), 'changed again');
    await new Promise((resolve) => setTimeout(resolve, 100));
    const closed = new Promise((resolve) => watcher.once('close', resolve));
    watcher.close();
    await closed;
    expect(errors).toEqual([]);
    expect(told).toContain('change e/x');
  });

  async function settled(done: () => boolean): Promise<void> {
    for (const end = Date.now() + 3000; !done() && Date.now() < end;) await new Promise((resolve) => setTimeout(resolve, 10));
    // What comes too much would come now.
    await new Promise((resolve) => setTimeout(resolve, 60));
  }

  describe('37. a full disk under the log', () => {
    /** A file system of `kib` KiB for the session; `undefined` where this user may not mount. */
    function smallDisk(directory: string, kib: number): { unmount(): void } | undefined {
      nodeFs.mkdirSync(directory);
      try {
        execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${kib}k`, 'palimpsest-test', directory], { stdio: 'pipe' });
      } catch (error) {
        if ((error as { status?: number }).status === undefined && (error as { code?: string }).code !== 'ENOENT') throw error;
        return undefined;
      }
      return { unmount: () => void execFileSync('umount', [directory]) };
    }

    for (const durability of ['flush', 'write', 'fsync'] as const) {
      it(`fails the operation that needed it, and is never a stale success later (${durability})`, async (context) => {
        const scratch = nodeFs.realpathSync(nodeFs.mkdtempSync(path.join(os.tmpdir(), 'palimpsest-full-')));
        const root = path.join(scratch, 'root'), disk = path.join(scratch, 'disk');
        nodeFs.mkdirSync(root);
        nodeFs.writeFileSync(path.join(root, 'lower'), 'lower');
        const mounted = smallDisk(disk, 512);
        try {
          if (mounted === undefined) {
            if (process.env['CI'] === 'true') throw new Error('mounting a tmpfs must be possible in CI');
            context.skip('this user may not mount a tmpfs');
            return;
          }
          const open = (): Overlay => Overlay.openSync({ root, session: path.join(disk, 'session'), actor: 'ann', durability });
          const overlay = open();
          const written: string[] = [];
          let failure: unknown;
          for (let index = 0; index < 2000 && failure === undefined; index++) {
            try {
              overlay.fs.writeFileSync(`${root}/f${index}`, Buffer.alloc(2000, `${index} `));
              written.push(`f${index}`);
              if (durability === 'flush' && index % 50 === 49) await overlay.flush();
            } catch (error) {
              failure = error;
            }
          }
          expect(failure).toMatchObject({ code: 'ENOSPC' });
          // From here on nothing may be acknowledged that is not stored.
          await refuses(() => overlay.fs.writeFileSync(`${root}/after`, 'after'), 'ENOSPC');
          await refuses(() => overlay.flush(), 'ENOSPC');
          await Promise.allSettled([overlay.close()]);

          execFileSync('mount', ['-o', 'remount,size=16m', disk]);
          const again = open();
          const there = again.fs.readdirSync(root).filter((name) => name !== 'lower');
          expect(there.every((name) => written.includes(name))).toBe(true);
          // A prefix: nothing is missing between the first and the last that is there.
          expect(there).toHaveLength(Math.max(0, ...there.map((name) => Number(name.slice(1)) + 1)));
          const acknowledged = durability === 'flush' ? Math.floor(written.length / 50) * 50 : written.length;
          expect(there.length).toBeGreaterThanOrEqual(acknowledged);
          for (const name of there) {
            expect(again.fs.readFileSync(`${root}/${name}`).equals(Buffer.alloc(2000, `${name.slice(1)} `))).toBe(true);
          }
          again.fs.writeFileSync(`${root}/after`, 'after');
          await again.close();
          expect(nodeFs.readdirSync(root)).toEqual(['lower']);
        } finally {
          mounted?.unmount();
          nodeFs.rmSync(scratch, { recursive: true, force: true });
        }
      });
    }
  });
});

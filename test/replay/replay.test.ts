import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MomentError, Overlay, verifySession } from '../../src/index.ts';
import { census } from '../model/census.ts';
import { program } from '../model/arbitrary.ts';
import type { NodeFs } from '../model/world.ts';
import { CI_SEED } from '../support/seed.ts';
import { played } from './exported.ts';

/** Random programs, as many as `REPLAY_RUNS` says; a failure prints how it is played again. */
const runs = Number(process.env['REPLAY_RUNS'] ?? 25);
const seed = process.env['CI'] === undefined ? Date.now() | 0 : CI_SEED;

let scratch: string;
beforeAll(() => { scratch = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'palimpsest-replay-'))); });
afterAll(() => fs.rmSync(scratch, { recursive: true, force: true }));

function treeOf(overlay: Overlay): string[] {
  return census(overlay.fs as NodeFs, { root: overlay.mountPoint, since: 0 }, [][Symbol.iterator]());
}

/** What looks at a path tell, one by one; of what was not recorded, that. */
function looksAt({ fs: face }: Overlay, path: string): Record<string, unknown> {
  const look = (act: () => unknown): unknown => {
    try {
      return act();
    } catch (error) {
      return (error as NodeJS.ErrnoException).code;
    }
  };
  return {
    lstat: look(() => { const { mode, uid, gid, size, nlink, ino, mtimeNs } = face.lstatSync(path, { bigint: true }); return [mode, uid, gid, size, nlink, ino, mtimeNs].map(String); }),
    content: look(() => (face.readFileSync(path) as Buffer).toString('base64')),
    list: look(() => face.readdirSync(path)),
    target: look(() => face.readlinkSync(path)),
  };
}

describe('a replayed session', () => {
  it(`shows the tree that the overlay showed, without its root (seed ${seed})`, { timeout: 300_000 }, async () => {
    const root = join(scratch, 'root'), session = join(scratch, 'session');
    await fc.assert(fc.asyncProperty(program(25), async (each) => {
      fs.rmSync(session, { recursive: true, force: true });
      let shown: string[] = [];
      const then: [number, string, Record<string, unknown>][] = [];
      await played(each, root, (overlay) => { shown = treeOf(overlay); }, { session, record: 'content', after: (overlay, step) => {
        const path = 'path' in step && typeof step.path === 'string' ? join(root, step.path) : root, moment = overlay.at(overlay.head.seq);
        if (path.startsWith(root)) then.push([overlay.head.seq, path, looksAt(moment, path)]);
      } });
      fs.renameSync(root, `${root}.gone`);
      try {
        const replayed = Overlay.replaySync(session);
        expect(treeOf(replayed)).toEqual(shown);
        replayed.closeSync();
        for (const [at, path, lived] of then) {
          const moment = Overlay.replaySync(session, { at }), looks = looksAt(moment, path);
          for (const [look, told] of Object.entries(looks)) if (told === 'ERR_NOT_RECORDED') lived[look] = told;
          expect(looks, `${path} after event ${at}`).toEqual(lived);
          moment.closeSync();
        }
        expect(verifySession(session).findings).toEqual([]);
      } finally {
        fs.rmSync(`${root}.gone`, { recursive: true, force: true });
      }
    }), { numRuns: runs, seed });
  });
});

describe('replay', () => {
  let root: string, session: string;
  beforeAll(() => {
    root = join(scratch, 'project');
    session = join(scratch, 'kept');
    fs.mkdirSync(join(root, 'src'), { recursive: true });
    fs.writeFileSync(join(root, 'src/a'), 'a\n');
    fs.writeFileSync(join(root, 'src/b'), 'b\n');
    fs.writeFileSync(join(root, 'secret'), 'hush\n');
    fs.writeFileSync(join(root, 'large'), Buffer.alloc(3 << 20, 'x'));
    fs.symlinkSync('src/a', join(root, 'link'));
    const overlay = Overlay.openSync({ root, session, record: 'content', redact: ['secret'] }), { fs: face } = overlay;
    face.readFileSync(join(root, 'src/a'));
    face.readFileSync(join(root, 'link'));
    face.readFileSync(join(root, 'secret'));
    face.existsSync(join(root, 'src/none'));
    overlay.mark('looked');
    face.readdirSync(join(root, 'src'));
    const fd = face.openSync(join(root, 'large'), 'r');
    face.readSync(fd, Buffer.alloc(10), 0, 10, 2 << 20);
    face.closeSync(fd);
    face.writeFileSync(join(root, 'src/b'), 'B\n');
    face.writeFileSync(join(root, 'new'), 'new\n');
    overlay.closeSync();
    fs.renameSync(root, `${root}.gone`);
  });

  it('reads, lists and compares what was recorded', async () => {
    const overlay = await Overlay.replay(session), { fs: face } = overlay;
    expect(face.readFileSync(join(root, 'link'), 'utf8')).toBe('a\n');
    expect(face.readdirSync(join(root, 'src'))).toEqual(['a', 'b']);
    expect(face.existsSync(join(root, 'src/none'))).toBe(false);
    expect(face.readFileSync(join(root, 'new'), 'utf8')).toBe('new\n');
    expect(overlay.changes().map(({ kind, path }) => `${kind} ${path}`)).toEqual(['create new', 'update src/b']);
    expect(String(overlay.patch())).toContain('-b\n+B\n');
    expect(() => face.writeFileSync(join(root, 'new'), '')).toThrow(expect.objectContaining({ code: 'EROFS' }));
    await overlay.close();
  });

  it('says of what was not recorded that it was not, and takes it for nothing else', async () => {
    const overlay = await Overlay.replay(session), { fs: face } = overlay;
    const unrecorded = (act: () => unknown, words: string): void => {
      expect(act).toThrow(expect.objectContaining({ name: 'NotRecordedError', code: 'ERR_NOT_RECORDED', message: expect.stringContaining(words) as string }));
    };
    unrecorded(() => face.readdirSync(root), 'the list of the directory "" was not recorded');
    unrecorded(() => face.statSync(join(root, 'other')), 'what is at "other" was not recorded');
    unrecorded(() => face.readFileSync(join(root, 'secret')), '"secret" was not recorded');
    expect(face.statSync(join(root, 'secret')).size).toBe(5);
    unrecorded(() => face.readFileSync(join(root, 'large')), 'of "large" was not recorded');
    const fd = face.openSync(join(root, 'large'), 'r'), bytes = Buffer.alloc(4);
    expect(face.readSync(fd, bytes, 0, 4, (2 << 20) + 100)).toBe(4);
    expect(String(bytes)).toBe('xxxx');
    unrecorded(() => face.readSync(fd, bytes, 0, 4, 0), 'what is at byte 0 of "large" was not recorded');
    await expect(face.promises.readFile(join(root, 'other'))).rejects.toMatchObject({ code: 'ERR_NOT_RECORDED' });
    await overlay.close();
  });

  it('shows a moment over what was kept of the lower, before or after it', async () => {
    const overlay = await Overlay.replay(session, { at: 'looked' }), { fs: face } = overlay;
    expect(face.readFileSync(join(root, 'src/a'), 'utf8')).toBe('a\n');
    expect(face.readFileSync(join(root, 'src/b'), 'utf8')).toBe('b\n');
    expect(() => face.readFileSync(join(root, 'other'))).toThrow(expect.objectContaining({ code: 'ERR_NOT_RECORDED' }));
    expect(overlay.at(0).fs.readdirSync(join(root, 'src'))).toEqual(['a', 'b']);
    expect(overlay.changes()).toEqual([]);
    await overlay.close();
    await expect(Overlay.replay(session, { at: 'x' })).rejects.toThrow(MomentError);
    await expect(Overlay.replay(session, { at: 99 })).rejects.toThrow(MomentError);
    await expect(Overlay.replay(join(scratch, 'none'))).rejects.toMatchObject({ code: 'ERR_NO_SESSION' });
  });

  it('of a session without contents shows what is the overlay\'s own, and says so of the rest', async () => {
    const plain = join(scratch, 'plain'), before = `${root}.gone`, overlay = Overlay.openSync({ root: before, session: plain });
    overlay.fs.readFileSync(join(before, 'src/a'));
    overlay.fs.writeFileSync(join(before, 'own'), 'own\n');
    overlay.closeSync();
    const replayed = await Overlay.replay(plain);
    expect(replayed.fs.readFileSync(join(before, 'own'), 'utf8')).toBe('own\n');
    expect(() => replayed.fs.readFileSync(join(before, 'src/a'))).toThrow(expect.objectContaining({ code: 'ERR_NOT_RECORDED' }));
    await replayed.close();
  });
});

import { mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { openDirectoryStore } from '../../src/store/open.ts';
import { verifyLog } from '../../src/store/verify.ts';
import { has, run, script } from './child.ts';
import { HEADER, blob, eventJson, scratch, thrown } from './session.ts';

/** Disks that are full, read-only or not ours, for real; and faults injected at single system calls. */

const mounts: string[] = [];

function mountTmpfs(size: string): string {
  const path = scratch();
  const { status, stderr } = run('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path]);
  if (status !== 0) throw new Error(stderr);
  mounts.push(path);
  return path;
}

function mayMount(): boolean {
  const probe = 'd=$(mktemp -d) && mount -t tmpfs tmpfs "$d" && umount "$d"; s=$?; rmdir "$d"; exit $s';
  return has('sh', ['-c', probe]);
}

afterEach(() => {
  for (const path of mounts.splice(0)) run('umount', [path]);
});

describe.skipIf(!mayMount())('a full disk', () => {
  for (const durability of ['memory', 'flush', 'write', 'fsync'] as const) {
    it(`fails the operation with ENOSPC, then all later ones, and keeps what was acknowledged (${durability})`, () => {
      const top = mountTmpfs('512k'), directory = join(top, 's');
      writeFileSync(join(top, 'ballast'), new Uint8Array(64 * 1024));
      const store = openDirectoryStore({ directory, header: HEADER, durability });
      const fill = `,"fill":"${'x'.repeat(900)}"`;
      const error = thrown(() => {
        for (;;) store.append(eventJson(store.lastSeq + 1, fill));
      });
      expect(error).toMatchObject({ code: 'ENOSPC' });
      const acknowledged = store.lastSeq;
      for (const act of [
        () => store.append(eventJson(acknowledged + 1)), () => store.flush(), () => store.sync(),
        () => store.putBlob(blob(1, 1).digest, blob(1, 1).bytes), () => store.close(),
      ]) expect(thrown(act)).toBe(error);
      store.close();
      rmSync(join(top, 'ballast'));
      expect(verifyLog(directory)).toMatchObject({ damage: undefined, tornBytes: 0 });
      const again = openDirectoryStore({ directory, header: HEADER });
      // What waits may be lost with these two, and is told to be by the error.
      const waiting = durability === 'memory' || durability === 'flush' ? 70 : 0;
      expect(again.lastSeq).toBeGreaterThanOrEqual(acknowledged - waiting);
      expect(again.lastSeq).toBeLessThanOrEqual(acknowledged);
      expect([...again.read()]).toHaveLength(again.lastSeq);
      again.append(eventJson(again.lastSeq + 1));
      again.close();
    });
  }

  it('found when nobody waited for the write fails the next call', async () => {
    const top = mountTmpfs('512k'), directory = join(top, 's');
    const store = openDirectoryStore({ directory, header: HEADER });
    thrown(() => writeFileSync(join(top, 'ballast'), new Uint8Array(1024 * 1024)));
    for (let seq = 1; seq <= 200; seq++) store.append(eventJson(seq));
    await new Promise((resolve) => setTimeout(resolve, 200));
    const error = thrown(() => store.append(eventJson(201)));
    expect(error).toMatchObject({ code: 'ENOSPC' });
    expect(thrown(() => store.close())).toBe(error);
    rmSync(join(top, 'ballast'));
    expect(verifyLog(directory)).toMatchObject({ tornBytes: 0, damage: undefined });
  });

  it('refuses a large blob and goes on without it; a packed one that cannot be written ends the session', () => {
    const top = mountTmpfs('512k'), directory = join(top, 's');
    const store = openDirectoryStore({ directory, header: HEADER });
    const large = blob(1, 600_000), small = blob(2, 30_000);
    expect(thrown(() => store.putBlob(large.digest, large.bytes))).toMatchObject({ code: 'ENOSPC' });
    expect(store.hasBlob(large.digest)).toBe(false);
    expect(readdirSync(join(directory, 'blobs'))).toEqual([]);
    store.append(eventJson(1));
    store.putBlob(small.digest, small.bytes);
    store.flush();
    const error = thrown(() => {
      for (let i = 3; i < 100; i++) store.putBlob(blob(i, 30_000).digest, blob(i, 30_000).bytes);
    });
    expect(error).toMatchObject({ code: 'ENOSPC' });
    expect(thrown(() => store.append(eventJson(2)))).toBe(error);
    expect(thrown(() => store.close())).toBe(error);
    const reader = openDirectoryStore({ directory, readOnly: true });
    expect(reader.lastSeq).toBe(1);
    expect(reader.getBlob(small.digest)).toEqual(small.bytes);
    reader.close();
  });

  it('leaves nothing half made of a new session', () => {
    const top = mountTmpfs('64k');
    writeFileSync(join(top, 'ballast'), new Uint8Array(48 * 1024));
    mkdirSync(join(top, 'own'));
    thrown(() => writeFileSync(join(top, 'more'), new Uint8Array(64 * 1024)));
    for (const directory of [join(top, 'a', 'b'), join(top, 'own')]) {
      expect(thrown(() => openDirectoryStore({ directory, header: HEADER }))).toMatchObject({
        code: 'ERR_SESSION_DIRECTORY', message: expect.stringContaining('no space left for it (ENOSPC)') as string });
    }
    expect(readdirSync(top, { recursive: true, encoding: 'utf8' }).sort()).toEqual(['ballast', 'more', 'own']);
  });

  it('that is read-only is refused by name for writing, and read', () => {
    const top = mountTmpfs('512k'), directory = join(top, 's');
    const store = openDirectoryStore({ directory, header: HEADER });
    store.append(eventJson(1));
    store.close();
    expect(run('mount', ['-o', 'remount,ro', top]).status).toBe(0);
    for (const path of [directory, join(top, 'new')]) {
      expect(thrown(() => openDirectoryStore({ directory: path, header: HEADER }))).toMatchObject({
        code: 'ERR_SESSION_DIRECTORY', message: `session ${path}: is on a read-only file system (EROFS)` });
    }
    const reader = openDirectoryStore({ directory, readOnly: true });
    expect([...reader.read()]).toHaveLength(1);
    reader.close();
    expect(readdirSync(top)).toEqual(['s']);
  });
});

describe('a session directory that cannot be used', () => {
  it('is refused by name where a file is in its place or in its way', () => {
    const top = scratch();
    writeFileSync(join(top, 'file'), 'mine');
    for (const path of [join(top, 'file'), join(top, 'file', 'below')]) {
      expect(thrown(() => openDirectoryStore({ directory: path, header: HEADER }))).toMatchObject({
        code: 'ERR_SESSION_DIRECTORY', message: `session ${path}: is not a directory (ENOTDIR)` });
      expect(thrown(() => openDirectoryStore({ directory: path, readOnly: true }))).toMatchObject({ code: 'ERR_NO_SESSION' });
    }
    expect(readFileSync(join(top, 'file'), 'utf8')).toBe('mine');
  });

  it('is refused by name without permission, and nothing is made', () => {
    const top = scratch(), directory = join(top, 's');
    openDirectoryStore({ directory, header: HEADER }).close();
    run('chmod', ['755', top, directory]);
    const path = script(`
      for (const [directory, readOnly] of [[process.argv[2] + '/s', false], [process.argv[2] + '/s', true], [process.argv[2] + '/new', false]]) {
        try {
          openDirectoryStore({ directory, header: HEADER, readOnly });
          console.log('opened');
        } catch (error) {
          console.log(error.code, error.message.slice(error.message.indexOf(': ') + 2));
        }
      }
    `);
    const isRoot = process.getuid?.() === 0;
    if (!isRoot) run('chmod', ['500', top, directory]);
    if (!isRoot) run('chmod', ['000', join(directory, 'log.jsonl')]);
    const { stdout } = run(process.execPath, [path, top], isRoot ? { uid: 65534 } : {});
    expect(stdout.trim().split('\n')).toEqual(Array.from({ length: 3 }, () => 'ERR_SESSION_DIRECTORY permission denied (EACCES)'));
    run('chmod', ['700', top, directory]);
    expect(readdirSync(top)).toEqual(['s']);
    expect(readdirSync(directory)).toEqual(['log.jsonl']);
  }, 20_000);
});

/** Appends events with a blob each; prints `ok SEQ`, or the fault's code and what the next calls say. */
const WRITER = `
  import { writeSync } from 'node:fs';
  const [, , directory, durability] = process.argv;
  const say = (text) => writeSync(1, text + '\\n');
  const store = openDirectoryStore({ directory, header: HEADER, durability });
  const attempt = (act) => {
    try {
      act();
      return 'ok';
    } catch (error) {
      return error.code;
    }
  };
  for (let i = 1; i <= 6; i++) {
    const seq = store.lastSeq + 1;
    const bytes = Buffer.from('content of ' + i), digest = digestOf(bytes);
    say(attempt(() => {
      store.putBlob(digest, bytes);
      store.append(eventJson(seq, ',"blob":"' + digest + '"'));
    }));
  }
  say(attempt(() => store.close()));
`;

describe.skipIf(!has('strace', ['-V']))('a fault in a write', () => {
  const faults = [
    ...[3, 4, 7, 10].map((when) => ({ call: 'pwrite64', code: 'ENOSPC', when, durability: 'write' })),
    ...[3, 6].map((when) => ({ call: 'pwrite64', code: 'EROFS', when, durability: 'fsync' })),
    ...[2, 3, 6, 9].map((when) => ({ call: 'fdatasync', code: 'EIO', when, durability: 'fsync' })),
    // With flush nothing is written before the end: all six events are accepted, and close says that they are lost.
    { call: 'pwrite64', code: 'EDQUOT', when: 3, durability: 'flush' },
  ];
  for (const { call, code, when, durability } of faults) {
    it(`(${code} from ${call} number ${when}, ${durability}) fails that call and every later one; the log has just the others`, () => {
      const directory = join(scratch(), 's');
      const { stdout, stderr } = run('strace', ['-f', '-o', '/dev/null', '-e', `trace=${call}`,
        '-e', `inject=${call}:error=${code}:when=${when}`, process.execPath, script(WRITER), directory, durability]);
      expect(stderr).toBe('');
      // The log's header and the pack's magic are the first two writes of a session.
      const said = stdout.trim().split('\n'), first = said.indexOf(code);
      expect(said).toHaveLength(7);
      expect(said.slice(first)).toEqual(said.slice(first).map(() => code));
      expect(said.slice(0, first)).toEqual(said.slice(0, first).map(() => 'ok'));
      expect(verifyLog(directory)).toMatchObject({ tornBytes: 0, damage: undefined });
      const store = openDirectoryStore({ directory, header: HEADER });
      expect(store.lastSeq).toBe(durability === 'flush' ? 0 : first);
      for (const text of store.read()) store.getBlob((JSON.parse(text) as { blob: ReturnType<typeof blob>['digest'] }).blob);
      expect(statSync(join(directory, 'log.jsonl')).size).toBeGreaterThan(100);
      store.close();
    }, 30_000);
  }

  it('that begins a pack fails that blob alone, since nothing that was taken is lost', () => {
    const directory = join(scratch(), 's');
    const { stdout } = run('strace', ['-f', '-o', '/dev/null', '-e', 'trace=pwrite64',
      '-e', 'inject=pwrite64:error=ENOSPC:when=2', process.execPath, script(WRITER), directory, 'write']);
    expect(stdout.trim().split('\n')).toEqual(['ENOSPC', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok']);
    const store = openDirectoryStore({ directory, header: HEADER });
    expect(store.lastSeq).toBe(5);
    for (const text of store.read()) store.getBlob((JSON.parse(text) as { blob: ReturnType<typeof blob>['digest'] }).blob);
    store.close();
  }, 30_000);
});

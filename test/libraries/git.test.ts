import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import git from 'isomorphic-git';
import { describe, expect, it } from 'vitest';
import { WORK_MS, cloneInto, onBoth, treeOf, twin, type Fs, type Side } from './twin.ts';

const author = { name: 'A. Scribe', email: 'scribe@example.org', timestamp: 1_700_000_000, timezoneOffset: 0 };
/** git's index holds inode numbers and times, which are each side's own. */
const isIndex = (path: string): boolean => path === '.git/index';

/** isomorphic-git takes `promises` where it finds it; without, it wraps the callbacks. */
const faces: readonly [string, (fs: Fs) => git.FsClient][] = [
  ['promises', (fs) => ({ promises: fs.promises })],
  ['callbacks', (fs) => ({
    readFile: fs.readFile, writeFile: fs.writeFile, mkdir: fs.mkdir, rmdir: fs.rmdir, unlink: fs.unlink, stat: fs.stat,
    lstat: fs.lstat, readdir: fs.readdir, readlink: fs.readlink, symlink: fs.symlink, rm: fs.rm,
  }) as unknown as git.FsClient],
];

describe.each(faces)('isomorphic-git over %s', (_, face) => {
  it('makes a repository, commits and lists it', { timeout: WORK_MS }, async () => {
    const { sides } = twin(() => {});
    const [ours, real] = await onBoth(sides, async ({ fs, dir }) => {
      const repository = { fs: face(fs), dir };
      await git.init({ ...repository, defaultBranch: 'main' });
      fs.mkdirSync(join(dir, 'deep/er'), { recursive: true });
      fs.writeFileSync(join(dir, 'deep/er/script'), '#!/bin/sh\n', { mode: 0o755 });
      fs.symlinkSync('deep/er/script', join(dir, 'link'));
      await git.add({ ...repository, filepath: '.' });
      const oid = await git.commit({ ...repository, author, message: 'first' });
      return { oid, files: await git.listFiles(repository), status: await git.statusMatrix(repository) };
    });
    expect(ours).toEqual(real);
    expect(ours.files).toEqual(['deep/er/script', 'link']);
    expect(treeOf(sides[0], isIndex)).toEqual(treeOf(sides[1], isIndex));
  });

  it('works on a real checkout as on the real fs: status, add, remove, commit, branch, checkout, log', { timeout: WORK_MS }, async () => {
    const { sides } = twin(cloneInto);
    const [ours, real] = await onBoth(sides, (side) => workday(side, face(side.fs)));
    expect(ours).toEqual(real);
    expect(ours.clean).toEqual([]);
    expect(ours.dirty).toHaveLength(4);
    expect(treeOf(sides[0], isIndex)).toEqual(treeOf(sides[1], isIndex));
    expect(gitSays(sides[0])).toEqual(gitSays(sides[1]));
  });
});

/** A day's work, and what the library said on the way. */
async function workday({ fs, dir }: Side, client: git.FsClient): Promise<Record<string, unknown> & { clean: unknown[]; dirty: unknown[] }> {
  const repository = { fs: client, dir };
  const changed = async (): Promise<unknown[]> =>
    (await git.statusMatrix(repository)).filter(([, head, workdir, stage]) => head !== 1 || workdir !== 1 || stage !== 1);
  const clean = await changed();
  const start = await git.resolveRef({ ...repository, ref: 'HEAD' });

  fs.appendFileSync(join(dir, 'LICENSE'), '\nAnd one more line.\n');
  fs.rmSync(join(dir, 'CHANGELOG.md'));
  fs.mkdirSync(join(dir, 'src/new'));
  fs.writeFileSync(join(dir, 'src/new/file.ts'), 'export {};\n');
  fs.renameSync(join(dir, 'tsconfig.build.json'), join(dir, 'src/new/build.json'));
  await git.add({ ...repository, filepath: ['LICENSE', 'src/new'] });
  await git.remove({ ...repository, filepath: 'CHANGELOG.md' });
  const dirty = (await changed()).filter((row) => !String(row).startsWith('tsconfig.build.json'));

  await git.remove({ ...repository, filepath: 'tsconfig.build.json' });
  const commit = await git.commit({ ...repository, author, message: 'a day of work' });
  const branches = [await git.currentBranch(repository)];
  await git.branch({ ...repository, ref: 'earlier', object: start });
  await git.checkout({ ...repository, ref: 'earlier' });
  branches.push(await git.currentBranch(repository));
  const restored = [fs.existsSync(join(dir, 'CHANGELOG.md')), fs.existsSync(join(dir, 'src/new/file.ts'))];
  const log = await git.log({ ...repository, ref: commit, depth: 5 });
  return { clean, dirty, commit, branches, restored, again: await changed(), log: log.map(({ oid }) => oid), list: await git.listBranches(repository) };
}

/** What git itself says of the repository, once all of it is copied out to a directory of its own. */
function gitSays({ fs, dir }: Side): string[] {
  const copy = mkdtempSync(join(tmpdir(), 'palimpsest-git-'));
  try {
    for (const [path, what] of Object.entries(treeOf({ fs, dir }))) {
      const [type, detail = ''] = what.split(' ');
      if (type === 'directory') mkdirSync(join(copy, path), { recursive: true });
      else if (type === 'symlink') symlinkSync(detail, join(copy, path));
      else writeFileSync(join(copy, path), fs.readFileSync(join(dir, path)), { mode: Number.parseInt(detail, 8) });
    }
    const run = (...args: string[]): string => execFileSync('git', ['-C', copy, ...args], { encoding: 'utf8', stdio: 'pipe' });
    return [run('fsck', '--full'), run('status', '--porcelain'), run('log', '-3', '--format=%H %s'), run('branch')];
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

import {
  chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, unlinkSync, utimesSync, writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openDirectoryLower } from '../../src/lower/directory.ts';
import type { DirectoryLowerOptions } from '../../src/lower/directory.ts';
import type { Lower } from '../../src/lower/lower.ts';
import { at, kept, outcome, plant, planted, temporary } from './ground.ts';

const DEEP = 'a/b/c/d/e';
/** More looks than it takes until a directory's names are read and remembered. */
const MANY_LOOKS = 15;

/** Waits until directories changed so far are older than the look that would not trust them. */
async function settle(): Promise<void> {
  await new Promise((resolve) => { setTimeout(resolve, 30); });
}

/** Looks in every directory of `DEEP` until all that can be held and remembered is. */
async function warm(lower: Lower): Promise<void> {
  await settle();
  for (let look = 0; look < MANY_LOOKS; look++) {
    for (let path = DEEP; path !== ''; path = path.slice(0, Math.max(path.lastIndexOf('/'), 0))) {
      outcome(() => lower.slurp(at(`${path}/x`), 100));
      outcome(() => lower.lstat(at(`${path}/missing`)));
      outcome(() => lower.list(at(path)));
    }
    outcome(() => lower.lstat(at('missing')));
  }
}

let ticks = 0;

const MODES: readonly (readonly [string, DirectoryLowerOptions])[] = [
  ['by descriptors', { by: 'descriptors' }],
  ['by descriptors, no directory old enough to be trusted', { by: 'descriptors', clock: () => ticks++ }],
  ['by one descriptor', { by: 'descriptors', descriptors: 1 }],
  ['by checks', { by: 'checks' }],
];

describe.each(MODES)('a lower %s sees at once what outsiders did', (_, options) => {
  async function ground(): Promise<{ root: string; lower: Lower; read: (path: string) => unknown }> {
    const root = planted(Object.fromEntries(['a', 'a/b', 'a/b/c', 'a/b/c/d', DEEP].map((path) => [`${path}/x`, `old ${path}`])));
    const lower = kept(openDirectoryLower(root, options));
    await warm(lower);
    return { root, lower, read: (path) => outcome(() => lower.slurp(at(path), 100)) };
  }

  const ancestors = ['a', 'a/b', 'a/b/c', 'a/b/c/d', DEEP];
  const pairs = ancestors.flatMap((moved, index) => ancestors.slice(index).map((asked) => [moved, asked] as const));

  it.each(pairs)('%s renamed away: %s/x is gone', async (moved, asked) => {
    const { root, lower, read } = await ground();
    renameSync(join(root, moved), join(root, 'away'));
    expect(read(`${asked}/x`)).toBe('unwalkable');
    expect(outcome(() => lower.lstat(at(`${asked}/missing`)))).toBe('unwalkable');
    expect(outcome(() => lower.list(at(asked)))).toBe(asked === moved ? 'refused ENOENT' : 'refused ENOTDIR');
    expect(read(`away${asked.slice(moved.length)}/x`)).toBe(`whole: old ${asked}`);
  });

  it.each(pairs)('%s renamed and a symlink to the outside in its place: %s/x is not reached', async (moved, asked) => {
    const { root, lower, read } = await ground();
    const outside = planted({ [`${asked.slice(moved.length)}/x`]: 'secret', [`${asked.slice(moved.length)}/missing`]: 'secret' });
    renameSync(join(root, moved), join(root, 'away'));
    symlinkSync(outside, join(root, moved));
    expect(read(`${asked}/x`)).toBe('unwalkable');
    expect(read(`${asked}/missing`)).toBe('unwalkable');
    expect(outcome(() => lower.list(at(asked)))).toBe('refused ENOTDIR');
  });

  it.each(pairs)('%s renamed and a symlink to it left behind: %s/x is not reached', async (moved, asked) => {
    const { root, lower, read } = await ground();
    renameSync(join(root, moved), join(root, 'away'));
    symlinkSync(join(root, 'away'), join(root, moved));
    expect(read(`${asked}/x`)).toBe('unwalkable');
    expect(outcome(() => lower.lstat(at(`${asked}/x`)))).toBe('unwalkable');
    expect(outcome(() => lower.list(at(asked)))).toBe('refused ENOTDIR');
    expect(outcome(() => lower.lstat(at(moved)))).toBe('a symlink');
  });

  it.each(pairs)('%s replaced by another tree: %s shows the new one', async (moved, asked) => {
    const { root, lower, read } = await ground();
    rmSync(join(root, moved), { recursive: true });
    plant(root, { [`${asked}/x`]: 'new', [`${asked}/missing`]: 'found' });
    expect(read(`${asked}/x`)).toBe('whole: new');
    expect(read(`${asked}/missing`)).toBe('whole: found');
    expect(outcome(() => lower.list(at(asked)))).toEqual(['missing file', 'x file']);
  });

  it.each(pairs)('%s exchanged with another directory and back: %s keeps up', async (moved, asked) => {
    const { root, read } = await ground();
    plant(root, { [`other${asked.slice(moved.length)}/x`]: 'other' });
    for (let turn = 0; turn < 4; turn++) {
      renameSync(join(root, moved), join(root, 'aside'));
      renameSync(join(root, 'other'), join(root, moved));
      renameSync(join(root, 'aside'), join(root, 'other'));
      expect(read(`${asked}/x`)).toBe(turn % 2 === 0 ? 'whole: other' : `whole: old ${asked}`);
    }
  });

  it.each(['', ...ancestors])('a file created, overwritten, replaced and removed in "%s"', async (directory) => {
    const { root, lower, read } = await ground();
    const path = directory === '' ? 'missing' : `${directory}/missing`;
    const real = join(root, path);
    expect(read(path)).toBe('absent');
    writeFileSync(real, 'one');
    expect(read(path)).toBe('whole: one');
    writeFileSync(real, 'another');
    expect(read(path)).toBe('whole: another');
    writeFileSync(real + '~', 'third');
    renameSync(real + '~', real);
    expect(read(path)).toBe('whole: third');
    unlinkSync(real);
    expect(read(path)).toBe('absent');
    symlinkSync('x', real);
    expect(read(path)).toBe('a symlink');
    unlinkSync(real);
    mkdirSync(real);
    expect(read(path)).toBe('a directory');
    expect(outcome(() => lower.lstat(at(`${path}/x`)))).toBe('absent');
    expect(outcome(() => lower.list(at(directory)))).toContain('missing directory');
  });

  it.each(['', ...ancestors])('names that come and go in "%s" faster than the clock ticks', async (directory) => {
    const { root, lower } = await ground();
    for (let turn = 0; turn < 300; turn++) {
      const path = directory === '' ? `n${turn}` : `${directory}/n${turn}`;
      expect(outcome(() => lower.lstat(at(path)))).toBe('absent');
      writeFileSync(join(root, path), '');
      expect(outcome(() => lower.lstat(at(path)))).toBe('a file');
      if (turn % 2 === 0) unlinkSync(join(root, path));
      expect(outcome(() => lower.lstat(at(path)))).toBe(turn % 2 === 0 ? 'absent' : 'a file');
    }
  });

  it('names that come and go while the modification time of the directory is put back', async () => {
    const { root, read } = await ground();
    const { atime, mtime } = statSync(join(root, DEEP));
    await settle();
    writeFileSync(join(root, DEEP, 'missing'), 'one');
    utimesSync(join(root, DEEP), atime, mtime);
    expect(read(`${DEEP}/missing`)).toBe('whole: one');
  });

  it('a directory whose mode was changed', async () => {
    const { root, read } = await ground();
    chmodSync(join(root, DEEP), 0o700);
    expect(read(`${DEEP}/x`)).toBe(`whole: old ${DEEP}`);
  });

  it('a root that was moved away or replaced: EIO, never another tree', async () => {
    const { root, lower, read } = await ground();
    const away = join(temporary(), 'away');
    renameSync(root, away);
    // The root's own place is looked at once a ms.
    await settle();
    for (const directory of ancestors) expect(read(`${directory}/x`)).toBe('refused EIO');
    mkdirSync(root);
    plant(root, { 'a/x': 'another tree' });
    expect(read('a/x')).toBe('refused EIO');
    expect(outcome(() => lower.lstat(at('')))).toBe('refused EIO');
    expect(outcome(() => lower.list(at('')))).toBe('refused EIO');
    rmSync(root, { recursive: true });
    symlinkSync(away, root);
    expect(read('a/x')).toBe('refused EIO');
    unlinkSync(root);
    renameSync(away, root);
    await settle();
    expect(read('a/x')).toBe('whole: old a');
  });

  it('a directory called as the kernel calls a removed one', async () => {
    const { root, read } = await ground();
    plant(root, { 'a/b/c/f (deleted)/x': 'named so' });
    await settle();
    for (let look = 0; look < MANY_LOOKS; look++) expect(read('a/b/c/f (deleted)/x')).toBe('whole: named so');
    renameSync(join(root, 'a/b/c/f (deleted)'), join(root, 'a/b/c/f'));
    rmSync(join(root, 'a/b/c/f'), { recursive: true });
    expect(read('a/b/c/f (deleted)/x')).toBe('unwalkable');
  });
});

it('never changes what it reads', async () => {
  const root = planted({ 'a/x': 'text' });
  const old = new Date(1e12);
  utimesSync(join(root, 'a/x'), old, old);
  const before = [root, join(root, 'a'), join(root, 'a/x')].map((path) => statSync(path, { bigint: true }));
  await settle();
  const lower = kept(openDirectoryLower(root, { by: 'descriptors' }));
  for (let look = 0; look < MANY_LOOKS; look++) {
    outcome(() => lower.slurp(at('a/x'), 100));
    outcome(() => lower.open(at('a/x')));
  }
  const after = statSync(join(root, 'a/x'), { bigint: true });
  expect(after).toEqual(before[2]);
  expect(statSync(root, { bigint: true }).ctimeNs).toBe(before[0]?.ctimeNs);
  expect(readFileSync(join(root, 'a/x'), 'utf8')).toBe('text');
});

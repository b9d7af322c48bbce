import nodeFs from 'node:fs';
import { join } from 'node:path';
import { Volume } from 'memfs';
import { Union } from 'unionfs';
import { describe, expect, it } from 'vitest';
import { sameFingerprint } from '../../src/core/attr.ts';
import { openDirectoryLower } from '../../src/lower/directory.ts';
import type { Lower } from '../../src/lower/lower.ts';
import { fsShapedLower } from '../../src/lower/shaped.ts';
import { stackLowers } from '../../src/lower/stack.ts';
import { at, kept, outcome, plant, planted } from './ground.ts';
import type { Plan } from './ground.ts';

const PLAN: Plan = {
  'file': 'top',
  'empty': '',
  'd/x': 'in d',
  'd/e/y': 'in d/e',
  'd/e/long': 'a text of more than twenty bytes',
  'd/none': null,
  'd/link': { link: 'x' },
  'd/dangling': { link: 'nowhere' },
  'd/up': { link: '../file' },
  'out': { link: '/etc' },
  'loop': { link: 'loop' },
  'same': { link: 'd' },
};

/** The same tree in two layers; what the upper one hides must not show. */
const UPPER: Plan = { 'd/x': 'in d', 'd/link': { link: 'x' }, 'd/e/long': 'a text of more than twenty bytes', 'same': { link: 'd' } };
const BENEATH: Plan = {
  ...Object.fromEntries(Object.entries(PLAN).filter(([path]) => !(path in UPPER))),
  'd/x': 'hidden', 'same/hidden': 'hidden', 'd/link/hidden': 'hidden',
};

const IMPLEMENTATIONS: readonly (readonly [string, () => Lower])[] = [
  ['a directory by descriptors', () => openDirectoryLower(planted(PLAN), { by: 'descriptors' })],
  ['a directory by few descriptors', () => openDirectoryLower(planted(PLAN), { by: 'descriptors', descriptors: 1 })],
  ['a directory by checks', () => openDirectoryLower(planted(PLAN), { by: 'checks' })],
  ['a stack of two directories', () =>
    stackLowers([openDirectoryLower(planted(UPPER)), openDirectoryLower(planted(BENEATH))])],
  ['a stack with an empty directory above and below', () =>
    stackLowers([openDirectoryLower(planted({})), openDirectoryLower(planted(PLAN)), openDirectoryLower(planted({}))])],
  ['a stack of a Volume over a directory', () => stackLowers([volume(UPPER), openDirectoryLower(planted(BENEATH))])],
  ['a memfs Volume', () => volume(PLAN)],
  ['node:fs below a directory', () => fsShapedLower(nodeFs, planted(PLAN))],
  ['a unionfs over a Volume and node:fs', () => {
    const root = planted(PLAN);
    return fsShapedLower(new Union().use(nodeFs).use(new Volume() as unknown as typeof nodeFs), root);
  }],
];

function volume(plan: Plan): Lower {
  const made = new Volume();
  plant('/', plan, made);
  return fsShapedLower(made);
}

type Call = readonly [string, (lower: Lower) => unknown, unknown];

const CALLS: readonly Call[] = [
  ['lstat of the root', (lower) => lower.lstat(at('')), 'a directory'],
  ['lstat of a file', (lower) => lower.lstat(at('d/e/y')), 'a file'],
  ['lstat of a directory', (lower) => lower.lstat(at('d/e')), 'a directory'],
  ['lstat of a symlink to a file', (lower) => lower.lstat(at('d/link')), 'a symlink'],
  ['lstat of a symlink to a directory', (lower) => lower.lstat(at('same')), 'a symlink'],
  ['lstat of a dangling symlink', (lower) => lower.lstat(at('d/dangling')), 'a symlink'],
  ['lstat of a loop', (lower) => lower.lstat(at('loop')), 'a symlink'],
  ['lstat of nothing', (lower) => lower.lstat(at('nothing')), 'absent'],
  ['lstat of nothing in a directory', (lower) => lower.lstat(at('d/e/nothing')), 'absent'],
  ['lstat below nothing', (lower) => lower.lstat(at('nothing/x')), 'unwalkable'],
  ['lstat far below nothing', (lower) => lower.lstat(at('d/nothing/x/y/z')), 'unwalkable'],
  ['lstat below a file', (lower) => lower.lstat(at('file/x')), 'unwalkable'],
  ['lstat below a symlink to a directory', (lower) => lower.lstat(at('same/x')), 'unwalkable'],
  ['lstat below a symlink to the outside', (lower) => lower.lstat(at('out/passwd')), 'unwalkable'],
  ['lstat below a loop', (lower) => lower.lstat(at('loop/x')), 'unwalkable'],
  ['slurp of a file', (lower) => lower.slurp(at('d/x'), 20), 'whole: in d'],
  ['slurp of an empty file', (lower) => lower.slurp(at('empty'), 20), 'whole: '],
  ['slurp of a file beyond the limit', (lower) => lower.slurp(at('d/e/long'), 20), 'open: a text of more than twenty bytes'],
  ['slurp of a file just at the limit', (lower) => lower.slurp(at('d/e/long'), 32), 'whole: a text of more than twenty bytes'],
  ['slurp of a directory', (lower) => lower.slurp(at('d'), 20), 'a directory'],
  ['slurp of the root', (lower) => lower.slurp(at(''), 20), 'a directory'],
  ['slurp of a symlink', (lower) => lower.slurp(at('d/up'), 20), 'a symlink'],
  ['slurp of nothing', (lower) => lower.slurp(at('d/nothing'), 20), 'absent'],
  ['slurp below a symlink', (lower) => lower.slurp(at('same/x'), 20), 'unwalkable'],
  ['open of a file', (lower) => lower.open(at('d/e/y')), 'open: in d/e'],
  ['open of a directory', (lower) => lower.open(at('d/e')), 'a directory'],
  ['open of a symlink', (lower) => lower.open(at('d/link')), 'a symlink'],
  ['open of nothing', (lower) => lower.open(at('nothing')), 'absent'],
  ['open below the outside', (lower) => lower.open(at('out/passwd')), 'unwalkable'],
  ['readlink of a symlink', (lower) => lower.readlink(at('d/up')), '../file'],
  ['readlink of an absolute symlink', (lower) => lower.readlink(at('out')), '/etc'],
  ['readlink of a file', (lower) => lower.readlink(at('d/x')), 'refused EINVAL'],
  ['readlink of a directory', (lower) => lower.readlink(at('d')), 'refused EINVAL'],
  ['readlink of the root', (lower) => lower.readlink(at('')), 'refused EINVAL'],
  ['readlink of nothing', (lower) => lower.readlink(at('nothing')), 'refused ENOENT'],
  ['readlink below a symlink', (lower) => lower.readlink(at('same/link')), 'refused ENOENT'],
  ['list of the root', (lower) => lower.list(at('')),
    ['d directory', 'empty file', 'file file', 'loop symlink', 'out symlink', 'same symlink']],
  ['list of a directory', (lower) => lower.list(at('d')),
    ['dangling symlink', 'e directory', 'link symlink', 'none directory', 'up symlink', 'x file']],
  ['list of an empty directory', (lower) => lower.list(at('d/none')), []],
  ['list of a file', (lower) => lower.list(at('file')), 'refused ENOTDIR'],
  ['list of a symlink to a directory', (lower) => lower.list(at('same')), 'refused ENOTDIR'],
  ['list of nothing', (lower) => lower.list(at('nothing')), 'refused ENOENT'],
  ['list below a symlink', (lower) => lower.list(at('same/e')), 'refused ENOTDIR'],
];

describe.each(IMPLEMENTATIONS)('%s', (_, make) => {
  it.each(CALLS)('answers %s', (_name, call, expected) => {
    const lower = kept(make());
    expect(outcome(() => call(lower))).toEqual(expected);
  });

  it('answers each call the same the first, the second and the fiftieth time, names being remembered or not', () => {
    const lower = kept(make());
    for (let round = 0; round < 50; round++) {
      for (const [name, call, expected] of CALLS) expect([name, outcome(() => call(lower))]).toEqual([name, expected]);
    }
  });

  it('reads any part of an open file, and nothing behind its end', () => {
    const file = kept(make()).open(at('d/e/long'));
    if (typeof file === 'string' || !('kind' in file)) throw new Error('not opened');
    const into = Buffer.alloc(10, '.');
    expect(file.read(into, 2, 5, 2)).toBe(5);
    expect(into.toString()).toBe('..text ...');
    expect(file.read(into, 0, 10, 30)).toBe(2);
    expect(file.read(into, 0, 10, 32)).toBe(0);
    expect(file.read(into, 0, 10, 2 ** 33)).toBe(0);
    expect(file.read(into, 0, 0, 0)).toBe(0);
    expect(sameFingerprint(file.restat(), file.attr)).toBe(true);
    file.close();
    file.close();
    expect(outcome(() => file.read(into, 0, 1, 0))).toBe('refused EBADF');
    expect(outcome(() => file.restat())).toBe('refused EBADF');
  });

  it('reads without blocking', async () => {
    const file = kept(make()).open(at('d/e/long'));
    if (typeof file === 'string' || !('kind' in file)) throw new Error('not opened');
    const into = Buffer.alloc(6);
    expect(await file.readLater(into, 0, 6, 2)).toBe(6);
    expect(into.toString()).toBe('text o');
    expect(await file.readLater(into, 0, 0, 2)).toBe(0);
    file.close();
    await expect((async () => file.readLater(into, 0, 6, 2))()).rejects.toMatchObject({ code: 'EBADF' });
  });

  it('keeps an open file readable after the lower is closed', () => {
    const lower = make();
    const file = lower.open(at('d/x'));
    lower.close();
    expect(outcome(() => file)).toBe('open: in d');
  });

  it('tells of the file system', () => {
    expect(kept(make()).statfs().bsize).toBeGreaterThan(0n);
  });
});

it('refuses a root that does not exist or is no directory, by name', () => {
  const root = planted({ file: '' });
  const shaped = (path: string) => () => fsShapedLower(nodeFs, path);
  const opened = (path: string) => () => openDirectoryLower(path);
  for (const make of [shaped, opened]) {
    expect(make(join(root, 'none'))).toThrow(expect.objectContaining({ code: 'ENOENT', message: expect.stringContaining('none') }));
    expect(make(join(root, 'file'))).toThrow(expect.objectContaining({ code: 'ENOTDIR', message: expect.stringContaining('file') }));
  }
});

it('is called by the real path of its directory, several joined by a colon', () => {
  const root = planted({ 'd/e': null, 'l': { link: 'd' } });
  const one = kept(openDirectoryLower(join(root, 'l')));
  expect(one.root).toBe(join(root, 'd'));
  expect(stackLowers([one, kept(openDirectoryLower(root))]).root).toBe(`${join(root, 'd')}:${root}`);
});

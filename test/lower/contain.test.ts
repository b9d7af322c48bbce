import { spawn } from 'node:child_process';
import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openDirectoryLower } from '../../src/lower/directory.ts';
import type { Lower } from '../../src/lower/lower.ts';
import { at, kept, outcome, plant, planted, temporary } from './ground.ts';

const SECRET = 'the secret outside';
const READS = 6_000;
const PATIENCE = 20;

/** Runs `body` in a process of its own until the test is over; resolves when that has begun. */
async function meanwhile(body: string): Promise<void> {
  const script = `import * as fs from 'node:fs'; process.stdout.write('begun'); for (;;) { ${body} }`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  }));
  await new Promise((resolve) => { child.stdout.once('data', resolve); });
}

/** Asks over and over, in every way there is; gives how often each outcome came. */
function ask(lower: Lower, path: string, wanted: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  const slash = path.lastIndexOf('/');
  const ways = [
    () => lower.slurp(at(path), 100),
    () => lower.open(at(path)),
    () => lower.list(at(path.slice(0, slash))),
    () => lower.slurp(at(path.slice(0, slash)), 100),
    () => lower.readlink(at(path)),
  ];
  // On a busy machine the other side may not get a turn for long: until what the race is about was met, it goes on.
  const met = (): boolean => wanted.every((found) => counts.has(found));
  for (let read = 0; read < READS || (!met() && read < READS * PATIENCE); read++) {
    const found = String(outcome(ways[read % ways.length] as () => unknown));
    counts.set(found, (counts.get(found) ?? 0) + 1);
  }
  return counts;
}

describe.each(['descriptors', 'checks'] as const)('by %s', (by) => {
  it('follows no symlink in any component, relative, absolute or by way of ..', () => {
    const outside = planted({ 'd/x': SECRET, 'x': SECRET });
    const root = planted({ 'a/b/x': 'inside' });
    const lower = kept(openDirectoryLower(root, { by }));
    const targets = [outside, join(outside, 'd'), relative(root, outside), relative(join(root, 'a/b'), outside), '../../..', '/', '.', root, 'a'];
    targets.forEach((target, index) => {
      for (const directory of ['', 'a/', 'a/b/']) {
        const link = `${directory}link${index}`;
        symlinkSync(target, join(root, link));
        symlinkSync(join(target, 'x'), join(root, `${link}.file`));
        for (const rest of ['x', 'd/x', 'a/b/x', 'd']) {
          expect(outcome(() => lower.slurp(at(`${link}/${rest}`), 100))).toBe('unwalkable');
          expect(outcome(() => lower.open(at(`${link}/${rest}`)))).toBe('unwalkable');
          expect(outcome(() => lower.lstat(at(`${link}/${rest}`)))).toBe('unwalkable');
          expect(outcome(() => lower.list(at(`${link}/${rest}`)))).toBe('refused ENOTDIR');
          expect(outcome(() => lower.readlink(at(`${link}/${rest}`)))).toBe('refused ENOENT');
        }
        expect(outcome(() => lower.slurp(at(link), 100))).toBe('a symlink');
        expect(outcome(() => lower.slurp(at(`${link}.file`), 100))).toBe('a symlink');
        expect(outcome(() => lower.open(at(`${link}.file`)))).toBe('a symlink');
        expect(outcome(() => lower.list(at(link)))).toBe('refused ENOTDIR');
        expect(outcome(() => lower.readlink(at(link)))).toBe(target);
      }
    });
  });

  it.each(['..', '../x', 'a/..', 'a/../../x', '.', 'a/.', './x', '/x', 'a//x', 'a/', 'x\0', 'a\0/x'])('takes %j for a bug above', (path) => {
    const root = planted({ 'a/x': '' });
    const lower = kept(openDirectoryLower(root, { by }));
    for (const call of [
      () => lower.lstat(at(path)), () => lower.slurp(at(path), 100), () => lower.open(at(path)), () => lower.list(at(path)),
      () => lower.readlink(at(path)),
    ]) expect(call).toThrow(RangeError);
  });

  it.each(['a', 'a/b', 'a/b/c', 'a/b/c/d'])('never gives the secret while %s is swapped for a symlink to it and back', async (swapped) => {
    const outside = planted({ [join('a/b/c/d/x'.slice(swapped.length))]: SECRET });
    const root = planted({ 'a/b/c/d/x': 'inside', 'empty': null });
    const [real, link, aside] = [join(root, swapped), join(root, 'link'), join(root, 'aside')];
    symlinkSync(outside, link);
    const [from, to, via] = [real, link, aside].map((path) => JSON.stringify(path));
    await meanwhile(`
      fs.renameSync(${from}, ${via}); fs.renameSync(${to}, ${from});
      fs.renameSync(${from}, ${to}); fs.renameSync(${via}, ${from});`);
    const counts = ask(kept(openDirectoryLower(root, { by })), 'a/b/c/d/x', ['whole: inside', 'unwalkable']);
    expect([...counts.keys()].filter((found) => found.includes(SECRET))).toEqual([]);
    // Both worlds were met, or the race was none.
    expect(counts.get('whole: inside')).toBeGreaterThan(0);
    expect(counts.get('unwalkable')).toBeGreaterThan(0);
  });

  it('never gives the secret while the file itself is swapped for a symlink to it and back', async () => {
    const outside = planted({ x: SECRET });
    const root = planted({ 'a/x': 'inside' });
    symlinkSync(join(outside, 'x'), join(root, 'link'));
    writeFileSync(join(root, 'spare'), 'inside');
    const [file, link, spare] = [join(root, 'a/x'), join(root, 'link'), join(root, 'spare')].map((path) => JSON.stringify(path));
    await meanwhile(`
      fs.linkSync(${spare}, ${spare} + '1'); fs.renameSync(${spare} + '1', ${file});
      fs.symlinkSync(fs.readlinkSync(${link}), ${link} + '1'); fs.renameSync(${link} + '1', ${file});`);
    const counts = ask(kept(openDirectoryLower(root, { by })), 'a/x', ['whole: inside', 'a symlink']);
    expect([...counts.keys()].filter((found) => found.includes(SECRET))).toEqual([]);
    expect(counts.get('whole: inside')).toBeGreaterThan(0);
    expect(counts.get('a symlink')).toBeGreaterThan(0);
  });

  it('gives whole files and lists while the tree is removed and made anew', async () => {
    const root = planted({ 'a/b/c/x': 'inside' });
    const path = JSON.stringify(join(root, 'a'));
    await meanwhile(`
      fs.rmSync(${path}, { recursive: true, force: true }); fs.mkdirSync(${path} + '/b/c', { recursive: true });
      fs.writeFileSync(${path} + '/b/c/x~', 'inside'); fs.renameSync(${path} + '/b/c/x~', ${path} + '/b/c/x');`);
    const counts = ask(kept(openDirectoryLower(root, { by })), 'a/b/c/x', ['whole: inside', 'absent']);
    const expected = [
      'absent', 'unwalkable', 'whole: inside', 'open: inside', 'a directory', '', 'x file', 'x~ file', 'x file,x~ file',
      'refused ENOENT', 'refused ENOTDIR', 'refused EINVAL',
    ];
    expect([...counts.keys()].filter((found) => !expected.includes(found))).toEqual([]);
    expect(counts.get('whole: inside')).toBeGreaterThan(0);
    expect(counts.get('absent')).toBeGreaterThan(0);
  });
});

it('walks on through a mount within the tree', () => {
  // /proc is a file system of its own below /.
  const lower = kept(openDirectoryLower('/'));
  expect(lower.root).toBe('/');
  expect(outcome(() => lower.lstat(at(`proc/${process.pid}/status`)))).toBe('a file');
  expect(String(outcome(() => lower.slurp(at(`proc/${process.pid}/status`), 1000)))).toContain(`Pid:\t${process.pid}\n`);
  expect(outcome(() => lower.lstat(at('proc/self/status')))).toBe('unwalkable');
});

it('takes a root that is given by way of symlinks for the directory they lead to', () => {
  const root = planted({ 'd/x': 'inside' });
  const link = join(temporary(), 'link');
  symlinkSync(join(root, 'd'), link);
  const lower = kept(openDirectoryLower(link));
  expect(lower.root).toBe(realpathSync(link));
  expect(outcome(() => lower.slurp(at('x'), 100))).toBe('whole: inside');
  mkdirSync(join(root, 'e'));
  plant(root, { 'e/x': 'other' });
  expect(outcome(() => lower.slurp(at('x'), 100))).toBe('whole: inside');
});

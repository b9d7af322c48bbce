import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Volume } from 'memfs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openDirectoryLower } from '../../src/lower/directory.ts';
import type { Lower } from '../../src/lower/lower.ts';
import { fsShapedLower } from '../../src/lower/shaped.ts';
import { stackLowers } from '../../src/lower/stack.ts';
import { at, descriptors, kept, outcome, planted } from './ground.ts';

/** What a watch told so far. */
function watched(lower: Lower, path: string, recursive: boolean): string[] {
  const told: string[] = [];
  const watch = lower.watch(at(path), { recursive }, (event, name) => { told.push(`${event} ${name}`); }, (fault) => {
    told.push(`fault ${String(fault)}`);
  });
  onTestFinished(() => watch.close());
  return told;
}

async function pause(): Promise<void> {
  await new Promise((resolve) => { setTimeout(resolve, 60); });
}

describe.each(['descriptors', 'checks'] as const)('by %s', (by) => {
  it('tells of changes in a directory, by name', async () => {
    const root = planted({ 'd/x': '', 'd/e/y': '' });
    const told = watched(kept(openDirectoryLower(root, { by })), 'd', false);
    writeFileSync(join(root, 'd/new'), '');
    await vi.waitFor(() => expect(told).toContain('rename new'));
    writeFileSync(join(root, 'd/x'), 'text');
    await vi.waitFor(() => expect(told).toContain('change x'));
    unlinkSync(join(root, 'd/x'));
    await vi.waitFor(() => expect(told).toContain('rename x'));
    const before = told.length;
    writeFileSync(join(root, 'd/e/y'), 'text');
    await pause();
    expect(told.slice(before)).toEqual([]);
  });

  it('tells of changes at any depth, in directories made later too, and follows no symlink', async () => {
    const outside = planted({ x: '' });
    const root = planted({ 'd/e/y': '', 'd/out': { link: outside }, 'z': '' });
    const told = watched(kept(openDirectoryLower(root, { by })), 'd', true);
    writeFileSync(join(root, 'd/e/y'), 'text');
    await vi.waitFor(() => expect(told).toContain('change e/y'));
    mkdirSync(join(root, 'd/e/f/g'), { recursive: true });
    writeFileSync(join(root, 'd/e/f/g/early'), '');
    await vi.waitFor(() => expect(told).toEqual(expect.arrayContaining(['rename e/f', 'rename e/f/g', 'rename e/f/g/early'])));
    writeFileSync(join(root, 'd/e/f/g/late'), '');
    await vi.waitFor(() => expect(told).toContain('rename e/f/g/late'));
    symlinkSync(outside, join(root, 'd/e/later'));
    await vi.waitFor(() => expect(told).toContain('rename e/later'));
    const before = told.length;
    writeFileSync(join(outside, 'x'), 'text');
    writeFileSync(join(outside, 'new'), 'text');
    writeFileSync(join(root, 'z'), 'text');
    await pause();
    expect(told.slice(before)).toEqual([]);
  });

  it('keeps up with a directory that is renamed, moved out, replaced and removed', async () => {
    const root = planted({ 'd/e/y': '', 'aside': null });
    const told = watched(kept(openDirectoryLower(root, { by })), 'd', true);
    renameSync(join(root, 'd/e'), join(root, 'd/f'));
    await vi.waitFor(() => expect(told).toEqual(expect.arrayContaining(['rename e', 'rename f', 'rename f/y'])));
    writeFileSync(join(root, 'd/f/y'), 'text');
    await vi.waitFor(() => expect(told).toContain('change f/y'));
    expect(told).not.toContain('change e/y');

    renameSync(join(root, 'd/f'), join(root, 'aside/f'));
    await pause();
    const before = told.length;
    writeFileSync(join(root, 'aside/f/y'), 'moved out');
    await pause();
    expect(told.slice(before)).toEqual([]);

    mkdirSync(join(root, 'd/f'));
    writeFileSync(join(root, 'd/f/other'), '');
    await vi.waitFor(() => expect(told).toContain('rename f/other'));
    rmSync(join(root, 'd/f'), { recursive: true });
    mkdirSync(join(root, 'd/f'));
    await pause();
    writeFileSync(join(root, 'd/f/again'), '');
    await vi.waitFor(() => expect(told).toContain('rename f/again'));
    expect(told.every((line) => /^(rename|change) /.test(line))).toBe(true);
  });

  it('watches the root, and tells when the watched directory itself goes', async () => {
    const root = planted({ 'd/x': '' });
    const lower = kept(openDirectoryLower(root, { by }));
    const [whole, part] = [watched(lower, '', true), watched(lower, 'd', true)];
    rmSync(join(root, 'd'), { recursive: true });
    await vi.waitFor(() => expect(whole).toEqual(expect.arrayContaining(['rename d/x', 'rename d'])));
    await vi.waitFor(() => expect(part).toEqual(expect.arrayContaining(['rename x', 'rename d'])));
  });

  it('tells at once that a directory which is held went, and goes on with the next of that name', async () => {
    const root = planted({ 'c/d/x': '' });
    const lower = kept(openDirectoryLower(root, { by }));
    const told = watched(lower, 'c/d', false);
    outcome(() => lower.slurp(at('c/d/x'), 100));
    rmSync(join(root, 'c/d'), { recursive: true });
    await vi.waitFor(() => expect(told).toContain('rename d'));
    mkdirSync(join(root, 'c/d'));
    await pause();
    writeFileSync(join(root, 'c/d/again'), '');
    await vi.waitFor(() => expect(told).toContain('rename again'));
  });

  it('watches a file through its replacement', async () => {
    const root = planted({ 'd/x': '', 'd/y': '' });
    const told = watched(kept(openDirectoryLower(root, { by })), 'd/x', false);
    writeFileSync(join(root, 'd/x'), 'text');
    await vi.waitFor(() => expect(told).toContain('change x'));
    writeFileSync(join(root, 'd/x~'), 'new');
    renameSync(join(root, 'd/x~'), join(root, 'd/x'));
    await vi.waitFor(() => expect(told).toContain('rename x'));
    const before = told.length;
    writeFileSync(join(root, 'd/x'), 'newer');
    await vi.waitFor(() => expect(told.slice(before)).toContain('change x'));
    expect(told.some((line) => line.includes('y') || line.includes('~'))).toBe(false);
  });

  it('is silent once closed, and holds nothing', async () => {
    const root = planted({ 'd/e/f/x': '' });
    const lower = kept(openDirectoryLower(root, { by }));
    lower.watch(at(''), { recursive: true }, () => {}).close();
    const before = descriptors();
    const told: string[] = [];
    const watch = lower.watch(at(''), { recursive: true }, (_, name) => { told.push(name); });
    watch.close();
    watch.close();
    writeFileSync(join(root, 'd/e/f/x'), 'text');
    await pause();
    expect(told).toEqual([]);
    expect(descriptors()).toBeLessThanOrEqual(before);
  });

  it('refuses what is not there or lies behind a symlink', () => {
    const root = planted({ 'd/x': '', 'link': { link: 'd' } });
    const lower = kept(openDirectoryLower(root, { by }));
    const watch = (path: string) => outcome(() => { lower.watch(at(path), { recursive: true }, () => {}).close(); });
    expect(watch('none')).toBe('refused ENOENT');
    expect(watch('none/x')).toBe('refused ENOTDIR');
    expect(watch('link/x')).toBe('refused ENOTDIR');
  });

  it('survives a tree that changes as fast as it is watched', async () => {
    const root = planted({ 'd': null });
    const told = watched(kept(openDirectoryLower(root, { by })), '', true);
    for (let turn = 0; turn < 100; turn++) {
      mkdirSync(join(root, 'd/a/b/c'), { recursive: true });
      writeFileSync(join(root, 'd/a/b/c/x'), '');
      if (turn % 10 === 0) await new Promise((resolve) => { setImmediate(resolve); });
      renameSync(join(root, 'd/a'), join(root, 'd/z'));
      rmSync(join(root, 'd/z'), { recursive: true });
    }
    mkdirSync(join(root, 'd/last'));
    await vi.waitFor(() => expect(told).toContain('rename d/last'));
    await pause();
    writeFileSync(join(root, 'd/last/x'), '');
    await vi.waitFor(() => expect(told).toContain('rename d/last/x'));
    expect(told.filter((line) => !/^(rename|change) /.test(line))).toEqual([]);
  });
});

it('tells changes of every layer of a stack', async () => {
  const [upper, beneath] = [planted({ 'd/x': '' }), planted({ 'd/y': '' })];
  const told = watched(kept(stackLowers([openDirectoryLower(upper), openDirectoryLower(beneath)])), 'd', true);
  writeFileSync(join(upper, 'd/x'), 'text');
  writeFileSync(join(beneath, 'd/y'), 'text');
  await vi.waitFor(() => expect(told).toEqual(expect.arrayContaining(['change x', 'change y'])));
});

it('tells changes of a Volume', async () => {
  const volume = Volume.fromJSON({ '/d/x': '' });
  const told = watched(kept(fsShapedLower(volume)), 'd', false);
  volume.writeFileSync('/d/new', '');
  await vi.waitFor(() => expect(told).toContain('rename new'));
});

it('does not keep the process alive', async () => {
  const { execFileSync } = await import('node:child_process');
  const root = planted({ 'd/x': '' });
  const script = `
    import { openDirectoryLower } from ${JSON.stringify(join(import.meta.dirname, '../../src/lower/directory.ts'))};
    openDirectoryLower(${JSON.stringify(root)}).watch('', { recursive: true }, () => {});
    process.stdout.write('done');`;
  expect(execFileSync(process.execPath, ['--import', import.meta.resolve('tsx'), '--input-type=module', '-e', script], { timeout: 20_000 })
    .toString()).toBe('done');
});


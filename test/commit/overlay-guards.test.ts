import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { ConflictError, type Overlay, type PublishOptions } from '../../src/index.ts';
import { lowerWith, opened } from '../overlay/ground.ts';

/** `path: actual` of every conflict; `done` where there was none. */
async function verdict(overlay: Overlay, options: PublishOptions = {}): Promise<string | string[]> {
  try {
    await overlay.commit(options);
    return 'done';
  } catch (error) {
    if (!(error instanceof ConflictError)) throw error;
    return error.conflicts.map(({ path: name }) => name).sort();
  }
}

/** Long enough ago that no fingerprint is doubtful. */
function aged(root: string, ...names: string[]): void {
  for (const name of names) fs.utimesSync(path.join(root, name), 1e9, 1e9);
}

describe('guard `changed`', () => {
  it('is about what the actor had read before its first change, not about what that change found', async () => {
    const root = lowerWith({ a: 'one' }), overlay = opened({ root }), at = path.join(root, 'a');
    overlay.fs.readFileSync(at);
    fs.writeFileSync(at, 'two');
    overlay.fs.writeFileSync(at, 'mine');
    expect(await verdict(overlay)).toEqual(['a']);
    expect(fs.readFileSync(at, 'utf8')).toBe('two');
    expect(overlay.fs.readFileSync(at, 'utf8')).toBe('mine');
  });

  it('takes what the change found where its actor had seen nothing, or another actor had', async () => {
    const root = lowerWith({ a: 'one' }), overlay = opened({ root }), at = path.join(root, 'a');
    overlay.as('reader').fs.readFileSync(at);
    fs.writeFileSync(at, 'two');
    overlay.fs.writeFileSync(at, 'mine');
    expect(await verdict(overlay)).toBe('done');
  });

  it('remembers a miss, and a file that went away before it was written again', async () => {
    const root = lowerWith({ gone: 'one' }), overlay = opened({ root });
    expect(overlay.fs.existsSync(path.join(root, 'new'))).toBe(false);
    overlay.fs.readFileSync(path.join(root, 'gone'));
    fs.writeFileSync(path.join(root, 'new'), 'theirs');
    fs.rmSync(path.join(root, 'gone'));
    overlay.fs.writeFileSync(path.join(root, 'new'), 'mine');
    overlay.fs.writeFileSync(path.join(root, 'gone'), 'mine');
    expect(await verdict(overlay)).toEqual(['gone', 'new']);
    expect(await verdict(overlay, { guard: 'none' })).toBe('done');
    expect(fs.readFileSync(path.join(root, 'new'), 'utf8')).toBe('mine');
  });

  it('does not mind identical bytes, and notices others under the old size and time', async () => {
    const root = lowerWith({ a: 'aaaa', b: 'bbbb' }), overlay = opened({ root });
    aged(root, 'a', 'b');
    for (const name of ['a', 'b']) overlay.fs.appendFileSync(path.join(root, name), '!');
    fs.writeFileSync(path.join(root, 'a'), 'aaaa');
    expect(await verdict(overlay, { paths: ['a'] })).toBe('done');
    fs.writeFileSync(path.join(root, 'b'), 'BBBB');
    aged(root, 'b');
    expect(await verdict(overlay)).toEqual(['b']);
  });

  it('is about every path of a commit before any is written', async () => {
    const root = lowerWith({ b: 'b', 'd/x': 'x' }), overlay = opened({ root });
    overlay.fs.writeFileSync(path.join(root, 'a'), 'new');
    overlay.fs.writeFileSync(path.join(root, 'b'), 'mine');
    overlay.fs.rmSync(path.join(root, 'd'), { recursive: true });
    fs.writeFileSync(path.join(root, 'b'), 'theirs');
    fs.writeFileSync(path.join(root, 'd/y'), 'theirs');
    expect(await verdict(overlay)).toEqual(['b', 'd/y']);
    expect(fs.readdirSync(root).sort()).toEqual(['b', 'd']);
    expect(overlay.changes().map(({ path: name }) => name)).toEqual(['a', 'b', 'd', 'd/x', 'd/y']);
  });
});

describe('guard `reads`', () => {
  it('is about what anybody read, listed or missed, or one of them', async () => {
    const root = lowerWith({ read: 'r', 'd/x': 'x', out: '' }), overlay = opened({ root }), reader = overlay.as('reader');
    reader.fs.readFileSync(path.join(root, 'read'));
    reader.fs.readdirSync(path.join(root, 'd'));
    reader.fs.existsSync(path.join(root, 'd/missed'));
    overlay.fs.writeFileSync(path.join(root, 'out'), 'result');
    fs.writeFileSync(path.join(root, 'read'), 'R');
    fs.writeFileSync(path.join(root, 'd/missed'), 'there');
    expect(await verdict(overlay, { guard: 'reads' })).toEqual(['d', 'd/missed', 'read']);
    expect(await verdict(overlay, { guard: 'reads', reader: 'main' })).toBe('done');
  });

  it('is not about what the overlay itself has changed, before a commit or by one', async () => {
    const root = lowerWith({ 'd/x': 'x', 'd/y': 'y' }), overlay = opened({ root }), at = (name: string): string => path.join(root, name);
    overlay.fs.writeFileSync(at('d/new'), 'n');
    overlay.fs.rmSync(at('d/y'));
    overlay.fs.readdirSync(at('d'));
    overlay.fs.existsSync(at('d/y'));
    overlay.fs.readFileSync(at('d/x'));
    overlay.fs.writeFileSync(at('d/x'), 'mine');
    expect(await verdict(overlay, { guard: 'reads' })).toBe('done');
    overlay.fs.writeFileSync(at('d/x'), 'again');
    expect(await verdict(overlay, { guard: 'reads' })).toBe('done');
  });

  it('takes the last look of each', async () => {
    const root = lowerWith({ read: 'r', out: '' }), overlay = opened({ root });
    overlay.fs.readFileSync(path.join(root, 'read'));
    fs.writeFileSync(path.join(root, 'read'), 'R');
    overlay.fs.readFileSync(path.join(root, 'read'));
    overlay.fs.writeFileSync(path.join(root, 'out'), 'result');
    expect(await verdict(overlay, { guard: 'reads' })).toBe('done');
  });
});

describe('a commit of some paths', () => {
  it('publishes a rename and one file below it; siblings stay edited, through a reopening too', async () => {
    const root = lowerWith({ 'a/x': 'x', 'a/y': 'y', 'a/s/z': 'z' }), session = path.join(root, '../session');
    const overlay = opened({ root, session }), at = (name: string): string => path.join(root, name);
    overlay.fs.renameSync(at('a'), at('b'));
    for (const name of ['b/x', 'b/y', 'b/s/z']) overlay.fs.appendFileSync(at(name), '!');
    const held = overlay.fs.openSync(at('b/y'), 'a');
    const { changes } = await overlay.commit({ paths: ['b/x'] });
    expect(changes.map(({ kind, path: name }) => `${kind} ${name}`)).toEqual(['rename b', 'update b/x']);
    expect([fs.readdirSync(root), fs.readFileSync(at('b/x'), 'utf8'), fs.readFileSync(at('b/y'), 'utf8')]).toEqual([['b'], 'x!', 'y']);
    overlay.fs.writeSync(held, '?');
    overlay.fs.closeSync(held);
    const rows = (each: Overlay): string[] => each.changes().map(({ kind, path: name }) => `${kind} ${name}`);
    expect(rows(overlay)).toEqual(['update b/s/z', 'update b/y']);
    expect(overlay.fs.readFileSync(at('b/y'), 'utf8')).toBe('y!?');
    overlay.closeSync();
    fs.rmSync(path.join(session, 'checkpoint'), { force: true });
    const again = opened({ root, session });
    expect(rows(again)).toEqual(['update b/s/z', 'update b/y']);
    await again.commit();
    expect(fs.readFileSync(at('b/y'), 'utf8')).toBe('y!?');
    expect(rows(again)).toEqual([]);
  });

  it('takes along new directories above, both ends of a rename, all names of a file; refuses a path without a change', async () => {
    const root = lowerWith({ old: 'o' }), overlay = opened({ root }), at = (name: string): string => path.join(root, name);
    overlay.fs.mkdirSync(at('n/m'), { recursive: true });
    overlay.fs.writeFileSync(at('n/m/f'), 'f');
    overlay.fs.linkSync(at('n/m/f'), at('n/g'));
    overlay.fs.writeFileSync(at('n/other'), 'stays');
    overlay.fs.renameSync(at('old'), at('new'));
    await expect(overlay.commit({ paths: ['nothing'] })).rejects.toMatchObject({ code: 'ENOENT', path: 'nothing' });
    await overlay.commit({ paths: ['n/g', 'old'] });
    expect(fs.readdirSync(root, { recursive: true, encoding: 'utf8' }).sort((a, b) => (a < b ? -1 : 1))).toEqual(['n', 'n/g', 'n/m', 'n/m/f', 'new']);
    expect(fs.statSync(at('n/g')).nlink).toBe(2);
    expect(overlay.changes().map(({ kind, path: name }) => `${kind} ${name}`)).toEqual(['create n/other']);
  });

  it('never publishes what a rule hides', async () => {
    const root = lowerWith({ a: 'a', 'h/secret': 's' }), session = path.join(root, '../session');
    const before = opened({ root, session });
    before.fs.writeFileSync(path.join(root, 'h/secret'), 'changed');
    before.fs.writeFileSync(path.join(root, 'a'), 'A');
    before.closeSync();
    const overlay = opened({ root, session, rules: [{ match: 'h/**', effect: 'hide' }] });
    await overlay.commit();
    expect([fs.readFileSync(path.join(root, 'a'), 'utf8'), fs.readFileSync(path.join(root, 'h/secret'), 'utf8')]).toEqual(['A', 's']);
  });
});

import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { fold, projection, type Event } from '../../src/index.ts';
import { lowerWith, opened, told } from './ground.ts';

describe('what the log tells', () => {
  it('has one miss for each candidate that a library probes', () => {
    const root = lowerWith({ 'a.ts': 'x' }), overlay = opened({ root });
    for (const candidate of ['a.js', 'a.jsx', 'a.json']) expect(overlay.fs.existsSync(path.join(root, candidate))).toBe(false);
    expect(told(overlay)).toEqual(['miss a.js', 'miss a.jsx', 'miss a.json']);
  });

  it('has no miss for an argument error, ENOTDIR or a refusal', () => {
    const root = lowerWith({ a: 'x' }), { fs: face, events } = Object.assign(opened({ root }));
    expect(() => face.readFileSync(path.join(root, 'a/b'))).toThrow(/ENOTDIR/);
    expect(() => face.readFileSync(path.join(root, 'a\0b'))).toThrow(/null bytes/);
    expect(() => face.readFileSync('/etc/hostname')).toThrow(/EACCES/);
    expect(events).toBeTypeOf('function');
  });

  it('grows one write while nothing else happens, and one read', () => {
    const root = lowerWith({ 'big': 'x'.repeat(200_000) }), overlay = opened({ root });
    const fd = overlay.fs.openSync(path.join(root, 'log'), 'a');
    for (let line = 0; line < 1000; line++) overlay.fs.writeSync(fd, `line ${line}\n`);
    overlay.fs.closeSync(fd);
    const reader = overlay.fs.openSync(path.join(root, 'big'), 'r'), buffer = Buffer.alloc(65536);
    while (overlay.fs.readSync(reader, buffer) > 0) { /* to the end */ }
    overlay.fs.closeSync(reader);
    expect(told(overlay)).toEqual(['write log', 'read big']);
    const [, read] = [...overlay.events()] as (Event & { version?: string; ranges?: unknown })[];
    expect(read?.version).toBe(overlay.version('big'));
    expect(read?.ranges).toBeUndefined();
  });

  it('tells a stat, a list and a read again only when another event came between', () => {
    const root = lowerWith({ 'd/a': 'x' }), overlay = opened({ root });
    for (let turn = 0; turn < 3; turn++) overlay.fs.statSync(path.join(root, 'd/a'));
    for (let turn = 0; turn < 3; turn++) overlay.fs.readdirSync(path.join(root, 'd'));
    overlay.fs.statSync(path.join(root, 'd/a'));
    for (let turn = 0; turn < 3; turn++) overlay.as('other').fs.readFileSync(path.join(root, 'd/a'));
    overlay.fs.readFileSync(path.join(root, 'd/a'));
    expect(told(overlay)).toEqual(['stat d/a', 'list d', 'stat d/a', 'read d/a', 'read d/a']);
  });

  it('names a path through a symlink by what it is, and says how it was asked for', () => {
    const root = lowerWith({ 'd/a': 'x' });
    fs.symlinkSync('d', path.join(root, 'link'));
    const overlay = opened({ root });
    overlay.fs.readFileSync(path.join(root, 'link/a'));
    expect([...overlay.events()]).toMatchObject([{ op: 'read', path: 'd/a', via: 'link/a' }]);
  });

  it('filters by actor, op, path and range', () => {
    const root = lowerWith({ 'd/a': 'x', b: 'y' }), overlay = opened({ root });
    overlay.fs.readFileSync(path.join(root, 'b'));
    overlay.as('eve').fs.readFileSync(path.join(root, 'd/a'));
    overlay.fs.renameSync(path.join(root, 'd/a'), path.join(root, 'c'));
    const paths = (filter: Parameters<typeof overlay.events>[0]) => [...overlay.events(filter)].map(({ seq }) => seq);
    expect(paths({ actor: 'eve' })).toEqual([2]);
    expect(paths({ op: 'rename' })).toEqual([3]);
    expect(paths({ path: 'd/**' })).toEqual([2, 3]);
    expect(paths({ from: 2, to: 2 })).toEqual([2]);
  });

  it('marks a point, gives its number, and tells followers of what comes', async () => {
    const root = lowerWith({ a: 'x' }), overlay = opened({ root }), following = overlay.follow();
    overlay.fs.readFileSync(path.join(root, 'a'));
    expect(overlay.mark('turn 1', { tokens: 3 })).toBe(2);
    expect((await following.next()).value).toMatchObject({ seq: 1, op: 'read' });
    expect((await following.next()).value).toMatchObject({ seq: 2, op: 'mark', label: 'turn 1', data: { tokens: 3 } });
    const waiting = following.next();
    await overlay.close();
    expect((await waiting).value).toMatchObject({ op: 'seal' });
    expect((await following.next()).done).toBe(true);
  });

  it('gives a head that changes with every event and only then', () => {
    const root = lowerWith({ a: 'x' }), overlay = opened({ root }), before = overlay.head;
    expect(overlay.head).toEqual(before);
    overlay.fs.readFileSync(path.join(root, 'a'));
    expect(overlay.head.seq).toBe(before.seq + 1);
    expect(overlay.head.seal).not.toBe(before.seal);
  });

  it('folds into whatever a user wants to know, with patches', () => {
    const root = lowerWith({ a: 'x', b: 'y' }), overlay = opened({ root });
    for (const name of ['a', 'b', 'a']) overlay.fs.readFileSync(path.join(root, name));
    const count = (draft: Record<string, number>, event: Event): void => { draft[event.op] = (draft[event.op] ?? 0) + 1; };
    expect(fold(overlay.events(), count, {} as Record<string, number>)).toEqual({ read: 3 });
    const counts = projection(count, {} as Record<string, number>);
    const change = counts.apply([...overlay.events({ to: 2 })]);
    expect(counts.state).toEqual({ read: 2 });
    expect(change.patches).toEqual([{ op: 'add', path: ['read'], value: 2 }]);
  });
});

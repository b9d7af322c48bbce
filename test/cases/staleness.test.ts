import nodeFs from 'node:fs';
import path from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import type { Overlay } from '../../src/index.ts';
import { inEveryFace, OLD, once, refuses } from './ground.ts';

/** CASES.md, 27 to 32, as far as observations go; guards are the policy's and the commit's. */
describe('staleness', () => {
  /** Whether what the actor saw of `name` is what is there now. */
  function isStale(overlay: Overlay, name: string): boolean {
    const seen = overlay.observation(name);
    if (seen.kind !== 'present') throw new Error(`${name} is ${seen.kind}`);
    expect(seen.version).toMatch(/^sha256:[0-9a-f]{64}$/);
    return seen.version !== overlay.version(name);
  }

  inEveryFace('27. is not stale when an editor saves identical bytes', { 'a': 'same bytes' }, async (ground) => {
    await ground.face.read(ground.at('a'));
    const at = path.join(ground.root, 'a');
    nodeFs.writeFileSync(`${at}~`, 'same bytes');
    nodeFs.renameSync(`${at}~`, at);
    ground.lowerChanged();
    expect(isStale(ground.overlay, 'a')).toBe(false);
    await ground.reopen();
    expect(isStale(ground.overlay, 'a')).toBe(false);
    expect(String(await ground.face.read(ground.at('a')))).toBe('same bytes');
  });

  inEveryFace('28. is stale when other bytes come with the old size and time', { 'a': 'old bytes' }, async (ground) => {
    await ground.face.read(ground.at('a'));
    expect(isStale(ground.overlay, 'a')).toBe(false);
    const at = path.join(ground.root, 'a');
    nodeFs.writeFileSync(at, 'new bytes');
    nodeFs.utimesSync(at, OLD - 1000, OLD);
    ground.lowerChanged();
    expect(isStale(ground.overlay, 'a')).toBe(true);
    expect(String(await ground.face.read(ground.at('a')))).toBe('new bytes');
    expect(isStale(ground.overlay, 'a')).toBe(false);
  });

  inEveryFace('28. notices other bytes of a file that is younger than the look', {}, async (ground) => {
    const at = path.join(ground.root, 'young');
    for (const [old, young] of [['one', 'two'], ['three', 'seven'], ['alpha', 'gamma']] as const) {
      nodeFs.writeFileSync(at, old);
      const { atime, mtime } = nodeFs.statSync(at);
      expect(String(await ground.face.read(ground.at('young')))).toBe(old);
      nodeFs.writeFileSync(at, young);
      nodeFs.utimesSync(at, atime, mtime);
      expect(isStale(ground.overlay, 'young')).toBe(true);
      expect(String(await ground.face.read(ground.at('young')))).toBe(young);
    }
    ground.lowerChanged();
  });

  inEveryFace('29. advances what an actor saw by its own two edits after one read', { 'a': 'one' }, async ({ at, face, overlay }) => {
    await face.read(at('a'));
    await face.write(at('a'), 'two');
    expect(isStale(overlay, 'a')).toBe(false);
    await face.append(at('a'), '!');
    expect(isStale(overlay, 'a')).toBe(false);
    expect(overlay.as('bob').observation('a')).toEqual({ kind: 'unseen' });
    overlay.as('bob').fs.writeFileSync(at('a'), 'bob was here');
    expect(isStale(overlay, 'a')).toBe(true);
  });

  inEveryFace('30. gives EIO and never mixed bytes when the lower changes under a partly written file', {
    'a': Buffer.alloc(3 << 20, 'old'),
  }, async (ground) => {
    const { at, fs } = ground;
    const fd = fs.openSync(at('a'), 'r+');
    fs.writeSync(fd, 'NEW', 1 << 20);
    fs.closeSync(fd);
    nodeFs.writeFileSync(path.join(ground.root, 'a'), Buffer.alloc(3 << 20, 'xxx'));
    ground.lowerChanged();
    await refuses(() => ground.face.read(at('a')), 'EIO');
    await ground.reopen();
    await refuses(() => ground.face.read(at('a')), 'EIO');
  });

  inEveryFace('31. knows after a restart what was observed before it', {
    'a': 'a', 'd/x': 'x', 'stat': 's', 'moved/in': 'in',
  }, async (ground) => {
    const { at } = ground;
    await ground.face.read(at('a'));
    await ground.face.list(at('d'));
    await refuses(() => ground.face.read(at('none')), 'ENOENT');
    await ground.face.write(at('d/x'), 'new');
    ground.fs.statSync(at('stat'));
    await ground.face.read(at('moved/in'));
    await ground.face.rename(at('moved'), at('to'));
    await ground.overlay.as('bob').fs.promises.readFile(at('to/in'));
    const look = (): unknown[] => ['ann', 'bob', 'nobody'].map((actor) => ['a', 'd', 'none', 'd/x', 'stat', 'to', 'to/in', 'moved', 'moved/in']
      .map((name) => [actor, name, ground.overlay.as(actor).observation(name)]));
    const before = look();
    await ground.reopen();
    expect(look()).toEqual(before);
    const kinds = (actor: string): string[] => ['a', 'd', 'none', 'd/x', 'stat', 'to/in', 'moved', 'moved/in']
      .map((name) => ground.overlay.as(actor).observation(name).kind);
    expect(kinds('ann')).toEqual(['present', 'present', 'absent', 'present', 'unseen', 'present', 'absent', 'absent']);
    expect(kinds('bob')).toEqual(['unseen', 'unseen', 'unseen', 'unseen', 'unseen', 'present', 'unseen', 'unseen']);
    expect(kinds('nobody')).toEqual(Array.from({ length: 8 }, () => 'unseen'));
  });

  once('31. knows a deleted file as absent after its own deletion, and again as present', { 'a': 'a' }, async (ground) => {
    ground.fs.readFileSync(ground.at('a'));
    nodeFs.renameSync(path.join(ground.root, 'a'), path.join(ground.root, 'b'));
    ground.lowerChanged();
    expect(ground.overlay.version('a')).toBe(undefined);
    await refuses(() => ground.fs.readFileSync(ground.at('a')), 'ENOENT');
    expect(ground.overlay.observation('a').kind).toBe('absent');
    await ground.reopen();
    expect(ground.overlay.observation('a').kind).toBe('absent');
    ground.fs.writeFileSync(ground.at('a'), 'back');
    expect(isStale(ground.overlay, 'a')).toBe(false);
  });

  describe('32. depends on no clock', () => {
    const results: unknown[] = [];
    const clocks: readonly [string, (turn: number) => number][] = [
      ['as it is', () => Date.now()],
      ['that stands still in 1971', () => 40_000_000_000],
      ['that runs backwards', (turn) => 4_000_000_000_000 - turn * 1_000_000],
      ['far in the future', (turn) => 8_000_000_000_000 + turn],
    ];
    for (const [title, clock] of clocks) {
      once(`sees, keeps and compares the same with a clock ${title}`, { 'a': 'old', 'b': 'b', 'd/x': 'x', 'c': 'c' }, async (ground) => {
        let turn = 0;
        const tick = (): void => {
          if (clock !== clocks[0]?.[1]) vi.setSystemTime(clock(turn++));
        };
        if (clock !== clocks[0]?.[1]) vi.useFakeTimers({ toFake: ['Date'] });
        try {
          const { at } = ground;
          const seen: unknown[] = [];
          const acts: readonly (() => unknown)[] = [
            () => ground.fs.readFileSync(at('a'), 'utf8'),
            () => nodeFs.writeFileSync(path.join(ground.root, 'a'), 'new'),
            () => ground.overlay.version('a'),
            () => ground.fs.readFileSync(at('b'), 'utf8'),
            () => nodeFs.writeFileSync(path.join(ground.root, 'b'), 'B'),
            () => isStale(ground.overlay, 'b'),
            () => ground.fs.writeFileSync(at('c'), 'written'),
            () => ground.fs.appendFileSync(at('c'), 'twice'),
            () => ground.fs.renameSync(at('d'), at('e')),
            () => ground.fs.rmSync(at('e/x')),
            () => ground.reopen(),
            () => isStale(ground.overlay, 'b'),
            () => ground.fs.readFileSync(at('a'), 'utf8'),
            () => isStale(ground.overlay, 'c'),
            () => ground.overlay.observation('c').kind,
            () => ground.changes(),
            () => ground.overlay.treeVersion(),
          ];
          for (const act of acts) {
            tick();
            seen.push(await act());
          }
          ground.lowerChanged();
          results.push(seen);
        } finally {
          vi.useRealTimers();
        }
      });
    }

    it('gave the same results with each of them', () => {
      expect(results).toHaveLength(clocks.length);
      for (const result of results) expect(result).toEqual(results[0]);
      expect(results[0]).toContain(true);
    });
  });
});

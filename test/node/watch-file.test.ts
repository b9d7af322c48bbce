import { Stats, statSync, type BigIntStats } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Attr } from '../../src/core/attr.ts';
import type { PathName } from '../../src/core/path.ts';
import { Refusal } from '../../src/core/refusal.ts';
import { fileWatches, type StatsListener } from '../../src/overlay/node/watch-file.ts';
import type { System } from '../../src/overlay/system.ts';

const FILE: Attr = {
  dev: 1n, ino: 5n, mode: 0o100644, nlink: 1, uid: 0, gid: 0, rdev: 0, size: 1, blksize: 4096, blocks: 8,
  atime: 1n, mtime: 2n, ctime: 3n, birthtime: 4n,
};

/** Node does not export it. */
const NodeBigIntStats = statSync('/', { bigint: true }).constructor as new () => BigIntStats;

/** A system with one path, `/f`, of which the test decides what is there. */
function using(attr?: Attr) {
  const there: { attr: Attr | undefined; looks: number; code: 'ENOENT' | 'EACCES' } = { attr, looks: 0, code: 'ENOENT' };
  const system = {
    cwd: () => '/',
    mustStat(path: PathName) {
      there.looks++;
      if (path !== '/f' || !there.attr) throw new Refusal(there.code);
      return there.attr;
    },
  } as unknown as System;
  return { there, ...fileWatches(system) };
}

/** Sizes as a listener was told them: [now, before]. */
function sizes(): { told: unknown[]; listener: StatsListener } {
  const told: unknown[] = [];
  return { told, listener: (now, before) => told.push([now.size, before.size]) };
}

describe('watchFile', () => {
  beforeEach(() => { vi.useFakeTimers(); });
  afterEach(() => { vi.useRealTimers(); });

  it('tells a change at the next look, and only then', () => {
    const { there, watchFile, unwatchFile } = using(FILE);
    const { told, listener } = sizes();
    watchFile('/f', { interval: 100 }, listener);
    vi.advanceTimersByTime(1000);
    expect(told).toEqual([]);
    there.attr = { ...FILE, size: 2 };
    vi.advanceTimersByTime(99);
    expect(told).toEqual([]);
    vi.advanceTimersByTime(1000);
    expect(told).toEqual([[2, 1]]);
    unwatchFile('/f');
  });

  it('never misses what changes right after the call', () => {
    const { there, watchFile, unwatchFile } = using(FILE);
    const { told, listener } = sizes();
    watchFile('/f', { interval: 1 }, listener);
    there.attr = undefined;
    vi.advanceTimersByTime(1);
    expect(told).toEqual([[0, 1]]);
    unwatchFile('/f');
  });

  it('tells once that nothing is there, then what appears, and after a gap what was there before', () => {
    const { there, watchFile, unwatchFile } = using();
    const { told, listener } = sizes();
    watchFile('/f', { interval: 1 }, listener);
    expect(told).toEqual([]);
    vi.advanceTimersByTime(10);
    expect(told).toEqual([[0, 0]]);
    there.attr = FILE;
    vi.advanceTimersByTime(10);
    there.attr = undefined;
    vi.advanceTimersByTime(10);
    there.attr = { ...FILE, size: 7 };
    vi.advanceTimersByTime(10);
    expect(told).toEqual([[0, 0], [1, 0], [0, 1], [7, 1]]);
    unwatchFile('/f');
  });

  it('tells of a fault of another kind', () => {
    const { there, watchFile, unwatchFile } = using();
    const { told, listener } = sizes();
    watchFile('/f', { interval: 1 }, listener);
    vi.advanceTimersByTime(5);
    there.code = 'EACCES';
    vi.advanceTimersByTime(5);
    expect(told).toEqual([[0, 0], [0, 0]]);
    unwatchFile('/f');
  });

  it.each([['ctime', 9n], ['mtime', 9n], ['size', 9], ['mode', 0o100600], ['uid', 9], ['gid', 9], ['ino', 9n], ['dev', 9n]] as const)(
    'tells a change of %s', (field, value) => {
      const { there, watchFile, unwatchFile } = using(FILE);
      const listener = vi.fn<StatsListener>();
      watchFile('/f', { interval: 1 }, listener);
      there.attr = { ...FILE, [field]: value };
      vi.advanceTimersByTime(1);
      expect(listener).toHaveBeenCalledTimes(1);
      unwatchFile('/f');
    });

  it('does not tell that a file was read', () => {
    const { there, watchFile, unwatchFile } = using(FILE);
    const listener = vi.fn<StatsListener>();
    watchFile('/f', { interval: 1 }, listener);
    there.attr = { ...FILE, atime: 9n };
    vi.advanceTimersByTime(5);
    expect(listener).not.toHaveBeenCalled();
    unwatchFile('/f');
  });

  it('gives stats of node\'s own classes, with bigints where asked', () => {
    for (const bigint of [false, true]) {
      const { watchFile, unwatchFile } = using();
      const told: unknown[] = [];
      watchFile('/f', { interval: 1, bigint }, (...both) => told.push(...both));
      vi.advanceTimersByTime(1);
      expect(told).toHaveLength(2);
      for (const stats of told as (Stats | BigIntStats)[]) {
        expect(stats).toBeInstanceOf(bigint ? NodeBigIntStats : Stats);
        expect([stats.ino, stats.mtimeMs, stats.mode]).toEqual(bigint ? [0n, 0n, 0n] : [0, 0, 0]);
      }
      unwatchFile('/f');
    }
  });

  it('looks once for all who watch a path, by whatever name they called it', () => {
    const { there, watchFile, unwatchFile } = using(FILE);
    const first = vi.fn<StatsListener>(), second = vi.fn<StatsListener>(), third = vi.fn<StatsListener>();
    const watcher = watchFile('/f', { interval: 10 }, first);
    expect(watchFile(Buffer.from('/x/../f'), { interval: 1 }, second)).toBe(watcher);
    expect(watchFile(pathToFileURL('/f'), third)).toBe(watcher);
    vi.advanceTimersByTime(10);
    expect(there.looks).toBe(2);
    there.attr = undefined;
    vi.advanceTimersByTime(10);
    unwatchFile('/f', second);
    there.attr = FILE;
    vi.advanceTimersByTime(10);
    expect([first, second, third].map((listener) => listener.mock.calls.length)).toEqual([2, 1, 2]);
    unwatchFile('f');
    vi.advanceTimersByTime(100);
    expect(there.looks).toBe(4);
  });

  it('begins anew after it was stopped, and stops once', async () => {
    const { watchFile, unwatchFile } = using(FILE);
    const stopped = vi.fn<() => void>(), watcher = watchFile('/f', vi.fn<StatsListener>());
    watcher.on('stop', stopped);
    watcher.stop();
    watcher.stop();
    expect(stopped).not.toHaveBeenCalled();
    await new Promise((resolve) => process.nextTick(resolve));
    expect(stopped).toHaveBeenCalledTimes(1);
    const again = watchFile('/f', vi.fn<StatsListener>());
    expect(again).not.toBe(watcher);
    again.stop();
    unwatchFile('/f');
  });

  it('keeps what others watch when a stranger is taken away', () => {
    const { watchFile, unwatchFile } = using(FILE);
    const listener = vi.fn<StatsListener>(), watcher = watchFile('/f', listener);
    unwatchFile('/f', vi.fn<StatsListener>());
    unwatchFile('/elsewhere');
    expect(watcher.listenerCount('change')).toBe(1);
    unwatchFile('/f', listener);
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each<[path: unknown, options: unknown, listener: unknown, code: string]>([
    ['/f', undefined, undefined, 'ERR_INVALID_ARG_TYPE'], ['/f', {}, 'no listener', 'ERR_INVALID_ARG_TYPE'],
    [{}, {}, () => undefined, 'ERR_INVALID_ARG_TYPE'],
    ['/f', { interval: -1 }, () => undefined, 'ERR_OUT_OF_RANGE'],
    ['/f', { interval: '1' }, () => undefined, 'ERR_INVALID_ARG_TYPE'],
  ])('refuses (%j, %j, %s)', (path, options, listener, code) => {
    const { watchFile } = using(FILE);
    expect(() => watchFile(path as never, options as never, listener as never)).toThrow(expect.objectContaining({ code }));
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('a process that watches a file', () => {
  const held = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

  it('is kept running until all who watch have let go, however often each does', () => {
    const { watchFile, unwatchFile } = using(FILE), before = held();
    const first = vi.fn<StatsListener>(), watcher = watchFile('/f', first), counts = [held()];
    watcher.unref().unref();
    counts.push(held());
    watcher.ref().ref();
    counts.push(held());
    watchFile('/f', vi.fn<StatsListener>());
    watcher.unref();
    counts.push(held());
    unwatchFile('/f', first);
    counts.push(held());
    unwatchFile('/f');
    counts.push(held());
    expect(counts.map((count) => count - before)).toEqual([1, 0, 1, 1, 0, 0]);
  });

  it('is not kept running by a watch that is not persistent', () => {
    const { watchFile, unwatchFile } = using(FILE), before = held();
    watchFile('/f', { persistent: false }, vi.fn<StatsListener>());
    expect(held()).toBe(before);
    unwatchFile('/f');
  });
});

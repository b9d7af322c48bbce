import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { fromBytes, type PathName } from '../../src/core/path.ts';
import { Refusal } from '../../src/core/refusal.ts';
import { watches, type ChangeInfo, type FSWatcher } from '../../src/overlay/node/watch.ts';
import type { System, WatchListener } from '../../src/overlay/system.ts';
import { realSystem } from '../support/real-system.ts';
import { inTemporary, make } from './twin.ts';

type WatchDepth = { readonly recursive: boolean };

/** A system whose changes are made by the test. */
class Changing {
  readonly asked: [path: string, recursive: boolean][] = [];
  readonly open = new Set<WatchListener>();
  fail: (fault: unknown) => void = () => undefined;
  readonly system = {
    cwd: () => '/',
    watch: (path: PathName, { recursive }: WatchDepth, changed: WatchListener, failed: (fault: unknown) => void) => {
      if (path === '/nothing') throw new Refusal('ENOENT');
      this.asked.push([path, recursive]);
      this.open.add(changed);
      this.fail = failed;
      return { close: () => this.open.delete(changed) };
    },
  } as unknown as System;

  change(event: 'rename' | 'change', name: string): void {
    for (const changed of this.open) changed(event, name);
  }
}

const later = () => new Promise<void>((resolve) => { setImmediate(() => setImmediate(resolve)); });

/** What a watcher tells, in its order. */
function heard(watcher: FSWatcher): unknown[] {
  const told: unknown[] = [];
  watcher.on('change', (event, name) => told.push([event, name]));
  watcher.on('close', () => told.push('close'));
  watcher.on('error', (error) => told.push(error));
  return told;
}

describe('watch', () => {
  it('tells changes in their order, after the calls that made them', async () => {
    const { system, ...changing } = using();
    const told = heard(watches(system).watch('/d'));
    changing.change('rename', 'a');
    changing.change('change', 'a');
    changing.change('rename', 'b');
    expect(told).toEqual([]);
    await later();
    expect(told).toEqual([['rename', 'a'], ['change', 'a'], ['rename', 'b']]);
  });

  it('tells equal neighbours once, and again what comes after they were told', async () => {
    const { system, ...changing } = using();
    const told = heard(watches(system).watch('/d'));
    for (const name of ['a', 'a', 'b', 'a']) changing.change('change', name);
    await later();
    changing.change('change', 'a');
    await later();
    expect(told).toEqual([['change', 'a'], ['change', 'b'], ['change', 'a'], ['change', 'a']]);
  });

  it('tells nothing after close but that it is closed, once', async () => {
    const { system, ...changing } = using();
    const watcher = watches(system).watch('/d'), told = heard(watcher);
    changing.change('change', 'a');
    watcher.close();
    watcher.close();
    changing.change('change', 'b');
    expect(told).toEqual([]);
    await later();
    expect(told).toEqual(['close']);
    expect(changing.open.size).toBe(0);
  });

  it('tells nothing more where a listener closes it', async () => {
    const { system, ...changing } = using();
    const watcher = watches(system).watch('/d'), told = heard(watcher);
    watcher.on('change', () => watcher.close());
    changing.change('change', 'a');
    changing.change('change', 'b');
    await later();
    expect(told).toEqual([['change', 'a'], 'close']);
  });

  it('tells the rest where a listener throws', async () => {
    const { system, ...changing } = using();
    const watcher = watches(system).watch('/d');
    const uncaught: unknown[] = [], others = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    process.once('uncaughtException', (error) => uncaught.push(error.message));
    watcher.once('change', () => { throw new Error('a listener'); });
    changing.change('change', 'a');
    changing.change('change', 'b');
    const second = new Promise((resolve) => watcher.on('change', (_, name) => resolve(name)));
    expect(await second).toBe('b');
    for (const other of others) process.on('uncaughtException', other);
    expect(uncaught).toEqual(['a listener']);
  });

  it.each([[undefined, 'ü'], [null, 'ü'], ['utf8', 'ü'], ['hex', 'c3bc'], ['latin1', 'Ã¼'], ['buffer', Buffer.from('ü')]] as const)(
    'names files in encoding %s', async (encoding, name) => {
      const { system, ...changing } = using();
      const told = heard(watches(system).watch('/d', { encoding }));
      changing.change('rename', 'ü');
      await later();
      expect(told).toEqual([['rename', name]]);
    });

  it('gives every byte of a name that is not UTF-8', async () => {
    const { system, ...changing } = using();
    const told = heard(watches(system).watch('/d', 'buffer'));
    changing.change('rename', fromBytes(Uint8Array.of(0x61, 0xff)));
    await later();
    expect(told).toEqual([['rename', Buffer.from([0x61, 0xff])]]);
  });

  it('asks the system for what it was asked', () => {
    const { system, ...changing } = using();
    const { watch } = watches(system);
    watch('/a').close();
    watch(Buffer.from('/b'), { recursive: true }).close();
    watch(pathToFileURL('/c'), () => undefined).close();
    expect(changing.asked).toEqual([['/a', false], ['/b', true], ['/c', false]]);
  });

  it('throws what the system refuses, with the path as filename', () => {
    const { watch } = watches(using().system);
    expect(() => watch('/nothing')).toThrow(expect.objectContaining({
      code: 'ENOENT', syscall: 'watch', path: '/nothing', filename: '/nothing',
      message: "ENOENT: no such file or directory, watch '/nothing'",
    }));
    const looked = expect.objectContaining({ code: 'ENOENT', syscall: 'stat' });
    expect(() => watch('/nothing', { recursive: true })).toThrow(looked);
  });

  it.each([[{ recursive: '1' }], [{ signal: {} }], [7], [{ recursive: true, persistent: 'no' }]])('refuses options %j', (options) => {
    const { system, ...changing } = using();
    const refused = expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' });
    expect(() => watches(system).watch('/d', options as never)).toThrow(refused);
    expect(changing.asked).toEqual([]);
  });

  it('ends with an error where the watch fails, and is not closed but over', async () => {
    const { system, ...changing } = using();
    const watcher = watches(system).watch('/d'), told = heard(watcher);
    changing.fail(new Refusal('EIO'));
    await later();
    watcher.close();
    await later();
    expect(told).toEqual([expect.objectContaining({ code: 'EIO', syscall: 'watch', filename: '/d' })]);
    expect(changing.open.size).toBe(0);
  });

  it('closes when its signal is aborted, also before', async () => {
    const { system, ...changing } = using();
    const controller = new AbortController();
    const told = heard(watches(system).watch('/d', { signal: controller.signal }));
    changing.change('change', 'a');
    controller.abort();
    await later();
    expect(told).toEqual(['close']);
    const early = heard(watches(system).watch('/d', { signal: AbortSignal.abort() }));
    await later();
    expect(early).toEqual(['close']);
    expect(changing.open.size).toBe(0);
  });

  it('leaves no listener on a signal that outlives it', async () => {
    const controller = new AbortController();
    let aborted = 0;
    const watcher = watches(using().system).watch('/d', { signal: controller.signal });
    watcher.on('close', () => aborted++);
    watcher.close();
    await later();
    controller.abort();
    await later();
    expect(aborted).toBe(1);
  });
});

describe('promises.watch', () => {
  it('tells what changes while nobody waits, in order', async () => {
    const { system, ...changing } = using();
    const changes = watches(system).promises.watch('/d');
    const first = changes.next();
    await later();
    for (const name of ['a', 'b', 'c']) changing.change('change', name);
    await later();
    const told = [(await first).value, (await changes.next()).value, (await changes.next()).value];
    expect(told).toEqual(['a', 'b', 'c'].map((filename): ChangeInfo => ({ eventType: 'change', filename })));
    await changes.return();
    expect(changing.open.size).toBe(0);
    expect(await changes.next()).toEqual({ value: undefined, done: true });
  });

  it('rejects with an AbortError when its signal is aborted', async () => {
    const { system, ...changing } = using();
    const controller = new AbortController(), reason = new Error('enough');
    const waiting = watches(system).promises.watch('/d', { signal: controller.signal }).next();
    await later();
    controller.abort(reason);
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError', code: 'ABORT_ERR', cause: reason });
    expect(changing.open.size).toBe(0);
    const early = watches(system).promises.watch('/d', { signal: AbortSignal.abort(reason) }).next();
    await expect(early).rejects.toMatchObject({ cause: reason });
    expect(changing.open.size).toBe(0);
  });

  it('rejects where the watch fails or cannot begin', async () => {
    const { system, ...changing } = using();
    const waiting = watches(system).promises.watch('/d').next();
    await later();
    changing.fail(new Refusal('EIO'));
    await expect(waiting).rejects.toMatchObject({ code: 'EIO', syscall: 'watch' });
    await expect(watches(system).promises.watch('/nothing').next()).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it.each([
    [1, undefined, 'ERR_INVALID_ARG_TYPE'], ['/d', 1, 'ERR_INVALID_ARG_TYPE'],
    ['/d', { persistent: 1 }, 'ERR_INVALID_ARG_TYPE'],
    ['/d', { recursive: 1 }, 'ERR_INVALID_ARG_TYPE'], ['/d', { encoding: 1 }, 'ERR_INVALID_ARG_VALUE'],
    ['/d', { signal: 1 }, 'ERR_INVALID_ARG_TYPE'],
  ])('refuses (%j, %j) with %s', async (path, options, code) => {
    const first = watches(using().system).promises.watch(path as never, options as never).next();
    await expect(first).rejects.toMatchObject({ code });
  });
});

describe('a process that watches', () => {
  /** Timers that keep this process running. */
  const held = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

  it('is kept running by a watcher until that is closed or let go', () => {
    const { watch } = watches(using().system), before = held();
    const watcher = watch('/d');
    const counts = [held(), watcher.unref() && held(), watcher.unref() && held(), watcher.ref() && held()];
    watcher.close();
    counts.push(held(), watcher.ref() && held());
    expect(counts.map((count) => count - before)).toEqual([1, 0, 0, 1, 0, 0]);
  });

  it('is not kept running by one that is not persistent', () => {
    const { watch } = watches(using().system), before = held();
    const watcher = watch('/d', { persistent: false });
    expect(held()).toBe(before);
    watcher.close();
  });
});

describe('watch over real directories', () => {
  const open: FSWatcher[] = [];
  afterEach(() => {
    for (const watcher of open.splice(0)) watcher.close();
  });

  /** The next change that `wanted` accepts. */
  function next(watcher: FSWatcher, wanted: (event: string, name: string) => boolean): Promise<string> {
    open.push(watcher);
    return new Promise((resolve) => watcher.on('change', (event, name) => {
      if (wanted(event, String(name))) resolve(`${event} ${String(name)}`);
    }));
  }

  it('tells a rename by both its names', async () => {
    await inTemporary(async (dir) => {
      make(dir, { old: 'x' });
      const watcher = watches(realSystem()).watch(dir);
      const both = Promise.all([next(watcher, (_, name) => name === 'old'), next(watcher, (_, name) => name === 'new')]);
      renameSync(join(dir, 'old'), join(dir, 'new'));
      expect(await both).toEqual(['rename old', 'rename new']);
    });
  });

  it('tells of a file watched by its own name', async () => {
    await inTemporary(async (dir) => {
      make(dir, { file: 'x' });
      const change = next(watches(realSystem()).watch(join(dir, 'file')), () => true);
      writeFileSync(join(dir, 'file'), 'y');
      expect(await change).toBe('change file');
    });
  });
});

/** A new system of the test's, its parts bound so that they can be taken apart. */
function using() {
  const changing = new Changing();
  return {
    system: changing.system, asked: changing.asked, open: changing.open,
    change: changing.change.bind(changing), fail: (fault: unknown) => changing.fail(fault),
  };
}

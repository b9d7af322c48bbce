import * as nodeFs from 'node:fs';
import type { FSWatcher } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Overlay } from '../../src/index.ts';
import { make } from './twin.ts';

/** Watching the overlay: its own changes in their exact order, those of outsiders as the lower tells of them. */

let root: string, overlay: Overlay, watchers: FSWatcher[];

beforeEach(() => {
  root = nodeFs.realpathSync(nodeFs.mkdtempSync('/tmp/palimpsest-watch-'));
  make(root, { 'file': 'x', 'low/f': 'y', 'low/deep/g': 'z', 'other': null });
  overlay = Overlay.openSync({ root });
  watchers = [];
});
afterEach(async () => {
  for (const watcher of watchers) watcher.close();
  await overlay.close();
  nodeFs.rmSync(root, { recursive: true });
});

/** What a watch of `path` tells, each as `event name`. */
function heard(path: string, options: { recursive?: boolean } = {}): string[] {
  const told: string[] = [];
  const watcher = overlay.fs.watch(join(root, path), options, (event, name) => told.push(`${event} ${String(name)}`));
  watcher.on('close', () => told.push('close'));
  watchers.push(watcher);
  return told;
}

const told = () => new Promise<void>((resolve) => { setImmediate(() => setImmediate(resolve)); });

describe('a change through the overlay', () => {
  it('of a name is one pair of events', async () => {
    const flat = heard(''), deep = heard('', { recursive: true }), file = heard('file');
    overlay.fs.renameSync(join(root, 'file'), join(root, 'new'));
    await told();
    expect([flat, deep]).toEqual([['rename file', 'rename new'], ['rename file', 'rename new']]);
    expect(file).toEqual(['rename file']);
  });

  it('of a lower directory\'s name is one pair of events, not one for each entry', async () => {
    const flat = heard(''), deep = heard('', { recursive: true });
    overlay.fs.renameSync(join(root, 'low'), join(root, 'moved'));
    await told();
    expect([flat, deep]).toEqual([['rename low', 'rename moved'], ['rename low', 'rename moved']]);
  });

  it('into another directory is told in each', async () => {
    const from = heard('low'), to = heard('other'), deep = heard('', { recursive: true });
    overlay.fs.renameSync(join(root, 'low/f'), join(root, 'other/f'));
    await told();
    expect([from, to, deep]).toEqual([['rename f'], ['rename f'], ['rename low/f', 'rename other/f']]);
  });

  it('is told by its name in the directory watched, at any depth where that is asked', async () => {
    const flat = heard('low'), deep = heard('low', { recursive: true });
    overlay.fs.writeFileSync(join(root, 'low/deep/new'), 'content');
    overlay.fs.writeFileSync(join(root, 'low/f'), 'content');
    await told();
    expect(deep).toEqual(['rename deep/new', 'change deep/new', 'change f']);
    expect(flat).toEqual(['change f']);
  });

  it('outside of what is watched is not told', async () => {
    const deep = heard('low', { recursive: true });
    overlay.fs.writeFileSync(join(root, 'file'), 'content');
    overlay.fs.mkdirSync(join(root, 'lower'));
    await told();
    expect(deep).toEqual([]);
  });

  it('by another actor is told as one\'s own', async () => {
    const flat = heard('');
    overlay.as('another').fs.unlinkSync(join(root, 'file'));
    await told();
    expect(flat).toEqual(['rename file']);
  });

  it('that was refused is not told', async () => {
    const deep = heard('', { recursive: true });
    expect(() => overlay.fs.rmdirSync(join(root, 'low'))).toThrow(expect.objectContaining({ code: 'ENOTEMPTY' }));
    expect(() => overlay.fs.mkdirSync(join(root, 'low'))).toThrow(expect.objectContaining({ code: 'EEXIST' }));
    await told();
    expect(deep).toEqual([]);
  });
});

describe('a recursive watch on a directory that is renamed', () => {
  it('tells of it, goes on without error, and closes', async () => {
    const deep = heard('low', { recursive: true });
    overlay.fs.renameSync(join(root, 'low'), join(root, 'moved'));
    await told();
    expect(deep).toEqual(['rename low']);
    overlay.fs.writeFileSync(join(root, 'moved/f'), 'content');
    overlay.fs.rmSync(join(root, 'moved'), { recursive: true });
    await told();
    watchers[0]?.close();
    await told();
    expect(deep.at(-1)).toBe('close');
    expect(deep.filter((one) => one === 'close')).toHaveLength(1);
  });

  it('ends an iteration over it when its signal is aborted', async () => {
    const controller = new AbortController();
    const changes = overlay.fs.promises.watch(join(root, 'low'), { recursive: true, signal: controller.signal })[Symbol.asyncIterator]();
    const first = changes.next();
    await told();
    overlay.fs.renameSync(join(root, 'low'), join(root, 'moved'));
    expect(await first).toEqual({ done: false, value: { eventType: 'rename', filename: 'low' } });
    const second = changes.next();
    controller.abort();
    await expect(second).rejects.toMatchObject({ name: 'AbortError', code: 'ABORT_ERR' });
  });
});

describe('a change by an outsider', () => {
  /** Waits until a watch has told what is wanted. */
  async function until(list: string[], wanted: string): Promise<void> {
    await expect.poll(() => list, { timeout: 10_000, interval: 5 }).toContain(wanted);
  }

  it('shows where the overlay does not cover it', async () => {
    const deep = heard('', { recursive: true });
    nodeFs.writeFileSync(join(root, 'low/outside'), 'x');
    await until(deep, 'rename low/outside');
    expect(overlay.fs.readFileSync(join(root, 'low/outside'), 'utf8')).toBe('x');
  });

  it('does not show where the overlay covers it', async () => {
    overlay.fs.writeFileSync(join(root, 'file'), 'mine');
    const flat = heard('');
    nodeFs.writeFileSync(join(root, 'file'), 'theirs');
    nodeFs.writeFileSync(join(root, 'last'), 'x');
    await until(flat, 'rename last');
    expect(flat).not.toContain('change file');
  });
});

it('looks at a file for watchFile through the overlay', async () => {
  const path = join(root, 'file');
  const sizes = new Promise((resolve) => {
    overlay.fs.watchFile(path, { interval: 1 }, (now, before) => {
      overlay.fs.unwatchFile(path);
      resolve([now.size, before.size]);
    });
  });
  overlay.fs.writeFileSync(path, 'longer');
  expect(await sizes).toEqual([6, 1]);
});

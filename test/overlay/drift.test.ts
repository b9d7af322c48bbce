import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { lowerWith, opened } from './ground.ts';

const LARGE = 100_000;

describe('a lower that outsiders change beneath the overlay', () => {
  it('shows changes to files that the overlay does not cover, and to directories put in the place of others', () => {
    const root = lowerWith({ 'd/e/a': 'old' }), overlay = opened({ root });
    expect(overlay.fs.readFileSync(path.join(root, 'd/e/a'), 'utf8')).toBe('old');
    fs.renameSync(path.join(root, 'd'), path.join(root, 'gone'));
    fs.mkdirSync(path.join(root, 'd/e'), { recursive: true });
    fs.writeFileSync(path.join(root, 'd/e/a'), 'new');
    expect(overlay.fs.readFileSync(path.join(root, 'd/e/a'), 'utf8')).toBe('new');
    expect(overlay.fs.readdirSync(root)).toEqual(['d', 'gone']);
  });

  it('never mixes bytes: a large file that was partly written and changed below is EIO', () => {
    const root = lowerWith({ big: Buffer.alloc(LARGE, 'a') }), file = path.join(root, 'big'), overlay = opened({ root });
    const fd = overlay.fs.openSync(file, 'r+');
    overlay.fs.writeSync(fd, 'B', 50_000);
    expect(overlay.fs.readFileSync(file).subarray(49_999, 50_002).toString()).toBe('aBa');
    fs.writeFileSync(file, Buffer.alloc(LARGE, 'z'));
    expect(() => overlay.fs.readFileSync(file)).toThrow(expect.objectContaining({ code: 'EIO' }) as Error);
    expect(() => overlay.fs.readSync(fd, Buffer.alloc(10), 0, 10, 0)).toThrow(expect.objectContaining({ code: 'EIO' }) as Error);
    expect(overlay.fs.readSync(fd, Buffer.alloc(1), 0, 1, 50_000)).toBe(1);
  });

  it('goes on where the lower file was touched and holds the same bytes', () => {
    const root = lowerWith({ big: Buffer.alloc(LARGE, 'a') }), file = path.join(root, 'big'), overlay = opened({ root });
    overlay.fs.appendFileSync(file, 'end');
    fs.writeFileSync(file, Buffer.alloc(LARGE, 'a'));
    expect(overlay.fs.readFileSync(file).length).toBe(LARGE + 3);
  });

  it('keeps what it has of a file that is gone below', () => {
    const root = lowerWith({ a: 'one', big: Buffer.alloc(LARGE) }), overlay = opened({ root });
    overlay.fs.appendFileSync(path.join(root, 'a'), ' two');
    overlay.fs.chmodSync(path.join(root, 'big'), 0o600);
    fs.rmSync(path.join(root, 'a'));
    fs.rmSync(path.join(root, 'big'));
    expect(overlay.fs.readFileSync(path.join(root, 'a'), 'utf8')).toBe('one two');
    expect(overlay.fs.statSync(path.join(root, 'big')).size).toBe(LARGE);
    expect(() => overlay.fs.readFileSync(path.join(root, 'big'))).toThrow(expect.objectContaining({ code: 'EIO' }) as Error);
  });

  it('notices other bytes of the same size with the old mtime put back', () => {
    const root = lowerWith({ a: 'one' }), file = path.join(root, 'a'), overlay = opened({ root });
    fs.utimesSync(file, 1_000_000_000, 1_000_000_000);
    const before = overlay.version('a');
    fs.writeFileSync(file, 'two');
    fs.utimesSync(file, 1_000_000_000, 1_000_000_000);
    expect(overlay.version('a')).not.toBe(before);
  });
});

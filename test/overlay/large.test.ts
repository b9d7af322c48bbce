import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { lowerWith, opened } from './ground.ts';

const GIB = 1024 ** 3;

describe('large files', () => {
  it('takes one byte into 1 GiB of the lower without a copy', () => {
    const root = lowerWith({}), file = path.join(root, 'huge');
    fs.closeSync(fs.openSync(file, 'w'));
    fs.truncateSync(file, GIB);
    const overlay = opened({ root, session: path.join(root, '../session') });
    const fd = overlay.fs.openSync(file, 'r+');
    overlay.fs.writeSync(fd, '!', GIB / 2);
    const around = Buffer.alloc(3);
    overlay.fs.readSync(fd, around, 0, 3, GIB / 2 - 1);
    expect([...around]).toEqual([0, 33, 0]);
    expect(overlay.fs.fstatSync(fd).size).toBe(GIB);
    overlay.closeSync();
    const stored = fs.readdirSync(path.join(root, '../session/blobs'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile()).reduce((sum, entry) => sum + fs.statSync(path.join(entry.parentPath, entry.name)).size, 0);
    expect(stored).toBeLessThan(4096);
  });

  it('writes, reads, cuts and reopens beyond 4 GiB', () => {
    const root = lowerWith({}), file = path.join(root, 'sparse'), session = path.join(root, '../session');
    let overlay = opened({ root, session });
    const fd = overlay.fs.openSync(file, 'w+');
    overlay.fs.writeSync(fd, 'far', 5 * GIB);
    overlay.fs.writeSync(fd, 'near', 10);
    overlay.closeSync();
    overlay = opened({ root, session });
    expect(overlay.fs.statSync(file)).toMatchObject({ size: 5 * GIB + 3 });
    const again = overlay.fs.openSync(file, 'r+'), part = Buffer.alloc(16);
    overlay.fs.readSync(again, part, 0, 16, 5 * GIB - 13);
    expect(part.toString('latin1')).toBe('\0'.repeat(13) + 'far');
    overlay.fs.ftruncateSync(again, 5 * GIB + 1);
    overlay.fs.ftruncateSync(again, 5 * GIB + 3);
    overlay.fs.readSync(again, part, 0, 3, 5 * GIB);
    expect(part.subarray(0, 3).toString('latin1')).toBe('f\0\0');
  });

  it('keeps appends to a large lower file small, interleaved with other events', () => {
    const root = lowerWith({ big: Buffer.alloc(300_000, 'x'), other: '' }), session = path.join(root, '../session');
    const overlay = opened({ root, session });
    for (let turn = 0; turn < 200; turn++) {
      overlay.fs.appendFileSync(path.join(root, 'big'), 'y'.repeat(100));
      overlay.fs.existsSync(path.join(root, 'other'));
    }
    expect(overlay.fs.readFileSync(path.join(root, 'big'), 'latin1')).toBe('x'.repeat(300_000) + 'y'.repeat(20_000));
    overlay.closeSync();
    expect(fs.statSync(path.join(session, 'log.jsonl')).size).toBeLessThan(400_000);
    const reopened = opened({ root, session });
    expect(reopened.fs.readFileSync(path.join(root, 'big'), 'latin1')).toBe('x'.repeat(300_000) + 'y'.repeat(20_000));
  });
});

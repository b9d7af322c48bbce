import { describe, expect, it } from 'vitest';
import { said, withTools } from './bench.ts';

describe('delete and move', () => {
  it('ask for a look first, and keep what lies in a directory', () => withTools({ a: '1', b: '2', 'd/x': '1' }, (kit, { text, overlay }) => {
    expect(said(kit.delete.call({ path: 'a' }))).toEqual(['FS_NOT_OBSERVED', 'cannot modify "a": file has not been read — read the file, then retry']);
    kit.read.call({ file_path: 'a' });
    expect(said(kit.move.call({ from: 'a', to: 'b' }))).toEqual(['FS_NOT_OBSERVED', 'cannot modify "b": file has not been read — read the file, then retry']);
    expect(kit.move.call({ from: 'a', to: 'new/c' }).data).toEqual({ from: 'a', to: 'new/c', replaced: false });
    expect(text('new/c')).toBe('1');
    kit.list.call({ path: 'd' });
    expect(said(kit.delete.call({ path: 'd' }))).toEqual(['FS_IO_ERROR', 'cannot delete "d": directory is not empty']);
    expect(kit.delete.call({ path: 'd', recursive: true }).text).toBe('Deleted "d".');
    expect(said(kit.delete.call({ path: 'd' }))).toEqual(['FS_NOT_FOUND', 'cannot delete "d": not found']);
    expect(said(kit.delete.call({ path: '.', recursive: true }))[0]).toBe('FS_IO_ERROR');
    expect(overlay.changes().map(({ path, kind }) => `${kind} ${path}`)).toEqual(['delete d', 'delete d/x', 'create new', 'rename new/c']);
  }));
});

import { describe, expect, it } from 'vitest';
import { said, withTools } from './bench.ts';

const patch = (...lines: string[]): { input: string } => ({ input: ['*** Begin Patch', ...lines, '*** End Patch'].join('\n') });

describe('apply_patch', () => {
  it('adds, updates, moves and deletes, and keeps every byte of the lines it does not name', () => withTools(
    { a: Buffer.from('\xef\xbb\xbfclass A\r\n  one\r\n  tw\xf6\n', 'latin1'), b: 'x\ny', c: 'gone' }, (kit, { overlay, at, text }) => {
      for (const file_path of ['a', 'b', 'c']) kit.read.call({ file_path });
      const before = overlay.as('w').fs.readFileSync(at('a'));
      const done = kit.apply_patch.call(patch('*** Update File: a', '@@ class A', '-  one', '+  1', '+  2', '*** Update File: b', '*** Move to: n/b', ' x', '+mid', ' y', '*** End of File',
        '*** Add File: new/d', '+hello', '+there', '*** Delete File: c'));
      expect(said(done)).toEqual([undefined, 'M a\nM b -> n/b\nA new/d\nD c']);
      const after = overlay.as('w').fs.readFileSync(at('a'));
      expect(after.toString('latin1')).toBe(before.toString('latin1').replace('  one\r\n', '  1\r\n  2\r\n'));
      expect(text('n/b')).toBe('x\nmid\ny');
      expect(text('new/d')).toBe('hello\nthere\n');
      expect(overlay.fs.existsSync(at('c'))).toBe(false);
      expect(done.data['files']).toMatchObject([{ path: 'a' }, { path: 'b', to: 'n/b' }, { path: 'new/d', operation: 'create' }, { path: 'c', operation: 'delete' }]);
    }));

  it('applies nothing where anything does not fit', () => withTools({ a: '1\n', b: '2\n', c: '3\n' }, (kit, { overlay }) => {
    for (const file_path of ['a', 'b']) kit.read.call({ file_path });
    const refused = (...lines: string[]) => {
      const answer = said(kit.apply_patch.call(patch('*** Update File: a', '-1', '+x', ...lines)));
      expect(overlay.changes()).toEqual([]);
      return answer;
    };
    expect(refused('*** Update File: b', '-9', '+x')).toEqual(['FS_EDIT_NOT_FOUND', 'line 6 of the patch: these lines were not found in "b":\n9']);
    expect(refused('*** Update File: b', '@@ def f', '-2', '+x')).toEqual(['FS_EDIT_NOT_FOUND', 'line 6 of the patch: "def f" was not found in "b"']);
    expect(refused('*** Update File: c', '-3', '+x')).toEqual(['FS_NOT_OBSERVED', 'cannot modify "c": file has not been read — read the file, then retry']);
    expect(refused('*** Delete File: c')[0]).toBe('FS_NOT_OBSERVED');
    expect(refused('*** Add File: b', '+x')).toEqual(['FS_IO_ERROR', 'cannot add "b": it exists; update it instead']);
    expect(refused('*** Add File: b/x', '+x')[0]).toBe('FS_NOT_DIRECTORY');
    expect(refused('*** Add File: ../x', '+x')[0]).toBe('FS_SANDBOX_DENIED');
    expect(refused('*** Update File: ./a', '-1', '+y')[0]).toBe('TOOL_BAD_INPUT');
    expect(refused('*** Add File: n', '+x', '*** Add File: n/x', '+x')[0]).toBe('TOOL_BAD_INPUT');
    expect(refused('*** Rename File: b')).toEqual(['TOOL_BAD_INPUT', 'apply_patch: line 5: a line begins with " ", "-" or "+", or is "@@ …": "*** Rename File: b"']);
  }));

  it.each([
    ['no end', '*** Begin Patch\n*** Delete File: a', 'apply_patch: line 2: a patch ends with "*** End Patch"'],
    ['no beginning', 'x', 'apply_patch: line 1: a patch begins with "*** Begin Patch"'],
    ['nothing in it', '*** Begin Patch\n*** End Patch', 'apply_patch: line 1: the patch changes no file'],
    ['an added line without its sign', '*** Begin Patch\n*** Add File: n\nx\n*** End Patch', 'apply_patch: line 3: each line of an added file begins with "+"'],
    ['an update without lines', '*** Begin Patch\n*** Update File: a\n*** End Patch', 'apply_patch: line 2: "a" is updated, and nothing says how'],
    ['lines that change nothing', '*** Begin Patch\n*** Update File: a\n x\n*** End Patch', 'apply_patch: line 3: nothing is changed here: lines that begin with "-" or "+" are missing'],
  ])('says what is wrong with a patch: %s', (_, input, words) => withTools({}, (kit) => {
    expect(said(kit.apply_patch.call({ input }))).toEqual(['TOOL_BAD_INPUT', words]);
  }));
});

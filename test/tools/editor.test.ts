import { describe, expect, it } from 'vitest';
import { said, withTools } from './bench.ts';

describe.each(['str_replace_editor', 'str_replace_based_edit_tool'] as const)('%s', (name) => {
  it('views, creates, replaces, inserts and takes back', () => withTools({ a: 'one\r\ntwo\r\n', 'd/e/f/g': '', 'd/.h': '' }, (kit, { text, outside }) => {
    const { [name]: editor } = kit, call = (input: object) => editor.call({ path: 'a', ...input });
    expect(said(call({ command: 'str_replace', old_str: 'one', new_str: '1' }))).toEqual(['FS_NOT_OBSERVED', 'cannot modify "a": file has not been read — read the file, then retry']);
    expect(call({ command: 'view', view_range: [2, -1] }).text).toBe('     2\ttwo\n(lines 2-2 of 2; end of file)');
    expect(call({ command: 'view', path: 'd' }).text).toBe('d, 2 levels deep, without hidden names:\nd/e/\nd/e/f/');
    expect(call({ command: 'str_replace', old_str: 'one', new_str: '1' }).isError).toBe(false);
    expect(call({ command: 'insert', insert_line: 1, insert_text: 'mid' }).isError).toBe(false);
    expect(text('a')).toBe('1\r\nmid\r\ntwo\r\n');
    call({ command: 'insert', insert_line: 0, new_str: 'top\n' });
    expect(text('a')).toBe('top\r\n1\r\nmid\r\ntwo\r\n');
    expect(said(call({ command: 'insert', insert_line: 9, insert_text: 'x' }))).toEqual(['TOOL_BAD_INPUT', 'insert_line 9 is out of range for "a" (4 lines)']);
    for (let step = 0; step < 3; step++) expect(call({ command: 'undo_edit' }).isError).toBe(false);
    expect(text('a')).toBe('one\r\ntwo\r\n');
    expect(said(call({ command: 'undo_edit' }))).toEqual(['FS_EDIT_NOT_FOUND', 'there is no edit of "a" to undo']);
    expect(call({ command: 'create', path: 'n/x', file_text: 'x' }).data).toMatchObject({ operation: 'create' });
    expect(call({ command: 'undo_edit', path: 'n/x' }).data).toMatchObject({ operation: 'delete' });
    expect(said(call({ command: 'view', path: 'n/x' }))[0]).toBe('FS_NOT_FOUND');
    outside('z', 'end');
    call({ command: 'view', path: 'z' });
    call({ command: 'insert', path: 'z', insert_line: 1, insert_text: 'more\n' });
    expect(text('z')).toBe('end\nmore');
  }));

  it('does not take back what another has changed since', () => withTools({ a: 'one' }, (kit, { overlay, at, text }) => {
    const { [name]: editor } = kit;
    editor.call({ command: 'view', path: 'a' });
    editor.call({ command: 'str_replace', path: 'a', old_str: 'one', new_str: 'two' });
    overlay.as('bob').fs.writeFileSync(at('a'), 'three');
    expect(editor.call({ command: 'undo_edit', path: 'a' }).code).toBe('FS_STALE_VERSION');
    expect(text('a')).toBe('three');
  }));

  it('says what a command needs', () => withTools({ a: '' }, (kit) => {
    const { [name]: editor } = kit;
    expect(said(editor.call({ command: 'str_replace', path: 'a' }))).toEqual(['TOOL_BAD_INPUT', `${name}: "old_str" is missing, which str_replace needs`]);
    expect(editor.call({ command: 'erase', path: 'a' }).code).toBe('TOOL_BAD_INPUT');
    expect(editor.call({ command: 'view', path: 'a', view_range: [3, 1] }).code).toBe('TOOL_BAD_INPUT');
  }));
});

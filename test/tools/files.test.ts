import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { observationPolicy, Overlay } from '../../src/index.ts';
import { tools } from '../../src/tools/index.ts';
import { withGround } from '../policy/ground.ts';
import { said, withTools } from './bench.ts';

const STALE = ' — re-read the file, then retry';
const unread = (name: string): [string, string] => ['FS_NOT_OBSERVED', `cannot modify "${name}": file has not been read — read the file, then retry`];

describe('the flows of an agent', () => {
  it('unread overwrite refused, read, overwrite, outside change, stale, read again, overwrite', () => withTools({ a: '1\n' }, (kit, { outside, text }) => {
    const write = (content: string) => kit.write.call({ file_path: 'a', content });
    expect(said(write('2'))).toEqual(unread('a'));
    expect(text('a')).toBe('1\n');
    kit.read.call({ file_path: 'a' });
    expect(write('2\n')).toMatchObject({ isError: false, data: { operation: 'update', path: 'a', diff: '--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n' } });
    outside('b', '1');
    kit.read.call({ file_path: 'b' });
    outside('b', '2');
    expect(said(kit.write.call({ file_path: 'b', content: 'x' }))).toEqual(['FS_STALE_VERSION', `cannot write "b": file changed since it was read${STALE}`]);
    expect(said(kit.edit.call({ file_path: 'b', old_string: 'nothing like it', new_string: '' })))
      .toEqual(['FS_STALE_VERSION', `cannot edit "b": file changed since it was read${STALE}`]);
    kit.read.call({ file_path: 'b' });
    expect(kit.write.call({ file_path: 'b', content: 'x' }).isError).toBe(false);
  }));

  it('a target that another deleted: stale, not found, created again; a faster creator survives', () => withTools({ a: '1', b: '1' }, (kit, { overlay, at, text }) => {
    const { fs: bob } = overlay.as('bob'), edit = () => said(kit.edit.call({ file_path: 'a', old_string: '1', new_string: '2' }));
    kit.read.call({ file_path: 'a' });
    kit.read.call({ file_path: 'b' });
    bob.rmSync(at('a'));
    bob.rmSync(at('b'));
    expect(edit()).toEqual(['FS_STALE_VERSION', `cannot edit "a": file changed since it was read${STALE}`]);
    expect(said(kit.write.call({ file_path: 'a', content: '' }))).toEqual(['FS_STALE_VERSION', `cannot write "a": file no longer exists${STALE}`]);
    expect(said(kit.read.call({ file_path: 'a' }))).toEqual(['FS_NOT_FOUND', 'cannot read "a": not found']);
    expect(edit()).toEqual(['FS_NOT_FOUND', 'cannot edit "a": not found']);
    expect(kit.write.call({ file_path: 'a', content: 'mine' }).data).toMatchObject({ operation: 'create' });
    kit.read.call({ file_path: 'b' });
    bob.writeFileSync(at('b'), 'theirs');
    expect(said(kit.write.call({ file_path: 'b', content: 'mine' }))).toEqual(unread('b'));
    expect(text('b')).toBe('theirs');
  }));

  it('what was read before a restart is still observed, and one deleted since is stale', async () => {
    const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'palimpsest-tools-')), root = path.join(scratch, 'root');
    fs.mkdirSync(root);
    fs.writeFileSync(path.join(root, 'a'), 'one');
    fs.writeFileSync(path.join(root, 'b'), 'one');
    const open = (): Promise<Overlay> => Overlay.open({ root, session: path.join(scratch, 'session'), policy: observationPolicy() });
    await using(await open(), (overlay) => {
      tools(overlay).read.call({ file_path: 'a' });
      tools(overlay).read.call({ file_path: 'b' });
      tools(overlay).read.call({ file_path: 'c' });
    });
    fs.rmSync(path.join(root, 'b'));
    await using(await open(), (overlay) => {
      const kit = tools(overlay);
      expect(kit.edit.call({ file_path: 'a', old_string: 'one', new_string: 'two' }).isError).toBe(false);
      expect(kit.edit.call({ file_path: 'b', old_string: 'one', new_string: 'two' }).code).toBe('FS_STALE_VERSION');
      expect(kit.edit.call({ file_path: 'c', old_string: 'one', new_string: 'two' }).code).toBe('FS_NOT_FOUND');
      expect(overlay.as('other').observation('a').kind).toBe('unseen');
    });
    fs.rmSync(scratch, { recursive: true });
  });

  async function using(overlay: Overlay, body: (overlay: Overlay) => void): Promise<void> {
    try {
      body(overlay);
    } finally {
      await overlay.close();
    }
  }
});

describe('read', () => {
  it('numbers lines, says what was shown of how much, and goes on', () => withGround({ a: '\ufeffone\r\ntwo\nthree' }, ({ overlay }) => {
    const kit = tools(overlay, { limits: { lines: 2 } });
    expect(kit.read.call({ file_path: 'a' }).text).toBe('     1\tone\n     2\ttwo\n(lines 1-2 of 3; go on with offset 3)');
    expect(overlay.observation('a')).toMatchObject({ kind: 'present', shown: [[3, 12]], version: overlay.version('a') });
    expect(kit.read.call({ file_path: 'a', offset: 3 }).text).toBe('     3\tthree\n(lines 3-3 of 3; end of file)');
    expect(said(kit.read.call({ file_path: 'a', offset: 4 }))).toEqual(['FS_NOT_FOUND', 'offset 4 is out of range for "a" (3 lines)']);
  }));

  it('past the end still observes the file', () => withTools({ a: 'one\n' }, (kit, { overlay }) => {
    expect(kit.read.call({ file_path: 'a', offset: 9 }).code).toBe('FS_NOT_FOUND');
    expect(overlay.as('ann').observation('a')).toMatchObject({ kind: 'present', shown: [] });
    expect(kit.write.call({ file_path: 'a', content: '' }).isError).toBe(false);
    expect(kit.read.call({ file_path: 'a' }).text).toBe('(empty file)');
  }));

  it('cuts long lines and stops at the most bytes', () => withGround({ a: `${'x'.repeat(30)}\n${'y'.repeat(5)}\n${'z'.repeat(5)}\n` }, ({ overlay }) => {
    const kit = tools(overlay, { limits: { lineCharacters: 10, bytes: 17 } });
    expect(kit.read.call({ file_path: 'a' }).text).toBe(`     1\t${'x'.repeat(10)}… (line cut: 30 characters)\n     2\tyyyyy\n(lines 1-2 of 3; go on with offset 3)`);
    expect(overlay.observation('a')).toMatchObject({ shown: [[0, 10], [31, 37]] });
  }));

  it('of what is no text file says so', () => withTools({ a: 'x\0', 'd/x': '' }, (kit, { overlay }) => {
    expect(said(kit.read.call({ file_path: 'a' }))).toEqual(['FS_NOT_TEXT', 'cannot read "a": binary file']);
    expect(said(kit.read.call({ file_path: 'd' }))).toEqual(['FS_NOT_REGULAR_FILE', 'cannot read "d": not a regular file']);
    expect(said(kit.read.call({ file_path: 'a/b' }))).toEqual(['FS_NOT_DIRECTORY', 'cannot read "a/b": not a directory']);
    expect(overlay.as('ann').observation('a').kind).toBe('present');
    expect(kit.delete.call({ path: 'a' }).isError).toBe(false);
  }));

  it('of a file too large says so, and it can be read in no part', () => withTools({ a: 'x' }, (kit, { root }) => {
    fs.truncateSync(path.join(root, 'a'), 70 * 1024 * 1024);
    expect(said(kit.read.call({ file_path: 'a' }))).toEqual(['FS_TOO_LARGE', 'cannot read "a": file is too large (73400320 bytes; at most 67108864)']);
  }));
});

describe('edit', () => {
  const edited = (content: string | Buffer, old_string: string, new_string: string, more: object = {}): Promise<Buffer> => new Promise((resolve, reject) => {
    withTools({ a: content }, (kit, { overlay, at }) => {
      kit.read.call({ file_path: 'a' });
      expect(kit.edit.call({ file_path: 'a', old_string, new_string, ...more })).toMatchObject({ isError: false });
      resolve(overlay.as('witness').fs.readFileSync(at('a')));
    }).catch(reject);
  });

  it.each([
    ['a line feed matches CRLF, and what is new is CRLF', 'a\r\nb\r\nc\r\n', 'a\nb', 'x\ny\nz', 'x\r\ny\r\nz\r\nc\r\n'],
    ['mixed endings stay mixed', 'a\r\nb\nc\r\n', 'b', 'x', 'a\r\nx\nc\r\n'],
    ['each line that stays keeps its own ending', 'a\nb\r\nc\nd', 'a\nb\nc', 'a\nx\nc', 'a\nx\r\nc\nd'],
    ['an inserted line takes that of the lines around', 'a\nb\r\nc\r\n', 'c', 'c\nd', 'a\nb\r\nc\r\nd\r\n'],
    ['a byte order mark stays', '\ufeffa\nb', 'a', 'x', '\ufeffx\nb'],
    ['dollars are literal', 'a', 'a', '$& $1 $$', '$& $1 $$'],
    ['text that begins with a line feed', 'a\r\nb\r\n', '\nb', '\nc', 'a\r\nc\r\n'],
    ['nothing may be put in its place', 'a\r\nb\r\n', 'a\n', '', 'b\r\n'],
  ])('%s', async (_, content, from, to, wanted) => {
    expect((await edited(content, from, to)).toString()).toBe(wanted);
  });

  it('22. keeps a byte that is no UTF-8 on line 999', async () => {
    const lines = Buffer.concat([Buffer.from('first\n'), Buffer.from('x\n'.repeat(997)), Buffer.from([0xff, 0x0a])]);
    expect(await edited(lines, 'first', 'erste')).toEqual(Buffer.concat([Buffer.from('erste\n'), lines.subarray(6)]));
  });

  it('matches without overlap, replaces all on request', async () => {
    expect((await edited('aaaaa', 'aa', 'b', { replace_all: true })).toString()).toBe('bba');
  });

  it('is refused in these words, and changes nothing then', () => withTools({ a: 'x x\n' }, (kit, { text }) => {
    kit.read.call({ file_path: 'a' });
    const edit = (old_string: string) => said(kit.edit.call({ file_path: 'a', old_string, new_string: 'y' }));
    expect(edit('')).toEqual(['FS_EDIT_NOT_FOUND', 'old_string must be a non-empty string']);
    expect(edit('z')).toEqual(['FS_EDIT_NOT_FOUND', 'old_string was not found in "a"']);
    expect(edit('x')).toEqual(['FS_AMBIGUOUS_EDIT', 'old_string matched 2 times in "a"; provide a more specific old_string or set replace_all to true']);
    expect(said(kit.multiEdit.call({ file_path: 'a', edits: [{ old_string: 'x x', new_string: 'y' }, { old_string: 'x', new_string: 'z' }] })))
      .toEqual(['FS_EDIT_NOT_FOUND', 'edit 2 of 2: old_string was not found in "a"']);
    expect(text('a')).toBe('x x\n');
    expect(kit.multiEdit.call({ file_path: 'a', edits: [{ old_string: 'x x', new_string: 'y' }, { old_string: 'y', new_string: 'z' }] }).data).toMatchObject({ replacements: 2 });
    expect(text('a')).toBe('z\n');
  }));

  it('16., 19. goes through a symlink, which stays, and keeps mode', () => withTools({ a: 'x' }, (kit, { root, overlay, at }) => {
    fs.symlinkSync('a', path.join(root, 'l'));
    fs.chmodSync(path.join(root, 'a'), 0o755);
    kit.read.call({ file_path: 'l' });
    expect(kit.edit.call({ file_path: 'l', old_string: 'x', new_string: 'y' }).data).toMatchObject({ path: 'a' });
    expect(overlay.fs.lstatSync(at('l')).isSymbolicLink()).toBe(true);
    expect(overlay.fs.statSync(at('a')).mode & 0o777).toBe(0o755);
    expect(overlay.fs.readFileSync(at('a'), 'utf8')).toBe('y');
  }));
});

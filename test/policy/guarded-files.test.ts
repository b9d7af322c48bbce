import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { FsError, observationPolicy, Overlay, remediateFsError, type Edited, type GuardedFiles } from '../../src/index.ts';
import { refusal, withGround, type Ground } from './ground.ts';

const bytes = (text: string): Buffer => Buffer.from(text);

/** An edit of the first `from`. */
function replacing(from: string, to: string): (before: Uint8Array) => Edited {
  return (before) => {
    const text = Buffer.from(before), at = text.indexOf(from);
    return { bytes: Buffer.concat([text.subarray(0, at), bytes(to), text.subarray(at + bytes(from).length)]), splices: [[at, bytes(from).length, bytes(to).length]] };
  };
}

function see(files: GuardedFiles, name: string): void {
  files.hold(name).show('whole');
}

/** A ground whose actor `ann` is guarded. */
function guarded(tree: Record<string, string | Buffer>, body: (files: GuardedFiles, ground: Ground) => void | Promise<void>): Promise<void> {
  return withGround(tree, (ground) => {
    ground.overlay.use(observationPolicy());
    return body(ground.overlay.as('ann').files, ground);
  });
}

describe('write', () => {
  it('creates what was never seen and is not there, with the directories above', () => guarded({}, (files, { overlay, text }) => {
    const written = files.write('a/b/c.txt', bytes('x'));
    expect(written).toMatchObject({ operation: 'create', path: 'a/b/c.txt', before: undefined });
    expect(written.version).toBe(overlay.version('a/b/c.txt'));
    expect(text('a/b/c.txt')).toBe('x');
  }));

  it('refuses to overwrite what was not seen, leaves it, and records that', () => guarded({ a: '1' }, (files, { overlay, text }) => {
    expect(refusal(() => files.write('a', bytes('2')))).toEqual({ code: 'FS_NOT_OBSERVED', message: 'cannot overwrite existing "a" without reading it first' });
    expect(text('a')).toBe('1');
    expect([...overlay.events({ op: 'refuse' })]).toMatchObject([{ actor: 'ann', path: 'a', call: 'write', code: 'FS_NOT_OBSERVED' }]);
  }));

  it('overwrites what was seen, and again without another look; not after an outsider', () => guarded({ a: '1' }, (files, { outside, text }) => {
    see(files, 'a');
    expect(files.write('a', bytes('2')).operation).toBe('update');
    files.write('a', bytes('3'));
    expect(text('a')).toBe('3');
    see(files, 'b'.replace('b', 'a'));
    outside('b', 'x');
    see(files, 'b');
    outside('b', 'y');
    expect(refusal(() => files.write('b', bytes('2')))).toEqual({ code: 'FS_STALE_VERSION', message: 'cannot write "b": file changed since it was read' });
    see(files, 'b');
    files.write('b', bytes('2'));
    expect(text('b')).toBe('2');
  }));

  it('overwrites what is too large to be held, and tells no difference', () => withGround({ a: '1' }, ({ overlay, root, text }) => {
    fs.truncateSync(`${root}/a`, 3 * 2 ** 30);
    expect(overlay.files.write('a', bytes('2'))).toMatchObject({ operation: 'update', before: undefined });
    expect(text('a')).toBe('2');
  }));

  it('says so where what was seen is gone, or is no file', () => guarded({ a: '1', 'd/x': '' }, (files, { root }) => {
    see(files, 'a');
    fs.rmSync(`${root}/a`);
    expect(refusal(() => files.write('a', bytes('2')))).toEqual({ code: 'FS_STALE_VERSION', message: 'cannot write "a": file no longer exists' });
    expect(refusal(() => files.write('d', bytes('2')))).toEqual({ code: 'FS_NOT_REGULAR_FILE', message: 'cannot write "d": not a regular file' });
    expect(refusal(() => files.write('d/x/y', bytes('2')))).toEqual({ code: 'FS_NOT_DIRECTORY', message: 'cannot write "d/x/y": not a directory' });
  }));
});

describe('edit', () => {
  it('asks in this order: decision, presence, kind, version, text', () => guarded({ a: '1', b: 'x\0', 'd/x': '' }, (files, { outside, root }) => {
    const edit = (name: string) => refusal(() => files.edit(name, replacing('1', '2')));
    expect(edit('a')).toEqual({ code: 'FS_NOT_OBSERVED', message: 'edit requires reading "a" first' });
    expect(refusal(() => files.hold('none'))).toEqual({ code: 'FS_NOT_FOUND', message: 'cannot read "none": not found' });
    expect(edit('none')).toEqual({ code: 'FS_NOT_FOUND', message: 'cannot edit "none": not found' });
    files.list('d');
    expect(edit('d')).toEqual({ code: 'FS_NOT_REGULAR_FILE', message: 'cannot edit "d": not a regular file' });
    see(files, 'b');
    expect(edit('b')).toEqual({ code: 'FS_NOT_TEXT', message: 'cannot edit "b": binary file' });
    outside('b', 'y\0');
    expect(edit('b')).toEqual({ code: 'FS_STALE_VERSION', message: 'cannot edit "b": file changed since it was read' });
    see(files, 'a');
    fs.rmSync(`${root}/a`);
    expect(edit('a')).toEqual({ code: 'FS_STALE_VERSION', message: 'cannot edit "a": file changed since it was read' });
  }));

  it('of a file saved again with the same bytes is not stale; of other bytes with size and mtime put back it is', () => guarded({ a: 'one' }, (files, { root, text }) => {
    see(files, 'a');
    fs.writeFileSync(`${root}/a`, 'one');
    fs.utimesSync(`${root}/a`, 5, 5);
    files.edit('a', replacing('one', 'two'));
    expect(text('a')).toBe('two');
    fs.writeFileSync(`${root}/b`, 'one');
    fs.utimesSync(`${root}/b`, 5, 5);
    see(files, 'b');
    fs.writeFileSync(`${root}/b`, 'two');
    fs.utimesSync(`${root}/b`, 5, 5);
    expect(refusal(() => files.edit('b', replacing('two', 'x')))?.code).toBe('FS_STALE_VERSION');
  }));

  it('recovers from a target deleted by another, up to a faster creator', () => guarded({ a: 'x1' }, (files, { overlay, text, at }) => {
    const bob = overlay.as('bob');
    see(files, 'a');
    bob.fs.unlinkSync(at('a'));
    expect(refusal(() => files.edit('a', replacing('1', '2')))?.code).toBe('FS_STALE_VERSION');
    expect(refusal(() => files.write('a', bytes('2')))?.code).toBe('FS_STALE_VERSION');
    expect(refusal(() => see(files, 'a'))?.code).toBe('FS_NOT_FOUND');
    expect(files.actor).toBe('ann');
    expect(overlay.as('ann').observation('a').kind).toBe('absent');
    expect(refusal(() => files.edit('a', replacing('1', '2')))?.code).toBe('FS_NOT_FOUND');
    expect(files.write('a', bytes('mine')).operation).toBe('create');
    expect(refusal(() => see(files, 'b'))?.code).toBe('FS_NOT_FOUND');
    bob.fs.writeFileSync(at('b'), 'theirs');
    expect(refusal(() => files.write('b', bytes('mine')))?.code).toBe('FS_NOT_OBSERVED');
    expect(text('b')).toBe('theirs');
  }));

  it('without any decider asks nothing, and with one taken out and put back has lost nothing', () => withGround({ a: '1', b: '1' }, ({ overlay, text }) => {
    const { files } = overlay.as('ann');
    files.edit('a', replacing('1', '2'));
    see(files, 'b');
    const taken = overlay.use(observationPolicy());
    taken();
    files.write('b', bytes('3'));
    overlay.as('bob').files.write('a', bytes('4'));
    overlay.use(observationPolicy());
    files.write('b', bytes('5'));
    expect(refusal(() => files.write('a', bytes('5')))?.code).toBe('FS_STALE_VERSION');
    expect(text('b')).toBe('5');
    expect(refusal(() => files.edit('gone', replacing('1', '2')))?.code).toBe('FS_NOT_OBSERVED');
  }));

  it('is decided by whoever was registered first, who asks no other', () => withGround({ a: '1' }, ({ overlay, text }) => {
    const first = overlay.use({ name: 'all', decide: () => ({ kind: 'any' }) });
    overlay.use(observationPolicy());
    const { files } = overlay.as('ann');
    files.write('a', bytes('2'));
    expect(text('a')).toBe('2');
    first();
    expect(refusal(() => overlay.as('bob').files.write('a', bytes('3')))?.code).toBe('FS_NOT_OBSERVED');
  }));
});

describe('other changes', () => {
  it('are guarded the same way', () => guarded({ a: '1', b: '2', 'd/x': '1', 'd/y': '1', e: '1' }, (files, { overlay, at, outside }) => {
    expect(refusal(() => files.remove('a'))).toEqual({ code: 'FS_NOT_OBSERVED', message: 'delete requires reading "a" first' });
    expect(refusal(() => files.move('a', 'c'))?.message).toBe('move requires reading "a" first');
    expect(refusal(() => files.chmod('a', 0o755))?.message).toBe('chmod requires reading "a" first');
    see(files, 'a');
    expect(refusal(() => files.move('a', 'b'))?.message).toBe('cannot overwrite existing "b" without reading it first');
    expect(refusal(() => files.copy('a', 'b'))?.message).toBe('cannot overwrite existing "b" without reading it first');
    files.copy('a', 'c');
    files.chmod('a', 0o755);
    files.move('a', 'new/a');
    expect(overlay.as('ann').observation('a').kind).toBe('absent');
    files.remove('new/a');
    expect(refusal(() => files.remove('d', { recursive: true }))?.code).toBe('FS_NOT_OBSERVED');
    files.list('d');
    see(files, 'd/x');
    outside('d/x', '2');
    expect(refusal(() => files.remove('d', { recursive: true }))?.code).toBe('FS_STALE_VERSION');
    see(files, 'd/x');
    files.remove('d', { recursive: true });
    expect(overlay.fs.existsSync(at('d'))).toBe(false);
    expect(files.mkdir('m/n')).toBe('m/n');
    expect(refusal(() => files.mkdir('m'))?.message).toBe('cannot create "m": already exists');
  }));

  it('of a directory pass after its actor changed what is in it, and not after another did', () => guarded({ 'd/x': '1', 'e/x': '1' }, (files, { overlay, at }) => {
    files.list('d');
    files.write('d/new', bytes(''));
    files.move('d', 'f');
    files.list('e');
    overlay.as('bob').fs.writeFileSync(at('e/new'), '');
    files.write('e/mine', bytes(''));
    expect(refusal(() => files.move('e', 'g'))?.code).toBe('FS_STALE_VERSION');
    files.list('e');
    files.move('e', 'g');
  }));

  it('of a symlink ask for a look where it leads', () => guarded({ a: '1' }, (files, { overlay, at }) => {
    overlay.fs.symlinkSync('a', at('l'));
    expect(refusal(() => files.remove('l'))?.code).toBe('FS_NOT_OBSERVED');
    expect(files.readlink('l')).toBe('a');
    files.remove('l');
    expect(overlay.fs.existsSync(at('a'))).toBe(true);
  }));
});

describe('what has to be shown', () => {
  const tree = { a: 'one\ntwo\nthree\n' };
  const first = [[0, 4]] as const;

  it('viewed: what an edit replaces, as it has moved since', () => withGround(tree, ({ overlay, text }) => {
    overlay.use(observationPolicy({ requires: 'viewed' }));
    const { files } = overlay.as('ann');
    files.hold('a').show(first);
    expect(refusal(() => files.edit('a', replacing('two', '2')))?.code).toBe('FS_NOT_OBSERVED');
    files.edit('a', replacing('one', 'eins, zwei'));
    files.edit('a', replacing('zwei', 'drei'));
    expect(refusal(() => files.edit('a', replacing('two', '2')))?.code).toBe('FS_NOT_OBSERVED');
    expect(overlay.as('ann').observation('a')).toMatchObject({ shown: [[0, 11]] });
    expect(text('a')).toBe('eins, drei\ntwo\nthree\n');
  }));

  it('whole: besides, all of a file that is overwritten', () => withGround(tree, ({ overlay }) => {
    overlay.use(observationPolicy({ requires: 'whole' }));
    const { files } = overlay.as('ann');
    files.hold('a').show(first);
    files.edit('a', replacing('one', '1'));
    expect(refusal(() => files.write('a', bytes('x')))?.code).toBe('FS_NOT_OBSERVED');
    files.hold('a').show('whole');
    files.write('a', bytes('x'));
  }));

  it('nothing, by a search that showed nothing: that is no seeing', () => withGround(tree, ({ overlay }) => {
    overlay.use(observationPolicy());
    const { files } = overlay.as('ann');
    files.hold('a').show([], { search: true });
    expect(refusal(() => files.write('a', bytes('x')))?.code).toBe('FS_NOT_OBSERVED');
    files.hold('a').show(first, { search: true });
    files.write('a', bytes('x'));
  }));

  it('is an option with three words', () => {
    expect(() => observationPolicy({ requires: 'all' as never })).toThrow(/requires/);
    expect(() => observationPolicy({ require: 'whole' } as never)).toThrow(/unknown option/);
  });
});

describe('overlay.fs with a policy', () => {
  it('is refused with EPERM and the code, and passes what was seen', () => withGround({ a: '1', b: '1', 'd/x': '1' }, ({ overlay, at, text }) => {
    const { fs: ann } = overlay.as('ann');
    const code = (act: () => void): unknown[] => {
      try {
        act();
        return [];
      } catch (error) {
        const { code, fsCode } = error as { code: string; fsCode: string };
        return [code, fsCode];
      }
    };
    const unseen = ['EPERM', 'FS_NOT_OBSERVED'];
    expect(code(() => ann.writeFileSync(at('a'), '2'))).toEqual(unseen);
    expect(code(() => ann.appendFileSync(at('a'), '2'))).toEqual(unseen);
    expect(code(() => ann.openSync(at('a'), 'r+'))).toEqual(unseen);
    expect(code(() => ann.truncateSync(at('a'), 0))).toEqual(unseen);
    expect(code(() => ann.unlinkSync(at('a')))).toEqual(unseen);
    expect(code(() => ann.renameSync(at('a'), at('c')))).toEqual(unseen);
    expect(code(() => ann.chmodSync(at('a'), 0o600))).toEqual(unseen);
    expect(code(() => ann.rmSync(at('d'), { recursive: true }))).toEqual(unseen);
    ann.readFileSync(at('a'));
    expect(code(() => ann.renameSync(at('a'), at('b')))).toEqual(unseen);
    expect(code(() => ann.copyFileSync(at('a'), at('b')))).toEqual(unseen);
    overlay.as('bob').fs.readFileSync(at('a'));
    overlay.as('bob').fs.writeFileSync(at('a'), '3');
    expect(code(() => ann.writeFileSync(at('a'), '2'))).toEqual(['EPERM', 'FS_STALE_VERSION']);
    ann.readFileSync(at('a'));
    ann.appendFileSync(at('a'), '4');
    ann.chmodSync(at('a'), 0o600);
    ann.renameSync(at('a'), at('c'));
    ann.mkdirSync(at('n/m'), { recursive: true });
    ann.writeFileSync(at('n/m/x'), '1');
    ann.rmSync(at('n'), { recursive: true });
    expect(text('c')).toBe('34');
    expect([...overlay.events({ op: 'refuse' })].length).toBeGreaterThan(8);
  }, { policy: observationPolicy() }));

  it('has to be a policy', () => {
    expect(() => Overlay.openSync({ root: '/', policy: {} as never })).toThrow(/policy/);
  });
});

describe('remediateFsError', () => {
  it('says what to do, keeps code and cause, and passes all else through', () => {
    const stale = new FsError('FS_STALE_VERSION', 'cannot edit "a": file changed since it was read');
    expect(remediateFsError(stale, 'a')).toMatchObject({ code: 'FS_STALE_VERSION', message: `${stale.message} — re-read the file, then retry`, cause: stale });
    const unseen = new FsError('FS_NOT_OBSERVED', 'whatever');
    expect(remediateFsError(unseen, 'x/a')).toMatchObject({
      code: 'FS_NOT_OBSERVED', message: 'cannot modify "x/a": file has not been read — read the file, then retry', cause: unseen,
    });
    const other = new FsError('FS_NOT_FOUND', 'x');
    expect(remediateFsError(other, 'a')).toBe(other);
    expect(remediateFsError(undefined, 'a')).toBe(undefined);
  });
});

describe('paths', () => {
  it('outside the tree are refused and recorded, whatever leads there', () => guarded({ a: '1' }, (files, { overlay, root }) => {
    fs.symlinkSync('/etc/hostname', `${root}/l`);
    const denied = (act: () => unknown) => expect(refusal(act)).toMatchObject({ code: 'FS_SANDBOX_DENIED', message: expect.stringMatching(/^cannot \w+ ".*": outside the tree$/) });
    denied(() => files.hold('/etc/hostname'));
    denied(() => files.hold('../x'));
    denied(() => files.hold('l'));
    denied(() => files.write('/tmp/x', bytes('')));
    denied(() => files.write('l', bytes('')));
    denied(() => files.edit('../../etc/hostname', replacing('a', 'b')));
    denied(() => files.remove('/etc/hostname'));
    see(files, 'a');
    denied(() => files.move('a', '/tmp/a'));
    denied(() => files.list('/etc'));
    expect(refusal(() => files.hold('a\0b'))?.code).toBe('FS_NOT_FOUND');
    expect([...overlay.events({ op: 'refuse' })].length).toBe(9);
  }));

  it('that rules deny are FS_PERMISSION_DENIED, that they hide not there', () => withGround({ 'no/a': '1', 'hid/a': '1' }, ({ overlay }) => {
    const { files } = overlay.as('ann');
    expect(refusal(() => files.hold('no/a'))).toEqual({ code: 'FS_PERMISSION_DENIED', message: 'cannot read "no/a": permission denied' });
    expect(refusal(() => files.write('no/b', bytes('')))?.code).toBe('FS_PERMISSION_DENIED');
    expect(refusal(() => files.edit('no/a', replacing('1', '2')))?.code).toBe('FS_PERMISSION_DENIED');
    expect(refusal(() => files.hold('hid/a'))?.code).toBe('FS_NOT_FOUND');
    expect(refusal(() => files.write('hid/b', bytes('')))?.code).toBe('FS_PERMISSION_DENIED');
    expect(overlay.as('ann').observation('hid/a').kind).toBe('unseen');
  }, { rules: [{ match: 'no', effect: 'deny' }, { match: 'hid', effect: 'hide' }] }));
});

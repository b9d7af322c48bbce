import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Overlay } from '../../src/index.ts';
import { program } from '../model/arbitrary.ts';
import { CI_SEED } from '../support/seed.ts';
import type { NodeFs } from '../model/world.ts';
import { git, keptIn, played, type Kept } from './exported.ts';

/** Programs that are played: the same ones each time, others and more with `APPLY_SEED` and `APPLY_RUNS`. */
const RUNS = Number(process.env['APPLY_RUNS'] ?? 60), SEED = Number(process.env['APPLY_SEED'] ?? CI_SEED);
const STEPS = 30;

describe('a patch', () => {
  let scratch: string;
  beforeAll(() => { scratch = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'palimpsest-apply-'))); });
  afterAll(() => fs.rmSync(scratch, { recursive: true, force: true }));

  /** Applies the diff of an overlay to a copy of its lower; gives what is there then, and what should be. */
  function applied(root: string, overlay: Overlay): { there: Kept; wanted: Kept } {
    const copy = join(scratch, 'copy'), patch = join(scratch, 'patch');
    fs.rmSync(copy, { recursive: true, force: true });
    execFileSync('cp', ['-a', root, copy]);
    fs.writeFileSync(patch, overlay.patch());
    // Where git keeps nothing of what changed there is nothing to apply.
    if (/^diff --git/m.test(fs.readFileSync(patch, 'latin1'))) apply(copy, patch);
    return { there: keptIn(fs, copy), wanted: keptIn(overlay.fs as NodeFs, root) };
  }

  const apply = (cwd: string, ...args: string[]): string => git(cwd, ['apply', '--whitespace=nowarn', ...args], join(scratch, 'patch'));

  it('is taken by git apply, and back, whatever changed', async () => {
    const root = join(scratch, 'fixed'), at = (name: string): string => join(root, name);
    fs.mkdirSync(at('moved/deep'), { recursive: true });
    const files: Record<string, string | Buffer> = {
      text: 'one\ntwo\nthree\n', crlf: 'one\r\ntwo\r\n', bytes: Buffer.from('a\xff\nb\n', 'latin1'), 'no newline': 'last', empty: '', gone: 'gone\n', 'gone.bin': Buffer.alloc(300),
      binary: Buffer.from([...Array(2000).keys()].map((each) => each * 7 % 256)), script: '#!/bin/sh\n', taken: 'taken\n', 'moved/deep/a': 'a\n', 'moved/b': 'b\n', linked: 'linked\n', 'new\nline "q" é': 'odd\n',
    };
    for (const [name, content] of Object.entries(files)) fs.writeFileSync(at(name), content);
    fs.linkSync(at('linked'), at('other name'));
    fs.symlinkSync('text', at('link'));
    execFileSync('mkfifo', [at('fifo')]);
    const overlay = Overlay.openSync({ root }), { fs: over } = overlay;
    over.writeFileSync(at('text'), 'one\n2\nthree');
    over.writeFileSync(at('crlf'), 'one\r\n2\r\n');
    over.writeFileSync(at('bytes'), Buffer.from('a\xff\nb\xfe\n', 'latin1'));
    over.appendFileSync(at('no newline'), ', and more');
    over.writeFileSync(at('empty'), 'no more\n');
    for (const name of ['gone', 'gone.bin', 'fifo']) over.rmSync(at(name));
    over.writeFileSync(at('binary'), Buffer.concat([Buffer.from([0]), files['binary'] as Buffer]));
    over.chmodSync(at('script'), 0o755);
    over.utimesSync(at('script'), 1, 1);
    over.renameSync(at('moved'), at('new\tname'));
    over.appendFileSync(at('new\tname/deep/a'), 'more\n');
    over.renameSync(at('text'), at('taken'));
    over.appendFileSync(at('linked'), 'through one name\n');
    over.linkSync(at('script'), at('hard'));
    over.rmSync(at('link'));
    over.mkdirSync(at('link'));
    over.writeFileSync(at('link/file of a directory'), '');
    over.symlinkSync(Buffer.from([0xff, 0x2f, 0x61]), at('to bytes'));
    over.writeFileSync(Buffer.concat([Buffer.from(at('name ')), Buffer.from([0xfe])]), 'name of bytes\n');
    over.renameSync(at('new\nline "q" é'), at('back\\slash'));
    const { there, wanted } = applied(root, overlay);
    expect(there).toEqual(wanted);
    apply(join(scratch, 'copy'), '-R', join(scratch, 'patch'));
    expect(keptIn(fs, join(scratch, 'copy'))).toEqual(keptIn(fs, root));
    await overlay.close();
  });

  it('is taken by git apply, and makes of the lower what the overlay holds, for random programs', { timeout: 600_000 }, async () => {
    await fc.assert(fc.asyncProperty(program(STEPS).filter(({ user }) => user === undefined), (each) => played(each, join(scratch, 'root'), (overlay) => {
      const { there, wanted } = applied(join(scratch, 'root'), overlay);
      expect(there).toEqual(wanted);
    })), { numRuns: RUNS, seed: SEED });
  });

  it('tells what git has no words for', () => {
    const root = join(scratch, 'words'), at = (name: string): string => join(root, name);
    fs.mkdirSync(at('dir'), { recursive: true });
    fs.writeFileSync(at('dir/file'), 'file\n');
    fs.writeFileSync(at('kept'), 'kept\n');
    const overlay = Overlay.openSync({ root }), { fs: over } = overlay;
    over.mkdirSync(at('empty'));
    over.mkdirSync(at('full'));
    over.writeFileSync(at('full/file'), '');
    over.renameSync(at('dir'), at('moved'));
    over.chmodSync(at('kept'), 0o640);
    over.utimesSync(at('kept'), 5, 5);
    over.linkSync(at('kept'), at('also'));
    over.mkdirSync(at('.git'));
    over.writeFileSync(at('.git/config'), 'not yours\n');
    const { omitted } = overlay.patch();
    expect(omitted.map(({ path, kind }) => `${path} ${kind}`)).toEqual([
      '.git/config repository', 'also link', 'also mode', 'empty directory', 'kept mode', 'kept times',
    ]);
    expect(omitted.find(({ kind }) => kind === 'link')?.words).toBe('hard link also = kept');
    const { there } = applied(root, overlay);
    expect(Object.keys(there)).toEqual(['also', 'full/file', 'kept', 'moved/file']);
    overlay.closeSync();
  });

  it('leaves out what is redacted, with its digests, and what a rule hides, without a word', () => {
    const root = join(scratch, 'secret'), at = (name: string): string => join(root, name);
    fs.mkdirSync(root);
    for (const name of ['key', 'hidden', 'plain']) fs.writeFileSync(at(name), `${name}\n`);
    const overlay = Overlay.openSync({ root, rules: [{ match: 'hidden', effect: 'hide' }] }), { fs: over } = overlay;
    over.writeFileSync(at('key'), 'another\n');
    over.writeFileSync(at('plain'), 'changed\n');
    over.renameSync(at('key'), at('renamed'));
    const patch = overlay.patch({ redact: ['key'] });
    expect(patch.toString()).not.toMatch(/key|another|hidden/);
    expect(patch.omitted).toMatchObject([{ path: 'renamed', kind: 'redacted' }]);
    expect(patch.omitted[0]?.words).toMatch(/^rename of renamed, redacted: sha256:\w{64} → sha256:\w{64}$/);
    expect(overlay.patch({ paths: ['nowhere'] }).length).toBe(0);
    expect(overlay.patch({ paths: [at('renamed')] }).toString()).toMatch(/^rename from key$/m);
    expect(() => overlay.patch({ redact: ['[a'] })).toThrow(/malformed glob/);
    overlay.closeSync();
  });

  it('tells of a file beneath that has gone from under its changes, and of what may not be read', () => {
    const root = join(scratch, 'gone'), at = (name: string): string => join(root, name);
    fs.mkdirSync(root);
    fs.writeFileSync(at('large'), Buffer.alloc(3 * 1024 * 1024, 'x'));
    const overlay = Overlay.openSync({ root }), fd = overlay.fs.openSync(at('large'), 'r+');
    overlay.fs.writeSync(fd, 'y', 0);
    overlay.fs.closeSync(fd);
    fs.writeFileSync(at('large'), 'other');
    const patch = overlay.patch();
    expect(patch.omitted).toMatchObject([{ path: 'large', kind: 'unreadable', words: expect.stringContaining('has changed beneath') as string }]);
    expect(patch.length).toBe(0);
    overlay.closeSync();
  });

  it('says of binary files what is new in them, whatever that is, there and back', () => {
    const root = join(scratch, 'binary'), at = (name: string): string => join(root, name), block = 4096;
    fs.mkdirSync(root);
    const content = Buffer.concat([Buffer.alloc(1), randomBytes(20 * block + 77)]);
    const edits: Record<string, (bytes: Buffer) => Buffer> = {
      appended: (bytes) => Buffer.concat([bytes, randomBytes(3 * block)]),
      cut: (bytes) => bytes.subarray(0, 11 * block + 5),
      'begun otherwise': (bytes) => Buffer.concat([randomBytes(9), bytes.subarray(9)]),
      'a byte in the middle': (bytes) => Buffer.concat([bytes.subarray(0, 9 * block), Buffer.of(1), bytes.subarray(9 * block + 1)]),
      'the last byte': (bytes) => Buffer.concat([bytes.subarray(0, -1), Buffer.of((bytes.at(-1) as number) ^ 1)]),
      'every other block': (bytes) => Buffer.from(bytes.map((byte, i) => (i >> 12) % 2 === 0 ? byte : byte ^ 1)),
      moved: (bytes) => Buffer.concat([Buffer.of(0), bytes]),
      'all but nothing': () => Buffer.alloc(1),
      'another one': () => Buffer.concat([Buffer.alloc(1), randomBytes(5 * block)]),
    };
    for (const name of Object.keys(edits)) fs.writeFileSync(at(name), content);
    const overlay = Overlay.openSync({ root });
    for (const [name, edit] of Object.entries(edits)) overlay.fs.writeFileSync(at(name), edit(content));
    overlay.fs.renameSync(at('a byte in the middle'), at('renamed as well'));
    const { there, wanted } = applied(root, overlay);
    expect(there).toEqual(wanted);
    expect(overlay.patch({ paths: ['renamed as well', 'appended'] }).toString()).toMatch(/^delta \d+$/m);
    apply(join(scratch, 'copy'), '-R', join(scratch, 'patch'));
    expect(keptIn(fs, join(scratch, 'copy'))).toEqual(keptIn(fs, root));
    overlay.closeSync();
  });

  it('holds files of many megabytes piece by piece', { timeout: 120_000 }, () => {
    const root = join(scratch, 'large'), at = (name: string): string => join(root, name);
    fs.mkdirSync(root);
    const bytes = Buffer.alloc(33 * 1024 * 1024 + 17);
    for (let i = 0; i < bytes.length; i += 4096) bytes.writeUInt32LE(Math.imul(i, 0x9e3779b1) >>> 0, Math.min(i, bytes.length - 4));
    fs.writeFileSync(at('changed'), bytes);
    const overlay = Overlay.openSync({ root }), fd = overlay.fs.openSync(at('changed'), 'r+');
    overlay.fs.writeSync(fd, 'somewhere in the middle', 20_000_000);
    overlay.fs.closeSync(fd);
    overlay.fs.writeFileSync(at('new'), bytes);
    const { there, wanted } = applied(root, overlay);
    expect(there).toEqual(wanted);
    // What stays is told as what it is.
    expect(overlay.patch({ paths: ['changed'] }).length).toBeLessThan(40_000);
    let most = 0;
    for (const difference of overlay.differences()) for (const piece of difference.patch()) most = Math.max(most, piece.length);
    expect(most).toBeLessThan(2 * 1024 * 1024);
    overlay.closeSync();
  });
});

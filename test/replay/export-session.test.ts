import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Overlay, packSession, SessionLog, unpackSession } from '../../src/index.ts';
import { padding, tarEnd, tarHeader } from '../../src/store/tar.ts';

describe('a packed session', () => {
  let scratch: string, root: string, session: string, packed: Buffer;
  const large = randomBytes(200_000);
  beforeAll(() => {
    scratch = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'palimpsest-packed-')));
    root = join(scratch, 'root');
    session = join(scratch, 'session');
    fs.mkdirSync(root);
    const overlay = Overlay.openSync({ root, session });
    overlay.fs.writeFileSync(join(root, 'small'), 'small\n');
    overlay.fs.writeFileSync(join(root, 'large'), large);
    overlay.mark('done');
    overlay.closeSync();
    packed = Buffer.concat([...packSession(session)]);
  });
  afterAll(() => fs.rmSync(scratch, { recursive: true, force: true }));

  let count = 0;
  function unpacking(bytes: Buffer): string {
    const file = join(scratch, `${++count}.tar`), directory = join(scratch, `${count}`);
    fs.writeFileSync(file, bytes);
    unpackSession(file, directory);
    return directory;
  }

  const entry = (name: string, content: string, more: { type?: 'file' | 'symlink'; size?: number } = {}): Buffer => {
    const bytes = Buffer.from(content), { type = 'file', size = bytes.length } = more;
    return Buffer.concat([tarHeader({ name: Buffer.from(name), type, mode: 0o600, uid: 0, gid: 0, size, mtime: 0n }), bytes, padding(bytes.length)]);
  };
  const manifest = (files: unknown, version: unknown = 1): Buffer => entry('palimpsest-session.json', JSON.stringify({ 'palimpsest-session': version, session: 'x', files }));

  it('is the same session where it is unpacked, in private files', () => {
    const directory = unpacking(packed), log = SessionLog.openSync(directory), before = SessionLog.openSync(session);
    expect([...log.events()]).toEqual([...before.events()]);
    log.close();
    before.close();
    expect(fs.readFileSync(join(directory, 'log.jsonl'), 'utf8')).toBe(fs.readFileSync(join(session, 'log.jsonl'), 'utf8'));
    const overlay = Overlay.openSync({ session: directory });
    expect(large.equals(overlay.fs.readFileSync(join(root, 'large')) as Buffer)).toBe(true);
    expect(overlay.fs.readFileSync(join(root, 'small'), 'utf8')).toBe('small\n');
    overlay.closeSync();
    const modes = [directory, join(directory, 'log.jsonl'), join(directory, 'blobs')].map((path) => (fs.statSync(path).mode & 0o777).toString(8));
    expect(modes).toEqual(['700', '600', '700']);
  });

  it('is an archive that tar reads', () => {
    const names = execFileSync('tar', ['-t'], { input: packed, encoding: 'utf8' }).trim().split('\n');
    expect(names).toEqual(['palimpsest-session.json', 'log.jsonl', expect.stringMatching(/^blobs\/000000\.pack$/), expect.stringMatching(/^blobs\/[0-9a-f]{64}$/)]);
  });

  it('is packed beside its live writer, up to the last whole line', () => {
    const live = join(scratch, 'live'), overlay = Overlay.openSync({ root, session: live, durability: 'write' });
    overlay.fs.writeFileSync(join(root, 'a'), 'a\n');
    const seq = overlay.mark('here');
    fs.appendFileSync(join(live, 'log.jsonl'), '{"seq":99,"torn');
    const directory = unpacking(Buffer.concat([...packSession(live)])), log = SessionLog.openSync(directory);
    expect(log.lastSeq).toBe(seq);
    log.close();
    overlay.closeSync();
    expect(fs.existsSync(join(directory, 'lock'))).toBe(false);
  });

  it('is refused at every place where it could be cut short, and nothing is left', () => {
    const places = [0, 1, 511, 512, 700, 1024, 1025, 2000, packed.length >> 1, packed.length - 1025, packed.length - 1024, packed.length - 1];
    for (const at of places) expect(() => unpacking(packed.subarray(0, at)), String(at)).toThrow(/cut short|is no packed session/);
    expect(fs.readdirSync(scratch).filter((name) => name.endsWith('.part'))).toEqual([]);
    expect(fs.readdirSync(scratch).filter((name) => name === String(count))).toEqual([]);
  });

  it.each<[string, () => Buffer, RegExp]>([
    ['is no archive', () => Buffer.from('#!/bin/sh\n'), /is no packed session/],
    ['is somebody else\'s archive', () => Buffer.concat([entry('log.jsonl', '{}\n'), tarEnd()]), /is no packed session/],
    ['is of a newer format', () => Buffer.concat([manifest([], 2), tarEnd()]), /packed session of format 2; 1 is known here/],
    ['leads out of its directory', () => Buffer.concat([manifest([['log.jsonl', 0], ['../evil', 1]]), tarEnd()]), /names "\.\.\/evil", which no session has/],
    ['leads out below blobs', () => Buffer.concat([manifest([['log.jsonl', 0], ['blobs/../../evil', 1]]), tarEnd()]), /which no session has/],
    ['is absolute', () => Buffer.concat([manifest([['/etc/passwd', 1]]), tarEnd()]), /which no session has/],
    ['holds what its list has not', () => Buffer.concat([manifest([['log.jsonl', 0]]), entry('checkpoint', ''), tarEnd()]), /holds "checkpoint", which is not in its list/],
    ['holds more than its list has', () => Buffer.concat([manifest([['log.jsonl', 0]]), entry('log.jsonl', ''), entry('checkpoint', ''), tarEnd()]), /more than its list says/],
    ['holds a symlink', () => Buffer.concat([manifest([['log.jsonl', 0]]), entry('log.jsonl', '', { type: 'symlink' }), tarEnd()]), /which is no file/],
    ['lists a file twice', () => Buffer.concat([manifest([['log.jsonl', 0], ['log.jsonl', 0]]), tarEnd()]), /its list is damaged/],
    ['lists a size that is none', () => Buffer.concat([manifest([['log.jsonl', -1]]), tarEnd()]), /its list is damaged/],
    ['has no log', () => Buffer.concat([manifest([]), tarEnd()]), /has no log\.jsonl/],
    ['lacks what it lists', () => Buffer.concat([manifest([['log.jsonl', 0], ['checkpoint', 0]]), entry('log.jsonl', ''), tarEnd()]), /files of its list are missing/],
    ['has a header with a wrong sum', () => Buffer.concat([manifest([['log.jsonl', 0]]), Buffer.alloc(512, 65), tarEnd()]), /is damaged at byte 1024/],
  ])('is refused where it %s', (_, make, words) => {
    expect(() => unpacking(make())).toThrow(words);
    expect(fs.readdirSync(scratch).filter((name) => name === 'evil' || name === String(count))).toEqual([]);
  });

  it('lacks what is redacted, by whatever name it went, and nothing else', () => {
    const place = join(scratch, 'secrets'), at = (name: string): string => join(place, name), secrets = join(scratch, 'secret-session');
    fs.mkdirSync(at('keys'), { recursive: true });
    fs.writeFileSync(at('keys/lower'), 'lower secret\n');
    const overlay = Overlay.openSync({ root: place, session: secrets }), { fs: over } = overlay;
    const told = (path: string): string => `content of ${path}\n`.repeat(4);
    for (const path of ['keys/a', 'plain', 'moved in', 'first name', 'a large one']) over.writeFileSync(at(path), told(path));
    over.writeFileSync(at('keys/large'), Buffer.alloc(100_000, 'secret'));
    over.writeFileSync(at('a large one'), Buffer.alloc(100_000, 'public'));
    over.renameSync(at('keys/a'), at('moved out'));
    over.appendFileSync(at('moved out'), 'more of a secret\n');
    over.renameSync(at('moved in'), at('keys/moved in'));
    over.linkSync(at('first name'), at('keys/link'));
    over.renameSync(at('keys/lower'), at('lower'));
    over.writeFileSync(at('lower'), 'another lower secret\n');
    overlay.closeSync();
    const bytes = Buffer.concat([...packSession(secrets, { redact: ['keys/**'] })]);
    for (const path of ['keys/a', 'moved in', 'first name']) expect(bytes.includes(told(path)), path).toBe(false);
    for (const words of ['more of a secret', 'another lower secret', 'secretsecret']) expect(bytes.includes(words), words).toBe(false);
    for (const words of [told('plain'), 'publicpublic']) expect(bytes.includes(words), words).toBe(true);
    const unpacked = Overlay.openSync({ session: unpacking(bytes) });
    expect(unpacked.fs.readFileSync(at('plain'), 'utf8')).toBe(told('plain'));
    for (const path of ['moved out', 'keys/moved in', 'first name', 'keys/large', 'lower']) expect(() => unpacked.fs.readFileSync(at(path)), path).toThrow(/EIO/);
    expect(unpacked.patch().omitted.filter(({ kind }) => kind === 'unreadable').map(({ path }) => path)).toEqual([
      'first name', 'keys/large', 'keys/link', 'keys/moved in', 'lower', 'moved out',
    ]);
    unpacked.closeSync();
    expect(() => packSession(secrets, { redact: ['[a'] })).toThrow(/malformed glob/);
  });

  it('is not put where something is already, nor made of what is no session', () => {
    const file = join(scratch, 'again.tar');
    fs.writeFileSync(file, packed);
    expect(() => unpackSession(file, root)).toThrow(/is there already/);
    expect(() => unpackSession(join(scratch, 'nowhere.tar'), join(scratch, 'new'))).toThrow(/cannot be opened \(ENOENT\)/);
    expect(() => [...packSession(root)]).toThrow(/no session is there/);
  });
});

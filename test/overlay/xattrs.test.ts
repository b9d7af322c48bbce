import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PathName } from '../../src/core/path.ts';
import { Changes } from '../../src/overlay/changes.ts';
import { checkLaws } from '../support/laws.ts';
import { opened, lowerWith, machine, verdict, type Machine } from './ground.ts';

/** The real directory as an oracle, and the lower's own attributes, need both tools of the package `attr`. */
const HAS_TOOLS = spawnSync('setfattr', ['--version']).status === 0 && spawnSync('getfattr', ['--version']).status === 0;
const LACKS_TOOLS = !HAS_TOOLS && process.env['CI'] === undefined;

const TO = { follow: false };

function setReal(file: string, name: string, value: string | Uint8Array): void {
  execFileSync('setfattr', setting(file, name, value));
}

/** What the tool is told; it takes an empty value only by not being given one. */
function setting(file: string, name: string, value: string | Uint8Array): string[] {
  const given = value.length === 0 ? [] : ['-v', `0s${Buffer.from(value).toString('base64')}`];
  return ['-h', '-n', name, ...given, '--', file];
}

/** Names and values as text, of the real file. */
function real(file: string): Record<string, string> {
  const { stdout } = spawnSync('getfattr', ['-h', '-d', '-m', '^(user|trusted)\\.', '-e', 'hex', '--absolute-names', '--', file], { encoding: 'utf8' });
  return Object.fromEntries(stdout.split('\n').filter((line) => line.includes('=0x'))
    .map((line) => line.split('=0x') as [string, string]).map(([name, hex]) => [name, Buffer.from(hex, 'hex').toString('latin1')]));
}

function shown({ system }: Machine, file: PathName | number): Record<string, string> {
  return Object.fromEntries(system.xattrs.list(file, TO)
    .map((name) => [name, Buffer.from(system.xattrs.get(file, name, TO)).toString('latin1')]));
}

function rows({ world }: Machine): unknown[] {
  world.session.publish();
  return Changes.of(world).map(({ path: name, kind, from, xattrs }) => [name, kind, from, xattrs && 'xattrs'].filter((each) => each !== undefined));
}

describe('extended attributes of the overlay', () => {
  it('keeps values of any bytes, tells them by path and by descriptor, and gives them up', () => {
    const root = lowerWith({}), m = machine(root), { xattrs } = m.system, file = m.at('f');
    m.system.writeFile(file, Buffer.from('x'), fs.constants.O_CREAT | fs.constants.O_WRONLY, 0o644);
    const value = Buffer.from(Array.from({ length: 65536 }, (_, byte) => byte & 255));
    xattrs.set(file, 'user.bytes', value, TO);
    xattrs.set(file, 'user.empty', new Uint8Array(0), TO);
    const fd = m.system.open(file, fs.constants.O_RDONLY, 0);
    expect(Buffer.from(xattrs.get(fd, 'user.bytes', TO)).equals(value)).toBe(true);
    expect(xattrs.get(file, 'user.empty', TO)).toHaveLength(0);
    expect(xattrs.list(fd, TO)).toEqual(['user.bytes', 'user.empty']);
    xattrs.remove(fd, 'user.bytes', TO);
    expect(xattrs.list(file, TO)).toEqual(['user.empty']);
    expect(verdict(() => xattrs.get(file, 'user.bytes', TO))).toBe('ENODATA');
    expect(verdict(() => xattrs.remove(file, 'user.bytes', TO))).toBe('ENODATA');
    expect(fs.readdirSync(root)).toEqual([]);
  });

  it('refuses as Linux does: sizes, name spaces, kinds of file, and what has to be there or not', () => {
    const m = machine(lowerWith({ f: 'x' })), { system } = m, { xattrs } = system, byte = Buffer.from('x'), file = m.at('new');
    system.writeFile(file, byte, fs.constants.O_CREAT | fs.constants.O_WRONLY, 0o644);
    system.symlink('f', m.at('l'));
    system.mknod(m.at('p'), 0o010644, 0);
    system.mkdir(m.at('d'), 0o755);
    const set = (name: string, value = byte, at = file, only?: 'create' | 'replace'): string =>
      verdict(() => xattrs.set(at, name, value, { follow: false, ...(only === undefined ? {} : { only }) }));
    expect(set('user.' + 'n'.repeat(250))).toBe('done');
    expect(set('user.' + 'n'.repeat(251))).toBe('ERANGE');
    expect(set('')).toBe('ERANGE');
    expect(set('user.é' + 'n'.repeat(249))).toBe('ERANGE');
    expect(set('user.')).toBe('EINVAL');
    expect(set('other.a')).toBe('ENOTSUP');
    expect(set('system.posix_acl_access')).toBe('ENOTSUP');
    expect(verdict(() => xattrs.get(file, 'system.posix_acl_access', TO))).toBe('ENOTSUP');
    expect(set('user.big', Buffer.alloc(65537))).toBe('E2BIG');
    expect(set('user.a', byte, file, 'replace')).toBe('ENODATA');
    expect(set('user.a', byte, file, 'create')).toBe('done');
    expect(set('user.a', byte, file, 'create')).toBe('EEXIST');
    expect(set('user.a', byte, file, 'replace')).toBe('done');
    expect(set('user.a', byte, m.at('l'))).toBe('EPERM');
    expect(set('user.a', byte, m.at('p'))).toBe('EPERM');
    expect(set('user.a', byte, m.at('d'))).toBe('done');
    expect(verdict(() => xattrs.get(m.at('l'), 'user.a', TO))).toBe('ENODATA');
    expect(set('user.a', byte, m.at('none'))).toBe('ENOENT');
    expect(set('security.capability')).toBe(process.geteuid?.() === 0 ? 'EINVAL' : 'EPERM');
    expect(verdict(() => xattrs.get(m.at('f'), 'security.capability', TO))).toBe('ENODATA');
    for (let at = 0; at < 260; at++) set(`user.${at}${'n'.repeat(245)}`);
    expect(verdict(() => xattrs.list(file, TO))).toBe('E2BIG');
  });

  it('follows a file through renames, links, copies of its directory and a reopening, with and without a checkpoint', () => {
    const root = lowerWith({ 'd/f': 'x' }), session = path.join(root, '../session'), at = (name: string): PathName => path.join(root, name) as PathName;
    let m = machine(root, { session });
    m.system.xattrs.set(at('d/f'), 'user.a', Buffer.from('1'), TO);
    m.system.xattrs.set(at('d'), 'user.d', Buffer.from('dir'), TO);
    m.system.link(at('d/f'), at('g'));
    m.system.rename(at('d'), at('e'), {});
    m.system.unlink(at('e/f'));
    m.system.xattrs.set(at('g'), 'user.b', Buffer.from('2'), TO);
    const told = (): unknown => [shown(m, at('g')), shown(m, at('e'))];
    const expected = [{ 'user.a': '1', 'user.b': '2' }, { 'user.d': 'dir' }];
    expect(told()).toEqual(expected);
    expect(rows(m)).toEqual([['e', 'rename', 'd', 'xattrs'], ['g', 'rename', 'd/f', 'xattrs']]);
    m.close();
    m = machine(root, { session });
    expect(told()).toEqual(expected);
    m.close();
    fs.rmSync(path.join(session, 'checkpoint'), { force: true });
    m = machine(root, { session });
    expect(told()).toEqual(expected);
  });

  it('finds a file with several names by any of them, and one without a name by its descriptor', () => {
    const root = lowerWith({ a: 'x' });
    fs.linkSync(path.join(root, 'a'), path.join(root, 'b'));
    const m = machine(root), fd = m.system.open(m.at('a'), fs.constants.O_RDONLY, 0);
    m.system.xattrs.set(m.at('b'), 'user.n', Buffer.from('1'), TO);
    expect(shown(m, m.at('a'))).toEqual({ 'user.n': '1' });
    m.system.unlink(m.at('a'));
    m.system.xattrs.set(fd, 'user.m', Buffer.from('2'), TO);
    expect(shown(m, m.at('b'))).toEqual({ 'user.n': '1', 'user.m': '2' });
    m.system.unlink(m.at('b'));
    m.system.xattrs.set(fd, 'user.o', Buffer.from('3'), TO);
    expect(shown(m, fd)).toEqual({ 'user.n': '1', 'user.m': '2', 'user.o': '3' });
    expect(rows(m)).toEqual([['a', 'delete'], ['b', 'delete']]);
  });

  it('is in changes and in the version of the tree, and goes with a discard', () => {
    const root = lowerWith({ f: 'x', g: 'y' }), overlay = opened({ root });
    const m = machine(root), { xattrs } = m.system;
    const version = (): string => Changes.versionOf(Changes.of(m.world));
    expect(version()).toBe(overlay.treeVersion());
    xattrs.set(m.at('f'), 'user.a', Buffer.from('1'), TO);
    const one = version();
    expect(rows(m)).toEqual([['f', 'xattr']]);
    xattrs.set(m.at('f'), 'user.a', Buffer.from('2'), TO);
    expect(version()).not.toBe(one);
    m.system.chmod(m.at('f'), 0o600, { follow: true });
    expect(rows(m)).toEqual([['f', 'mode', 'xattrs']]);
    m.system.chmod(m.at('f'), 0o644, { follow: true });
    xattrs.set(m.at('f'), 'user.a', Buffer.from('1'), TO);
    expect(version()).toBe(one);
    xattrs.remove(m.at('f'), 'user.a', TO);
    expect(rows(m)).toEqual([]);
    xattrs.set(m.at('f'), 'user.a', Buffer.from('1'), TO);
    m.world.session.append('main', { op: 'discard' });
    expect(shown(m, m.at('f'))).toEqual({});
    checkLaws({ events: () => m.events(), head: { seq: m.world.state.seq } });
  });

  it('tells a name that is no UTF-8 by its bytes, and a look-up by a miss alone', () => {
    const m = machine(lowerWith({ f: 'x' })), before = m.events().length;
    m.system.xattrs.set(m.at('f'), 'user.\udcff', Buffer.from('1'), TO);
    m.system.xattrs.list(m.at('f'), TO);
    m.system.xattrs.get(m.at('f'), 'user.\udcff', TO);
    verdict(() => m.system.xattrs.list(m.at('none'), TO));
    expect(m.events().slice(before).map((event) => event.op)).toEqual(['setxattr', 'miss']);
    checkLaws({ events: () => m.events(), head: { seq: m.world.state.seq } });
  });
});

describe.skipIf(LACKS_TOOLS)('extended attributes of the lower', () => {
  it('shows them, keeps them under what the overlay changes, and leaves the lower as it was', () => {
    const root = lowerWith({ f: 'x', g: 'y' });
    setReal(path.join(root, 'f'), 'user.low', Buffer.of(0, 255, 10));
    setReal(path.join(root, 'f'), 'user.gone', 'g');
    setReal(root, 'user.root', 'r');
    const m = machine(root), { xattrs } = m.system;
    expect(shown(m, m.at('f'))).toEqual({ 'user.low': '\0\xff\n', 'user.gone': 'g' });
    expect(shown(m, m.at(''))).toEqual({ 'user.root': 'r' });
    m.system.writeFile(m.at('f'), Buffer.from('changed'), fs.constants.O_WRONLY, 0);
    expect(shown(m, m.at('f'))).toEqual({ 'user.low': '\0\xff\n', 'user.gone': 'g' });
    expect(verdict(() => xattrs.set(m.at('f'), 'user.low', Buffer.from('n'), { follow: false, only: 'create' }))).toBe('EEXIST');
    xattrs.remove(m.at('f'), 'user.gone', TO);
    m.system.rename(m.at('f'), m.at('g'), {});
    expect(shown(m, m.at('g'))).toEqual({ 'user.low': '\0\xff\n' });
    expect(real(path.join(root, 'f'))).toEqual({ 'user.low': '\0\xff\n', 'user.gone': 'g' });
    xattrs.set(m.at('g'), 'user.gone', Buffer.from('g'), TO);
    expect(rows(m)).toEqual([['g', 'rename', 'f']]);
  });

  it('asks once for a directory of a thousand files, and again for one that changed', async () => {
    const root = lowerWith(Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`f${1000 + at}`, 'x'])));
    for (const name of ['f1000', 'f1500', 'f1999']) setReal(path.join(root, name), 'user.name', name);
    // Old enough that the file system's clock has moved on.
    await new Promise((resolve) => setTimeout(resolve, 50));
    const bin = path.join(root, '../bin'), calls = path.join(root, '../calls'), tool = execFileSync('sh', ['-c', 'command -v getfattr'], { encoding: 'utf8' }).trim();
    fs.mkdirSync(bin);
    fs.writeFileSync(path.join(bin, 'getfattr'), `#!/bin/sh\necho >> '${calls}'\nexec ${tool} "$@"\n`, { mode: 0o755 });
    const before = process.env['PATH'];
    process.env['PATH'] = `${bin}:${before}`;
    try {
      const m = machine(root), names = m.system.readdir(m.at('')).map(({ name }) => name);
      const found = (): unknown[] => names.filter((name) => m.system.xattrs.list(m.at(name), TO).length > 0);
      expect(found()).toEqual(['f1000', 'f1500', 'f1999']);
      expect(fs.readFileSync(calls, 'utf8')).toBe('\n');
      setReal(path.join(root, 'f1200'), 'user.late', 'l');
      expect(found()).toEqual(['f1000', 'f1200', 'f1500', 'f1999']);
      // Not asked for any of these, which every `ls -l` and every write asks for.
      const asked = fs.readFileSync(calls, 'utf8');
      for (const name of ['security.capability', 'security.selinux']) expect(verdict(() => m.system.xattrs.get(m.at('f1300'), name, TO))).toBe('ENODATA');
      expect(verdict(() => m.system.xattrs.get(m.at('f1300'), 'system.posix_acl_access', TO))).toBe('ENOTSUP');
      expect(fs.readFileSync(calls, 'utf8')).toBe(asked);
    } finally {
      process.env['PATH'] = before;
    }
  });

  it('never leaves the root: a symlink shows its own, and a name of any bytes is no option and no path', () => {
    const awkward = ['-n', 'a b', 'line\nfeed', 'back\\slash', '\\012', "quote'\""];
    const root = lowerWith(Object.fromEntries([...awkward, 'plain'].map((name) => [name, 'x'])));
    fs.writeFileSync(path.join(root, '../secret'), 's');
    setReal(path.join(root, '../secret'), 'user.secret', 's');
    fs.symlinkSync('../secret', path.join(root, 'link'));
    for (const name of awkward) setReal(path.join(root, name), 'user.a', name);
    const bytes = Buffer.concat([Buffer.from(root + '/'), Buffer.of(0xff, 0x20)]);
    fs.writeFileSync(bytes, 'x');
    const m = machine(root);
    expect(verdict(() => m.system.xattrs.get(m.at('link'), 'user.secret', TO))).toBe('ENODATA');
    expect(verdict(() => m.system.xattrs.get(m.at('link'), 'user.secret', { follow: true }))).toBe('EACCES');
    expect(m.system.xattrs.list(m.at('link'), TO)).toEqual([]);
    for (const name of awkward) expect(shown(m, `${root}/${name}` as PathName)).toEqual({ 'user.a': name });
    expect(shown(m, `${root}/\udcff ` as PathName)).toEqual({});
  });

  it('is ENOTSUP where the tool is missing, and the overlay keeps its own', () => {
    const root = lowerWith({ f: 'x' }), before = process.env['PATH'], m = machine(root);
    process.env['PATH'] = '/nowhere';
    try {
      expect(verdict(() => m.system.xattrs.list(m.at('f'), TO))).toBe('ENOTSUP');
      expect(verdict(() => m.system.xattrs.get(m.at('f'), 'user.a', TO))).toBe('ENOTSUP');
      expect(verdict(() => m.system.xattrs.get(m.at('f'), 'security.capability', TO))).toBe('ENODATA');
      m.system.xattrs.set(m.at('f'), 'user.a', Buffer.from('1'), TO);
      expect(shown(m, m.at('f'))).toEqual({ 'user.a': '1' });
      expect(rows(m)).toEqual([['f', 'xattr']]);
    } finally {
      process.env['PATH'] = before;
    }
  });
});

type Step =
  | { readonly op: 'set'; readonly path: string; readonly name: string; readonly value: string }
  | { readonly op: 'remove'; readonly path: string; readonly name: string }
  | { readonly op: 'write' | 'unlink' | 'reopen'; readonly path: string }
  | { readonly op: 'rename' | 'link' | 'replace'; readonly path: string; readonly to: string };

const anyPath = fc.constantFrom('a', 'b', 'd/a', 'd', 'e/a', 'e', 'n');
const anyName = fc.constantFrom('user.a', 'user.b', 'user.low');
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ op: fc.constant('set' as const), path: anyPath, name: anyName, value: fc.constantFrom('', '1', 'two\n') }),
  fc.record({ op: fc.constant('remove' as const), path: anyPath, name: anyName }),
  fc.record({ op: fc.constantFrom('write' as const, 'unlink' as const, 'reopen' as const), path: anyPath }),
  fc.record({ op: fc.constantFrom('rename' as const, 'link' as const, 'replace' as const), path: anyPath, to: anyPath }),
);

/** Plays one step on the real directory; whether it was refused. */
function playReal(root: string, step: Step): boolean {
  const at = (name: string): string => path.join(root, name);
  try {
    switch (step.op) {
      case 'set': return spawnSync('setfattr', setting(at(step.path), step.name, step.value)).status !== 0;
      case 'remove': return spawnSync('setfattr', ['-h', '-x', step.name, '--', at(step.path)]).status !== 0;
      case 'write': fs.writeFileSync(at(step.path), 'written'); break;
      case 'unlink': fs.unlinkSync(at(step.path)); break;
      case 'rename': fs.renameSync(at(step.path), at(step.to)); break;
      case 'link': fs.linkSync(at(step.path), at(step.to)); break;
      case 'replace': fs.writeFileSync(at(step.path) + '~', 'new'); fs.renameSync(at(step.path) + '~', at(step.to)); break;
      case 'reopen': break;
    }
    return false;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    return true;
  }
}

function playOver({ system, at }: Machine, step: Step): boolean {
  const flags = fs.constants.O_CREAT | fs.constants.O_WRONLY | fs.constants.O_TRUNC;
  return verdict(() => {
    switch (step.op) {
      case 'set': return system.xattrs.set(at(step.path), step.name, Buffer.from(step.value), TO);
      case 'remove': return system.xattrs.remove(at(step.path), step.name, TO);
      case 'write': return system.writeFile(at(step.path), Buffer.from('written'), flags, 0o666);
      case 'unlink': return system.unlink(at(step.path));
      case 'rename': return system.rename(at(step.path), at(step.to), {});
      case 'link': return system.link(at(step.path), at(step.to));
      case 'replace': {
        system.writeFile(at(step.path + '~'), Buffer.from('new'), flags, 0o666);
        return system.rename(at(step.path + '~'), at(step.to), {});
      }
      case 'reopen': return undefined;
    }
  }) !== 'done';
}

function plant(root: string): void {
  for (const directory of ['d', 'e']) fs.mkdirSync(path.join(root, directory), { recursive: true });
  for (const name of ['a', 'b', 'd/a', 'e/a']) fs.writeFileSync(path.join(root, name), name);
  fs.linkSync(path.join(root, 'b'), path.join(root, 'e/b'));
  for (const name of ['a', 'b', 'd', 'd/a']) setReal(path.join(root, name), 'user.low', `low ${name}`);
}

describe.skipIf(LACKS_TOOLS)('extended attributes, by random programs', () => {
  it('are those of a real directory after every step', { timeout: 120_000 }, () => {
    fc.assert(fc.property(fc.array(anyStep, { maxLength: 14 }), (steps) => {
      const lower = lowerWith({}), oracle = lowerWith({}), session = path.join(lower, '../session');
      plant(lower);
      plant(oracle);
      let m = machine(lower, { session });
      for (const step of steps) {
        expect(playOver(m, step), JSON.stringify(step)).toBe(playReal(oracle, step));
        if (step.op !== 'reopen') continue;
        m.close();
        m = machine(lower, { session });
      }
      for (const name of fs.readdirSync(oracle, { recursive: true, encoding: 'utf8' })) {
        expect([name, shown(m, m.at(name))]).toEqual([name, real(path.join(oracle, name))]);
      }
      checkLaws({ events: () => m.events(), head: { seq: m.world.state.seq } });
      m.close();
    }), { numRuns: Number(process.env['FUZZ_RUNS'] ?? 40) });
  });
});

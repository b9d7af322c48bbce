import fs from 'node:fs';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { S_IFMT, typeBits, type Attr } from '../../src/core/attr.ts';
import type { PathName } from '../../src/core/path.ts';
import { unreachable } from '../../src/core/unreachable.ts';
import type { SystemTime } from '../../src/overlay/system.ts';
import { lowerWith, machine, verdict, type Machine } from '../overlay/ground.ts';
import { checkLaws } from '../support/laws.ts';
import { anyStep, fitsNobody, LACKS_ORACLE, NOBODY, plant, playReal, type Step } from './kernel-program.ts';

const isRoot = process.geteuid?.() === 0;

function digest(bytes: Uint8Array): string {
  return `${bytes.length} bytes, sum ${crc32(bytes)}`;
}

/** Plays the steps over an overlay. */
class Player {
  machine: Machine;
  private readonly root: string;
  private readonly session: string;
  private readonly slots = new Map<number, number>();

  constructor(root: string) {
    this.root = root;
    this.session = path.join(root, '../session');
    this.machine = machine(root, { session: this.session });
  }

  play(each: Step): string | number {
    let told: string | number | undefined;
    const refused = verdict(() => { told = this.perform(each); });
    return refused === 'done' ? told ?? 'done' : refused;
  }

  private perform(each: Step): string | number | undefined {
    const { system } = this.machine, at = (name: string): PathName => (name === '' ? this.root : `${this.root}/${name}`) as PathName;
    const fd = (number: number): number => this.slots.get(number) ?? 5_000_000;
    switch (each.op) {
      case 'open':
      case 'tmpfile':
        this.close(each.slot);
        this.slots.set(each.slot, system[each.op](at(each.path), each.flags, each.mode));
        return undefined;
      case 'close': this.close(each.slot); return undefined;
      case 'linkOpen': system.linkOpen(fd(each.slot), at(each.path)); return undefined;
      case 'write': {
        const bytes = Buffer.from(each.text.repeat(each.times));
        return system.write(fd(each.slot), bytes, 0, bytes.length, each.at);
      }
      case 'read': {
        const into = Buffer.alloc(each.length), count = system.read(fd(each.slot), into, 0, each.length, each.at);
        return digest(into.subarray(0, count));
      }
      case 'ftruncate': system.ftruncate(fd(each.slot), each.size); return undefined;
      case 'fallocate': system.fallocate(fd(each.slot), each.mode, each.offset, each.length); return undefined;
      case 'seek': return this.seek(fd(each.slot), each.offset, each.wanted);
      case 'copyRange': {
        let done = 0;
        while (done < each.length) {
          const count = system.copyRange(fd(each.from), each.fromAt + done, fd(each.to), each.toAt + done, each.length - done);
          if (count === 0) break;
          done += count;
        }
        return done;
      }
      case 'fsetxattr': system.xattrs.set(fd(each.slot), each.name, Buffer.from(each.value), { follow: true }); return undefined;
      case 'fchmod': system.fchmod(fd(each.slot), each.mode); return undefined;
      case 'rename': system.rename(at(each.path), at(each.to), each); return undefined;
      case 'link': system.link(at(each.path), at(each.to)); return undefined;
      case 'unlink': system.unlink(at(each.path)); return undefined;
      case 'rmdir': system.rmdir(at(each.path)); return undefined;
      case 'mkdir': system.mkdir(at(each.path), each.mode); return undefined;
      case 'mknod': system.mknod(at(each.path), typeBits(each.type) | each.mode, each.rdev); return undefined;
      case 'symlink': system.symlink(each.target, at(each.path)); return undefined;
      case 'chmod': system.chmod(at(each.path), each.mode, { follow: true }); return undefined;
      case 'chown': system.chown(at(each.path), each.uid, each.gid, { follow: false }); return undefined;
      case 'utimes': system.utimes(at(each.path), moment(each.atime), moment(each.mtime), { follow: false }); return undefined;
      case 'setxattr': {
        const only = each.only === undefined ? {} : { only: each.only };
        system.xattrs.set(at(each.path), each.name, Buffer.from(each.value), { follow: false, ...only });
        return undefined;
      }
      case 'removexattr': system.xattrs.remove(at(each.path), each.name, { follow: false }); return undefined;
      case 'reopen': this.reopen(); return undefined;
      default: return unreachable(each);
    }
  }

  /** What lies between the offset asked for and the one found has to be zeros, and the other way round. */
  private seek(fd: number, from: number, wanted: 'data' | 'hole'): string {
    const { system } = this.machine, { size, mode } = system.fstat(fd);
    if ((mode & S_IFMT) === typeBits('directory')) return 'somewhere';
    if (from >= size) {
      system.seek(fd, from, wanted);
      throw new Error('an offset beyond the end was accepted');
    }
    let found = size;
    const refused = verdict(() => { found = system.seek(fd, from, wanted); });
    if (refused !== 'done' && (refused !== 'ENXIO' || wanted !== 'data')) throw new Error(`seek gave ${refused}`);
    if (found < from || found > size) throw new Error(`seek from ${from} of ${size} gave ${found}`);
    const isOpenForReading = verdict(() => system.read(fd, Buffer.alloc(1), 0, 1, 0)) === 'done';
    if (wanted === 'data' && isOpenForReading) {
      const between = Buffer.alloc(found - from);
      for (let at = 0; at < between.length;) at += system.read(fd, between, at, between.length - at, from + at);
      if (!between.every((byte) => byte === 0)) throw new Error(`data before ${found} was passed over`);
    }
    return 'somewhere';
  }

  private close(number: number): void {
    const fd = this.slots.get(number);
    this.slots.delete(number);
    if (fd !== undefined) this.machine.system.close(fd);
  }

  reopen(): void {
    this.slots.clear();
    this.machine.close();
    this.machine = machine(this.root, { session: this.session });
  }
}

function moment(text: string): SystemTime {
  return text === 'now' || text === 'omit' ? text : BigInt(text);
}

/** As the oracle tells of its tree. */
function census({ system, at }: Machine, since: bigint): unknown[] {
  const lines: unknown[] = [], numbers = new Map<string, string>();
  const entryOf = (name: string, attr: Attr): unknown => {
    const here = at(name), kind = attr.mode & S_IFMT, key = `${attr.dev}:${attr.ino}`;
    if (!numbers.has(key)) numbers.set(key, name);
    const xattrs = system.xattrs.list(here, { follow: false }).filter((each) => each.startsWith('user.'))
      .map((each) => [each, Buffer.from(system.xattrs.get(here, each, { follow: false })).toString('base64')]);
    return {
      mode: attr.mode.toString(8), nlink: attr.nlink, uid: attr.uid, gid: attr.gid, rdev: attr.rdev,
      mtime: attr.mtime >= since ? 'now' : String(attr.mtime), xattrs,
      ...(kind === typeBits('directory') ? {} : { size: attr.size, first: numbers.get(key) }),
      ...(kind === typeBits('file') ? { content: digest(system.readFile(here, fs.constants.O_RDONLY)) } : {}),
      ...(kind === typeBits('symlink') ? { target: system.readlink(here) } : {}),
    };
  };
  const visit = (name: string): void => {
    const refused = verdict(() => {
      const attr = system.mustStat(at(name), { follow: false });
      lines.push([name, entryOf(name, attr)]);
      if ((attr.mode & S_IFMT) !== typeBits('directory')) return;
      for (const child of system.readdir(at(name))) visit(name === '' ? child.name : `${name}/${child.name}`);
    });
    if (refused === 'EACCES') lines.push([name, refused]);
    else if (refused !== 'done') throw new Error(`${name}: ${refused}`);
  };
  visit('');
  return lines;
}

/** Plays a program in both worlds; throws where they differ, or a law is broken, or the lower was changed. */
function duel(program: readonly Step[], become: () => () => void): void {
  const lower = lowerWith({}), real = lowerWith({}), since = BigInt(Date.now()) * 1_000_000n - 1_000_000_000n;
  plant(lower);
  plant(real);
  for (const root of [lower, real]) fs.chmodSync(path.dirname(root), 0o777);
  const before = testimony(lower), back = become(), umask = process.umask(0o022);
  try {
    const oracle = playReal(real, program, since);
    const player = new Player(lower);
    for (const [index, each] of program.entries()) {
      const got = player.play(each), expected = oracle.outcomes[index];
      // Not every file system can make holes.
      if (each.op === 'fallocate' && expected === 'ENOTSUP' && got !== expected) return;
      expect({ index, step: each, got }).toEqual({ index, step: each, got: expected });
    }
    const live = census(player.machine, since);
    expect(live).toEqual(oracle.census);
    checkLaws({ events: () => player.machine.events(), head: { seq: player.machine.world.state.seq } });
    player.reopen();
    expect(census(player.machine, since)).toEqual(live);
    player.machine.close();
  } finally {
    process.umask(umask);
    back();
  }
  expect(testimony(lower)).toEqual(before);
}

/** All of a real tree that could tell that it was touched. */
function testimony(root: string): unknown[] {
  return fs.readdirSync(root, { recursive: true, encoding: 'utf8' }).sort().map((name) => {
    const { ino, mode: bits, nlink, uid, gid, size, mtimeNs, ctimeNs } = fs.lstatSync(path.join(root, name), { bigint: true });
    return [name, ino, bits, nlink, uid, gid, size, mtimeNs, ctimeNs].map(String);
  });
}

/** This process is nobody until it is told otherwise. */
function becomeNobody(): () => void {
  const groups = process.getgroups?.() ?? [];
  process.setgroups?.([NOBODY]);
  process.setegid?.(NOBODY);
  process.seteuid?.(NOBODY);
  return () => {
    process.seteuid?.(0);
    process.setegid?.(0);
    process.setgroups?.(groups);
  };
}

const numRuns = Number(process.env['FUZZ_RUNS'] ?? 12);

describe.skipIf(LACKS_ORACLE)('system calls, by random programs', () => {
  it('do what a real kernel does', { timeout: 600_000 }, () => {
    fc.assert(fc.property(fc.array(anyStep, { maxLength: 30, size: 'max' }), (program) => duel(program, () => () => undefined)), { numRuns });
  });

  it.runIf(isRoot)('do so for nobody, too', { timeout: 600_000 }, () => {
    fc.assert(fc.property(fc.array(anyStep.filter(fitsNobody), { maxLength: 30, size: 'max' }), (program) => duel(program, becomeNobody)), { numRuns });
  });
});

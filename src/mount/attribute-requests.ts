import { constants } from 'node:os';
import { Refusal, type PathName, type System, type TreePath } from '../index/front-end.ts';
import { dropPrivileges, type Exchange } from './exchange.ts';
import { GETATTR_FH, SetAttr } from './wire.ts';

const { ENOENT, ESTALE } = constants.errno;
const SECOND_NS = 1_000_000_000n;
const NAME_MAX = 255;
/** An owner or group that stays. */
const UNCHANGED = 0xffffffff;

/** Requests about attributes. */
export class AttributeRequests {
  private readonly exchange: Exchange;

  constructor(exchange: Exchange) {
    this.exchange = exchange;
  }

  getattr(): number {
    const { request, served, reply } = this.exchange, node = this.exchange.nodes.get(request.node), path = this.exchange.nodes.pathOf(node);
    const system = this.exchange.begin(() => false);
    const fd = (request.u32(0) & GETATTR_FH) !== 0 && this.exchange.files.has(request.u64(8)) ? request.u64(8) : this.exchange.anyOpen(node);
    if (path === undefined) {
      if (fd === undefined) return reply.fail(ESTALE);
      this.exchange.attributes({ attr: system.fstat(fd), isOwn: true });
      return reply.done();
    }
    // What is open may be looked at by whoever opened it.
    const found = fd === undefined ? served.lookUp(path) : served.look(path);
    if (found === undefined) return reply.fail(ENOENT);
    if (!this.exchange.isRinger) served.tellStat(path, found.attr);
    this.exchange.attributes(found);
    return reply.done();
  }

  setattr(): number {
    const { request, served, reply } = this.exchange, node = this.exchange.nodes.get(request.node), path = this.exchange.nodes.pathOf(node);
    const system = this.exchange.begin((held) => held === path), valid = request.u32(0);
    const fd = (valid & SetAttr.FH) !== 0 ? request.u64(8) : path === undefined ? this.exchange.anyOpen(node) : undefined;
    if (path === undefined && fd === undefined) return reply.fail(ESTALE);
    const name = path === undefined ? undefined : served.named(path);
    if ((valid & SetAttr.SIZE) !== 0) {
      const size = request.u64(16);
      if (fd !== undefined) system.ftruncate(fd, size);
      else system.truncate(name as PathName, size);
      if ((valid & SetAttr.KILL_SUIDGID) !== 0) dropPrivileges(system, fd, name);
    }
    if ((valid & (SetAttr.UID | SetAttr.GID)) !== 0) {
      const uid = (valid & SetAttr.UID) !== 0 ? request.u32(76) : UNCHANGED, gid = (valid & SetAttr.GID) !== 0 ? request.u32(80) : UNCHANGED;
      if (name !== undefined) system.chown(name, uid, gid, { follow: false });
      else system.fchown(fd as number, uid, gid);
    }
    if ((valid & SetAttr.MODE) !== 0) {
      const mode = request.u32(68) & 0o7777;
      if (name !== undefined) system.chmod(name, mode, { follow: false });
      else system.fchmod(fd as number, mode);
    }
    if ((valid & (SetAttr.ATIME | SetAttr.MTIME)) !== 0 && !this.isKernelsOwnTime(valid)) this.setTimes(system, { fd, name, path }, valid);
    const found = path === undefined ? { attr: system.fstat(fd as number), isOwn: true } : served.look(path);
    if (found === undefined) return reply.fail(ENOENT);
    this.exchange.attributes(found);
    return reply.done();
  }

  statfs(): number {
    const { reply, served } = this.exchange, { blocks, bfree, bavail, files, ffree, bsize } = served.statfs();
    for (const count of [blocks, bfree, bavail, files, ffree]) reply.big(count);
    reply.u32(Number(bsize));
    reply.u32(NAME_MAX);
    reply.u32(Number(bsize));
    reply.zeros(28);
    return reply.done();
  }

  /**
   * With write-back the kernel tells when it took in what it writes later. The time of a write is that of its event; and nobody
   * has set it on purpose, which would have moved the ctime further.
   */
  private isKernelsOwnTime(valid: number): boolean {
    const { request, writeBack } = this.exchange, times = SetAttr.MTIME | SetAttr.CTIME;
    return writeBack && (valid & (times | SetAttr.ATIME | SetAttr.MTIME_NOW)) === times
      && request.i64(40) === request.i64(48) && request.u32(60) === request.u32(64);
  }

  private setTimes(system: System, at: { fd: number | undefined; name: PathName | undefined; path: TreePath | undefined }, valid: number): void {
    const { request, served } = this.exchange, now = served.now();
    const attr = at.path === undefined ? system.fstat(at.fd as number) : served.look(at.path)?.attr;
    if (attr === undefined) throw new Refusal('ENOENT');
    const time = (which: number, isNow: number, seconds: number, nanos: number, old: bigint): bigint =>
      (valid & which) === 0 ? old : (valid & isNow) !== 0 ? now : request.i64(seconds) * SECOND_NS + BigInt(request.u32(nanos));
    const atime = time(SetAttr.ATIME, SetAttr.ATIME_NOW, 32, 56, attr.atime);
    const mtime = time(SetAttr.MTIME, SetAttr.MTIME_NOW, 40, 60, attr.mtime);
    if (at.name !== undefined) system.utimes(at.name, atime, mtime, { follow: false });
    else system.futimes(at.fd as number, atime, mtime);
  }
}

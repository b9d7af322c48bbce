import { constants } from 'node:os';
import { byteLength, toBytes, type PathName, type System } from '../index/front-end.ts';
import type { Exchange } from './exchange.ts';

const { ERANGE, ESTALE } = constants.errno;
const XATTR_CREATE = 1, XATTR_REPLACE = 2;
const SIZE_ONLY = 0;
/** What a kernel asks before each write and each exec on its own account: no look of the program's. */
const KERNELS_OWN = 'security.capability';
const AS_IT_IS = { follow: false } as const;

/** Requests about extended attributes. A file without a name is found by a descriptor through which it is open. */
export class XattrRequests {
  private readonly exchange: Exchange;

  constructor(exchange: Exchange) {
    this.exchange = exchange;
  }

  get(): number {
    const { request } = this.exchange, name = request.name(8), wanted = request.u32(0);
    return this.about((system, target) => {
      const value = system.xattrs.get(target, name, AS_IT_IS);
      return this.give(wanted, value.length, () => this.exchange.reply.bytes(value));
    }, { quiet: name === KERNELS_OWN });
  }

  list(): number {
    const wanted = this.exchange.request.u32(0);
    return this.about((system, target) => {
      const names = system.xattrs.list(target, AS_IT_IS), size = names.reduce((sum, name) => sum + byteLength(name) + 1, 0);
      return this.give(wanted, size, () => {
        for (const name of names) {
          this.exchange.reply.bytes(toBytes(name));
          this.exchange.reply.zeros(1);
        }
      });
    }, { quiet: false });
  }

  set(): number {
    const { request, reply } = this.exchange, size = request.u32(0), flags = request.u32(4), name = request.name(8);
    const only = (flags & XATTR_CREATE) !== 0 ? 'create' : (flags & XATTR_REPLACE) !== 0 ? 'replace' : undefined;
    return this.about((system, target) => {
      const value = request.rest(request.after(8)).subarray(0, size);
      system.xattrs.set(target, name, value, only === undefined ? AS_IT_IS : { ...AS_IT_IS, only });
      return reply.done();
    }, { quiet: true });
  }

  remove(): number {
    const { reply, request } = this.exchange, name = request.name(0);
    return this.about((system, target) => {
      system.xattrs.remove(target, name, AS_IT_IS);
      return reply.done();
    }, { quiet: true });
  }

  /** `quiet`: a look held back before it was only the way to this. */
  private about(act: (system: System, target: PathName | number) => number, { quiet }: { quiet: boolean }): number {
    const { request, reply, nodes, served } = this.exchange, node = nodes.get(request.node), path = nodes.pathOf(node);
    const system = this.exchange.begin((held) => quiet && held === path);
    const target = path === undefined ? this.exchange.anyOpen(node) : served.named(path);
    return target === undefined ? reply.fail(ESTALE) : act(system, target);
  }

  /** `size` bytes that `put` puts into the reply, or only how many they are. */
  private give(wanted: number, size: number, put: () => void): number {
    const { reply } = this.exchange;
    if (wanted !== SIZE_ONLY && size > wanted) return reply.fail(ERANGE);
    if (wanted !== SIZE_ONLY) put();
    else {
      reply.u32(size);
      reply.u32(0);
    }
    return reply.done();
  }
}

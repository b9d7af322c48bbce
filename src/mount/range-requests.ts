import { constants } from 'node:os';
import type { Exchange } from './exchange.ts';

const { EINVAL } = constants.errno;
const SEEK_DATA = 3, SEEK_HOLE = 4;
/** Most bytes of one copy: the reply tells them in 32 bits. */
const COPY_LIMIT = 2 ** 31 - 4096;

/** Requests about ranges of open files. */
export class RangeRequests {
  private readonly exchange: Exchange;

  constructor(exchange: Exchange) {
    this.exchange = exchange;
  }

  allocate(): number {
    const { request, reply, served, callers } = this.exchange, fd = request.u64(0), file = this.exchange.files.get(fd);
    if (file === undefined) return reply.fail(EINVAL);
    served.acting(callers.of(request, file.caller)).fallocate(fd, request.u32(24), request.u64(8), request.u64(16));
    return reply.done();
  }

  /** The kernel answers all other ways to seek by itself. */
  seek(): number {
    const { request, reply } = this.exchange, fd = request.u64(0), whence = request.u32(16);
    if (!this.exchange.files.has(fd) || (whence !== SEEK_DATA && whence !== SEEK_HOLE)) return reply.fail(EINVAL);
    const system = this.exchange.begin(() => false);
    reply.u64(system.seek(fd, request.u64(8), whence === SEEK_DATA ? 'data' : 'hole'));
    return reply.done();
  }

  copy(): number {
    const { request, reply, served, callers } = this.exchange, from = request.u64(0), to = request.u64(24);
    const target = this.exchange.files.get(to);
    if (target === undefined || !this.exchange.files.has(from) || request.u64(48) !== 0) return reply.fail(EINVAL);
    const system = served.acting(callers.of(request, target.caller));
    reply.u32(system.copyRange(from, request.u64(8), to, request.u64(32), Math.min(request.u64(40), COPY_LIMIT)));
    reply.u32(0);
    return reply.done();
  }
}

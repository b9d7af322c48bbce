import { constants } from 'node:os';
import { fromBytes, toBytes, type PathName, type System } from '../index/front-end.ts';
import type { Exchange } from './exchange.ts';
import type { Node } from './nodes.ts';
import { RENAME_EXCHANGE, RENAME_NOREPLACE } from './wire.ts';

const { EINVAL, ENOENT } = constants.errno;

/** Requests about names: what comes, goes, moves and links. */
export class NameRequests {
  private readonly exchange: Exchange;

  constructor(exchange: Exchange) {
    this.exchange = exchange;
  }

  lookup(name: string): number {
    const { request, served, looks, nodes, reply } = this.exchange, parent = nodes.get(request.node);
    const path = this.exchange.within(parent, name), above = nodes.pathOf(parent);
    looks.settle(request.thread, (held, found) => found && held === above);
    const caller = this.exchange.callers.of(request);
    served.acting(caller);
    const found = served.lookUp(path);
    if (!this.exchange.isRinger) looks.hold(request.thread, { caller, path, attr: found?.attr });
    if (found === undefined) {
      nodes.unnamed(parent, name);
      return reply.fail(ENOENT);
    }
    this.exchange.entry(nodes.lookedUp(parent, name, found.attr), found);
    return reply.done();
  }

  readlink(): number {
    const { request, reply, served } = this.exchange, path = this.exchange.pathOf(request.node);
    const system = this.exchange.begin((held) => held === path);
    reply.bytes(toBytes(system.readlink(served.named(path))));
    return reply.done();
  }

  symlink(): number {
    const name = this.exchange.request.name(0), target = fromBytes(this.exchange.request.rest(this.exchange.request.after(0)).subarray(0, -1));
    return this.make(name, (system, path) => system.symlink(target, path));
  }

  mknod(): number {
    const mode = this.exchange.request.u32(0), rdev = this.exchange.request.u32(4);
    return this.make(this.exchange.request.name(16), (system, path) => system.mknod(path, mode, rdev));
  }

  mkdir(): number {
    const mode = this.exchange.request.u32(0);
    return this.make(this.exchange.request.name(8), (system, path) => system.mkdir(path, mode));
  }

  link(): number {
    const { request, nodes, served } = this.exchange, node = nodes.get(request.u64(0)), from = nodes.pathOf(node);
    if (from === undefined) return this.linkUnnamed(node);
    return this.make(request.name(8), (system, path) => system.link(served.named(from), path));
  }

  /** The kernel asks this of a file that never had a name: of one that lost it, it refuses itself. */
  private linkUnnamed(node: Node): number {
    const { request, reply, nodes, served } = this.exchange, parent = nodes.get(request.node), name = request.name(8);
    const path = this.exchange.within(parent, name), fd = this.exchange.anyOpen(node);
    if (fd === undefined) return reply.fail(ENOENT);
    this.exchange.begin((held) => held === path || held === nodes.pathOf(parent)).linkOpen(fd, served.named(path));
    const found = served.look(path);
    if (found === undefined) return reply.fail(ENOENT);
    nodes.named(parent, name, node);
    this.exchange.entry(node, found);
    return reply.done();
  }

  unlink(): number {
    return this.remove((system, path) => system.unlink(path));
  }

  rmdir(): number {
    return this.remove((system, path) => system.rmdir(path));
  }

  rename(names: number, flags: number): number {
    const { request, reply, served } = this.exchange, from = this.exchange.nodes.get(request.node), to = this.exchange.nodes.get(request.u64(0));
    if ((flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE)) !== 0) return reply.fail(EINVAL);
    const oldName = request.name(names), newName = request.name(request.after(names));
    const a = this.exchange.within(from, oldName), b = this.exchange.within(to, newName);
    const system = this.exchange.begin((held) => held === a || held === b || held === this.exchange.nodes.pathOf(from) || held === this.exchange.nodes.pathOf(to));
    const exchange = (flags & RENAME_EXCHANGE) !== 0;
    this.exchange.parting(to, newName, () => {
      system.rename(served.named(a), served.named(b), { exchange, noReplace: (flags & RENAME_NOREPLACE) !== 0 });
      this.exchange.nodes.renamed({ parent: from, name: oldName }, { parent: to, name: newName }, exchange);
    });
    return reply.done();
  }

  /** Something new under a name of the directory that the request is about. */
  private make(name: string, act: (system: System, path: PathName) => void): number {
    const { request, served } = this.exchange, parent = this.exchange.nodes.get(request.node), path = this.exchange.within(parent, name);
    const system = this.exchange.begin((held) => held === path || held === this.exchange.nodes.pathOf(parent));
    act(system, served.named(path));
    const found = served.look(path);
    if (found === undefined) return this.exchange.reply.fail(ENOENT);
    this.exchange.entry(this.exchange.nodes.lookedUp(parent, name, found.attr), found);
    return this.exchange.reply.done();
  }

  private remove(act: (system: System, path: PathName) => void): number {
    const { request } = this.exchange, parent = this.exchange.nodes.get(request.node), name = request.name(0), path = this.exchange.within(parent, name);
    const system = this.exchange.begin((held) => held === path || held === this.exchange.nodes.pathOf(parent));
    this.exchange.parting(parent, name, () => {
      act(system, this.exchange.served.named(path));
      this.exchange.nodes.unnamed(parent, name);
    });
    return this.exchange.reply.done();
  }
}

import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import type { ProcessInfo } from '../index/front-end.ts';

/** Most threads whose `comm` is held open; each is a descriptor. */
const HELD_THREADS = 64;

interface Thread {
  /** Of `/proc/<thread>/comm`: reads fail with ESRCH once the thread is gone, whoever has its number by then. */
  readonly fd: number;
  info: ProcessInfo;
}

/**
 * Who is behind a thread id in a request: the process, its name and its parent, while the request is pending. A thread is
 * asked for its name at each request, since it may have become another program meanwhile.
 */
export class Processes {
  /** The /proc that knows the numbers in requests. */
  private readonly proc: string;
  private readonly threads = new Map<number, Thread>();
  private readonly name = Buffer.alloc(64);

  constructor(proc: string) {
    this.proc = proc;
  }

  /** `undefined` for the kernel itself, and for what is gone already. */
  of(thread: number): ProcessInfo | undefined {
    if (thread === 0) return undefined;
    const held = this.threads.get(thread);
    if (held !== undefined) {
      const name = this.nameOf(held.fd);
      if (name === held.info.name) return held.info;
      this.drop(thread, held);
      if (name !== undefined) return this.hold(thread);
    }
    return this.hold(thread);
  }

  /** The processes above `pid`, the nearest first; as far as they are still there. */
  *above(pid: number): Generator<number> {
    for (let at = this.statusOf(pid)?.parent; at !== undefined && at > 0; at = this.statusOf(at)?.parent) yield at;
  }

  close(): void {
    for (const [thread, held] of this.threads) this.drop(thread, held);
  }

  private hold(thread: number): ProcessInfo | undefined {
    const fd = this.tryOpen(`${this.proc}/${thread}/comm`), status = fd === undefined ? undefined : this.statusOf(thread);
    if (fd === undefined) return undefined;
    const name = this.nameOf(fd);
    if (status === undefined || name === undefined) {
      closeSync(fd);
      return undefined;
    }
    if (this.threads.size >= HELD_THREADS) {
      const [oldest, held] = this.threads.entries().next().value as [number, Thread];
      this.drop(oldest, held);
    }
    const info = { pid: status.pid, name, ...(status.parent === 0 ? undefined : { parent: status.parent }) };
    this.threads.set(thread, { fd, info });
    return info;
  }

  private drop(thread: number, held: Thread): void {
    closeSync(held.fd);
    this.threads.delete(thread);
  }

  private tryOpen(path: string): number | undefined {
    try {
      return openSync(path, 'r');
    } catch (error) {
      if (isGone(error)) return undefined;
      throw error;
    }
  }

  private nameOf(fd: number): string | undefined {
    try {
      const length = readSync(fd, this.name, 0, this.name.length, 0);
      return this.name.toString('utf8', 0, Math.max(0, length - 1));
    } catch (error) {
      if (isGone(error)) return undefined;
      throw error;
    }
  }

  private statusOf(thread: number): { pid: number; parent: number } | undefined {
    try {
      const status = readFileSync(`${this.proc}/${thread}/status`, 'latin1');
      return { pid: Number(/^Tgid:\t(\d+)/m.exec(status)?.[1]), parent: Number(/^PPid:\t(\d+)/m.exec(status)?.[1]) };
    } catch (error) {
      if (isGone(error)) return undefined;
      throw error;
    }
  }
}

/** The thread has ended, or the run's /proc has. */
function isGone(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ESRCH' || error.code === 'ENOTDIR');
}

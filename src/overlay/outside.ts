import fs from 'node:fs';
import type { Attr } from '../core/attr.ts';
import { fromBytes, toBytes } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { attrOf } from '../lower/stats.ts';
import { notFound, outsideTree } from './refusals.ts';
import { O_ACCMODE, type SystemEntry } from './system.ts';

const WRITING = fs.constants.O_CREAT | fs.constants.O_TRUNC;

/**
 * What lies outside the tree: refused, or (`readonly`) the real file system, to look at and read from. None of it is
 * recorded: the log speaks of the tree. Descriptors opened here are real ones, and so are 0, 1 and 2.
 */
export class OutsideFs {
  private readonly isVisible: boolean;
  private readonly mounts: readonly string[];
  private readonly opened = new Set<number>([0, 1, 2]);

  constructor(options: { access: 'deny' | 'readonly'; mounts: readonly string[] }) {
    this.isVisible = options.access === 'readonly';
    this.mounts = options.mounts;
  }

  /** Whether a descriptor is one of the real ones that may be used through the overlay. */
  owns(fd: number): boolean {
    return this.opened.has(fd);
  }

  open(path: string, flags: number): number {
    this.demandReadonly();
    if ((flags & O_ACCMODE) !== fs.constants.O_RDONLY || (flags & WRITING) !== 0) throw outsideTree();
    const fd = real(() => fs.openSync(hostPath(path), flags));
    this.opened.add(fd);
    return fd;
  }

  close(fd: number): void {
    this.opened.delete(fd);
    real(() => fs.closeSync(fd));
  }

  read(fd: number, into: Uint8Array, offset: number, length: number, position: number | null): number {
    return real(() => fs.readSync(fd, into, offset, length, position));
  }

  write(fd: number, from: Uint8Array, offset: number, length: number, position: number | null): number {
    return real(() => fs.writeSync(fd, from, offset, length, position));
  }

  fstat(fd: number): Attr {
    return attrOf(real(() => fs.fstatSync(fd, { bigint: true })));
  }

  fsync(fd: number): void {
    real(() => fs.fsyncSync(fd));
  }

  /** Directories above a mount point may be looked at whatever is allowed else: a path through them has to resolve. */
  stat(path: string, options: { follow: boolean }): Attr | undefined {
    if (!this.isAbove(path)) this.demandReadonly();
    const look = options.follow ? fs.statSync : fs.lstatSync;
    const stats = real(() => look(hostPath(path), { bigint: true, throwIfNoEntry: false }));
    return stats && attrOf(stats);
  }

  access(path: string, mode: number): void {
    this.demandReadonly();
    if ((mode & fs.constants.W_OK) !== 0) throw outsideTree();
    real(() => fs.accessSync(hostPath(path), mode));
  }

  readdir(path: string): SystemEntry[] {
    this.demandReadonly();
    const entries = real(() => fs.readdirSync(hostPath(path), { withFileTypes: true, encoding: 'buffer' }));
    return entries.map((entry) => ({
      name: fromBytes(entry.name as unknown as Uint8Array),
      type: entry.isDirectory() ? 'directory' : entry.isSymbolicLink() ? 'symlink' : entry.isFIFO() ? 'fifo'
        : entry.isSocket() ? 'socket' : entry.isBlockDevice() ? 'block' : entry.isCharacterDevice() ? 'character' : 'file',
    }));
  }

  readlink(path: string): string {
    this.demandReadonly();
    return fromBytes(real(() => fs.readlinkSync(hostPath(path), { encoding: 'buffer' })));
  }

  realpath(path: string): string {
    this.demandReadonly();
    return fromBytes(real(() => fs.realpathSync.native(hostPath(path), { encoding: 'buffer' })));
  }

  statfs(path: string): fs.BigIntStatsFs {
    this.demandReadonly();
    return real(() => fs.statfsSync(hostPath(path), { bigint: true }));
  }

  watch(path: string, options: { recursive: boolean }, changed: (event: 'rename' | 'change', name: string) => void): { close(): void } {
    this.demandReadonly();
    return real(() => fs.watch(hostPath(path), { ...options, persistent: false }, (event, name) => changed(event, name ?? '')));
  }

  /** Why what is at an outside path may not be changed: nothing is there, or it is not of the tree. */
  refusal(path: string, options: { follow: boolean }): Refusal {
    return this.isVisible && this.stat(path, options) === undefined ? notFound() : outsideTree();
  }

  /** Why nothing moves between the tree and an outside path: where outside can be seen, it is another file system. */
  boundary(): Refusal {
    return this.isVisible ? new Refusal('EXDEV') : outsideTree();
  }

  private isAbove(path: string): boolean {
    return this.mounts.some((mount) => path === '/' || mount.startsWith(path + '/'));
  }

  private demandReadonly(): void {
    if (!this.isVisible) throw outsideTree();
  }
}

function real<T>(act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw Refusal.of(error);
  }
}

function hostPath(path: string): string | Buffer {
  return path.isWellFormed() ? path : Buffer.from(toBytes(path));
}

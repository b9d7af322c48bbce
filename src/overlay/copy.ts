import { constants } from 'node:fs';
import { PERMISSION_BITS, type Attr } from '../core/attr.ts';
import type { PathName } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import type { System } from './system.ts';

const { O_CREAT, O_EXCL, O_RDONLY, O_TRUNC, O_WRONLY, S_IFDIR, S_IFMT } = constants;

/** What a copy needs besides the system's calls. */
export interface CopyNeeds {
  /** Throws where the target's path can only be a directory's. */
  demandFileName(): void;
  /** Attributes without an event: a copy is recorded by what it does. */
  quietly(path: PathName): Attr | undefined;
  readAll(fd: number): Uint8Array;
}

/** Content and permission bits of a file to another name, step by step as libuv does it, with its refusals. */
export function copyFile(system: System, needs: CopyNeeds, from: PathName, to: PathName, options: { exclusive: boolean }): void {
  const source = system.open(from, O_RDONLY, 0);
  try {
    const attr = system.fstat(source), mode = attr.mode & PERMISSION_BITS, exclusive = options.exclusive ? O_EXCL : 0;
    needs.demandFileName();
    if ((attr.mode & S_IFMT) === S_IFDIR) return copyDirectory(system, to, exclusive, mode);
    const there = options.exclusive ? undefined : needs.quietly(to);
    if (there !== undefined && there.ino === attr.ino && there.dev === attr.dev) return;
    system.writeFile(to, needs.readAll(source), O_WRONLY | O_CREAT | O_TRUNC | exclusive, mode);
    if (((needs.quietly(to) as Attr).mode & PERMISSION_BITS) !== mode) copyMode(system, to, mode);
  } finally {
    system.close(source);
  }
}

/** As libuv has it: a directory is found out only by the read, and the target, even one that was there, is gone then. */
function copyDirectory(system: System, to: PathName, exclusive: number, mode: number): never {
  const target = system.open(to, O_WRONLY | O_CREAT | exclusive, mode);
  try {
    system.ftruncate(target, 0);
    system.fchmod(target, mode);
  } finally {
    system.close(target);
  }
  system.unlink(to);
  throw new Refusal('EISDIR');
}

/** As libuv has it: where the mode cannot be given, the copy is taken back. */
function copyMode(system: System, to: PathName, mode: number): void {
  try {
    system.chmod(to, mode, { follow: true });
  } catch (error) {
    system.unlink(to);
    throw error;
  }
}

import fs from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { toBytes } from '../../src/core/path.ts';
import { unreachable } from '../../src/core/unreachable.ts';
import { contentOf, errorOf, namesOf, statsOf, valueOf } from './outcome.ts';
import type { AnyStats, Outcome, Told } from './outcome.ts';
import { bytesOf, isDescriptorStep, isWorldStep, SLOTS, WORK } from './program.ts';
import type { DescriptorStep, PathStep, Step, Style } from './program.ts';
import type { NodeFs, World } from './world.ts';

type Callable = (...args: unknown[]) => unknown;
type Methods = Record<string, Callable>;

/** Plays the steps of a program in one world and holds that world's descriptors. */
export class Player {
  readonly #world: World;
  readonly #told: Told;
  readonly #slots: (number | FileHandle | undefined)[] = Array.from({ length: SLOTS }, () => undefined);

  constructor(world: World, since: number) {
    this.#world = world;
    this.#told = { root: world.root, since };
  }

  /** Performs one step. Never throws: what went wrong is the outcome. */
  async play(step: Step): Promise<Outcome> {
    try {
      return valueOf(await this.#perform(step), this.#told);
    } catch (error) {
      return errorOf(error, this.#told);
    }
  }

  /** Open descriptors, by slot, with what fstat tells; for the census. */
  *descriptors(): IterableIterator<{ slot: number; stats: AnyStats }> {
    for (const [slot, open] of this.#slots.entries()) {
      if (open === undefined) continue;
      yield { slot, stats: this.#world.fs(0).fstatSync(typeof open === 'number' ? open : open.fd, { bigint: true }) };
    }
  }

  async closeAll(): Promise<void> {
    for (const slot of this.#slots.keys()) await this.#closeSlot(slot);
  }

  async #perform(step: Step): Promise<unknown> {
    if (isWorldStep(step)) {
      if (step.op === 'umask') return process.umask(step.mask);
      if (step.leaky === true && this.#world.leaksDescriptors) this.#slots.fill(undefined);
      else await this.closeAll();
      await this.#world.reopen();
      return 'reopened';
    }
    const face = this.#world.fs(step.actor ?? 0);
    return isDescriptorStep(step) ? this.#onDescriptor(face, step) : this.#onPath(face, step);
  }

  async #closeSlot(slot: number): Promise<void> {
    const open = this.#slots[slot];
    this.#slots[slot] = undefined;
    if (typeof open === 'number') this.#world.fs(0).closeSync(open);
    else await open?.close();
  }

  async #onPath(face: NodeFs, step: PathStep): Promise<unknown> {
    const style = step.style ?? 'sync';
    const path = this.#pathOf(step.path, step.form);
    const run = (name: string, ...args: unknown[]): unknown => call(face, style, name, [path, ...args]);
    switch (step.op) {
      case 'open': {
        await this.#closeSlot(step.slot);
        this.#slots[step.slot] = await run('open', step.flags, step.mode ?? 0o666) as number | FileHandle;
        return 'opened';
      }
      case 'readFile': {
        const content = await run('readFile', { flag: step.flag ?? 'r', encoding: step.encoding ?? null });
        return typeof content === 'string' ? content.slice(0, 500) : contentOf(content as Buffer);
      }
      case 'writeFile': return run(step.op, bytesOf(step.data), { flag: step.flag ?? 'w', mode: step.mode ?? 0o666 });
      case 'appendFile': return run(step.op, bytesOf(step.data), { flag: step.flag ?? 'a', mode: step.mode ?? 0o666 });
      case 'mkdir': return run(step.op, { mode: step.mode ?? 0o777, recursive: step.recursive ?? false });
      case 'rm': return run(step.op, { recursive: step.recursive ?? false, force: step.force ?? false });
      case 'rename':
      case 'link': return run(step.op, this.#pathOf(step.to, step.form));
      case 'copyFile': return run(step.op, this.#pathOf(step.to, step.form), step.exclusive ? fs.constants.COPYFILE_EXCL : 0);
      // With Buffers it is refused by whichever of node's path functions meets one first.
      case 'cp':
        if (typeof path !== 'string' || !step.to.isWellFormed()) return 'not compared';
        if (isWithinItself(face, path, this.#pathOf(step.to, undefined) as string)) return 'not compared';
        return run(step.op, this.#pathOf(step.to, step.form), { recursive: true, force: step.force ?? true });
      case 'symlink': return call(face, style, 'symlink', [this.#targetOf(step.target), path]);
      case 'rmdir':
      case 'unlink': return run(step.op);
      case 'readlink': return run(step.op, { encoding: 'buffer' });
      case 'realpath': return run('realpath', { encoding: 'buffer' });
      case 'native': return native(face, style, path);
      case 'exists': return exists(face, style, path);
      case 'chmod':
      case 'access': return run(step.op, step.mode);
      case 'chown':
      case 'lchown': return run(step.op, step.uid, step.gid);
      case 'utimes':
      case 'lutimes': {
        await run(step.op, step.atime, step.mtime);
        const look = step.op === 'utimes' ? 'statSync' : 'lstatSync';
        return statsOf((face as unknown as Methods)[look]?.(path, { bigint: true }) as AnyStats, this.#told, true);
      }
      case 'truncate': return run(step.op, step.size);
      case 'readdir': {
        const encoding = step.encoding ?? 'utf8';
        // Node's own recursive listing throws TypeErrors over Buffers; ours need not.
        const recursive = step.recursive === true && typeof path === 'string' && encoding === 'utf8';
        const options = { recursive, withFileTypes: step.types ?? false, encoding };
        return namesOf(await run('readdir', options) as string[], this.#told);
      }
      case 'opendir': {
        const dir = await run('opendir') as fs.Dir;
        const entries: fs.Dirent[] = [];
        for await (const entry of dir) entries.push(entry);
        return namesOf(entries, this.#told);
      }
      case 'stat':
      case 'lstat': {
        const quiet = step.quiet === true && style === 'sync';
        const stats = await run(step.op, { bigint: step.bigint ?? false, ...(quiet ? { throwIfNoEntry: false } : {}) });
        return stats === undefined ? 'no entry' : statsOf(stats as AnyStats, this.#told);
      }
      case 'readStream': return readStream(face, path, step);
      case 'writeStream': return writeStream(face, path, step);
      default: return unreachable(step);
    }
  }

  async #onDescriptor(face: NodeFs, step: DescriptorStep): Promise<unknown> {
    const open = this.#slots[step.slot];
    if (open === undefined) return 'empty slot';
    const style = step.style ?? 'sync';
    const run = (name: string, onHandle: string, ...args: unknown[]): unknown => {
      if (style === 'promises' && typeof open !== 'number') return (open as unknown as Methods)[onHandle]?.(...args);
      return call(face, handleless(style), name, [typeof open === 'number' ? open : open.fd, ...args]);
    };
    switch (step.op) {
      case 'close':
        this.#slots[step.slot] = undefined;
        return typeof open === 'number' ? call(face, handleless(style), 'close', [open]) : open.close();
      case 'read': {
        const into = Buffer.alloc(step.length);
        const done = await run('read', 'read', into, 0, step.length, step.position);
        return contentOf(into.subarray(0, transferred(done, 'bytesRead')));
      }
      case 'readv': {
        const into = Buffer.alloc(step.length), half = step.length >> 1;
        const done = await run('readv', 'readv', [into.subarray(0, half), into.subarray(half)], step.position);
        return contentOf(into.subarray(0, transferred(done, 'bytesRead')));
      }
      case 'write': {
        const bytes = bytesOf(step.data);
        return transferred(await run('write', 'write', bytes, 0, bytes.length, step.position), 'bytesWritten');
      }
      case 'writev': {
        const bytes = bytesOf(step.data), half = bytes.length >> 1;
        const parts = [bytes.subarray(0, half), bytes.subarray(half)];
        return transferred(await run('writev', 'writev', parts, step.position), 'bytesWritten');
      }
      case 'ftruncate': return run('ftruncate', 'truncate', step.size);
      case 'fstat': return statsOf(await run('fstat', 'stat', { bigint: true }) as AnyStats, this.#told);
      case 'fchmod': return run('fchmod', 'chmod', step.mode);
      case 'fchown': return run('fchown', 'chown', step.uid, step.gid);
      case 'futimes': {
        await run('futimes', 'utimes', step.atime, step.mtime);
        return statsOf(await run('fstat', 'stat', { bigint: true }) as AnyStats, this.#told, true);
      }
      case 'fsync': return run('fsync', 'sync');
      case 'fdatasync': return run('fdatasync', 'datasync');
      case 'readFileFd':
        // Node's callback form loses the error of a read and gives what it has, an empty buffer.
        if (style === 'callback' || typeof open === 'number') return contentOf(face.readFileSync(typeof open === 'number' ? open : open.fd));
        return contentOf(await run('readFile', 'readFile') as Buffer);
      case 'writeFileFd': return run('writeFile', 'writeFile', bytesOf(step.data));
      case 'appendFileFd': return run('appendFile', 'appendFile', bytesOf(step.data));
      default: return unreachable(step);
    }
  }

  #pathOf(path: string, form: 'buffer' | 'url' | undefined): string | Buffer | URL {
    const full = path === '' ? `${this.#world.root}/${WORK}` : `${this.#world.root}/${WORK}/${path}`;
    if (form === 'buffer' || !full.isWellFormed()) return Buffer.from(toBytes(full));
    return form === 'url' ? pathToFileURL(full) : full;
  }

  #targetOf(target: string): string | Buffer {
    const full = target.startsWith('@/') ? `${this.#world.root}/${WORK}${target.slice(1)}` : target;
    return full.isWellFormed() ? full : Buffer.from(toBytes(full));
  }
}

/** Node copies a directory into itself for ever where a symlink hides that it does. */
function isWithinItself(face: NodeFs, from: string, to: string): boolean {
  try {
    const source = face.realpathSync.native(from);
    return `${face.realpathSync.native(dirname(to))}/`.startsWith(`${source}/`) || `${face.realpathSync.native(to)}/`.startsWith(`${source}/`);
  } catch (error) {
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    return false;
  }
}

/** Plain descriptors have no promise face. */
function handleless(style: Style): Style {
  return style === 'promises' ? 'callback' : style;
}

/** Calls `name` of the face in one of node's three styles. */
async function call(face: NodeFs, style: Style, name: string, args: unknown[]): Promise<unknown> {
  if (style === 'sync') return (face as unknown as Methods)[`${name}Sync`]?.(...args);
  if (style === 'promises') return (face.promises as unknown as Methods)[name]?.(...args);
  return new Promise((resolve, reject) => {
    const callback = (error: Error | null, result?: unknown): void => {
      if (error) reject(error);
      else resolve(result);
    };
    (face as unknown as Methods)[name]?.(...args, callback);
  });
}

async function native(face: NodeFs, style: Style, path: string | Buffer | URL): Promise<unknown> {
  if (style === 'promises') return call(face, style, 'realpath', [path, 'buffer']);
  if (style === 'sync') return face.realpathSync.native(path, 'buffer');
  return new Promise((resolve, reject) => {
    face.realpath.native(path, 'buffer', (error, resolved) => {
      if (error) reject(error);
      else resolve(resolved);
    });
  });
}

async function exists(face: NodeFs, style: Style, path: string | Buffer | URL): Promise<boolean> {
  if (style === 'sync') return face.existsSync(path);
  return new Promise((resolve) => (face as unknown as Methods)['exists']?.(path, resolve));
}

function transferred(done: unknown, name: 'bytesRead' | 'bytesWritten'): number {
  return typeof done === 'number' ? done : (done as Record<typeof name, number>)[name];
}

async function readStream(face: NodeFs, path: string | Buffer | URL, range: { start?: number; end?: number }): Promise<unknown> {
  const options = { ...(range.start === undefined ? {} : { start: range.start }), ...(range.end === undefined ? {} : { end: range.end }) };
  const chunks: Buffer[] = [];
  for await (const chunk of face.createReadStream(path, options)) chunks.push(chunk as Buffer);
  return contentOf(Buffer.concat(chunks));
}

async function writeStream(face: NodeFs, path: string | Buffer | URL, step: PathStep & { op: 'writeStream' }): Promise<unknown> {
  const options = { flags: step.flags ?? 'w', ...(step.start === undefined ? {} : { start: step.start }) };
  const stream = face.createWriteStream(path, options);
  return new Promise((resolve, reject) => {
    stream.on('error', reject).on('close', () => resolve(stream.bytesWritten));
    const bytes = bytesOf(step.data);
    stream.write(bytes.subarray(0, 3));
    stream.end(bytes.subarray(3));
  });
}

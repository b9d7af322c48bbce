import { constants } from 'node:fs';
import { sameFingerprint, type Attr, type Fingerprint } from '../core/attr.ts';
import type { EventBody, ProcessInfo } from '../core/event.ts';
import type { PathName, TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import type { Version } from '../core/version.ts';
import type { LowerStatFs } from '../lower/lower.ts';
import { originOf } from './attributes.ts';
import { Files } from './files.ts';
import { versionOfList } from './hash.ts';
import { Kernel } from './kernel.ts';
import { Namespace } from './namespace.ts';
import { Reading } from './reading.ts';
import { notFound } from './refusals.ts';
import { LISTS, READS, STATS } from './ruling.ts';
import { spotType, type Look, type Spot } from './spot.ts';
import { O_ACCMODE, type System, type SystemEntry } from './system.ts';
import type { World } from './world.ts';

/** A lower file up to this size is read and hashed as it is opened: its bytes are asked for next as a rule. */
const SLURP_BYTES = 64 * 1024;
/** Most bytes held so, of all files together; beyond it, files are read when they are asked for. */
const SLURPED_BYTES = 16 * 1024 * 1024;

/** For whom a kernel asks. It has checked what they may. */
export interface Caller {
  readonly actor: string;
  readonly uid: number;
  readonly gid: number;
  readonly process: ProcessInfo | undefined;
}

/** What a look found. */
export interface Found {
  readonly attr: Attr;
  /** All of it is the overlay's: nobody else can change it. */
  readonly isOwn: boolean;
}

/** A file opened by a kernel that keeps pages. */
export interface ServedFile {
  readonly fd: number;
  /** Of a lower file, as it was when opened: pages kept from an opening that found another are stale. */
  readonly print: Fingerprint | undefined;
  /** All its bytes, where they were read as it was opened. */
  readonly bytes?: Uint8Array | undefined;
}

/**
 * The overlay as a kernel asks for it that resolves paths itself, checks permissions itself, and keeps names, attributes
 * and pages. Looks are quiet; what they mean is told by `tell…` once it is known. A file is told as read when it is
 * opened, since its pages are asked for when the kernel pleases. Everything else is `System`, one for each actor.
 */
export class Served {
  private readonly world: World;
  private readonly files: Files;
  private readonly namespace: Namespace;
  private readonly reading: Reading;
  private readonly systems = new Map<string, System>();
  private caller: Caller = { actor: 'main', uid: 0, gid: 0, process: undefined };
  private slurped = 0;

  constructor(world: World) {
    this.world = world;
    this.files = new Files(world);
    this.namespace = new Namespace(world);
    this.reading = new Reading(world);
  }

  /** All calls until `rest` are this caller's. Gives the system calls of its actor. */
  acting(caller: Caller): System {
    this.caller = caller;
    this.world.credentials.caller = caller;
    this.world.session.process = caller.process;
    let system = this.systems.get(caller.actor);
    if (system === undefined) this.systems.set(caller.actor, system = new Kernel(this.world, caller.actor));
    return system;
  }

  /** Calls are this process's own again. */
  rest(): void {
    this.world.credentials.caller = undefined;
    this.world.session.process = undefined;
  }

  /** The path by which `System` knows a path of the tree. */
  named(path: TreePath): PathName {
    return this.world.walker.seenAs(path) as PathName;
  }

  /** What is at `path`, symlinks not followed; `undefined` where nothing is. Tells nothing. */
  look(path: TreePath): Found | undefined {
    const spot = this.spot(path);
    if (spot === undefined) return undefined;
    const { node } = spot;
    return { attr: this.world.attributes.of(spot), isOwn: node !== undefined && (node.origin === undefined || node.content.kind !== 'lower') };
  }

  /** The same for a name that a program looks up or asks the attributes of. Throws EACCES where rules deny to stat it. */
  lookUp(path: TreePath): Found | undefined {
    const { gate } = this.world;
    if (gate !== undefined) gate.demandUndenied(this.caller.actor, this.lookAt(path), STATS, 'lookup');
    return this.look(path);
  }

  /** Whether rules speak of a look at `path`: it has to be asked for by itself, and not to come with a listing. */
  isRuled(path: TreePath): boolean {
    const { gate } = this.world, spot = gate && this.spot(path);
    return spot !== undefined && gate?.speaks(spot, 'stat') === true;
  }

  /** What opening the directory at `path` says. Throws EACCES where rules deny to list it. */
  openDirectory(path: TreePath): void {
    const { gate } = this.world, spot = gate && this.spot(path);
    if (spot !== undefined) gate?.demand(this.caller.actor, { path, via: undefined }, spot, LISTS, 'opendir');
  }

  /** Names and types in the directory at `path`, sorted by their bytes. Tells nothing. Throws ENOENT and ENOTDIR. */
  entries(path: TreePath): readonly SystemEntry[] {
    const spot = this.spot(path);
    if (spot === undefined) throw notFound();
    if (spotType(spot) !== 'directory') throw new Refusal('ENOTDIR');
    return this.namespace.entries(spot);
  }

  tellStat(path: TreePath, attr: Attr): void {
    const { gate } = this.world, spot = gate && this.spot(path);
    if (spot !== undefined) gate?.mark(this.caller.actor, { path, via: undefined }, spot, STATS, 'lookup');
    this.world.recorder.stat(this.caller.actor, { path, via: undefined }, attr);
  }

  /** Nothing was found at `path`; of what a rule hides a flag tells, and no miss. */
  tellMiss(path: TreePath, call: string): void {
    const { gate, recorder } = this.world, { actor } = this.caller, look = gate && this.lookAt(path);
    if (look?.kind === 'missing' && gate?.markMissing(actor, look, STATS, call) === true) return;
    recorder.miss(actor, { path, via: undefined }, call);
  }

  /** Gives the version of the list. */
  tellList(path: TreePath, entries: readonly SystemEntry[]): Version {
    const version = versionOfList(entries), spot = this.spot(path), lower = spot && this.namespace.lowerList(spot, version);
    this.world.recorder.list(this.caller.actor, { path, via: undefined }, version, entries.length, lower);
    return version;
  }

  /** A command begins. Gives the event's sequence number, as do the next ones. */
  tellRun(argv: readonly string[], cwd: string): number {
    return this.tell({ op: 'run', argv, cwd });
  }

  tellExit(status: number | null, signal: string | null): number {
    return this.tell({ op: 'exit', status, ...(signal === null ? undefined : { signal }) });
  }

  /** `data`: JSON. */
  tellMark(label: string, data: unknown): number {
    return this.tell({ op: 'mark', label, ...(data === undefined ? undefined : { data }) });
  }

  /**
   * open(2) of what is there, symlinks not followed. An opening for reading is told as a read of all of it, unless only the kernel
   * `reads`, so as to write whole pages.
   */
  open(path: TreePath, flags: number, { reads = true } = {}): ServedFile {
    const { world, caller } = this, access = flags & O_ACCMODE, truncates = (flags & constants.O_TRUNC) !== 0;
    if (access !== constants.O_RDONLY || truncates) {
      const fd = this.acting(caller).open(this.named(path), flags | constants.O_NOFOLLOW, 0);
      const { inode } = world.descriptors.get(fd), print = inode.node === undefined ? inode.lowerFile?.attr : undefined;
      if (access === constants.O_RDWR && reads && !truncates) this.tellOpened(path, fd, print);
      return { fd, print };
    }
    const spot = this.spot(path);
    if (spot === undefined) {
      this.tellMiss(path, 'open');
      throw notFound();
    }
    world.gate?.demand(caller.actor, { path, via: undefined }, spot, READS, 'open');
    const type = spotType(spot);
    if (type !== 'file') throw new Refusal(type === 'directory' ? 'EISDIR' : type === 'symlink' ? 'ELOOP' : 'ENXIO');
    return this.openToRead(path, spot);
  }

  /** A descriptor of what is at `path`, of whatever type, for when its name is gone; `undefined` where nothing is. Tells nothing. */
  keep(path: TreePath): number | undefined {
    const spot = this.spot(path);
    return spot && this.files.openLazily(this.caller.actor, spot, constants.O_RDWR);
  }

  /** pread(2) without a word to the log. Bytes read; 0 at the end. */
  read(fd: number, into: Uint8Array, offset: number, length: number, position: number): number {
    const descriptor = this.world.descriptors.get(fd), { inode, slurped } = descriptor;
    if (!descriptor.readable) throw new Refusal('EBADF');
    if (descriptor.isDirectory) throw new Refusal('EISDIR');
    if (slurped === undefined || inode.node !== undefined) return this.reading.bytes(inode, into, offset, length, position);
    const part = slurped.subarray(position, position + length);
    into.set(part, offset);
    return part.length;
  }

  close(fd: number): void {
    this.slurped -= this.world.descriptors.get(fd).slurped?.length ?? 0;
    this.files.close(fd);
  }

  /** The events so far survive a power cut. */
  sync(): void {
    this.world.session.sync();
  }

  /** ns since 1970. */
  now(): bigint {
    return BigInt(this.world.now());
  }

  statfs(): LowerStatFs {
    return this.world.lower.statfs();
  }

  /** The tail of the log goes where durability says. A fault is met by the next call. */
  flush(): void {
    this.world.session.flushUnasked();
  }

  private tell(body: EventBody): number {
    const { seq } = this.world.session.append(this.caller.actor, body);
    this.world.session.publish();
    return seq;
  }

  private spot(path: TreePath): Spot | undefined {
    const look = this.lookAt(path);
    return look.kind === 'spot' ? look.spot : undefined;
  }

  private lookAt(path: TreePath): Look {
    return this.world.walker.look(this.named(path), { follow: false });
  }

  private openToRead(path: TreePath, spot: Spot): ServedFile {
    const { world } = this, { node } = spot;
    if (node !== undefined && node.content.kind !== 'lower') {
      world.session.publish();
      const fd = this.files.openLazily(this.caller.actor, spot);
      world.recorder.read(this.caller.actor, { path, via: undefined }, { version: node.version, print: undefined, size: world.attributes.sizeOf(node) });
      return { fd, print: undefined };
    }
    const origin = originOf(spot) as TreePath, attr = world.attributes.of(spot);
    let print: Fingerprint = attr, version = node === undefined ? world.versions.get(origin, attr) : node.version;
    let bytes: Uint8Array | undefined;
    if (node === undefined && version === undefined && attr.size <= SLURP_BYTES && this.slurped < SLURPED_BYTES) {
      const found = world.lower.slurp(origin, SLURP_BYTES);
      if (typeof found === 'object' && 'kind' in found) {
        print = found.attr;
        if (found.kind === 'open') found.close();
        else version = world.contents.versionOfBytes(origin, found.attr, bytes = found.bytes);
      }
    }
    const fd = this.files.openLazily(this.caller.actor, spot);
    if (bytes !== undefined) {
      world.descriptors.get(fd).slurped = bytes;
      this.slurped += bytes.length;
    }
    world.recorder.read(this.caller.actor, { path, via: undefined }, { version, print, size: print.size });
    return { fd, print, bytes };
  }

  private tellOpened(path: TreePath, fd: number, print: Attr | undefined): void {
    const { world } = this, { node, origin } = world.descriptors.get(fd).inode, at = { path, via: undefined };
    if (node !== undefined && node.content.kind !== 'lower') {
      world.session.publish();
      world.recorder.read(this.caller.actor, at, { version: node.version, print: undefined, size: world.attributes.sizeOf(node) });
    } else if (print !== undefined) {
      const version = origin === undefined ? undefined : world.versions.get(origin, print);
      world.recorder.read(this.caller.actor, at, { version, print, size: print.size });
    }
  }
}

/** Whether pages read from one opening's file are those of another's. */
export function sameContent(a: Fingerprint | undefined, b: Fingerprint | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && sameFingerprint(a, b));
}

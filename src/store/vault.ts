import { createHash } from 'node:crypto';
import {
  closeSync, constants, existsSync, fdatasyncSync, fchmodSync, fstatSync, openSync, readFileSync, readdirSync, renameSync,
  statSync, unlinkSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { Version } from '../core/version.ts';
import { Refusal } from '../core/refusal.ts';
import { BlobCache, checkLimit, copyPart, goneBlob, otherBlob } from './blob.ts';
import type { Blobs } from './blob.ts';
import { DiskBytes, MemoryBytes } from './bytes.ts';
import type { Growing } from './bytes.ts';
import { Catalog } from './catalog.ts';
import type { PackPlace } from './catalog.ts';
import { hasCode, makePrivate, readFully, syncDirectory, writeNew } from './file.ts';
import { PACKED_BELOW_BYTES, PACK_MAGIC, RECORD_BYTES, digestOf, hexOf, scanPack, writeHead } from './pack.ts';

/**
 * The blobs of a session directory, in its folder `blobs`: packs (`000000.pack`, …), the catalog, and files by digest
 * (`<64 hex digits>`) for what is too large for a pack. All of it is made when the first blob comes.
 */

/** Packed bytes are written when this many are waiting, as with the log's tail. */
const TAIL_BYTES = 64 * 1024;
/** A new pack is begun here: places in it fit 32 bits, and a copy or a damage concerns a GiB, not all. */
const PACK_BYTES = 1024 ** 3;
/** Blobs kept in memory: what a run reads again and again (sources, a lock file), not its build output. */
const CACHE_BYTES = 32 * 1024 ** 2;
/** Packed bytes that opening may have to scan (about 1 ms a MiB) before they are worth a new catalog. */
const UNCATALOGUED_BYTES = 8 * 1024 ** 2;
/** A new catalog holds all entries again: at most so many for each new one, but when closing. A long session stays linear. */
const ENTRIES_PER_NEW = 5;
/** Large blobs held open between reads. */
const OPEN_FILES = 8;

interface Known extends PackPlace {
  checked: boolean;
}

/** The blobs of a session directory: small ones packed, large ones a file each. */
export class Vault implements Blobs {
  readonly #directory: string;
  readonly #limit: number;
  readonly #writable: boolean;
  readonly #cache = new BlobCache(CACHE_BYTES);
  readonly #packs: Growing[] = [];
  #catalog = Catalog.empty;
  /** Packed blobs that are not in the catalog, or that were looked up in it. */
  readonly #known = new Map<Version, Known>();
  /** Packed blobs found to be damaged: gone, until put again. */
  readonly #bad = new Set<Version>();
  /** Files by digest and whether they were checked; absent until first looked for. */
  #files: Map<Version, { checked: boolean }> | undefined;
  readonly #open = new Map<Version, number>();
  /** Bytes of all packs and files; absent until a limit has to be checked. */
  #bytes: number | undefined;
  #uncatalogued = 0;
  #uncataloguedBlobs = 0;

  /** Records of the last pack that are not in its file yet: `#tail[0 … #length)`, at `#start` of the file. */
  #tail: Buffer | undefined;
  #length = 0;
  #start = 0;
  /** What a barrier has to reach: the last pack, files written since, the names of new ones. */
  #packDirty = false;
  #filesDirty: Version[] = [];
  #namesDirty = false;

  constructor(directory: string, options: { limit: number; writable: boolean }) {
    this.#directory = directory;
    this.#limit = options.limit;
    this.#writable = options.writable;
    if (existsSync(directory)) this.#load();
  }

  get pending(): number {
    return this.#length;
  }

  put(digest: Version, bytes: Uint8Array): void {
    if (this.has(digest)) return;
    this.demandRoom(bytes.length);
    if (bytes.length >= PACKED_BELOW_BYTES) this.#putFile(digest, bytes);
    else this.#putPacked(digest, bytes);
    if (this.#bad.size > 0) this.#bad.delete(digest);
    this.#cache.set(digest, bytes);
  }

  demandRoom(bytes: number): void {
    checkLimit(this.#used() + bytes, this.#limit);
  }

  has(digest: Version): boolean {
    return this.#place(digest) !== undefined || this.#hasFile(digest);
  }

  get(digest: Version): Uint8Array {
    const cached = this.#cache.get(digest);
    if (cached !== undefined) return cached;
    const place = this.#find(digest);
    const bytes = place === undefined ? this.#readFile(digest) : this.#readPacked(digest, place);
    this.#cache.set(digest, bytes);
    return bytes;
  }

  read(digest: Version, into: Uint8Array, offset: number, length: number, position: number): number {
    const cached = this.#cache.get(digest);
    if (cached !== undefined) return copyPart(cached, into, offset, length, position);
    if (this.#find(digest) !== undefined) return copyPart(this.get(digest), into, offset, length, position);
    return readFully(this.#checkedFile(digest), into, offset, length, position);
  }

  /** Every digest that is stored here, in no order. */
  *digests(): IterableIterator<Version> {
    for (const digest of this.#catalog.digests()) if (!this.#known.has(digest) && !this.#bad.has(digest)) yield digest;
    // Copies: reading what is yielded may take a damaged one out.
    yield* Array.from(this.#known.keys());
    yield* Array.from(this.#listFiles().keys());
  }

  write({ through }: { through: boolean }): void {
    if (this.#length > 0) {
      const pack = this.#lastPack();
      pack.append((this.#tail as Buffer).subarray(0, this.#length));
      this.#packDirty = true;
      this.#start += this.#length;
      this.#length = 0;
    }
    if (!through) return;
    if (this.#packDirty) this.#lastPack().sync();
    this.#packDirty = false;
    for (const digest of this.#filesDirty) fdatasyncSync(this.#openFile(digest));
    this.#filesDirty = [];
    if (this.#namesDirty) {
      syncDirectory(this.#directory);
      syncDirectory(dirname(this.#directory));
    }
    this.#namesDirty = false;
  }

  /** Writes a new catalog where opening would have much to scan without, and enough is new in it. */
  saveCatalog(): void {
    if (this.#uncataloguedBlobs * (ENTRIES_PER_NEW - 1) >= this.#catalog.count) this.#writeCatalog();
  }

  #writeCatalog(): void {
    if (this.#uncatalogued < UNCATALOGUED_BYTES || !this.#writable || this.#length > 0) return;
    const covered = this.#packs.map((pack, i) => (i === this.#packs.length - 1 ? this.#start : pack.size));
    const bytes = this.#catalog.encode(covered, this.#known);
    const part = join(this.#directory, 'catalog.part');
    writeNew(part, bytes, { through: false });
    renameSync(part, join(this.#directory, 'catalog'));
    this.#catalog = Catalog.decode(bytes) ?? Catalog.empty;
    this.#known.clear();
    this.#uncatalogued = this.#uncataloguedBlobs = 0;
  }

  close(): void {
    try {
      this.#writeCatalog();
    } catch (error) {
      // Only a cache: without it the next opening scans the packs.
      Refusal.of(error);
    }
    for (const pack of this.#packs) pack.close();
    for (const fd of this.#open.values()) closeSync(fd);
    this.#open.clear();
    this.#packs.length = 0;
  }

  #load(): void {
    this.#catalog = this.#readCatalog() ?? Catalog.empty;
    this.#openPacks((i) => this.#scan(i, this.#catalog.covered[i] ?? PACK_MAGIC.length));
    const short = this.#catalog.covered.some((bytes, i) => bytes > (this.#packs[i]?.size ?? 0));
    if (short) {
      this.#catalog = Catalog.empty;
      this.#known.clear();
      this.#packs.forEach((_, i) => this.#scan(i, PACK_MAGIC.length));
    }
    if (this.#packs.length > 0) this.#start = this.#lastPack().size;
  }

  #readCatalog(): Catalog | undefined {
    const path = join(this.#directory, 'catalog');
    return existsSync(path) ? Catalog.decode(readFileSync(path)) : undefined;
  }

  #lastPack(): Growing {
    return this.#packs.at(-1) as Growing;
  }

  #packPath(i: number): string {
    return join(this.#directory, `${String(i).padStart(6, '0')}.pack`);
  }

  /** Opens the packs behind those that are open. One that somebody removed counts as empty; its blobs are gone. */
  #openPacks(opened: (i: number) => void): void {
    let count = 0;
    for (const name of existsSync(this.#directory) ? readdirSync(this.#directory) : []) {
      const digits = /^(\d{6})\.pack$/.exec(name)?.[1];
      if (digits !== undefined) count = Math.max(count, Number(digits) + 1);
    }
    for (let i = this.#packs.length; i < count; i++) {
      const path = this.#packPath(i);
      if (existsSync(path)) {
        const fd = openSync(path, this.#writable ? constants.O_RDWR : constants.O_RDONLY);
        this.#packs.push(new DiskBytes(fd, fstatSync(fd).size));
      } else this.#packs.push(new MemoryBytes());
      opened(i);
    }
  }

  #scan(i: number, from: number): void {
    const pack = this.#packs[i] as Growing;
    this.#uncatalogued += Math.max(0, pack.size - from);
    scanPack(pack, from, (digest, at, length) => {
      this.#known.set(digest, { pack: i, at, length, checked: true });
      this.#uncataloguedBlobs++;
    });
  }

  #used(): number {
    if (this.#bytes === undefined) {
      this.#bytes = 0;
      for (const pack of this.#packs) this.#bytes += pack.size;
      for (const digest of this.#listFiles().keys()) this.#bytes += statSync(this.#filePath(digest)).size;
    }
    return this.#bytes;
  }

  /** Where a packed blob is, without asking the file system. */
  #place(digest: Version): Known | undefined {
    const known = this.#known.get(digest);
    if (known !== undefined || this.#catalog.count === 0 || this.#bad.has(digest)) return known;
    const found = this.#catalog.find(digest);
    if (found === undefined) return undefined;
    const promoted = { ...found, checked: false };
    this.#known.set(digest, promoted);
    return promoted;
  }

  /** The same, after a look at what a live writer may have added. */
  #find(digest: Version): Known | undefined {
    const place = this.#place(digest);
    if (place !== undefined || this.#writable || this.#hasFile(digest)) return place;
    this.#lookAgain();
    return this.#place(digest);
  }

  #lookAgain(): void {
    this.#files = undefined;
    const last = this.#packs.length - 1;
    if (last >= 0) {
      this.#lastPack().measure();
      // A record may have been half written at the last look: begin where the scanned ones end.
      this.#scan(last, this.#scannedEnd(last));
    }
    this.#openPacks((i) => this.#scan(i, PACK_MAGIC.length));
  }

  #scannedEnd(pack: number): number {
    let end = this.#catalog.covered[pack] ?? PACK_MAGIC.length;
    for (const place of this.#known.values()) if (place.pack === pack) end = Math.max(end, place.at + place.length);
    return end;
  }

  #putPacked(digest: Version, bytes: Uint8Array): void {
    const need = RECORD_BYTES + bytes.length;
    if (this.#length + need > TAIL_BYTES && this.#length > 0) this.write({ through: false });
    if (this.#packs.length === 0 || this.#start + this.#length + need > PACK_BYTES) this.#beginPack();
    this.#tail ??= Buffer.allocUnsafeSlow(TAIL_BYTES + RECORD_BYTES);
    const at = this.#length + RECORD_BYTES;
    writeHead(this.#tail, this.#length, digest, bytes.length);
    this.#tail.set(bytes, at);
    this.#known.set(digest, { pack: this.#packs.length - 1, at: this.#start + at, length: bytes.length, checked: true });
    this.#length += need;
    this.#uncatalogued += need;
    this.#uncataloguedBlobs++;
    this.#bytes = this.#used() + need;
  }

  #beginPack(): void {
    if (this.#packs.length > 0) this.write({ through: this.#packDirty });
    makePrivate(this.#directory);
    const path = this.#packPath(this.#packs.length);
    const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, 0o600);
    fchmodSync(fd, 0o600);
    const pack = new DiskBytes(fd, 0);
    try {
      pack.append(PACK_MAGIC);
    } catch (error) {
      pack.close();
      unlinkSync(path);
      throw error;
    }
    this.#packs.push(pack);
    this.#start = pack.size;
    this.#namesDirty = this.#packDirty = true;
  }

  #readPacked(digest: Version, place: Known): Uint8Array {
    const { pack, at, length } = place;
    const bytes = new Uint8Array(length);
    if (this.#tail !== undefined && pack === this.#packs.length - 1 && at >= this.#start) {
      bytes.set(this.#tail.subarray(at - this.#start, at - this.#start + length));
      return bytes;
    }
    const got = (this.#packs[pack] as Growing).read(bytes, 0, length, at);
    if (got === length && (place.checked || digestOf(bytes) === digest)) {
      place.checked = true;
      return bytes;
    }
    this.#known.delete(digest);
    this.#bad.add(digest);
    throw otherBlob(digest);
  }

  #filePath(digest: Version): string {
    return join(this.#directory, hexOf(digest));
  }

  #listFiles(): Map<Version, { checked: boolean }> {
    if (this.#files === undefined) {
      this.#files = new Map();
      const names = existsSync(this.#directory) ? readdirSync(this.#directory) : [];
      for (const name of names) {
        if (/^[0-9a-f]{64}$/.test(name)) this.#files.set(`sha256:${name}` as Version, { checked: false });
        else if (name.endsWith('.part') && this.#writable) unlinkSync(join(this.#directory, name));
      }
    }
    return this.#files;
  }

  #hasFile(digest: Version): boolean {
    const files = this.#listFiles();
    return files.size > 0 && files.has(digest);
  }

  #putFile(digest: Version, bytes: Uint8Array): void {
    const files = this.#listFiles(), path = this.#filePath(digest), part = path + '.part';
    makePrivate(this.#directory);
    writeNew(part, bytes, { through: false });
    renameSync(part, path);
    files.set(digest, { checked: true });
    this.#filesDirty.push(digest);
    this.#namesDirty = true;
    this.#bytes = this.#used() + bytes.length;
  }

  #openFile(digest: Version): number {
    const open = this.#open.get(digest);
    if (open !== undefined) return open;
    const fd = openSync(this.#filePath(digest), constants.O_RDONLY);
    for (const [oldest, old] of this.#open) {
      if (this.#open.size < OPEN_FILES) break;
      this.#open.delete(oldest);
      closeSync(old);
    }
    this.#open.set(digest, fd);
    return fd;
  }

  /** A descriptor of a large blob whose bytes were once found to be what its digest says. */
  #checkedFile(digest: Version): number {
    const file = this.#listFiles().get(digest);
    if (file === undefined) throw goneBlob(digest);
    let fd: number;
    try {
      fd = this.#openFile(digest);
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw Refusal.of(error);
      this.#listFiles().delete(digest);
      throw goneBlob(digest);
    }
    if (!file.checked && hashFile(fd) !== digest) {
      this.#listFiles().delete(digest);
      closeSync(fd);
      this.#open.delete(digest);
      throw otherBlob(digest);
    }
    file.checked = true;
    return fd;
  }

  #readFile(digest: Version): Uint8Array {
    const fd = this.#checkedFile(digest);
    const bytes = new Uint8Array(fstatSync(fd).size);
    if (readFully(fd, bytes, 0, bytes.length, 0) !== bytes.length) throw otherBlob(digest);
    return bytes;
  }
}

function hashFile(fd: number): Version {
  const sum = createHash('sha256'), buffer = Buffer.allocUnsafe(1024 * 1024);
  for (let at = 0; ;) {
    const got = readFully(fd, buffer, 0, buffer.length, at);
    if (got === 0) return `sha256:${sum.digest('hex')}` as Version;
    sum.update(buffer.subarray(0, got));
    at += got;
  }
}

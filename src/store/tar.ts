/**
 * Archives as POSIX has them (pax): a header of 512 bytes an entry, its content, zeros up to a multiple of 512; two blocks of zeros at the end. What
 * the header has no room for (long names, names that are not ASCII, times of less than a second, large sizes) stands in a header of its own before it, as
 * records `<length> <key>=<value>\n`. Nothing here knows files: names and contents are bytes.
 */

export const BLOCK_BYTES = 512;
const NAME_BYTES = 100;
/** The largest numbers that the header's octal digits can say: of a size, and of an owner. */
const LARGEST_SIZE = 0o77777777777;
const LARGEST_ID = 0o7777777;

export type TarType = 'file' | 'link' | 'symlink' | 'character' | 'block' | 'directory' | 'fifo';

const FLAGS: Readonly<Record<TarType, string>> = { file: '0', link: '1', symlink: '2', character: '3', block: '4', directory: '5', fifo: '6' };

/** An entry, but for its content. */
export interface TarEntry {
  readonly name: Uint8Array;
  readonly type: TarType;
  /** Permission bits. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** Bytes of content that follow. */
  readonly size: number;
  /** ns since 1970. */
  readonly mtime: bigint;
  /** Of a link, the name it leads to. */
  readonly target?: Uint8Array;
  /** Of a device, as stat(2) has it. */
  readonly rdev?: number;
  /** By name; values as they are. */
  readonly xattrs?: ReadonlyMap<string, Uint8Array>;
}

/** An entry's header, with what goes before it. Its content has to follow, and `padding` of its size. */
export function tarHeader(entry: TarEntry): Buffer {
  const records = recordsOf(entry);
  const header = headerBlock(entry, FLAGS[entry.type]);
  if (records.length === 0) return header;
  const bytes = Buffer.concat(records);
  const before = headerBlock({ ...entry, name: Buffer.from('pax'), type: 'file', mode: 0o644, size: bytes.length, target: Buffer.alloc(0) }, 'x');
  return Buffer.concat([before, bytes, padding(bytes.length), header]);
}

/** The zeros that fill a content's last block. */
export function padding(size: number): Buffer {
  return Buffer.alloc((BLOCK_BYTES - size % BLOCK_BYTES) % BLOCK_BYTES);
}

/** The end of an archive. */
export function tarEnd(): Buffer {
  return Buffer.alloc(2 * BLOCK_BYTES);
}

/** What a header says. */
export interface TarHeader {
  readonly name: string;
  readonly flag: string;
  readonly size: number;
}

/** Reads a plain header: `undefined` for a block of zeros, `'damaged'` for what is none. */
export function readTarHeader(block: Uint8Array): TarHeader | 'damaged' | undefined {
  const bytes = Buffer.from(block.buffer, block.byteOffset, BLOCK_BYTES);
  if (bytes.every((byte) => byte === 0)) return undefined;
  const stated = Number.parseInt(bytes.toString('latin1', 148, 156), 8), size = Number.parseInt(bytes.toString('latin1', 124, 136), 8);
  if (stated !== checksumOf(bytes) || !Number.isSafeInteger(size) || size < 0) return 'damaged';
  const end = bytes.indexOf(0);
  return { name: bytes.toString('utf8', 0, end < 0 || end > NAME_BYTES ? NAME_BYTES : end), flag: bytes.toString('latin1', 156, 157), size };
}

function recordsOf({ name, target, size, uid, gid, mtime, xattrs }: TarEntry): Buffer[] {
  const records: Buffer[] = [];
  const add = (key: string, value: string | Uint8Array): number => records.push(record(key, Buffer.from(value)));
  const names = [['path', name], ['linkpath', target]] as const;
  const told = names.filter(([, bytes]) => bytes !== undefined && (bytes.length > NAME_BYTES || bytes.some((byte) => byte > 127)));
  // By POSIX names are UTF-8; this says that they are what they are.
  if (told.some(([, bytes]) => !isUtf8(bytes as Uint8Array))) add('hdrcharset', 'BINARY');
  for (const [key, bytes] of told) add(key, bytes as Uint8Array);
  if (size > LARGEST_SIZE) add('size', String(size));
  if (uid > LARGEST_ID) add('uid', String(uid));
  if (gid > LARGEST_ID) add('gid', String(gid));
  if (mtime % SECOND !== 0n || mtime < 0n || mtime / SECOND > LARGEST_SIZE) add('mtime', decimal(mtime));
  for (const [key, value] of xattrs ?? []) add(`SCHILY.xattr.${key}`, value);
  return records;
}

const SECOND = 1_000_000_000n;

/** Seconds with their decimals, of ns. */
function decimal(time: bigint): string {
  const sign = time < 0n ? '-' : '', size = time < 0n ? -time : time, part = size % SECOND;
  return `${sign}${size / SECOND}${part === 0n ? '' : '.' + String(part).padStart(9, '0').replace(/0+$/, '')}`;
}

/** A record begins with its own length, which counts its own digits. */
function record(key: string, value: Buffer): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), value, Buffer.from('\n')]);
  let length = rest.length;
  while (length !== String(length).length + rest.length) length = String(length).length + rest.length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

function headerBlock(entry: TarEntry, flag: string): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES), { name, target, rdev = 0 } = entry;
  const octal = (at: number, length: number, value: number): number => block.write(value.toString(8).padStart(length - 1, '0'), at, 'latin1');
  block.set(name.subarray(0, NAME_BYTES), 0);
  octal(100, 8, entry.mode & 0o7777);
  octal(108, 8, Math.min(entry.uid, LARGEST_ID));
  octal(116, 8, Math.min(entry.gid, LARGEST_ID));
  octal(124, 12, Math.min(entry.size, LARGEST_SIZE));
  octal(136, 12, Math.max(0, Math.min(Number(entry.mtime / SECOND), LARGEST_SIZE)));
  block.fill(32, 148, 156);
  block.write(flag, 156, 'latin1');
  if (target !== undefined) block.set(target.subarray(0, NAME_BYTES), 157);
  block.write('ustar\x0000', 257, 'latin1');
  if (entry.type === 'character' || entry.type === 'block') {
    octal(329, 8, major(rdev));
    octal(337, 8, minor(rdev));
  }
  block.write(checksumOf(block).toString(8).padStart(6, '0') + '\0 ', 148, 'latin1');
  return block;
}

/** The sum of all bytes, those of the sum itself taken for spaces. */
function checksumOf(block: Uint8Array): number {
  let sum = 0;
  for (let at = 0; at < BLOCK_BYTES; at++) sum += at >= 148 && at < 156 ? 32 : block[at] as number;
  return sum;
}

/** Linux's two halves of a device number (makedev(3)), of those that fit in 32 bits. */
function major(rdev: number): number {
  return (rdev >>> 8) & 0xfff;
}

function minor(rdev: number): number {
  return (rdev & 0xff) | ((rdev >>> 12) & 0xfff00);
}

function isUtf8(bytes: Uint8Array): boolean {
  return Buffer.from(Buffer.from(bytes).toString()).equals(bytes);
}

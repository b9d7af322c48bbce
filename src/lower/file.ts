import { closeSync, fstatSync, read, readSync } from 'node:fs';
import type { Attr } from '../core/attr.ts';
import { Refusal } from '../core/refusal.ts';
import type { LowerFile, WholeFile } from './lower.ts';
import { attrOf, EXACT } from './stats.ts';
import type { Opened } from './walker.ts';

/** A regular file held by a descriptor of this process. */
export class DescriptorFile implements LowerFile {
  readonly kind = 'open';
  readonly attr: Attr;
  private fd: number;

  constructor(opened: Opened) {
    this.fd = opened.fd;
    this.attr = opened.attr;
  }

  restat(): Attr {
    try {
      return attrOf(fstatSync(this.held(), EXACT));
    } catch (error) {
      throw Refusal.of(error);
    }
  }

  read(into: Uint8Array, offset: number, length: number, position: number): number {
    if (length === 0) return 0;
    try {
      return readSync(this.held(), into, offset, length, position);
    } catch (error) {
      throw Refusal.of(error);
    }
  }

  readLater(into: Uint8Array, offset: number, length: number, position: number): Promise<number> {
    if (length === 0) return Promise.resolve(0);
    return new Promise((resolve, reject) => {
      read(this.held(), into, offset, length, position, (error, bytes) => {
        if (error === null) resolve(bytes);
        else reject(Refusal.of(error));
      });
    });
  }

  /** A second close does nothing. */
  close(): void {
    if (this.fd < 0) return;
    const fd = this.fd;
    this.fd = -1;
    closeSync(fd);
  }

  private held(): number {
    if (this.fd < 0) throw new Refusal('EBADF', { reason: 'the lower file is closed' });
    return this.fd;
  }
}

/** First piece read of a file that says it is empty (as those of /proc do), in bytes. */
const UNSIZED_PIECE_BYTES = 65536;

/** Times a file may shrink under one read before that is a fault. */
const SHRINK_LIMIT = 100;

/**
 * All bytes of an open file and the attributes they belong to; closes it in any case. `bytes` are as many as
 * `attr.size` says, save for files that say they are empty and are not (those of /proc). Bytes appended after
 * the attributes were taken are left out; a file that shrank meanwhile is read again, under the attributes it
 * has then.
 */
export function readWhole(opened: Opened): WholeFile {
  const { fd } = opened;
  try {
    let attr = opened.attr;
    for (let attempt = 0; attempt < SHRINK_LIMIT; attempt++) {
      if (attr.size === 0) return readUnsized(fd, attr);
      const bytes = Buffer.allocUnsafeSlow(attr.size);
      if (fill(fd, bytes)) return { kind: 'whole', attr, bytes };
      attr = attrOf(fstatSync(fd, EXACT));
    }
    throw new Refusal('EIO', { reason: 'the file kept shrinking while it was read' });
  } catch (error) {
    throw Refusal.of(error);
  } finally {
    closeSync(fd);
  }
}

/** Fills `bytes` from the file's start; false where the file ends before. */
function fill(fd: number, bytes: Buffer): boolean {
  let filled = 0;
  while (filled < bytes.length) {
    const count = readSync(fd, bytes, filled, bytes.length - filled, filled);
    if (count === 0) return false;
    filled += count;
  }
  return true;
}

function readUnsized(fd: number, attr: Attr): WholeFile {
  const pieces: Buffer[] = [];
  for (let position = 0; ;) {
    const piece = Buffer.allocUnsafeSlow(UNSIZED_PIECE_BYTES);
    const count = readSync(fd, piece, 0, piece.length, position);
    if (count === 0) break;
    pieces.push(piece.subarray(0, count));
    position += count;
  }
  if (pieces.length === 0) return { kind: 'whole', attr, bytes: Buffer.alloc(0) };
  return { kind: 'whole', attr: attrOf(fstatSync(fd, EXACT)), bytes: Buffer.concat(pieces) };
}

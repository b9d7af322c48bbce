import { createHash, hash as hashOnce } from 'node:crypto';
import { typeBits, type NodeType } from '../core/attr.ts';
import { toBytes } from '../core/path.ts';
import type { Version } from '../core/version.ts';
import type { LowerEntry, LowerFile } from '../lower/lower.ts';

/** Bytes hashed and read at a time where a file is too large to be held at once. */
const STEP_BYTES = 1 << 20;

/** The version of bytes. */
export function versionOf(bytes: Uint8Array): Version {
  return ('sha256:' + hashOnce('sha256', bytes, 'hex')) as Version;
}

export const EMPTY_VERSION = versionOf(new Uint8Array(0));

/** A version made from bytes that come in turn. */
export class RunningVersion {
  private readonly hash = createHash('sha256');

  add(bytes: Uint8Array): void {
    this.hash.update(bytes);
  }

  /** Once, at the end. */
  finish(): Version {
    return ('sha256:' + this.hash.digest('hex')) as Version;
  }
}

/** The version of what a lower file holds from its start to its end as it is now, read in steps. */
export function versionOfFile(file: LowerFile): Version {
  const version = new RunningVersion(), buffer = Buffer.allocUnsafeSlow(STEP_BYTES);
  for (let at = 0; ;) {
    const count = file.read(buffer, 0, STEP_BYTES, at);
    if (count === 0) return version.finish();
    version.add(buffer.subarray(0, count));
    at += count;
  }
}

/** What begins an entry's line in a directory's version: the octal digits of its type bits, and a space. */
const head = (type: NodeType): string => typeBits(type).toString(8) + ' ';
const LINE_HEADS: Readonly<Record<NodeType, string>> = {
  file: head('file'), directory: head('directory'), symlink: head('symlink'), fifo: head('fifo'), socket: head('socket'),
  block: head('block'), character: head('character'),
};

/** The version of a directory: of its sorted list, a line an entry: type bits in octal, a space, the name, NUL. */
export function versionOfList(sorted: readonly LowerEntry[]): Version {
  let text = '';
  for (const { type, name } of sorted) text += LINE_HEADS[type] + name + '\0';
  return ('sha256:' + hashOnce('sha256', text.isWellFormed() ? text : toBytes(text), 'hex')) as Version;
}

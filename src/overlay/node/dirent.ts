import type { Buffer } from 'node:buffer';
import { Dirent } from 'node:fs';
import type { NodeType } from '../../core/attr.ts';

/** libuv's numbers of file types (`fs.constants.UV_DIRENT_…`). */
const TYPES: Readonly<Record<NodeType, number>> = {
  file: 1, directory: 2, symlink: 3, fifo: 4, socket: 5, character: 6, block: 7,
};

/** Node's own class, so that `instanceof` holds for it; its constructor is not in its types. */
const NodeDirent = Dirent as unknown as new (
  name: string | Buffer, type: number, parent: string | Uint8Array,
) => Dirent;

/** A `fs.Dirent`; `parent` as the caller named the directory. */
export function dirent(name: string | Buffer, type: NodeType, parent: string | Uint8Array): Dirent {
  return new NodeDirent(name, TYPES[type], parent);
}

import { PERMISSION_BITS, type NodeType } from '../core/attr.ts';
import { toBytes, type TreePath } from '../core/path.ts';
import type { Spot } from '../overlay/spot.ts';
import { padding, tarEnd, tarHeader, type TarType } from '../store/tar.ts';
import { gitName } from './git-name.ts';
import type { Snapshot } from './snapshot.ts';
import { begun, everything, standIn, type TreeOptions } from './visit.ts';

/**
 * A tree as an archive: names of any bytes, modes, owners, times in ns, links of both kinds, special files but sockets, and the extended attributes
 * that the overlay changed. A file's bytes pass through a piece at a time. Throws EIO where a file shrinks meanwhile.
 */
export function* treeTar(snapshot: Snapshot, options: TreeOptions): Generator<Uint8Array> {
  const { omit, isRedacted } = options, first = new Map<string, TreePath>();
  for (const spot of everything(snapshot, options)) {
    const { path } = spot, type = snapshot.type(spot);
    if (type === 'socket') {
      omit({ path, kind: 'special', words: `socket ${gitName(path)}` });
      continue;
    }
    const key = linkOf(snapshot, spot), link = key && first.get(key);
    if (link !== undefined) {
      yield header(snapshot, spot, 'link', 0, toBytes(link));
      continue;
    }
    if (key !== undefined) first.set(key, path);
    if (type !== 'file') {
      yield header(snapshot, spot, type, 0, type === 'symlink' ? toBytes(snapshot.target(spot)) : undefined);
      continue;
    }
    if (isRedacted(path) || snapshot.isSecret(spot)) {
      const bytes = standIn(snapshot.version(spot));
      omit({ path, kind: 'redacted', words: `content of ${gitName(path)}, redacted` });
      yield* file(header(snapshot, spot, 'file', bytes.length), bytes.length, [bytes]);
      continue;
    }
    const { size } = snapshot.attr(spot), pieces = begun(spot, snapshot.chunks(spot, size), omit);
    if (pieces !== undefined) yield* file(header(snapshot, spot, 'file', size), size, pieces);
    else if (key !== undefined) first.delete(key);
  }
  yield tarEnd();
}

/** A key by which the names of one file know each other; `undefined` where it has but one. */
function linkOf(snapshot: Snapshot, spot: Spot): string | undefined {
  const { nlink, dev, ino } = snapshot.attr(spot);
  return nlink < 2 || snapshot.type(spot) === 'directory' ? undefined : `${dev} ${ino}`;
}

function header(snapshot: Snapshot, spot: Spot, type: TarType | Exclude<NodeType, 'socket'>, size: number, target?: Uint8Array): Uint8Array {
  const { mode, uid, gid, mtime, rdev } = snapshot.attr(spot), changed = spot.node?.xattrs === undefined ? undefined : snapshot.xattrs(spot);
  const xattrs = changed && new Map([...changed].map(([name, value]) => [name, Buffer.from(value, 'base64')]));
  return tarHeader({
    name: toBytes(type === 'directory' ? `${spot.path}/` : spot.path), type, mode: mode & PERMISSION_BITS, uid, gid, size, mtime, rdev,
    ...(target && { target }), ...(xattrs && { xattrs }),
  });
}

function* file(head: Uint8Array, size: number, pieces: Iterable<Uint8Array>): Generator<Uint8Array> {
  yield head;
  yield* pieces;
  yield padding(size);
}

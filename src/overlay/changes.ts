import { createHash } from 'node:crypto';
import { PERMISSION_BITS, typeOf, type Attr, type NodeType } from '../core/attr.ts';
import { childOf, compareNames, ROOT, toBytes, type TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { nodeOf } from '../core/state.ts';
import { Shared, WHITEOUT, type Entry, type Node } from '../core/tree.ts';
import type { Version } from '../core/version.ts';
import type { Xattrs } from '../lower/lower.ts';
import { NO_XATTRS } from '../lower/xattrs.ts';
import { versionOf } from './hash.ts';
import { inodeKeyOf } from './inode.ts';
import type { World } from './world.ts';
import { xattrsOf } from './xattrs.ts';

export type ChangeKind = 'create' | 'update' | 'delete' | 'rename' | 'mode' | 'type' | 'owner' | 'times' | 'xattr' | 'link';

/**
 * One path's final difference to the lower. `before` and `after` are versions of content (of a symlink, of its target);
 * where no content differs, of `mode` octal permission bits, of `owner` `uid:gid`, of `times` the mtime in ns, of `xattr` a digest of
 * all extended attributes, of `type`
 * what is no file or symlink is its type's name.
 */
export interface Change {
  readonly path: TreePath;
  readonly kind: ChangeKind;
  readonly type: NodeType;
  /** Where a renamed thing was in the lower; of a link, another name of the same file. */
  readonly from?: TreePath;
  /** Where the lower has what is `before`, where that is neither `from` nor `path`: something in a renamed directory. */
  readonly origin?: TreePath;
  readonly before?: string;
  readonly after?: string;
  /** Permission bits, octal: of what was created, and where they differ from what the lower has. */
  readonly mode?: string;
  /** `uid:gid` in the same cases. */
  readonly owner?: string;
  /** `sha256:…` over the extended attributes, where they were changed and something else says the kind. */
  readonly xattrs?: string;
}

/** One side of a comparison. */
interface Side {
  readonly attr: Attr;
  readonly type: NodeType;
  /** Of a lower thing, its path. */
  readonly origin?: TreePath;
  content(): string | undefined;
  /** `sha256:…` over its extended attributes; `undefined` where the overlay changed none. */
  xattrs(): Version | undefined;
}

/** The final difference between the overlay and its lower: one row a path, sorted by path, no history. */
export class Changes {
  private readonly world: World;
  private readonly rows: Change[] = [];
  /** Lower paths whose content is shown somewhere else now: their own name has moved, not gone. */
  private readonly moved = new Set<TreePath>();
  /** Lower paths whose own name still leads to what it always did, by the path that name has now. */
  private readonly kept = new Map<TreePath, TreePath>();
  /** First path seen of each file with several names. */
  private readonly named = new Map<string, TreePath>();
  /** Opaque directories by the lower directory they stand in the place of. */
  private readonly replaced = new Map<Node, TreePath>();

  private constructor(world: World) {
    this.world = world;
  }

  static of(world: World): readonly Change[] {
    const changes = new Changes(world), { root } = world.state;
    changes.findMoved(root, ROOT);
    for (const origin of changes.kept.keys()) changes.moved.delete(origin);
    if (root.ino !== undefined) changes.compare(ROOT, root, ROOT, true, undefined);
    changes.visit(root, ROOT);
    return changes.shown().sort((a, b) => compareNames(a.path, b.path));
  }

  /** `sha256:…` over all rows: the same changes, made in any order, give the same. */
  static versionOf(rows: readonly Change[]): Version {
    const hash = createHash('sha256');
    for (const { path, kind, type, from, before, after, mode, owner, xattrs } of rows) {
      const row = [path, kind, type, from ?? null, before ?? null, after ?? null, mode ?? null, owner ?? null];
      if (xattrs !== undefined) row.push(xattrs);
      hash.update(toBytes(JSON.stringify(row) + '\n'));
    }
    return ('sha256:' + hash.digest('hex')) as Version;
  }

  /** Rows about what a rule hides are nobody's to see, and nobody's to publish. */
  private shown(): Change[] {
    const { gate } = this.world;
    if (gate === undefined) return this.rows;
    return this.rows.filter(({ path, from }) => gate.hidesName(path, undefined) === undefined && (from === undefined || gate.hidesName(from, undefined) === undefined));
  }

  private findMoved(directory: Node, path: TreePath): void {
    directory.names?.forEach((entry, name) => {
      const node = nodeOf(this.world.state, entry), here = childOf(path, name);
      if (node === WHITEOUT) return;
      if (node.origin !== undefined) {
        if (this.isInPlace(entry, node, directory.below(name))) this.kept.set(node.origin, here);
        else this.moved.add(node.origin);
      }
      if (node.type === 'directory') this.findMoved(node, here);
    });
  }

  /** Whether the lower shows the same file under the name; of a file with several names there, any of them will do. */
  private isInPlace(entry: Entry, node: Node, natural: TreePath | undefined): boolean {
    if (node.origin === natural) return true;
    if (natural === undefined || !(entry instanceof Shared)) return false;
    const attr = this.world.lower.lstat(natural);
    return typeof attr !== 'string' && attr.ino === node.ino && attr.dev === node.dev;
  }

  private visit(directory: Node, path: TreePath): void {
    for (const name of directory.names?.names() ?? []) {
      this.visitEntry(directory, directory.names?.get(name) as Entry, childOf(path, name), name);
    }
    this.visitHidden(directory, path);
  }

  private visitEntry(directory: Node, entry: Entry, path: TreePath, name: string): void {
    const node = nodeOf(this.world.state, entry), natural = directory.below(name) ?? this.hiddenOrigin(directory, name);
    if (node === WHITEOUT) {
      if (natural !== undefined) this.deleted(natural, path);
      return;
    }
    if (this.world.gate?.hidesNode(node) !== undefined) return;
    this.compare(path, node, natural, this.isInPlace(entry, node, natural), this.otherName(entry, node, path));
    if (node.type === 'directory') this.visit(node, path);
  }

  /** Another name of the same file that comes before this one, or that the lower has: then this one is a link to it. */
  private otherName(entry: Entry, node: Node, path: TreePath): TreePath | undefined {
    if (!(entry instanceof Shared)) return undefined;
    const key = inodeKeyOf(node), first = this.named.get(key);
    const kept = node.origin === undefined ? undefined : this.kept.get(node.origin);
    if (first === undefined) this.named.set(key, path);
    return kept ?? first;
  }

  /** Of an opaque directory that took a lower one's place: where that one was, for its own names to be compared with. */
  private hiddenOrigin(directory: Node, name: string): TreePath | undefined {
    const below = this.replaced.get(directory);
    return below === undefined ? undefined : childOf(below, name);
  }

  /** Names of a replaced lower directory that nothing in its successor goes by: deleted. */
  private visitHidden(directory: Node, path: TreePath): void {
    const origin = this.replaced.get(directory);
    if (origin === undefined) return;
    for (const { name } of this.world.lower.list(origin)) {
      if (directory.names?.get(name) === undefined) this.deleted(childOf(origin, name), childOf(path, name));
    }
  }

  private compare(path: TreePath, node: Node, natural: TreePath | undefined, inPlace: boolean, link: TreePath | undefined): void {
    const after = this.nodeSide(node), below = natural === undefined ? undefined : this.lowerSide(natural);
    if (node.origin !== undefined && !inPlace && node.ino !== undefined && link === undefined) {
      const before = this.lowerSide(node.origin), isHidden = natural !== undefined && !this.moved.has(natural);
      if (isHidden && below?.type === 'directory') this.deletedBelow(natural, path);
      this.push({ path, kind: 'rename', from: node.origin }, before, after);
      return;
    }
    if (below === undefined || (natural !== undefined && this.moved.has(natural) && !inPlace)) {
      if (link !== undefined) this.push({ path, kind: 'link', from: link }, undefined, after);
      else if (node.ino !== undefined) this.push({ path, kind: 'create' }, undefined, after);
      return;
    }
    if (below.type !== after.type) {
      if (below.type === 'directory') this.deletedBelow(natural as TreePath, path);
      this.push({ path, kind: 'type', before: below.content() ?? below.type, after: after.content() ?? after.type }, below, after);
      return;
    }
    if (after.type === 'directory' && node.opaque) this.replaced.set(node, natural as TreePath);
    this.compareSame(path, node, below, after, inPlace);
  }

  private compareSame(path: TreePath, node: Node, below: Side, after: Side, inPlace: boolean): void {
    // What has come here by a link from elsewhere has another lower file's content.
    const same = inPlace && node.content.kind === 'lower' && node.type === 'file' && node.origin !== undefined;
    if (!same) {
      const was = below.content(), is = after.content();
      if (was !== is) return this.push({ path, kind: 'update' }, below, after);
    }
    if (modeOf(below) !== modeOf(after) && after.type !== 'symlink') {
      this.push({ path, kind: 'mode', before: modeOf(below), after: modeOf(after) }, below, after);
    } else if (ownerOf(below) !== ownerOf(after)) {
      this.push({ path, kind: 'owner', before: ownerOf(below), after: ownerOf(after) }, below, after);
    } else if (node.timesSet && below.attr.mtime !== after.attr.mtime) {
      this.push({ path, kind: 'times', before: String(below.attr.mtime), after: String(after.attr.mtime) }, below, after);
    } else if (otherXattrs(below, after) !== undefined) {
      this.push({ path, kind: 'xattr', before: below.xattrs(), after: after.xattrs() }, below, after);
    }
  }

  /** A lower path that is not there any more, with all that was below it. */
  private deleted(origin: TreePath, path: TreePath): void {
    if (this.moved.has(origin)) return;
    const side = this.lowerSide(origin);
    if (side === undefined) return;
    this.push({ path, kind: 'delete' }, side, undefined);
    if (side.type === 'directory') this.deletedBelow(origin, path);
  }

  private deletedBelow(origin: TreePath, path: TreePath): void {
    for (const { name } of this.world.lower.list(origin)) this.deleted(childOf(origin, name), childOf(path, name));
  }

  /** Adds a row: `before` and `after` are versions of the two sides' contents where the row does not say otherwise. */
  private push(row: Pick<Change, 'path' | 'kind' | 'from'> & { before?: string | undefined; after?: string | undefined }, below: Side | undefined, now: Side | undefined): void {
    const side = (now ?? below) as Side;
    const before = row.before ?? below?.content(), after = row.after ?? now?.content();
    const isNew = now !== undefined && below === undefined && row.kind !== 'link';
    const mode = now !== undefined && side.type !== 'symlink' && (isNew || (below !== undefined && modeOf(below) !== modeOf(now)));
    const owner = now !== undefined && (isNew || (below !== undefined && ownerOf(below) !== ownerOf(now)));
    const xattrs = now === undefined || row.kind === 'xattr' || row.kind === 'link' ? undefined : otherXattrs(below, now);
    const origin = below?.origin, isElsewhere = origin !== undefined && origin !== row.path && origin !== row.from;
    this.rows.push({
      path: row.path, kind: row.kind, type: side.type, ...(row.from === undefined ? undefined : { from: row.from }),
      ...(isElsewhere ? { origin } : undefined),
      ...(before === undefined ? undefined : { before }), ...(after === undefined ? undefined : { after }),
      ...(mode ? { mode: modeOf(now) } : undefined), ...(owner ? { owner: ownerOf(now) } : undefined),
      ...(xattrs === undefined ? undefined : { xattrs }),
    });
  }

  private nodeSide(node: Node): Side {
    const xattrs = (): Version | undefined => {
      if (node.xattrs === undefined) return undefined;
      return versionOfXattrs(xattrsOf(this.world, { path: ROOT, node, origin: node.origin, attr: undefined }));
    };
    return { attr: this.world.attributes.ofNode(node), type: node.type, xattrs, content: () => {
      if (node.type === 'symlink') return versionOf(toBytes(node.target ?? ''));
      return node.type === 'file' ? knownOr(['EACCES', 'EIO'], () => this.world.contents.versionOf(node)) : undefined;
    } };
  }

  private lowerSide(origin: TreePath): Side | undefined {
    const { lower } = this.world, attr = lower.lstat(origin);
    if (typeof attr === 'string') return undefined;
    const type = typeOf(attr.mode);
    const xattrs = (): Version => versionOfXattrs(lower.xattrs(origin, attr) ?? NO_XATTRS);
    return { attr, type, origin, xattrs, content: () => {
      if (type === 'symlink') return versionOf(toBytes(lower.readlink(origin)));
      return type === 'file' ? knownOr(['EACCES', 'EIO'], () => this.world.versionOfLower(origin)) : undefined;
    } };
  }
}

function modeOf({ attr }: Side): string {
  return (attr.mode & PERMISSION_BITS).toString(8);
}

function ownerOf({ attr }: Side): string {
  return `${attr.uid}:${attr.gid}`;
}

/** Those that `after` has where they are not those of `below`; `undefined` where they are, or were never touched. */
function otherXattrs(below: Side | undefined, after: Side): Version | undefined {
  const is = after.xattrs();
  return is === undefined || is === (below?.xattrs() ?? versionOfXattrs(NO_XATTRS)) ? undefined : is;
}

function versionOfXattrs(xattrs: Xattrs): Version {
  const lines = [...xattrs].sort(([a], [b]) => compareNames(a, b)).map((each) => JSON.stringify(each) + '\n');
  return versionOf(toBytes(lines.join('')));
}

/** What `learn` gives; unknown where the content may not be read, or is not what it was any more: a row says so by its absence. */
function knownOr(codes: readonly string[], learn: () => Version | undefined): Version | undefined {
  try {
    return learn();
  } catch (error) {
    if (error instanceof Refusal && codes.includes(error.code)) return undefined;
    throw error;
  }
}

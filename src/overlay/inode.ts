import { isWithin, rebase, type TreePath } from '../core/path.ts';
import { find, type State } from '../core/state.ts';
import { linkKey, type Node } from '../core/tree.ts';
import type { LowerFile } from '../lower/lower.ts';
import type { Attr } from '../core/attr.ts';

/**
 * A file that some descriptor holds open, whatever happens to its names. While the overlay has no node for it, it is the
 * lower file; from its first change on, whoever makes it, all descriptors see the node.
 */
export class OpenInode {
  key: string;
  /** The name it was opened by, as later renames have it. */
  path: TreePath;
  node: Node | undefined;
  origin: TreePath | undefined;
  /** The lower's attributes when opened. */
  attr: Attr | undefined;
  lowerFile: LowerFile | undefined;
  /** Descriptors that hold it. */
  count = 0;
  /** Its last name is gone. */
  unlinked = false;
  /** It never had a name, and may get one. */
  nameable = false;

  constructor(born: { key: string; path: TreePath; node: Node | undefined; origin: TreePath | undefined; attr: Attr | undefined }) {
    this.key = born.key;
    this.path = born.path;
    this.node = born.node;
    this.origin = born.origin;
    this.attr = born.attr;
  }
}

/** All open inodes by device and inode number. */
export class OpenInodes {
  private readonly byKey = new Map<string, OpenInode>();

  get size(): number {
    return this.byKey.size;
  }

  hold(key: string, make: () => OpenInode): OpenInode {
    let inode = this.byKey.get(key);
    if (inode === undefined) this.byKey.set(key, inode = make());
    inode.count++;
    return inode;
  }

  get(key: string): OpenInode | undefined {
    return this.byKey.get(key);
  }

  /** One descriptor fewer; the last one gives back the lower file. */
  release(inode: OpenInode): void {
    if (--inode.count > 0) return;
    this.byKey.delete(inode.key);
    inode.lowerFile?.close();
    inode.lowerFile = undefined;
  }

  /** Paths follow a rename; of an exchange, both ways. */
  moved(from: TreePath, to: TreePath, exchange: boolean): void {
    for (const inode of this.byKey.values()) {
      if (isWithin(inode.path, from)) inode.path = rebase(inode.path, from, to);
      else if (exchange && isWithin(inode.path, to)) inode.path = rebase(inode.path, to, from);
    }
  }

  /** Every open inode that goes by this path. */
  *at(path: TreePath): Generator<OpenInode> {
    for (const inode of this.byKey.values()) if (inode.path === path) yield inode;
  }

  /** After a discard: what no name of the tree leads to any more is its descriptors' alone. */
  forsake(state: State): void {
    for (const inode of this.byKey.values()) {
      if (inode.node === undefined || inode.node.type === 'directory') continue;
      if (find(state, inode.path) !== inode.node && state.links.get(inode.key) !== inode.node) inode.unlinked = true;
    }
  }

  /**
   * After a commit: what the tree has no node for any more is the file that the lower has by its name. `look` tells what a path leads
   * to now.
   */
  settle(look: (path: TreePath) => Node | { readonly origin: TreePath; readonly attr: Attr } | undefined): void {
    for (const inode of [...this.byKey.values()]) {
      const found = inode.unlinked ? undefined : look(inode.path);
      if (found === undefined) continue;
      if (!('attr' in found)) {
        if (inode.node !== undefined || found.type === 'directory') inode.node = found;
        continue;
      }
      inode.origin = found.origin;
      if (inode.node === undefined) continue;
      inode.node = undefined;
      inode.lowerFile?.close();
      inode.lowerFile = undefined;
      inode.attr = found.attr;
      this.byKey.delete(inode.key);
      inode.key = linkKey(found.attr.dev, found.attr.ino);
      this.byKey.set(inode.key, inode);
    }
  }

  values(): IterableIterator<OpenInode> {
    return this.byKey.values();
  }
}

/** The key of a node that is no pass-through among the open inodes. */
export function inodeKeyOf(node: Node): string {
  return linkKey(node.dev, node.ino as bigint);
}

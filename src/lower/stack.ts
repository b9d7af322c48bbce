import type { Attr, NodeType } from '../core/attr.ts';
import { typeOf } from '../core/attr.ts';
import { parentOf } from '../core/path.ts';
import type { TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { sortEntries } from './listing.ts';
import { vacancyByLooks } from './lower.ts';
import type { Absence, Lower, LowerEntry, LowerFile, LowerStatFs, Vacancy, WholeFile, Xattrs } from './lower.ts';
import { NO_XATTRS } from './xattrs.ts';

/**
 * Several lowers seen as one: the first that has a name wins; directories of one path are merged. What is no
 * directory hides everything of that path in the layers below it, and a directory hides files; merging stops
 * at the first layer in which the path is something else. Closes its layers with it. Throws RangeError
 * without any layer.
 */
export function stackLowers(lowers: readonly Lower[]): Lower {
  const [first] = lowers;
  if (first === undefined) throw new RangeError('a stack of lowers needs at least one');
  return lowers.length === 1 ? first : new StackedLower(lowers, first);
}

class StackedLower implements Lower {
  readonly root: string;
  private readonly layers: readonly Lower[];
  private readonly first: Lower;

  constructor(layers: readonly Lower[], first: Lower) {
    this.layers = layers;
    this.first = first;
    this.root = layers.map((layer) => layer.root).join(':');
  }

  lstat(path: TreePath): Attr | Absence {
    return this.find(path, (layer) => layer.lstat(path));
  }

  vacancy(path: TreePath): Attr | Vacancy | 'unwalkable' {
    return vacancyByLooks(this, path);
  }

  readlink(path: TreePath): string {
    const layer = this.layerOf(path);
    if (layer === undefined) throw new Refusal('ENOENT');
    return layer.readlink(path);
  }

  list(path: TreePath): readonly LowerEntry[] {
    const layers = this.directoriesAt(path);
    const [top] = layers;
    if (top === undefined) throw new Refusal(this.lstat(path) === 'absent' ? 'ENOENT' : 'ENOTDIR');
    if (layers.length === 1) return top.list(path);
    const merged = new Map<string, NodeType>();
    for (const layer of layers) {
      for (const { name, type } of listIfThere(layer, path)) if (!merged.has(name)) merged.set(name, type);
    }
    return sortEntries(Array.from(merged, ([name, type]) => ({ name, type })));
  }

  open(path: TreePath): LowerFile | Attr | Absence {
    return this.find(path, (layer) => layer.open(path));
  }

  slurp(path: TreePath, limit: number): WholeFile | LowerFile | Attr | Absence {
    return this.find(path, (layer) => layer.slurp(path, limit));
  }

  xattrs(path: TreePath, attr: Attr): Xattrs | undefined {
    const layer = this.layerOf(path);
    return layer === undefined ? NO_XATTRS : layer.xattrs(path, attr);
  }

  /** Of the first layer: that is where a commit would write. */
  statfs(): LowerStatFs {
    return this.first.statfs();
  }

  /** Changes in every layer that has the path, those in hidden places included. */
  watch(...[path, options, changed, failed]: Parameters<Lower['watch']>): { close(): void } {
    const watches: { close(): void }[] = [];
    const close = (): void => { for (const watch of watches) watch.close(); };
    try {
      for (const layer of this.layers) {
        if (typeof layer.lstat(path) !== 'string') watches.push(layer.watch(path, options, changed, failed));
      }
    } catch (error) {
      close();
      throw error;
    }
    if (watches.length === 0) throw new Refusal(this.lstat(path) === 'absent' ? 'ENOENT' : 'ENOTDIR');
    return { close };
  }

  close(): void {
    for (const layer of this.layers) layer.close();
  }

  /**
   * The first layer's answer that is not an absence. Only directories let through: where the directory above
   * the name is something else in one layer, that layer and all below say nothing.
   */
  private find<T>(path: TreePath, look: (layer: Lower) => T | Absence): T | Absence {
    let absence: Absence = 'unwalkable';
    for (const layer of this.layers) {
      const found = look(layer);
      if (found !== 'absent' && found !== 'unwalkable') return found;
      if (found === 'absent') absence = 'absent';
      else if (hides(layer, path)) break;
    }
    return absence;
  }

  private layerOf(path: TreePath): Lower | undefined {
    let owner: Lower | undefined;
    this.find(path, (layer) => {
      const found = layer.lstat(path);
      if (typeof found !== 'string') owner = layer;
      return found;
    });
    return owner;
  }

  /** The layers whose directory at `path` takes part in the merged one, the first on top. */
  private directoriesAt(path: TreePath): readonly Lower[] {
    const directories: Lower[] = [];
    for (const layer of this.layers) {
      const found = layer.lstat(path);
      if (found === 'absent') continue;
      if (found === 'unwalkable') {
        if (hides(layer, path)) break;
      } else if (typeOf(found.mode) === 'directory') directories.push(layer);
      else break;
    }
    return directories;
  }
}

/**
 * Whether some component above `path`'s name, where this layer stops, is there and no directory; nothing
 * there hides nothing.
 */
function hides(layer: Lower, path: TreePath): boolean {
  for (let above = parentOf(path); above !== ''; above = parentOf(above)) {
    const found = layer.lstat(above);
    if (found !== 'unwalkable') return found !== 'absent' && typeOf(found.mode) !== 'directory';
  }
  return false;
}

/** Names in a layer's directory; none where it went away since it was found. */
function listIfThere(layer: Lower, path: TreePath): readonly LowerEntry[] {
  try {
    return layer.list(path);
  } catch (error) {
    if (error instanceof Refusal && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return [];
    throw error;
  }
}

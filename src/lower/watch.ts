import { watch } from 'node:fs';
import type { FSWatcher } from 'node:fs';
import type { Attr } from '../core/attr.ts';
import { typeOf } from '../core/attr.ts';
import { childOf, fromBytes, isWithin, nameOf, parentOf, rebase, ROOT } from '../core/path.ts';
import type { TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { codeOf } from './fault.ts';
import { isStaging } from './listing.ts';
import type { Lower, LowerEntry } from './lower.ts';
import type { Walker } from './walker.ts';

/** The name by which a directory that is watched as `…/.` tells of itself. */
const ITSELF = '.';

type Changed = Parameters<Lower['watch']>[2];
type Failed = Parameters<Lower['watch']>[3];

interface WatchedDirectory {
  readonly watcher: FSWatcher;
  /** As it was found; of a file's directory, which is not followed, undefined. */
  readonly attr: Attr | undefined;
}

/**
 * Watches the path `at` through `walker`: one watch per directory, since Node's recursive watch follows
 * symlinks. Does not keep the process alive. Throws ENOENT or ENOTDIR where nothing is there.
 */
export class TreeWatch {
  private readonly walker: Walker;
  private readonly at: TreePath;
  private readonly recursive: boolean;
  private readonly changed: Changed;
  private readonly failed: Failed;
  /** By path in the tree. */
  private readonly directories = new Map<TreePath, WatchedDirectory>();
  private closed = false;

  constructor(walker: Walker, at: TreePath, { recursive }: { recursive: boolean }, changed: Changed, failed: Failed) {
    this.walker = walker;
    this.at = at;
    this.recursive = recursive;
    this.changed = changed;
    this.failed = failed;
    try {
      const attr = walker.lstat(at);
      if (typeof attr === 'string') throw new Refusal(attr === 'absent' ? 'ENOENT' : 'ENOTDIR');
      if (isDirectory(attr)) {
        if (at !== ROOT) this.watchPlace(at);
        this.watchDirectory(at, attr, []);
      } else this.watchFile(at);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  close(): void {
    this.closed = true;
    this.unwatch(ROOT);
  }

  /** A file is watched by its directory's watch: that survives the file's replacement. */
  private watchFile(path: TreePath): void {
    const isNews = this.replacementsOf(path), name = nameOf(path);
    this.begin(parentOf(path), undefined, (event, found) => {
      if (found === name && (event !== 'rename' || isNews())) this.changed(event, name);
    });
  }

  /**
   * A removed directory tells so itself only once nobody holds it any more, and the walker may hold it; so
   * its parent's watch is asked. Goes on with what takes its place.
   */
  private watchPlace(path: TreePath): void {
    const isNews = this.replacementsOf(path), name = nameOf(path);
    this.begin(parentOf(path), undefined, (event, found) => {
      if (event !== 'rename' || found !== name || !isNews()) return;
      this.changed(event, name);
      if (!this.closed) this.followed(path);
    });
  }

  /**
   * Whether another thing is at `path` than when last asked. A new watch of a directory may be handed what happened
   * there just before; then what has its name is what had it when the watch began.
   */
  private replacementsOf(path: TreePath): () => boolean {
    let known = this.walker.lstat(path);
    return () => {
      const now = this.walker.lstat(path), before = known;
      known = now;
      return typeof now === 'string' || typeof before === 'string' || !isSame(now, before);
    };
  }

  /** Adds what it finds in there to `found`. */
  private watchDirectory(path: TreePath, attr: Attr, found: TreePath[]): void {
    // Watch before listing: what is created in between is then told twice rather than never.
    if (!this.begin(path, attr, (event, name) => this.happened(path, event, name))) return;
    if (!this.recursive) return;
    for (const { name, type } of this.entries(path)) {
      const child = childOf(path, name);
      found.push(child);
      if (type !== 'directory') continue;
      const below = this.walker.lstat(child);
      if (typeof below !== 'string' && isDirectory(below)) this.watchDirectory(child, below, found);
    }
  }

  private happened(path: TreePath, event: 'rename' | 'change', name: string): void {
    if (name === ITSELF) {
      if (path === ROOT || event === 'change') {
        if (path === this.at) this.changed(event, path === ROOT ? ITSELF : nameOf(path));
      } else {
        // It was removed or moved, which its parent's watch tells. Whatever has its place by now needs a
        // watch of its own.
        this.unwatch(path);
        this.followed(path);
      }
      return;
    }
    const child = childOf(path, name);
    this.tell(event, child);
    if (event === 'rename' && this.recursive && !this.closed) this.followed(child);
  }

  private followed(path: TreePath): void {
    const found: TreePath[] = [];
    try {
      this.follow(path, found);
    } catch (error) {
      this.fail(error);
    }
    for (const below of found) this.tell('rename', below);
  }

  /** After a name came, went or became another: watches what is there now. */
  private follow(path: TreePath, found: TreePath[]): void {
    const attr = this.walker.lstat(path);
    const watched = this.directories.get(path);
    const isThere = typeof attr !== 'string' && isDirectory(attr);
    if (watched !== undefined) {
      if (isThere && isSame(attr, watched.attr)) return;
      this.unwatch(path);
    }
    if (isThere) this.watchDirectory(path, attr, found);
  }

  private tell(event: 'rename' | 'change', path: TreePath): void {
    if (!this.closed) this.changed(event, this.at === ROOT ? path : rebase(path, this.at, ROOT));
  }

  private begin(path: TreePath, attr: Attr | undefined, happened: Changed): boolean {
    let watcher: FSWatcher | 'absent' | 'unwalkable';
    try {
      watcher = this.walker.withDirectory(path, (name) => watch(name, { persistent: false, encoding: 'buffer' }));
    } catch (error) {
      // Of a directory below that this process may not read there is nothing to tell; one that is gone is
      // told by its parent's watch.
      if (path !== this.at && (codeOf(error) === 'EACCES' || codeOf(error) === 'ENOENT')) return false;
      throw Refusal.of(error);
    }
    if (typeof watcher === 'string') return false;
    watcher.on('change', (event, bytes) => {
      const name = bytes === null ? ITSELF : fromBytes(bytes as Buffer);
      if (!this.closed && !isStaging(name)) happened(event as 'rename' | 'change', name);
    });
    watcher.on('error', (error) => this.fail(error));
    this.directories.set(path, { watcher, attr });
    return true;
  }

  /** What goes wrong after the start has no caller to be thrown to. A directory that vanished is no fault. */
  private fail(error: unknown): void {
    if (this.closed || codeOf(error) === 'ENOENT') return;
    if (this.failed === undefined) throw error;
    this.failed(Refusal.of(error));
  }

  private entries(path: TreePath): readonly LowerEntry[] {
    try {
      return this.walker.list(path);
    } catch (error) {
      const code = codeOf(error);
      if (code === 'ENOENT' || code === 'ENOTDIR') return [];
      throw error;
    }
  }

  private unwatch(from: TreePath): void {
    for (const [path, { watcher }] of this.directories) {
      if (!isWithin(path, from)) continue;
      this.directories.delete(path);
      watcher.close();
    }
  }
}

function isDirectory(attr: Attr): boolean {
  return typeOf(attr.mode) === 'directory';
}

/** An inode number alone may be another's by now. */
function isSame(a: Attr, b: Attr | undefined): boolean {
  return a.ino === b?.ino && a.dev === b.dev && a.birthtime === b.birthtime;
}

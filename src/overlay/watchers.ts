import { isWithin, nameOf, parentOf, type TreePath } from '../core/path.ts';
import { find, type State } from '../core/state.ts';
import type { Lower } from '../lower/lower.ts';
import type { Gate } from './gate.ts';
import type { WatchListener } from './system.ts';

interface Watcher {
  readonly path: TreePath;
  readonly isDirectory: boolean;
  readonly recursive: boolean;
  readonly changed: WatchListener;
}

/** Whom to tell: of changes, and of a fault that ends the watch. */
export interface Watching {
  readonly changed: WatchListener;
  readonly failed: ((fault: unknown) => void) | undefined;
}

/**
 * Tells of changes as they happen: those made through the overlay at once, those that outsiders make to the lower as
 * the lower tells of them, unless the overlay covers what they changed.
 */
export class Watchers {
  private readonly state: State;
  private readonly lower: Lower;
  private readonly gate: Gate | undefined;
  private readonly watchers = new Set<Watcher>();

  constructor(parts: { state: State; lower: Lower; gate: Gate | undefined }) {
    this.state = parts.state;
    this.lower = parts.lower;
    this.gate = parts.gate;
  }

  get areAny(): boolean {
    return this.watchers.size > 0;
  }

  /** `origin`: where in the lower the watched thing is, if it shows through at all. */
  watch(path: TreePath, origin: TreePath | undefined, options: { isDirectory: boolean; recursive: boolean }, watching: Watching) {
    const watcher = { path, ...options, changed: watching.changed };
    this.watchers.add(watcher);
    const below = origin === undefined ? undefined
      : this.lower.watch(origin, { recursive: options.recursive }, (event, name) => this.fromLower(watcher, event, name),
        watching.failed);
    return { close: () => {
      this.watchers.delete(watcher);
      below?.close();
    } };
  }

  /** A name came, went or became another thing. */
  renamed(path: TreePath): void {
    if (this.watchers.size > 0) this.tell('rename', path);
  }

  /** What is at `path` has other content or attributes. */
  changed(path: TreePath): void {
    if (this.watchers.size > 0) this.tell('change', path);
  }

  private tell(event: 'rename' | 'change', path: TreePath): void {
    if (this.gate?.hidesName(path, undefined) !== undefined) return;
    for (const watcher of [...this.watchers]) {
      if (path === watcher.path) watcher.changed(event, nameOf(path));
      else if (watcher.isDirectory && (watcher.recursive ? isWithin(path, watcher.path) : parentOf(path) === watcher.path)) {
        watcher.changed(event, watcher.path === '' ? path : path.slice(watcher.path.length + 1));
      }
    }
  }

  private fromLower(watcher: Watcher, event: 'rename' | 'change', name: string): void {
    const path = (!watcher.isDirectory || name === '' ? watcher.path : watcher.path === '' ? name : `${watcher.path}/${name}`) as TreePath;
    const found = find(this.state, path);
    if (typeof found !== 'object' || !('lower' in found) || this.gate?.hidesName(path, found.lower) !== undefined) return;
    watcher.changed(event, name);
  }
}

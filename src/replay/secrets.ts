import type { Event } from '../core/event.ts';
import { evolve } from '../core/evolve.ts';
import { slices } from '../core/extents.ts';
import { childOf, type TreePath } from '../core/path.ts';
import { find, initialState, nodeOf, type State } from '../core/state.ts';
import { linkKey, Node, WHITEOUT } from '../core/tree.ts';
import type { Version } from '../core/version.ts';

/**
 * The blobs that the events of a whole log name, without those that hold contents of paths that match: of what was ever written or read by such a name, of
 * files that once had one, whatever they are called later, and of lower files that come from one. What something else holds as well is left out, too: it
 * is the same bytes.
 */
export function harmlessBlobs(events: Iterable<Event>, matches: (path: TreePath) => boolean): ReadonlySet<Version> {
  const secrets = new Secrets(matches), named = new Set<Version>();
  for (const event of events) {
    secrets.add(event);
    for (const blob of blobsOf(event)) named.add(blob);
  }
  for (const blob of secrets.blobs) named.delete(blob);
  return named;
}

function blobsOf(event: Event): readonly Version[] {
  const extents = event.op === 'write' ? event.extents ?? [] : [];
  return ['blob' in event ? event.blob : undefined, ...extents.map(({ blob }) => blob)].filter((blob) => blob !== undefined);
}

class Secrets {
  readonly blobs = new Set<Version>();
  private readonly matches: (path: TreePath) => boolean;
  private readonly state: State = initialState();
  /** Files that have, or had, a name that matches. */
  private readonly files = new Set<string>();

  constructor(matches: (path: TreePath) => boolean) {
    this.matches = matches;
  }

  add(event: Event): void {
    if (event.op === 'read' && event.blob !== undefined && this.isSecret(event.path)) this.blobs.add(event.blob);
    const node = evolve(this.state, event);
    if (event.op === 'write' && (this.matches(event.path) || (node !== undefined && this.isSecretNode(node)))) {
      if (node !== undefined) this.files.add(keyOf(node));
      for (const blob of blobsOf(event)) this.blobs.add(blob);
    } else if (event.op === 'rename' || event.op === 'link') {
      for (const path of [event.path, event.to]) this.collect(path);
    }
  }

  private isSecret(path: TreePath): boolean {
    if (this.matches(path)) return true;
    const found = find(this.state, path);
    if (found instanceof Node) return this.isSecretNode(found);
    return typeof found === 'object' && this.matches(found.lower);
  }

  private isSecretNode(node: Node): boolean {
    return this.files.has(keyOf(node)) || (node.origin !== undefined && this.matches(node.origin));
  }

  /** Takes note of all at and below `path` that matches now. */
  private collect(path: TreePath): void {
    const found = find(this.state, path);
    if (!(found instanceof Node)) return;
    if (found.type === 'directory') {
      found.names?.forEach((entry, name) => {
        if (nodeOf(this.state, entry) !== WHITEOUT) this.collect(childOf(path, name));
      });
    } else if (this.matches(path)) {
      this.files.add(keyOf(found));
      const { content } = found;
      if (content.kind === 'blob') this.blobs.add(content.digest);
      else if (content.kind === 'extents') for (const { source } of slices(content.map, 0, content.map.size)) if (source.kind === 'blob') this.blobs.add(source.digest);
    }
  }
}

function keyOf({ dev, ino }: Node): string {
  return linkKey(dev, ino ?? 0n);
}

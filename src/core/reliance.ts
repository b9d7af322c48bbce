import { PERMISSION_BITS, type Fingerprint } from './attr.ts';
import { RACY_NS } from './cover.ts';
import type { CommitBody, Event, FingerprintRecord, ListBody, ReadBody, StatBody } from './event.ts';
import { childOf, isWithin, parentOf, rebase, ROOT, type TreePath } from './path.ts';
import type { HostState, Reliance } from './plan.ts';
import { find, nodeOf, type State } from './state.ts';
import { Node, WHITEOUT } from './tree.ts';

/**
 * What everybody has relied on of the lower: what it held where they read, listed, looked or missed last. Folded from the whole log
 * where a commit asks for it, beside the state, since only that tells what of a look was the lower's own. What the overlay's own changes
 * made of a look is nobody's reliance.
 */
export class Reliances {
  /** By actor, then by lower path. */
  private readonly actors = new Map<string, Map<TreePath, Looks>>();
  /** What commits have changed, by their ids: for reverts. */
  private readonly commits = new Map<string, Touched>();

  /** Folds `event` in; `state` is what all events before it made. */
  note(state: State, event: Event): void {
    switch (event.op) {
      case 'read': return this.read(state, event);
      case 'list': return this.list(state, event);
      case 'stat': return this.stat(state, event);
      case 'readlink': {
        const origin = originOf(state, event.path);
        if (origin === undefined) return;
        const { target } = event;
        this.put(event, origin, 'content', { state: { type: 'symlink', target, mode: 0, uid: 0, gid: 0 }, aspects: 'content' });
        return;
      }
      case 'miss': {
        const found = find(state, event.path);
        if (found === undefined || found === WHITEOUT || found instanceof Node) return;
        this.looksAt(event.actor, found.lower).clear();
        this.put(event, found.lower, 'content', { state: { type: 'absent' }, aspects: 'all' });
        return;
      }
      case 'commit': {
        const touched = touchedBy(state, event);
        this.commits.set(event.id, touched);
        this.publish(touched);
        return;
      }
      case 'revert': {
        const { paths, moves } = this.commits.get(event.id) ?? { paths: new Set<TreePath>(), moves: [] };
        this.publish({ paths, moves: moves.map(([from, to]) => [to, from] as const) });
        return;
      }
      default:
    }
  }

  /** All of them; those of `actor` alone where one is named. */
  *rows(actor: string | undefined): Generator<Reliance> {
    for (const [name, paths] of this.actors) {
      if (actor !== undefined && name !== actor) continue;
      for (const [path, looks] of paths) {
        for (const { expected, seq, time } of looks.values()) yield { path, expected, actor: name, seq, time };
      }
    }
  }

  private read(state: State, event: Event & ReadBody): void {
    const { fingerprint, version, size } = event, origin = fingerprint === undefined ? undefined : originOf(state, event.path);
    if (origin === undefined) return;
    const print = fingerprintOf(fingerprint as FingerprintRecord);
    // Where its content was hashed, a file as young as the look at it is compared by that.
    const content = version === undefined ? { fingerprint: print } : { version, fingerprint: isSettled(print, event.time) ? print : undefined };
    this.put(event, origin, 'content', { state: { type: 'file', size, ...content, ...NOBODY }, aspects: 'content' });
  }

  private list(state: State, event: Event & ListBody): void {
    const found = find(state, event.path);
    if (found === undefined || found === WHITEOUT || (found instanceof Node && (found.opaque || found.origin === undefined))) return;
    const origin = found instanceof Node ? found.origin as TreePath : found.lower;
    this.put(event, origin, 'names', { listing: event.lower ?? event.version });
  }

  private stat(state: State, event: Event & StatBody): void {
    const origin = originOf(state, event.path);
    if (origin === undefined || find(state, event.path) instanceof Node) return;
    const { exists: type, uid, gid, size, rdev } = event, owner = { mode: event.mode & PERMISSION_BITS, uid, gid };
    const seen: HostState = type === 'file' ? { type, size, ...owner } : type === 'directory' ? { type, ...owner }
      : type === 'symlink' ? { type, target: '', ...owner } : { type, rdev, ...owner };
    this.put(event, origin, 'metadata', { state: seen, aspects: type === 'file' ? 'all' : 'metadata' });
  }

  private put(event: Event, origin: TreePath, aspect: Aspect, expected: Reliance['expected']): void {
    const looks = this.looksAt(event.actor, origin), { seq, time } = event, content = looks.get('content')?.expected;
    // It is there now.
    if (content !== undefined && 'state' in content && content.state.type === 'absent') looks.delete('content');
    looks.set(aspect, { expected, seq, time });
  }

  private looksAt(actor: string, path: TreePath): Looks {
    let paths = this.actors.get(actor);
    if (paths === undefined) this.actors.set(actor, paths = new Map());
    let looks = paths.get(path);
    if (looks === undefined) paths.set(path, looks = new Map());
    return looks;
  }

  /** The overlay has changed the lower itself: what was seen where it did so is no more to be expected. */
  private publish({ paths, moves }: Touched): void {
    const parents = new Set([...paths].map((path) => parentOf(path))), byOrigin = new Map(moves);
    for (const [actor, seen] of this.actors) {
      const left = new Map<TreePath, Looks>();
      for (const [path, looks] of seen) {
        const to = placeOf(path, byOrigin);
        if (to === path && isTouched(path, paths)) continue;
        if (parents.has(path)) looks.delete('names');
        left.set(to, looks);
      }
      this.actors.set(actor, left);
    }
  }
}

type Aspect = 'content' | 'metadata' | 'names';
type Looks = Map<Aspect, { readonly expected: Reliance['expected']; readonly seq: number; readonly time: string }>;

/** What a commit did to the lower. */
interface Touched {
  readonly paths: ReadonlySet<TreePath>;
  /** Directories and files that moved: from where, to where. */
  readonly moves: readonly (readonly [TreePath, TreePath])[];
}

const NOBODY = { mode: 0, uid: 0, gid: 0 };

/** The lower path whose own content shows at `path`. */
function originOf(state: State, path: TreePath): TreePath | undefined {
  const found = find(state, path);
  if (found === undefined || found === WHITEOUT) return undefined;
  if (!(found instanceof Node)) return found.lower;
  return found.content.kind === 'lower' && !found.opaque ? found.origin : undefined;
}

function touchedBy(state: State, { paths: given }: CommitBody): Touched {
  const chosen = given && new Set(given), paths = new Set<TreePath>(), moves: (readonly [TreePath, TreePath])[] = [];
  const visit = (directory: Node, above: TreePath): void => {
    directory.names?.forEach((entry, name) => {
      const path = childOf(above, name), node = nodeOf(state, entry), natural = directory.below(name);
      const isChosen = chosen === undefined || chosen.has(path);
      if (isChosen && (node === WHITEOUT || node.origin !== natural || node.type !== 'directory')) {
        paths.add(path);
        if (natural !== undefined) paths.add(natural);
        if (node !== WHITEOUT && node.origin !== undefined && node.origin !== natural) {
          paths.add(node.origin);
          moves.push([node.origin, path]);
        }
      }
      if (node !== WHITEOUT && node.type === 'directory') visit(node, path);
    });
  };
  visit(state.root, ROOT);
  return { paths, moves };
}

function isTouched(path: TreePath, paths: ReadonlySet<TreePath>): boolean {
  for (let above = path; ; above = parentOf(above)) {
    if (paths.has(above)) return true;
    if (above === ROOT) return false;
  }
}

/** Below what moved; what moved itself was changed. */
function placeOf(path: TreePath, moves: ReadonlyMap<TreePath, TreePath>): TreePath {
  for (let above = path; above !== ROOT;) {
    above = parentOf(above);
    const to = moves.get(above);
    if (to !== undefined && isWithin(path, above)) return rebase(path, above, to);
  }
  return path;
}

function isSettled({ mtime, ctime }: Fingerprint, time: string): boolean {
  const settled = BigInt(Date.parse(time)) * 1_000_000n - RACY_NS;
  return mtime < settled && ctime < settled;
}

function fingerprintOf({ dev, ino, size, mtime, ctime }: FingerprintRecord): Fingerprint {
  return { dev: BigInt(dev), ino: BigInt(ino), size, mtime: BigInt(mtime), ctime: BigInt(ctime) };
}

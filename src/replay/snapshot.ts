import { typeOf, type Attr, type NodeType } from '../core/attr.ts';
import { ROOT, compareNames, isWithin, type TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { initialState, nodeOf, type State } from '../core/state.ts';
import { linkKey, WHITEOUT } from '../core/tree.ts';
import type { Version } from '../core/version.ts';
import type { Lower, LowerFile, Xattrs } from '../lower/lower.ts';
import { NO_XATTRS } from '../lower/xattrs.ts';
import { originOf } from '../overlay/attributes.ts';
import { changedBelow } from '../overlay/refusals.ts';
import { spotType, type Spot } from '../overlay/spot.ts';
import { Walker } from '../overlay/walker.ts';
import type { World } from '../overlay/world.ts';
import { xattrsOf } from '../overlay/xattrs.ts';

/** Bytes of a file that are read at a time. */
const STEP_BYTES = 1 << 20;

/** The tree as a state has it, over the lower as it is now. To look at it is no observation: nothing is recorded. Rules hide here, too. */
export class Snapshot {
  readonly state: State;
  private readonly world: World;
  private readonly walker: Walker;

  constructor(world: World, state: State = world.state) {
    this.world = world;
    this.state = state;
    const { lower, credentials, gate, walker: { mountPoint } } = world;
    this.walker = new Walker({ state, lower, credentials, gate, mounts: [mountPoint] });
  }

  /** The lower alone, as if nothing had happened. */
  static beneath(world: World): Snapshot {
    return new Snapshot(world, initialState());
  }

  get lower(): Lower {
    return this.world.lower;
  }

  root(): Spot {
    return this.walker.root();
  }

  /** What is at `path`, no symlink followed on the way; `undefined` where nothing is. */
  at(path: TreePath): Spot | undefined {
    let spot: Spot | undefined = this.root();
    if (path === ROOT) return spot;
    for (const name of path.split('/')) {
      if (spot === undefined || spotType(spot) !== 'directory') return undefined;
      spot = this.child(spot, name);
    }
    return spot;
  }

  /** The entry `name` of a directory; `undefined` where there is none, or a rule hides it. */
  child(directory: Spot, name: string): Spot | undefined {
    const found = this.walker.child(directory, name);
    return 'parent' in found ? undefined : found;
  }

  /** The lower directory that shows through a directory; `undefined` where none does. */
  below(directory: Spot): TreePath | undefined {
    const { node } = directory;
    if (node === undefined) return directory.origin;
    return node.opaque ? undefined : node.origin;
  }

  /** Names in a directory, sorted by their bytes; some of them may be hidden by a rule. */
  names(directory: Spot): readonly string[] {
    const { node } = directory, below = this.below(directory), found = new Set<string>();
    for (const { name } of below === undefined ? [] : this.listed(below)) found.add(name);
    node?.names?.forEach((entry, name) => {
      if (nodeOf(this.state, entry) === WHITEOUT) found.delete(name);
      else found.add(name);
    });
    return [...found].sort(compareNames);
  }

  attr(spot: Spot): Attr {
    return this.world.attributes.of(spot);
  }

  target(spot: Spot): string {
    return spot.node?.target ?? this.lower.readlink(originOf(spot) as TreePath);
  }

  /** `sha256:…` of a file's content; hashed where it is not known. Throws as `chunks`. */
  version(spot: Spot): Version | undefined {
    const { node } = spot;
    return node === undefined ? this.world.versionOfLower(spot.origin as TreePath) : this.world.contents.versionOf(node);
  }

  /** Whether the session was told not to keep what a file holds: then nobody else is to be told either. */
  isSecret(spot: Spot): boolean {
    const { contents } = this.world, origin = originOf(spot);
    return contents.isSecretOrigin(spot.path) || (spot.node === undefined ? origin !== undefined && contents.isSecretOrigin(origin) : contents.isSecret(spot.node));
  }

  /** A key that a file keeps under every name and content it gets: by it a rename is known. */
  identity(spot: Spot): string {
    const origin = spot.borrowed === true ? spot.origin : originOf(spot);
    return origin === undefined ? linkKey(undefined, this.attr(spot).ino) : `lower ${origin}`;
  }

  /**
   * A file's content, `size` bytes of it (as `attr` said), a piece at a time. Throws EACCES, and EIO where bytes are gone, or are not those any
   * more that the overlay is about.
   */
  *chunks(spot: Spot, size: number): Generator<Uint8Array> {
    const { node } = spot, isLower = node === undefined || node.content.kind === 'lower';
    const file = isLower ? this.open(originOf(spot) as TreePath) : undefined;
    try {
      for (let at = 0; at < size;) {
        const piece = Buffer.allocUnsafe(Math.min(STEP_BYTES, size - at));
        const count = file?.read(piece, 0, piece.length, at) ?? (node === undefined ? 0 : this.world.contents.read(node, undefined, piece, 0, piece.length, at));
        if (count === 0) throw changedBelow(originOf(spot));
        yield piece.subarray(0, count);
        at += count;
      }
    } finally {
      file?.close();
    }
  }

  /** Extended attributes, as far as this machine can tell. */
  xattrs(spot: Spot): Xattrs {
    try {
      return xattrsOf(this.world, spot);
    } catch (error) {
      if (error instanceof Refusal && error.code === 'ENOTSUP') return NO_XATTRS;
      throw error;
    }
  }

  type(spot: Spot): NodeType {
    return spot.node !== undefined || spot.attr === undefined ? spotType(spot) : typeOf(spot.attr.mode);
  }

  /** Whether both trees have the same lower beneath, so that what shows through is the same there and here. */
  sharesLower(other: Snapshot): boolean {
    return this.lower === other.lower || (this.lower.root !== '' && this.lower.root === other.lower.root);
  }

  private open(origin: TreePath): LowerFile {
    const file = this.lower.open(origin);
    if (typeof file === 'string' || !('kind' in file)) throw changedBelow(origin);
    return file;
  }

  private listed(below: TreePath): ReturnType<Lower['list']> {
    try {
      return this.lower.list(below);
    } catch (error) {
      if (error instanceof Refusal && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return [];
      throw error;
    }
  }
}

/** Whether `path` is one of `chosen` or lies below one; all are where nothing is chosen. */
export function isChosen(path: TreePath, chosen: readonly TreePath[] | undefined): boolean {
  return chosen === undefined || chosen.some((each) => isWithin(path, each));
}

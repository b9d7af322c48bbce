import { S_IFMT, type Attr } from '../core/attr.ts';
import {
  byteLength, childOf, NAME_MAX_BYTES, PATH_MAX_BYTES, ROOT, SYMLINK_LIMIT, type PathName, type TreePath,
} from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { nodeOf, type State } from '../core/state.ts';
import { linkKey, WHITEOUT, type Entry, type Node } from '../core/tree.ts';
import type { Lower } from '../lower/lower.ts';
import type { Gate } from './gate.ts';
import type { Credentials } from './permission.ts';
import { spotType, type Look, type Missing, type ParentLook, type Spot } from './spot.ts';

const S_IFLNK = 0o120000;
/** Any component that is empty, `.` or `..`: such a path is walked, not looked up at once. */
const UNCLEAN = /(?:^|\/)\.{0,2}(?:\/|$)/;

/** How a path is looked up. */
export interface LookOptions {
  readonly follow: boolean;
  readonly creates?: boolean;
}

/**
 * Leads from a path as asked to what is there, as namei does in a kernel: in the overlay first, in the lower where the
 * overlay says nothing, symlinks resolved in the overlay's own name space and never past its root. Has no effect.
 */
export class Walker {
  private readonly state: State;
  private readonly lower: Lower;
  private readonly credentials: Credentials;
  /** Absolute paths under which the tree is seen, the mount point first. */
  readonly mounts: readonly string[];
  private readonly gate: Gate | undefined;

  constructor(parts: { state: State; lower: Lower; credentials: Credentials; mounts: readonly string[]; gate: Gate | undefined }) {
    this.state = parts.state;
    this.lower = parts.lower;
    this.credentials = parts.credentials;
    this.mounts = parts.mounts;
    this.gate = parts.gate;
  }

  get mountPoint(): string {
    return this.mounts[0] as string;
  }

  /** The root directory. */
  root(): Spot {
    return { path: ROOT, node: this.state.root, origin: ROOT, attr: undefined };
  }

  /**
   * Looks a path up. `follow`: a final symlink is followed. `creates`: for an open that may create, which says EISDIR where
   * a symlink's target ends in a slash. Throws ENOTDIR, ELOOP, EACCES and ENAMETOOLONG; that
   * nothing is there is a value.
   */
  look(asked: PathName, options: LookOptions): Look {
    if (asked === '') throw new Refusal('ENOENT');
    if (asked.length * 3 >= PATH_MAX_BYTES && this.bounds(asked)) throw new Refusal('ENAMETOOLONG');
    const rest = this.treePart(asked);
    if (rest === undefined) return this.walkFromOutside(asked, options);
    if (rest !== '' && !UNCLEAN.test(rest)) {
      const quick = this.lookClean(rest as TreePath, options);
      if (quick !== undefined) return quick;
    }
    return this.walk(rest, options);
  }

  /**
   * What the overlay alone can say of a path without `.`, `..` and empty components, for a caller in a hurry: the node
   * that is there, or where the lower would have it (whoever opens that directly saves a look). On `undefined`, and on
   * anything but a plain success, it has to `look`.
   */
  glance(asked: PathName): { path: TreePath; node: Node | undefined; origin: TreePath | undefined } | undefined {
    const rest = this.treePart(asked) as TreePath | undefined;
    if (rest === undefined || rest === '' || UNCLEAN.test(rest)) return undefined;
    if (this.gate?.hidesName(rest, undefined) !== undefined) return undefined;
    let node = this.state.root;
    for (let start = 0; start < rest.length;) {
      const slash = rest.indexOf('/', start), end = slash < 0 ? rest.length : slash;
      const name = rest.slice(start, end), entry = node.names?.get(name);
      if (entry === undefined) {
        if (node === this.state.root) return { path: rest, node: undefined, origin: rest };
        const origin = node.names && node.below(name);
        if (origin === undefined) return undefined;
        const whole = (end === rest.length ? origin : origin + rest.slice(end)) as TreePath;
        return this.gate?.hidesName(whole, undefined) !== undefined ? undefined : { path: rest, node: undefined, origin: whole };
      }
      const next = nodeOf(this.state, entry);
      if (next === WHITEOUT || this.gate?.hidesNode(next) !== undefined) return undefined;
      node = next;
      start = end + 1;
    }
    return { path: rest, node, origin: undefined };
  }

  /**
   * Looks up the directory that holds the last name of a path, for a call that makes or takes away that name. The name
   * itself is not looked at. Throws as `look` does; ENOTDIR where the directory is none.
   */
  lookParent(asked: PathName): ParentLook {
    if (asked === '') throw new Refusal('ENOENT');
    const trimmed = asked.replace(/\/+$/, ''), slash = trimmed.length < asked.length;
    if (this.treePart(trimmed as PathName) === '') return { kind: 'special', last: '/', slash };
    const cut = trimmed.lastIndexOf('/'), name = trimmed.slice(cut + 1);
    const above = cut < 0 ? '.' : cut === 0 ? '/' : trimmed.slice(0, cut);
    const look = this.look(above as PathName, { follow: true });
    const { through } = look;
    if (look.kind === 'outside') return { ...look, named: normalize(`${look.outside}/${name}`) };
    if (look.kind === 'missing') {
      const { missing } = look, isName = name !== '.' && name !== '..';
      return { ...look, missing: isName ? { ...missing, path: childOf(missing.path, name) } : missing };
    }
    this.credentials.demandSearch(look.spot);
    if (name === '.' || name === '..') return { kind: 'special', last: name, slash, ...(through && { through }) };
    const via = look.via === undefined ? undefined : look.via === '' ? name : `${look.via}/${name}`;
    return { kind: 'parent', parent: look.spot, name, slash, via, ...(through && { through }) };
  }

  /** The entry `name` of a directory, symlinks not followed; what a rule hides is missing. Throws ENAMETOOLONG. */
  child(directory: Spot, name: string): Spot | Missing {
    if (name.length * 3 > NAME_MAX_BYTES && byteLength(name) > NAME_MAX_BYTES) throw new Refusal('ENAMETOOLONG');
    const path = childOf(directory.path, name);
    const entry = directory.node?.names?.get(name);
    const origin = directory.node !== undefined ? directory.node.below(name)
      : directory.origin === undefined ? undefined : childOf(directory.origin, name);
    let hidden = this.gate?.hidesName(path, origin);
    if (hidden === undefined && entry !== undefined) {
      const node = nodeOf(this.state, entry);
      if (node === WHITEOUT) return { path, parent: directory, origin, directoryOnly: false };
      hidden = this.gate?.hidesNode(node);
      if (hidden === undefined) return { path, node, origin: node.origin, attr: undefined };
    }
    const attr = origin === undefined || hidden !== undefined ? 'absent' : this.lower.lstat(origin);
    if (typeof attr !== 'string') {
      hidden = this.gate?.hidesFile(attr);
      if (hidden === undefined) return this.lowerSpot(path, origin as TreePath, attr);
    }
    return { path, parent: directory, origin, directoryOnly: false, ...(hidden === undefined ? undefined : { hidden }) };
  }

  /** What the lower has at `origin`: unless it is another name of a node that the overlay has already. */
  lowerSpot(path: TreePath, origin: TreePath, attr: Attr): Spot {
    if (attr.nlink > 1 && this.state.links.size > 0) {
      const node = this.state.links.get(linkKey(attr.dev, attr.ino));
      if (node !== undefined) return { path, node, origin, attr, borrowed: true };
    }
    return { path, node: undefined, origin, attr };
  }

  /** The absolute path under which a path of the tree is seen. */
  seenAs(path: TreePath): string {
    return path === '' ? this.mountPoint : this.mountPoint === '/' ? '/' + path : this.mountPoint + '/' + path;
  }

  /** Whether a path is too long for one call. A kernel that serves callers of its own walks by names: its paths have no bound. */
  private bounds(asked: PathName): boolean {
    return this.credentials.caller === undefined && byteLength(asked) >= PATH_MAX_BYTES;
  }

  /** The part below a mount point; `undefined` for a path that does not begin with one. */
  private treePart(asked: PathName): string | undefined {
    const path = asked.charCodeAt(0) === 47 ? asked : process.cwd() + '/' + asked;
    for (const mount of this.mounts) {
      if (mount === '/') return path.slice(1);
      if (path.startsWith(mount)) {
        if (path.length === mount.length) return '';
        if (path.charCodeAt(mount.length) === 47) return path.slice(mount.length + 1);
      }
    }
    return undefined;
  }

  private lookClean(rest: TreePath, options: LookOptions): Look | undefined {
    let node: Node = this.state.root, start = 0;
    if (!this.credentials.isRoot || this.gate?.hidesName(rest, undefined) !== undefined) return undefined;
    for (;;) {
      const slash = rest.indexOf('/', start), end = slash < 0 ? rest.length : slash, last = end === rest.length;
      const name = rest.slice(start, end);
      if (name.length * 3 > NAME_MAX_BYTES && byteLength(name) > NAME_MAX_BYTES) throw new Refusal('ENAMETOOLONG');
      const entry: Entry | undefined = node.names?.get(name);
      if (entry === undefined) {
        if (start === 0) return this.lookLower(node, rest, 0, rest, options);
        const origin = node.below(name);
        if (origin === undefined) return last ? this.missingIn(node, rest, start, undefined) : undefined;
        return this.lookLower(node, rest, start, (origin + rest.slice(end)) as TreePath, options);
      }
      const next = nodeOf(this.state, entry);
      if (next === WHITEOUT) return last ? this.missingIn(node, rest, start, node.below(name)) : undefined;
      if (this.gate?.hidesNode(next) !== undefined) return undefined;
      if (last) {
        if (options.follow && next.type === 'symlink') return undefined;
        return { kind: 'spot', spot: { path: rest, node: next, origin: next.origin, attr: undefined }, via: undefined };
      }
      if (next.type !== 'directory') return undefined;
      node = next;
      start = end + 1;
    }
  }

  private lookLower(node: Node, rest: TreePath, start: number, origin: TreePath, { follow, creates }: LookOptions): Look | undefined {
    if (rest.length - start > NAME_MAX_BYTES / 3) {
      for (const name of rest.slice(start).split('/')) if (byteLength(name) > NAME_MAX_BYTES) return undefined;
    }
    if (this.gate !== undefined && origin !== rest && this.gate.hidesName(origin, undefined) !== undefined) return undefined;
    const attr = creates === true ? this.lower.vacancy(origin) : this.lower.lstat(origin);
    if (attr === 'unwalkable') return undefined;
    if (attr !== 'absent' && !('kind' in attr)) {
      if (this.gate?.hidesFile(attr) !== undefined) return undefined;
      if (follow && (attr.mode & S_IFMT) === S_IFLNK) return undefined;
      return { kind: 'spot', spot: this.lowerSpot(rest, origin, attr), via: undefined };
    }
    const below = attr === 'absent' ? undefined : attr.directory;
    if (rest.indexOf('/', start) < 0) return this.missingIn(node, rest, start, undefined, below);
    const slash = rest.lastIndexOf('/'), parentOrigin = origin.slice(0, origin.lastIndexOf('/')) as TreePath;
    // That the name is absent means that the directory is there: what it is like is asked when somebody wants to know.
    return { kind: 'missing', via: undefined, missing: {
      path: rest, origin: undefined, directoryOnly: false,
      parent: { path: rest.slice(0, slash) as TreePath, node: undefined, origin: parentOrigin, attr: below },
    } };
  }

  private missingIn(node: Node, rest: TreePath, start: number, origin: TreePath | undefined, parentBelow?: Attr): Look {
    const path = rest.slice(0, Math.max(0, start - 1)) as TreePath;
    const parent: Spot = { path, node, origin: node.origin, attr: undefined };
    return { kind: 'missing', missing: { path: rest, parent, parentBelow, origin, directoryOnly: false }, via: undefined };
  }

  /** A path that does not begin with a mount point may still lead there by `..`: names outside are taken literally. */
  private walkFromOutside(asked: PathName, options: LookOptions): Look {
    const absolute = normalize(asked.charCodeAt(0) === 47 ? asked : process.cwd() + '/' + asked);
    const rest = this.treePart(absolute as PathName);
    if (rest === undefined) return { kind: 'outside', outside: absolute, via: undefined };
    return this.walk(rest, options);
  }

  private walk(rest: string, options: LookOptions): Look {
    const stack: Spot[] = [this.root()];
    const pending = rest.split('/').reverse();
    const asked = rest;
    let links = 0, passed: { through: Spot[] } | undefined;
    while (pending.length > 0) {
      const name = pending.pop() as string;
      const here = stack.at(-1) as Spot;
      if (name === '') continue;
      // Even `.` is looked up in the directory before it.
      this.credentials.demandSearch(here);
      if (name === '.') continue;
      if (name === '..') {
        if (stack.length > 1) stack.pop();
        else {
          const left = this.leave('..', pending, options, asked);
          return passed === undefined ? left : { ...left, through: [...passed.through, ...(left.through ?? [])] };
        }
        continue;
      }
      const found = this.child(here, name);
      const last = pending.every((part) => part === '' || part === '.');
      const directoryOnly = last && pending.length > 0;
      if ('parent' in found) {
        const missing = last ? { ...found, directoryOnly } : { ...found, path: below(found.path, pending), parent: undefined };
        return { ...this.missing(missing, asked), ...passed };
      }
      const type = spotType(found);
      if (type === 'symlink' && (!last || options.follow || directoryOnly)) {
        if (++links > SYMLINK_LIMIT) throw new Refusal('ELOOP');
        if (this.gate !== undefined) (passed ??= { through: [] }).through.push(found);
        const target = this.targetOf(found);
        if (target === undefined) {
          // An outsider put something else in the link's place since it was looked at: look again.
          pending.push(name);
          continue;
        }
        if (target === '') throw new Refusal('ENOENT');
        if (target.startsWith('/')) {
          const inside = this.treePart(target as PathName) ?? this.treePart(normalize(target) as PathName);
          if (inside === undefined) return { kind: 'outside', outside: joined(target, pending), via: undefined, ...passed };
          stack.length = 1;
          pending.push(...inside.split('/').reverse());
        } else pending.push(...target.split('/').reverse());
        continue;
      }
      if (type !== 'directory' && (!last || directoryOnly)) throw new Refusal(last && options.creates === true ? 'EISDIR' : 'ENOTDIR');
      stack.push(found);
    }
    const spot = stack.at(-1) as Spot;
    return { kind: 'spot', spot, via: viaOf(asked, spot.path), ...passed };
  }

  private missing(missing: Missing, asked: string): Look {
    return { kind: 'missing', missing, via: viaOf(asked, missing.path) };
  }

  /** `..` of the root: out of the tree, unless the names that follow lead back in. */
  private leave(first: string, pending: string[], options: LookOptions, asked: string): Look {
    const absolute = normalize([this.mountPoint, first, ...pending.toReversed()].join('/'));
    const rest = this.treePart(absolute as PathName);
    if (rest === undefined) return { kind: 'outside', outside: absolute, via: undefined };
    const look = this.walk(rest, options);
    return look.kind === 'spot' ? { ...look, via: viaOf(asked, look.spot.path) } : look;
  }

  /** `undefined`: what was a symlink in the lower is none any more. */
  private targetOf(spot: Spot): string | undefined {
    if (spot.node?.target !== undefined) return spot.node.target;
    try {
      return this.lower.readlink((spot.node?.origin ?? spot.origin) as TreePath);
    } catch (error) {
      if (error instanceof Refusal && (error.code === 'EINVAL' || error.code === 'ENOENT')) return undefined;
      throw error;
    }
  }
}

/** The path that the components still to be walked would have led to, were `path` a directory. */
function below(path: TreePath, pending: readonly string[]): TreePath {
  return normalize([path, ...pending.toReversed()].join('/')).slice(1) as TreePath;
}

function joined(target: string, pending: readonly string[]): string {
  return normalize([target, ...pending.toReversed()].join('/'));
}

/** Absolute, without `.`, `..` and empty components. */
function normalize(path: string): string {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return '/' + parts.join('/');
}

function viaOf(asked: string, path: TreePath): string | undefined {
  const name = normalize('/' + asked).slice(1);
  return name === path ? undefined : name;
}

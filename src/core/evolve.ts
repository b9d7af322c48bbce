import { S_IFMT } from './attr.ts';
import type { Content } from './content.ts';
import type {
  ChmodBody, ChownBody, DeleteBody, Event, ExtentRecord, Inode, LinkBody, LowerBase, MutationBody, RemovexattrBody, RenameBody,
  SetxattrBody, TruncateBody, UtimesBody, WriteBody,
} from './event.ts';
import { cover, coversOf } from './cover.ts';
import { published, relocate } from './published.ts';
import { emptyExtents, overwrite, truncateTo, type ExtentMap, type ExtentSource } from './extents.ts';
import { noteIncident } from './incident.ts';
import { Names } from './names.ts';
import { observe } from './observation.ts';
import { nameOf, parentOf, ROOT, type TreePath } from './path.ts';
import { nodeOf, type State } from './state.ts';
import { countTotal } from './statistics.ts';
import { linkKey, newborn, Node, passThrough, Shared, takenOver, WHITEOUT, type Entry } from './tree.ts';
import { unreachable } from './unreachable.ts';

/**
 * The one reducer: what `event` makes of `state`, changed in place as far as `state.owner` owns it. Never refuses;
 * an event that does not fit the state is a damaged or invented log, and throws Error saying which.
 *
 * `held` is the content of a write whose bytes are still in memory: live, an event names a blob only once published.
 * Gives the node that a write went to.
 */
export function evolve(state: State, event: Event, held?: Content): Node | undefined {
  state.seq = event.seq;
  // Before the event: it changes what its actor has seen, and what is in the tree.
  const covers = coversOf(state, event);
  observe(state.observations, event);
  countTotal(state.totals, event);
  cover(state, covers);
  if (event.op === 'flag' || event.op === 'refuse') noteIncident(state.incidents, event);
  switch (event.op) {
    case 'read': case 'list': case 'stat': case 'readlink': case 'miss':
    case 'run': case 'exit': case 'refuse': case 'flag': case 'fork': case 'merge':
    case 'seal': case 'undo':
      return undefined;
    case 'mark':
      state.marks.set(event.label, event.seq);
      return undefined;
    case 'rules':
      state.rules = event.rules;
      return undefined;
    case 'commit':
      published(state, event);
      return undefined;
    case 'revert':
      relocate(state, event.moves ?? []);
      return undefined;
    case 'discard':
      discard(state, event.paths);
      return undefined;
    default:
      if (event.unlinked !== true) return mutate(state, event, held);
      // A file born without a name has its number all the same.
      if (event.op === 'write' && event.created !== undefined) born(state, event.ino);
      return undefined;
  }
}

type TreeMutation = Exclude<MutationBody, { op: 'discard' } | { op: 'undo' }>;

function mutate(state: State, event: TreeMutation & { seq: number }, held: Content | undefined): Node | undefined {
  const time = BigInt(event.mtime);
  switch (event.op) {
    case 'write': {
      const node = event.created === undefined
        ? target(state, event)
        : existing(state, event) ?? create(state, event, event.created);
      applyWrite(node, event, held);
      return node;
    }
    case 'truncate': applyTruncate(target(state, event), event);
      return undefined;
    case 'mkdir':
      place(state, event.path, newborn(state.owner, 'directory', { ...event, ino: born(state, event.ino), time }), time);
      return undefined;
    case 'mknod': {
      const node = newborn(state.owner, event.type, { ...event, ino: born(state, event.ino), time });
      node.rdev = event.rdev;
      if (event.type === 'file') node.content = { kind: 'extents', map: emptyExtents(0) };
      place(state, event.path, node, time);
      return undefined;
    }
    case 'symlink': {
      const node = newborn(state.owner, 'symlink', { ...event, ino: born(state, event.ino), mode: 0o777, time });
      node.target = event.target;
      place(state, event.path, node, time);
      return undefined;
    }
    case 'link': link(state, event, time);
      return undefined;
    case 'rename': rename(state, event, time);
      return undefined;
    case 'delete': remove(state, event, time);
      return undefined;
    case 'chmod': case 'chown': case 'utimes': case 'setxattr': case 'removexattr':
      applyAttributes(target(state, event), event);
      return undefined;
    default:
      return unreachable(event);
  }
}

/** What a write does to its node; again, with the grown event, when an unpublished write grows. */
export function applyWrite(node: Node, event: WriteBody & { readonly seq: number }, held: Content | undefined): void {
  node.content = held ?? written(node, event);
  node.version = event.version;
  node.contentSeq = event.seq;
  node.mode = event.mode;
  node.mtime = node.ctime = BigInt(event.mtime);
  node.timesSet = false;
}

/** What a change of size does to its node, whose content must be stored. */
export function applyTruncate(node: Node, event: TruncateBody & { readonly seq: number }): void {
  node.content = { kind: 'extents', map: truncateTo(extentsOf(node), event.size) };
  node.version = event.version;
  node.contentSeq = event.seq;
  node.mtime = node.ctime = BigInt(event.mtime);
}

export type AttributeBody = ChmodBody | ChownBody | UtimesBody | SetxattrBody | RemovexattrBody;

/** What a change of mode, owner, times or extended attributes does to its node. */
export function applyAttributes(node: Node, event: AttributeBody): void {
  const time = BigInt(event.mtime);
  if (event.op === 'setxattr' || event.op === 'removexattr') {
    node.xattrs = new Map(node.xattrs).set(event.name, event.op === 'setxattr' ? event.value : undefined);
    node.ctime = time;
    return;
  }
  if (event.op === 'utimes') {
    node.atime = BigInt(event.atime);
    node.mtime = time;
    node.ctime = BigInt(event.ctime);
    node.timesSet = true;
    return;
  }
  node.mode = event.mode;
  node.ctime = time;
  if (event.op === 'chmod') return;
  node.uid = event.uid;
  node.gid = event.gid;
}

function written(node: Node, event: WriteBody): Content {
  // Without blob and extents the content was redacted: its digest is all that is known.
  const digest = event.blob ?? (event.extents === undefined ? event.version : undefined);
  if (digest !== undefined) return { kind: 'blob', digest, size: event.size };
  let map = event.created === undefined ? extentsOf(node) : emptyExtents(0);
  for (const extent of event.extents ?? []) map = overwrite(map, extent.at, extent.length, sourceOf(extent));
  return { kind: 'extents', map: truncateTo(map, event.size) };
}

function sourceOf(extent: ExtentRecord): ExtentSource {
  if (extent.blob !== undefined) return { kind: 'blob', digest: extent.blob, from: extent.from ?? 0 };
  if (extent.lower !== undefined) return { kind: 'lower', from: extent.lower };
  return { kind: 'zeros' };
}

/** A node's content as a map of extents; the lower's size is the base's, since that is what was taken over. */
export function extentsOf(node: Node): ExtentMap {
  const { content } = node;
  switch (content.kind) {
    case 'extents': return content.map;
    case 'blob': return whole(content.size, { kind: 'blob', digest: content.digest, from: 0 });
    case 'draft': return whole(content.size, { kind: 'bytes', bytes: content.bytes, from: 0 });
    case 'lower': return lowerExtents(node.base?.size ?? 0);
    default: return unreachable(content);
  }
}

/** A lower file of `size` bytes as extents. */
export function lowerExtents(size: number): ExtentMap {
  return whole(size, { kind: 'lower', from: 0 });
}

function whole(size: number, source: ExtentSource): ExtentMap {
  return size === 0 ? emptyExtents(0) : overwrite(emptyExtents(0), 0, size, source);
}

function born(state: State, ino: Inode): bigint {
  if (Number(ino) >= state.nextIno) state.nextIno = Number(ino) + 1;
  return BigInt(ino);
}

/** The directory at `path`, owned, made a pass-through where the tree does not know it yet. */
function directory(state: State, path: TreePath): Node {
  let node = state.root = own(state, state.root);
  for (let start = 0; start < path.length;) {
    const slash = path.indexOf('/', start), end = slash < 0 ? path.length : slash;
    const name = path.slice(start, end), entry = namesOf(state, node, path).get(name);
    if (entry === WHITEOUT || entry instanceof Shared) throw new Error(`"${path}" leads through no directory`);
    let next = entry ?? passThrough(state.owner, node.below(name));
    if (next.owner !== state.owner) next = own(state, next);
    if (next !== entry) namesOf(state, node, path).set(name, next);
    node = next;
    start = end + 1;
  }
  namesOf(state, node, path);
  return node;
}

function namesOf(state: State, node: Node, path: TreePath): Names<Entry> {
  if (node.names === undefined) throw new Error(`"${path}" leads through no directory`);
  return node.names = node.names.ownedBy(state.owner);
}

function own(state: State, node: Node): Node {
  return node.owner === state.owner ? node : node.copyFor(state.owner);
}

function ownEntry(state: State, holder: Names<Entry>, name: string, entry: Node | Shared): Node {
  if (entry instanceof Shared) {
    const node = nodeOf(state, entry) as Node;
    if (node.owner === state.owner) return node;
    const copy = own(state, node);
    state.links = state.links.ownedBy(state.owner);
    state.links.set(entry.key, copy);
    return copy;
  }
  if (entry.owner === state.owner) return entry;
  const copy = own(state, entry);
  holder.set(name, copy);
  return copy;
}

/** The node an event changes, taken over from the lower first where the event says so. */
function target(state: State, event: { path: TreePath; lower?: LowerBase; dev?: Inode; ino?: Inode }): Node {
  const node = existing(state, event) ?? (event.lower && takeOver(state, event.path, event.lower));
  if (node === undefined) throw new Error(`the tree has no "${event.path}"`);
  return node;
}

/** The node that the tree already has for an event; a pass-through directory is none where the event takes it over. */
function existing(state: State, event: { path: TreePath; lower?: LowerBase; dev?: Inode; ino?: Inode }): Node | undefined {
  if (event.ino !== undefined) {
    const key = linkKey(event.dev === undefined ? undefined : BigInt(event.dev), BigInt(event.ino));
    if (state.links.size > 0 && state.links.get(key) !== undefined) {
      if (event.lower !== undefined) adopt(state, event.path, key);
      return ownEntry(state, new Names(state.owner), '', new Shared(key));
    }
  }
  if (event.path === ROOT) {
    return event.lower === undefined || state.root.ino !== undefined ? state.root = own(state, state.root) : undefined;
  }
  if (event.lower !== undefined) return undefined;
  const holder = namesOf(state, directory(state, parentOf(event.path)), event.path);
  const entry = holder.get(nameOf(event.path));
  return entry === undefined || entry === WHITEOUT ? undefined : ownEntry(state, holder, nameOf(event.path), entry);
}

/**
 * A file that the overlay has by another of its names is changed by one that only the lower had so far: from here on the tree has that
 * name, too, so that it is known to differ. A name that is gone, or covered by something else, is none of the file's.
 */
function adopt(state: State, path: TreePath, key: string): void {
  let node = state.root;
  for (let start = 0; ;) {
    const slash = path.indexOf('/', start), end = slash < 0 ? path.length : slash, name = path.slice(start, end);
    if (node.names === undefined) return;
    const entry = node.names.get(name);
    if (entry === undefined) {
      if (node.below(name) === undefined) return;
      break;
    }
    if (slash < 0 || !(entry instanceof Node)) return;
    node = entry;
    start = end + 1;
  }
  namesOf(state, directory(state, parentOf(path)), path).set(nameOf(path), new Shared(key));
}

/** Makes the lower file at `path`, or the pass-through directory there, a node of its own; remembers its base. */
function takeOver(state: State, path: TreePath, base: LowerBase): Node {
  if (path === ROOT) {
    return state.root = inherit(takenOver(state.owner, ROOT, base), state.root);
  }
  const parent = directory(state, parentOf(path)), name = nameOf(path), origin = parent.below(name);
  const holder = namesOf(state, parent, path), entry = holder.get(name);
  if (base.type !== 'directory' && base.nlink > 1) {
    const key = linkKey(BigInt(base.dev), BigInt(base.ino));
    state.links = state.links.ownedBy(state.owner);
    if (state.links.get(key) === undefined) state.links.set(key, takenOver(state.owner, origin, base));
    holder.set(name, new Shared(key));
    return ownEntry(state, holder, name, new Shared(key));
  }
  const node = takenOver(state.owner, entry instanceof Node ? entry.origin : origin, base);
  holder.set(name, entry instanceof Node ? inherit(node, entry) : node);
  return node;
}

/** What a pass-through directory has gathered so far goes on in the node that takes its place. */
function inherit(node: Node, passed: Node): Node {
  node.names = passed.names;
  node.subdirectories = passed.subdirectories;
  node.mtime = passed.mtime;
  node.ctime = passed.ctime;
  return node;
}

function touch(directory: Node, time: bigint): void {
  directory.mtime = directory.ctime = time;
  directory.timesSet = false;
}

function create(state: State, event: WriteBody, { uid, gid, at }: NonNullable<WriteBody['created']>): Node {
  const time = BigInt(at ?? event.mtime);
  return place(state, event.path, newborn(state.owner, 'file', { ino: born(state, event.ino), mode: event.mode, uid, gid, time }), time);
}

function place(state: State, path: TreePath, node: Node, time: bigint): Node {
  const parent = directory(state, parentOf(path));
  namesOf(state, parent, path).set(nameOf(path), node);
  if (node.type === 'directory') parent.subdirectories++;
  touch(parent, time);
  return node;
}

function link(state: State, event: LinkBody, time: bigint): void {
  const node = target(state, event);
  const key = linkKey(node.dev, node.ino as bigint);
  if (state.links.get(key) === undefined) {
    state.links = state.links.ownedBy(state.owner);
    state.links.set(key, node);
    namesOf(state, directory(state, parentOf(event.path)), event.path).set(nameOf(event.path), new Shared(key));
  }
  node.nlink++;
  node.ctime = time;
  const parent = directory(state, parentOf(event.to));
  namesOf(state, parent, event.to).set(nameOf(event.to), new Shared(key));
  touch(parent, time);
}

/** Takes the name `path` out of its directory and gives what it led to; the link count is one less. */
function unname(state: State, path: TreePath, lower: LowerBase | undefined, hide: boolean, time: bigint): Entry | undefined {
  if (lower !== undefined) {
    // A name that only goes away needs no node.
    if (!hide || lower.type === 'directory' || lower.nlink > 1) takeOver(state, path, lower);
  }
  const parent = directory(state, parentOf(path)), name = nameOf(path), holder = namesOf(state, parent, path);
  const entry = holder.get(name);
  if (hide) holder.set(name, WHITEOUT);
  else holder.delete(name);
  touch(parent, time);
  const isDirectory = entry instanceof Node ? entry.type === 'directory' : lower?.type === 'directory';
  if (isDirectory) parent.subdirectories--;
  return entry;
}

function lose(state: State, entry: Entry | undefined, time: bigint): void {
  if (entry === undefined || entry === WHITEOUT) return;
  const node = ownEntry(state, new Names(state.owner), '', entry);
  node.nlink--;
  node.ctime = time;
  if (entry instanceof Shared && node.nlink === 0) {
    state.links = state.links.ownedBy(state.owner);
    state.links.delete(entry.key);
  }
}

function remove(state: State, event: DeleteBody, time: bigint): void {
  lose(state, unname(state, event.path, event.lower, event.whiteout === true, time), time);
}

function rename(state: State, event: RenameBody, time: bigint): void {
  if (event.exchange === true) return exchange(state, event, time);
  if (event.lower !== undefined) takeOver(state, event.path, event.lower);
  const replaced = onto(state, event);
  const entry = unname(state, event.path, undefined, event.whiteout === true, time);
  if (entry === undefined || entry === WHITEOUT) throw new Error(`the tree has no "${event.path}"`);
  const parent = directory(state, parentOf(event.to)), holder = namesOf(state, parent, event.to);
  if (replaced !== undefined) {
    const node = ownEntry(state, holder, nameOf(event.to), replaced);
    if (node.type === 'directory') parent.subdirectories--;
    lose(state, replaced, time);
  }
  holder.set(nameOf(event.to), entry);
  const moved = ownEntry(state, holder, nameOf(event.to), entry);
  moved.ctime = time;
  if (moved.type === 'directory') parent.subdirectories++;
  touch(parent, time);
}

/** What the target's name of a rename leads to so far, taken over where only the lower had it. */
function onto(state: State, event: RenameBody): Node | Shared | undefined {
  if (event.onto !== undefined) takeOver(state, event.to, event.onto);
  const entry = namesOf(state, directory(state, parentOf(event.to)), event.to).get(nameOf(event.to));
  return entry === WHITEOUT ? undefined : entry;
}

function exchange(state: State, event: RenameBody, time: bigint): void {
  if (event.lower !== undefined) takeOver(state, event.path, event.lower);
  if (event.onto !== undefined) takeOver(state, event.to, event.onto);
  const from = directory(state, parentOf(event.path)), to = directory(state, parentOf(event.to));
  const fromNames = namesOf(state, from, event.path), toNames = namesOf(state, to, event.to);
  const a = fromNames.get(nameOf(event.path)), b = toNames.get(nameOf(event.to));
  if (a === undefined || b === undefined || a === WHITEOUT || b === WHITEOUT) {
    throw new Error(`the tree has no "${event.path}" and "${event.to}" to exchange`);
  }
  fromNames.set(nameOf(event.path), b);
  toNames.set(nameOf(event.to), a);
  for (const [entry, gains, loses] of [[a, to, from], [b, from, to]] as const) {
    const node = ownEntry(state, entry === a ? toNames : fromNames, nameOf(entry === a ? event.to : event.path), entry);
    node.ctime = time;
    if (((node.mode ?? 0) & S_IFMT) === 0o040000) {
      gains.subdirectories++;
      loses.subdirectories--;
    }
  }
  touch(from, time);
  touch(to, time);
}

/** Every change at and below `paths` (all changes without them) is gone: the names fall through to the lower again. */
function discard(state: State, paths: readonly TreePath[] | undefined): void {
  if (paths === undefined || paths.includes(ROOT)) {
    state.root = passThrough(state.owner, ROOT);
    state.links = new Names(state.owner);
    state.bases = new Names(state.owner);
    return;
  }
  for (const path of paths) discardOne(state, path);
}

function discardOne(state: State, path: TreePath): void {
  const parent = directory(state, parentOf(path)), name = nameOf(path), holder = namesOf(state, parent, path);
  const entry = holder.get(name);
  if (entry === undefined) return;
  if (entry !== WHITEOUT) lose(state, entry, parent.ctime ?? 0n);
  holder.delete(name);
  const origin = parent.below(name);
  if (origin === undefined) return;
  state.bases = state.bases.ownedBy(state.owner);
  state.bases.delete(origin);
}

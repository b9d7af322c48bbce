import type { Attr, Fingerprint, TreePath } from '../index/front-end.ts';

const S_IFMT = 0o170000;
/** The id that the kernel gives the root. */
export const ROOT_ID = 1;

/** One place where a node is named. */
interface Alias {
  readonly parent: Node;
  readonly name: string;
}

/** What the kernel knows a file of the tree by, from its first look-up until it is forgotten. */
export class Node {
  readonly id: number;
  /** Device, inode number and type: what makes two names one file. */
  readonly key: string;
  /** Look-ups that the kernel has not forgotten. */
  lookups = 0;
  readonly aliases: Alias[] = [];
  readonly children = new Map<string, Node>();
  /** Descriptors of the overlay through which the kernel holds it open. */
  readonly open = new Set<number>();
  /** The lower file that pages in the kernel came from. */
  pages: Fingerprint | undefined = undefined;
  private path: TreePath | undefined;
  private pathEpoch = 0;

  constructor(id: number, key: string) {
    this.id = id;
    this.key = key;
    this.path = id === ROOT_ID ? '' as TreePath : undefined;
  }

  /** A path that leads here; `undefined` once all names are gone. */
  pathAt(epoch: number): TreePath | undefined {
    if (this.id === ROOT_ID) return this.path;
    if (this.pathEpoch === epoch) return this.path;
    const alias = this.aliases[0], above = alias?.parent.pathAt(epoch);
    this.path = alias === undefined || above === undefined ? undefined
      : (above === '' ? alias.name : `${above}/${alias.name}`) as TreePath;
    this.pathEpoch = epoch;
    return this.path;
  }

  /** Its path is to be made anew. */
  moved(): void {
    this.pathEpoch = 0;
  }
}

/** All nodes that the kernel knows, by id and by what they are. */
export class Nodes {
  readonly root = new Node(ROOT_ID, '');
  private readonly byId = new Map<number, Node>([[ROOT_ID, this.root]]);
  private readonly byKey = new Map<string, Node>();
  private nextId = ROOT_ID + 1;
  /** Counts moves of directories: each makes every path below stale. */
  private epoch = 1;

  /** Throws RangeError for an id that the kernel was never given, or has forgotten. */
  get(id: number): Node {
    const node = this.byId.get(id);
    if (node === undefined) throw new RangeError(`the kernel asks for node ${id}, which it does not know`);
    return node;
  }

  get size(): number {
    return this.byId.size;
  }

  pathOf(node: Node): TreePath | undefined {
    return node.pathAt(this.epoch);
  }

  /** The path of the entry `name` in `parent`; `undefined` where the directory is gone. */
  pathIn(parent: Node, name: string): TreePath | undefined {
    const above = this.pathOf(parent);
    return above === undefined ? undefined : (above === '' ? name : `${above}/${name}`) as TreePath;
  }

  /** The node that `parent` has under `name`, which is what `attr` tells of; the kernel counts it as looked up once more. */
  lookedUp(parent: Node, name: string, attr: Attr): Node {
    const key = keyOf(attr);
    let node = this.byKey.get(key);
    if (node === undefined) {
      node = new Node(this.nextId++, key);
      this.byKey.set(key, node);
      this.byId.set(node.id, node);
    }
    node.lookups++;
    this.name(parent, name, node);
    return node;
  }

  /** `count` look-ups are forgotten; with the last one the node is. */
  forget(id: number, count: number): void {
    const node = this.byId.get(id);
    if (node === undefined || id === ROOT_ID) return;
    node.lookups -= count;
    if (node.lookups > 0) return;
    this.byId.delete(id);
    if (this.byKey.get(node.key) === node) this.byKey.delete(node.key);
    for (const { parent, name } of node.aliases) if (parent.children.get(name) === node) parent.children.delete(name);
  }

  /** The name is gone. */
  unnamed(parent: Node, name: string): void {
    const node = parent.children.get(name);
    if (node === undefined) return;
    parent.children.delete(name);
    const at = node.aliases.findIndex((alias) => alias.parent === parent && alias.name === name);
    if (at >= 0) node.aliases.splice(at, 1);
    this.stale(node);
    // The number of a file that is gone may come back with another file.
    if (node.aliases.length === 0 && this.byKey.get(node.key) === node) this.byKey.delete(node.key);
  }

  renamed(from: { parent: Node; name: string }, to: { parent: Node; name: string }, exchange: boolean): void {
    const node = from.parent.children.get(from.name), other = to.parent.children.get(to.name);
    // Two names of one file: rename(2) does nothing.
    if (node !== undefined && node === other) return;
    this.unnamed(from.parent, from.name);
    this.unnamed(to.parent, to.name);
    if (node !== undefined) this.name(to.parent, to.name, node);
    if (exchange && other !== undefined) this.name(from.parent, from.name, other);
  }

  private name(parent: Node, name: string, node: Node): void {
    const there = parent.children.get(name);
    if (there === node) return;
    if (there !== undefined) this.unnamed(parent, name);
    parent.children.set(name, node);
    node.aliases.push({ parent, name });
    if (!this.byKey.has(node.key)) this.byKey.set(node.key, node);
    this.stale(node);
  }

  private stale(node: Node): void {
    if (node.children.size > 0) this.epoch++;
    else node.moved();
  }
}

function keyOf(attr: Attr): string {
  return `${attr.dev}:${attr.ino}:${attr.mode & S_IFMT}`;
}

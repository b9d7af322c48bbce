import type { Attr, Fingerprint, TreePath, Version } from '../index/front-end.ts';

const S_IFMT = 0o170000, S_IFDIR = 0o040000;
/** The id that the kernel gives the root. */
export const ROOT_ID = 1;

/** One place where a node is named. */
interface Alias {
  readonly parent: Node;
  readonly name: string;
  /** The kernel keeps it: it was the only one when it was looked up. Of several it keeps none, so as to tell each time which is meant. */
  isKept: boolean;
}

/** What the kernel knows a file of the tree by, from its first look-up until it is forgotten. */
export class Node {
  readonly id: number;
  /** Device, inode number and type: what makes two names one file. */
  readonly dev: bigint;
  readonly ino: bigint;
  readonly type: number;
  /** Look-ups that the kernel has not forgotten. */
  lookups = 0;
  readonly aliases: Alias[] = [];
  readonly children = new Map<string, Node>();
  /** Descriptors of the overlay through which the kernel holds it open. */
  readonly open = new Set<number>();
  /** One of these, through which it is held for as long as the kernel knows it: its last name is gone, and nobody had it open. */
  kept: number | undefined = undefined;
  /** The lower file that pages in the kernel came from. */
  pages: Fingerprint | undefined = undefined;
  /** The listing that the kernel has kept. */
  listing: Version | undefined = undefined;
  private path: TreePath | undefined;
  private pathEpoch = 0;

  constructor(id: number, dev: bigint, ino: bigint, type: number) {
    this.id = id;
    this.dev = dev;
    this.ino = ino;
    this.type = type;
    this.path = id === ROOT_ID ? '' as TreePath : undefined;
  }

  get isDirectory(): boolean {
    return this.type === S_IFDIR;
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
  readonly root = new Node(ROOT_ID, 0n, 0n, 0);
  private readonly byId = new Map<number, Node>([[ROOT_ID, this.root]]);
  private readonly byDevice = new Map<bigint, Map<bigint, Node>>();
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

  /** Every node, and every name that leads to it. */
  *all(): Generator<{ readonly node: Node; readonly names: readonly { readonly parent: Node; readonly name: string }[] }> {
    for (const node of this.byId.values()) yield { node, names: node.aliases };
  }

  /** The node that `parent` has under `name`, which is what `attr` tells of; the kernel counts it as looked up once more. */
  lookedUp(parent: Node, name: string, attr: Attr): Node {
    const { dev, ino } = attr, type = attr.mode & S_IFMT, known = this.byDevice.get(dev)?.get(ino);
    let node = known;
    // The number of a file that an outsider took away may come back with another kind of file.
    if (node === undefined || node.type !== type) {
      node = new Node(this.nextId++, dev, ino, type);
      this.byId.set(node.id, node);
      this.find(node);
    }
    node.lookups++;
    this.name(parent, name, node, attr.nlink <= 1 || node.isDirectory);
    return node;
  }

  /**
   * The path by which a program opens a node that has several names: the one that its thread has just looked up, else
   * the one that the kernel need not ask for; else any.
   */
  pathMeant(node: Node, lookedUp: TreePath | undefined): TreePath | undefined {
    if (node.aliases.length < 2) return this.pathOf(node);
    const paths = node.aliases.map(({ parent, name }) => this.pathIn(parent, name));
    if (lookedUp !== undefined && paths.includes(lookedUp)) return lookedUp;
    return paths[node.aliases.findIndex(({ isKept }) => isKept)] ?? this.pathOf(node);
  }

  /** A node that had lost its names, or had none yet, is under `name` now; the kernel counts it as looked up once more. */
  named(parent: Node, name: string, node: Node): void {
    node.lookups++;
    this.name(parent, name, node);
  }

  /** `count` look-ups are forgotten; with the last one the node is, which is given then. */
  forget(id: number, count: number): Node | undefined {
    const node = this.byId.get(id);
    if (node === undefined || id === ROOT_ID) return undefined;
    node.lookups -= count;
    if (node.lookups > 0) return undefined;
    this.byId.delete(id);
    this.lose(node);
    for (const { parent, name } of node.aliases) if (parent.children.get(name) === node) parent.children.delete(name);
    return node;
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
    if (node.aliases.length === 0) this.lose(node);
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

  private name(parent: Node, name: string, node: Node, isKept = false): void {
    const there = parent.children.get(name);
    if (there === node) {
      if (isKept || node.aliases.length < 2) return;
      const alias = node.aliases.find((each) => each.parent === parent && each.name === name);
      if (alias !== undefined) alias.isKept = false;
      return;
    }
    if (there !== undefined) this.unnamed(parent, name);
    parent.children.set(name, node);
    node.aliases.push({ parent, name, isKept });
    if (this.byDevice.get(node.dev)?.has(node.ino) !== true) this.find(node);
    this.stale(node);
  }

  /** From here on a look-up of its device and number finds it. */
  private find(node: Node): void {
    let numbers = this.byDevice.get(node.dev);
    if (numbers === undefined) this.byDevice.set(node.dev, numbers = new Map());
    numbers.set(node.ino, node);
  }

  private lose(node: Node): void {
    const numbers = this.byDevice.get(node.dev);
    if (numbers?.get(node.ino) === node) numbers.delete(node.ino);
  }

  private stale(node: Node): void {
    if (node.children.size > 0) this.epoch++;
    else node.moved();
  }
}

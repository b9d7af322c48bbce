import { PERMISSION_BITS, typeOf, type Attr, type NodeType } from '../core/attr.ts';
import { toBytes, type TreePath } from '../core/path.ts';
import type { Attributes, NewNode, Step } from '../core/plan.ts';
import { Refusal } from '../core/refusal.ts';
import { unreachable } from '../core/unreachable.ts';
import type { Version } from '../core/version.ts';
import { versionOf } from '../overlay/hash.ts';
import { readThrough, type World } from '../overlay/world.ts';
import { Origins } from './origins.ts';

/**
 * What a commit did, step by step, with what was there before: all that taking it back needs. Lines of JSON, in blobs of so
 * many lines each; the `commit` event names them in order.
 */
const LINES_PER_BLOB = 2048;
/** Bytes of a file that goes away are kept up to this size: they have to be in memory at once. */
export const KEPT_BYTES = 256 * 1024 * 1024;

/** Times in ns, values of extended attributes in base64. */
export interface AttributesJson {
  readonly mode?: number;
  readonly uid?: number;
  readonly gid?: number;
  readonly atime?: string;
  readonly mtime?: string;
  readonly xattrs?: Readonly<Record<string, string | null>>;
}

/** What was there. */
export interface Was extends AttributesJson {
  readonly type: NodeType;
  readonly size?: number;
  /** Of a file's bytes, which are in the blob of that digest; absent where they were not kept, for the reason `lost`. */
  readonly version?: Version;
  readonly lost?: string;
  readonly target?: string;
  readonly rdev?: number;
  /** `dev:ino` of a file with several names. */
  readonly inode?: string;
}

/** What was made. */
export interface Made extends AttributesJson {
  readonly type: NodeType | 'link';
  readonly size?: number;
  readonly version?: Version;
  readonly target?: string;
  readonly rdev?: number;
  /** Of a link: the other name, and what that is. */
  readonly of?: TreePath;
  readonly is?: Made | Was;
}

export type Deed =
  | { readonly act: 'create'; readonly path: TreePath; readonly made: Made }
  | { readonly act: 'replace'; readonly path: TreePath; readonly was: Was; readonly below?: readonly WasBelow[]; readonly made: Made }
  | { readonly act: 'remove'; readonly path: TreePath; readonly was: Was; readonly below?: readonly WasBelow[] }
  | { readonly act: 'move'; readonly from: TreePath; readonly to: TreePath; readonly was: Was }
  | { readonly act: 'park'; readonly path: TreePath; readonly slot: number; readonly was: Was }
  | { readonly act: 'unpark'; readonly slot: number; readonly path: TreePath }
  | { readonly act: 'adjust'; readonly path: TreePath; readonly was: Was; readonly set: AttributesJson };

export interface WasBelow {
  readonly path: TreePath;
  readonly was: Was;
}

/** Writes the record of steps that are about to be done, keeping the bytes that go away. Gives the names of its blobs. */
export function keepRecord(world: World, steps: Iterable<Step>): readonly Version[] {
  const keeper = new Keeper(world), blobs: Version[] = [];
  let lines: string[] = [];
  const put = (): void => {
    const bytes = toBytes(lines.join('')), digest = versionOf(bytes);
    world.session.store.putBlob(digest, bytes);
    blobs.push(digest);
    lines = [];
  };
  for (const step of steps) {
    lines.push(JSON.stringify(keeper.deed(step)) + '\n');
    if (lines.length === LINES_PER_BLOB) put();
  }
  if (lines.length > 0) put();
  return blobs;
}

/** The deeds of a record, in order. Throws EIO where a blob of it is gone. */
export function* readRecord(world: World, blobs: readonly string[]): Generator<Deed> {
  for (const digest of blobs) {
    const text = Buffer.from(world.session.store.getBlob(digest as Version)).toString('utf8');
    for (const line of text.split('\n')) if (line !== '') yield JSON.parse(line) as Deed;
  }
}

class Keeper {
  private readonly world: World;
  private readonly origins = new Origins();
  private readonly made = new Map<TreePath, Made>();

  constructor(world: World) {
    this.world = world;
  }

  deed(step: Step): Deed {
    const deed = this.before(step);
    if ((deed.act === 'create' || deed.act === 'replace') && deed.made.type !== 'link') this.made.set(deed.path, deed.made);
    this.origins.pass(step);
    return deed;
  }

  private before(step: Step): Deed {
    switch (step.act) {
      case 'create': return { act: 'create', path: step.path, made: this.madeOf(step.node) };
      case 'replace': return { act: 'replace', path: step.path, was: this.was(step.path, true), ...this.below(step), made: this.madeOf(step.node) };
      case 'remove': return { act: 'remove', path: step.path, was: this.was(step.path, true), ...this.below(step) };
      case 'move': return { act: 'move', from: step.from, to: step.to, was: this.was(step.from, false) };
      case 'park': return { act: 'park', path: step.path, slot: step.slot, was: this.was(step.path, false) };
      case 'unpark': return { act: 'unpark', slot: step.slot, path: step.path };
      case 'adjust': return { act: 'adjust', path: step.path, was: this.was(step.path, false), set: attributesJson(step.set) };
      default: return unreachable(step);
    }
  }

  private below(step: Extract<Step, { act: 'replace' | 'remove' }>): { below?: readonly WasBelow[] } {
    if (step.below === undefined) return {};
    return { below: Array.from(step.below, ({ path }) => ({ path, was: this.was(path, true) })) };
  }

  /** What is at a name now. `keeps`: its bytes go away. */
  private was(path: TreePath, keeps: boolean): Was {
    const origin = this.origins.of(path), { lower } = this.world;
    const at = origin.kind === 'disk' ? origin.path : undefined, attr = at === undefined ? 'absent' : lower.lstat(at);
    // What is not there will be told as a conflict.
    if (at === undefined || typeof attr === 'string') return { type: 'file', lost: 'nothing was there' };
    const type = typeOf(attr.mode);
    const was: Was = {
      type, mode: attr.mode & PERMISSION_BITS, uid: attr.uid, gid: attr.gid, atime: String(attr.atime), mtime: String(attr.mtime), ...this.xattrs(at, attr),
    };
    switch (type) {
      case 'file': return { ...was, size: attr.size, ...(attr.nlink > 1 && { inode: `${attr.dev}:${attr.ino}` }), ...(keeps ? this.bytes(at, attr) : { version: this.world.versionOfLower(at) as Version }) };
      case 'symlink': return { ...was, target: lower.readlink(at) };
      case 'directory': return was;
      default: return { ...was, rdev: attr.rdev };
    }
  }

  private bytes(path: TreePath, attr: Attr): { version?: Version; lost?: string } {
    if (this.world.contents.isSecretOrigin(path)) return { lost: 'it is redacted' };
    if (attr.size > KEPT_BYTES) return { lost: `it had more than ${KEPT_BYTES / 1024 / 1024} MiB` };
    const found = this.world.lower.open(path);
    if (typeof found === 'string' || !('kind' in found)) return { lost: 'it went away' };
    try {
      const bytes = readThrough(found, found.restat().size), version = versionOf(bytes);
      this.world.session.store.putBlob(version, bytes);
      return { version };
    } finally {
      found.close();
    }
  }

  private madeOf(node: NewNode): Made {
    if (node.type === 'link') {
      return { type: 'link', of: node.of, is: this.made.get(node.of) ?? this.was(node.of, false) };
    }
    const made = { type: node.type, ...attributesJson(node) };
    switch (node.type) {
      case 'file': return { ...made, size: node.content.size, ...(node.content.version !== undefined && { version: node.content.version }) };
      case 'symlink': return { ...made, target: node.target };
      case 'directory': return made;
      default: return node.rdev === undefined ? made : { ...made, rdev: node.rdev };
    }
  }

  private xattrs(path: TreePath, attr: Attr): { xattrs?: Record<string, string> } {
    const found = this.world.lower.xattrs(path, attr);
    return found === undefined || found.size === 0 ? {} : { xattrs: Object.fromEntries(found) };
  }
}

function attributesJson({ mode, uid, gid, atime, mtime, xattrs }: Attributes): AttributesJson {
  return {
    ...(mode !== undefined && { mode }), ...(uid !== undefined && { uid }), ...(gid !== undefined && { gid }),
    ...(atime !== undefined && { atime: String(atime) }), ...(mtime !== undefined && { mtime: String(mtime) }),
    ...(xattrs !== undefined && { xattrs: Object.fromEntries(xattrs) }),
  };
}

/** The bytes that a record kept. Throws EIO with the reason where it did not. */
export function keptBytes(world: World, path: TreePath, { version, lost }: Was): Uint8Array {
  if (version === undefined) throw new Refusal('EIO', { reason: `what ${JSON.stringify(path)} held was not kept: ${lost ?? 'unknown why'}` });
  return world.session.store.getBlob(version);
}

import { nanoid } from 'nanoid';
import type { RevertBody } from '../core/event.ts';
import { childOf, ROOT, type TreePath } from '../core/path.ts';
import type { AdjustStep, Attributes, Below, Conflict, Expectation, HostState, NewNode, Step } from '../core/plan.ts';
import { find as findInTree } from '../core/state.ts';
import { Node } from '../core/tree.ts';
import type { World } from '../overlay/world.ts';
import { ConflictError } from './fault.ts';
import { IntentFile } from './intent.ts';
import { keptBytes, readRecord, type AttributesJson, type Deed, type Made, type Was } from './record.ts';
import type { Rescue } from './rescue.ts';
import { transact } from './transaction.ts';

/** What a revert did. */
export interface RevertReceipt {
  /** Of the commit that was taken back. */
  readonly id: string;
  /** Paths that were written, in the order in which that was done. */
  readonly paths: readonly TreePath[];
  readonly durationMs: number;
  readonly late: readonly Rescue[];
}

/** A commit that a session knows of. */
interface Known {
  readonly record: readonly string[] | undefined;
  readonly isReverted: boolean;
}

/** Takes back what commit `id` of this session did to `root`. */
export async function revert(world: World, actor: string, root: string, id: string): Promise<RevertReceipt> {
  const { session } = world, known = find(world, id);
  if (known === undefined) throw failure('ENOENT', `this session has no commit ${JSON.stringify(id)}`);
  if (known.isReverted) throw failure('EALREADY', `the commit ${id} was taken back already`);
  if (known.record === undefined) throw failure('ENOTSUP', `the commit ${id} kept no record of what was there before`);
  const deeds = [...readRecord(world, known.record)], inverse = new Inverse(world, deeds);
  const steps = inverse.steps(), conflicts = [...inverse.lost, ...overlaid(world, steps)];
  if (conflicts.length > 0) throw new ConflictError(root, conflicts);
  const moves = inverse.moves(steps), body: RevertBody = { op: 'revert', id, ...(moves.length > 0 && { moves }) };
  const intent = { root, id: nanoid(), actor, body }, file = new IntentFile(world);
  session.sync();
  file.write(intent);
  const release = session.hold();
  try {
    const { durationNs, late } = await transact({
      id: intent.id, root, steps, count: steps.length, reliances: [], guard: 'expectations', durability: session.durability, confirm: () => {
        release();
        session.append(actor, body);
        session.sync();
      },
    });
    file.remove();
    world.settle();
    const paths = [...new Set(steps.flatMap((step) => step.act === 'park' ? [] : [step.act === 'move' ? step.to : step.path]))];
    return { id, paths, durationMs: Number(durationNs) / 1e6, late };
  } catch (error) {
    file.removeUnlessOpen(intent);
    throw error;
  } finally {
    release();
  }
}

function find(world: World, id: string): Known | undefined {
  let known: Known | undefined;
  for (const event of world.session.events()) {
    if (event.op === 'commit' && event.id === id) known = { record: event.record, isReverted: false };
    if (event.op === 'revert' && event.id === id && known !== undefined) known = { ...known, isReverted: true };
  }
  return known;
}

/** Directories that go away again, in which the overlay has changes of its own by now. */
function overlaid(world: World, steps: readonly Step[]): Conflict[] {
  const conflicts: Conflict[] = [];
  for (const step of steps) {
    if (step.act !== 'remove' || step.before.state.type !== 'directory') continue;
    const node = findInTree(world.state, step.path);
    if (node instanceof Node && node.names !== undefined && node.names.size > 0) {
      conflicts.push({ path: step.path, expected: 'a directory without changes of the overlay', actual: 'one that the overlay has changed' });
    }
  }
  return conflicts;
}

/** The way back: the same deeds from the last to the first, each the other way round. */
class Inverse {
  /** What cannot come back, since its bytes were not kept. */
  readonly lost: Conflict[] = [];
  private readonly world: World;
  private readonly deeds: readonly Deed[];
  private readonly rewritten: ReadonlySet<TreePath>;
  /** Where the commit moved something to. */
  private readonly targets: ReadonlySet<TreePath>;
  /** What moved and was rewritten is made anew at its old name, not moved: by the name it moved to, and by slot. */
  private readonly remade = new Map<TreePath, NewNode>();
  private readonly parked = new Map<number, NewNode>();
  /** What moved gets its attributes back at its old name: the same two ways. */
  private readonly adjusted = new Map<TreePath, AdjustStep>();
  private readonly adjustedSlots = new Map<number, AdjustStep>();
  private names: Map<string, TreePath> | undefined = undefined;
  private readonly slots = new Map<number, { from: TreePath; was: Was }>();

  constructor(world: World, deeds: readonly Deed[]) {
    this.world = world;
    this.deeds = deeds;
    this.rewritten = new Set(deeds.flatMap((deed) => deed.act === 'replace' ? [deed.path] : []));
    this.targets = new Set(deeds.flatMap((deed) => deed.act === 'move' ? [deed.to] : deed.act === 'unpark' ? [deed.path] : []));
    for (const deed of deeds) if (deed.act === 'park') this.slots.set(deed.slot, { from: deed.path, was: deed.was });
  }

  steps(): Step[] {
    const steps: Step[] = [];
    for (const deed of this.deeds.toReversed()) for (const step of this.undo(deed)) steps.push(step);
    return steps;
  }

  /** Directories that move back: each path now, then its path before the commit. */
  moves(steps: readonly Step[]): TreePath[] {
    const pairs: TreePath[] = [];
    for (const deed of this.deeds) {
      if (deed.act === 'move' && deed.was.type === 'directory') pairs.push(deed.to, deed.from);
      const parked = deed.act === 'unpark' ? this.slots.get(deed.slot) : undefined;
      if (deed.act === 'unpark' && parked?.was.type === 'directory') pairs.push(deed.path, parked.from);
    }
    return steps.length === 0 ? [] : pairs;
  }

  private *undo(deed: Deed): Generator<Step> {
    switch (deed.act) {
      case 'create':
        yield { act: 'remove', path: deed.path, before: made(deed.made), ...emptied(deed.made) };
        return;
      case 'replace': {
        const node = this.node(deed.path, deed.was);
        if (this.targets.has(deed.path)) {
          // It is made anew where it was before it moved.
          this.remade.set(deed.path, node);
          yield { act: 'remove', path: deed.path, before: made(deed.made) };
          return;
        }
        yield { act: 'replace', path: deed.path, before: made(deed.made), ...emptied(deed.made), node, attributes: 'own' };
        yield* this.below(deed.below);
        yield* this.retime(deed.path, deed.was);
        return;
      }
      case 'remove':
        yield { act: 'create', path: deed.path, node: this.node(deed.path, deed.was) };
        yield* this.below(deed.below);
        return;
      case 'move': {
        const node = this.remade.get(deed.to);
        if (node !== undefined) yield { act: 'create', path: deed.from, node };
        else yield* this.withAttributes(this.adjusted.get(deed.to), deed.from, { act: 'move', from: deed.to, to: deed.from, before: this.moved(deed.to, deed.was) });
        return;
      }
      case 'park': {
        const node = this.parked.get(deed.slot);
        if (node !== undefined) yield { act: 'create', path: deed.path, node };
        else yield* this.withAttributes(this.adjustedSlots.get(deed.slot), deed.path, { act: 'unpark', slot: deed.slot, path: deed.path });
        return;
      }
      case 'unpark': {
        const node = this.remade.get(deed.path), set = this.adjusted.get(deed.path);
        if (set !== undefined) this.adjustedSlots.set(deed.slot, set);
        if (node !== undefined) this.parked.set(deed.slot, node);
        else yield { act: 'park', slot: deed.slot, path: deed.path, before: this.moved(deed.path, (this.slots.get(deed.slot) as { was: Was }).was) };
        return;
      }
      case 'adjust': {
        const set = attributes(back(deed.set, deed.was));
        const step: AdjustStep = { act: 'adjust', path: deed.path, before: adjusted(deed.was, deed.set), set };
        if (this.targets.has(deed.path)) this.adjusted.set(deed.path, step);
        else yield step;
      }
    }
  }

  private *withAttributes(adjust: AdjustStep | undefined, path: TreePath, step: Step): Generator<Step> {
    yield step;
    if (adjust !== undefined) yield { ...adjust, path };
  }

  /** What it moved: a file with its content, a directory whatever has come into it. Of a file that it rewrote as well, that step speaks. */
  private moved(path: TreePath, was: Was): Expectation {
    return { state: stateOf(was), aspects: was.type === 'directory' || this.rewritten.has(path) ? 'type' : 'content' };
  }

  private *below(below: readonly { path: TreePath; was: Was }[] | undefined): Generator<Step> {
    for (const { path, was } of below ?? []) yield { act: 'create', path, node: this.node(path, was) };
  }

  private *retime(path: TreePath, was: Was): Generator<Step> {
    if (was.type !== 'directory') return;
    yield { act: 'adjust', path, before: { state: { type: 'directory', mode: 0, uid: 0, gid: 0 }, aspects: 'type' }, set: times(was) };
  }

  private node(path: TreePath, was: Was): NewNode {
    const given = attributes(was);
    if (was.inode !== undefined) {
      const of = (this.names ??= this.namesLeft()).get(was.inode);
      if (of !== undefined && of !== path) return { type: 'link', of };
      this.names.set(was.inode, path);
    }
    switch (was.type) {
      case 'file': return { type: 'file', content: this.content(path, was), ...given };
      case 'directory': return { type: 'directory', ...given };
      case 'symlink': return { type: 'symlink', target: was.target ?? '', ...given, mode: undefined };
      case 'socket': case 'fifo': return { type: 'fifo', ...given };
      default: return { type: was.type, rdev: was.rdev ?? 0, ...given };
    }
  }

  /** Names that files with several names, of which the commit took some, still have. */
  private namesLeft(): Map<string, TreePath> {
    const { lower } = this.world, wanted = new Set<string>(), names = new Map<string, TreePath>();
    for (const deed of this.deeds) {
      if (deed.act !== 'replace' && deed.act !== 'remove') continue;
      for (const was of [deed.was, ...deed.below?.map((each) => each.was) ?? []]) if (was.inode !== undefined) wanted.add(was.inode);
    }
    const visit = (directory: TreePath): void => {
      for (const { name, type } of lower.list(directory)) {
        const path = childOf(directory, name), attr = type === 'file' ? lower.lstat(path) : undefined;
        if (type === 'directory') visit(path);
        if (typeof attr !== 'object' || attr.nlink < 1) continue;
        const key = `${attr.dev}:${attr.ino}`;
        if (wanted.has(key) && !names.has(key)) names.set(key, path);
      }
    };
    visit(ROOT);
    return names;
  }

  private content(path: TreePath, was: Was): Extract<NewNode, { type: 'file' }>['content'] {
    const size = was.size ?? 0, { world } = this;
    if (was.version === undefined) this.lost.push({ path, expected: 'its bytes to have been kept', actual: `not kept: ${was.lost ?? 'unknown why'}` });
    return { size, version: was.version, pieces: function* pieces() {
      if (size > 0) yield* inPieces(keptBytes(world, path, was));
    } };
  }
}

/** Most bytes handed on at a time. */
const PIECE_BYTES = 1 << 20;

function* inPieces(bytes: Uint8Array): Generator<{ at: number; bytes: Uint8Array }> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield { at, bytes: bytes.subarray(at, at + PIECE_BYTES) };
}

function emptied(what: Made): { below?: Iterable<Below> } {
  return what.type === 'directory' ? { below: [] } : {};
}

const OWNER = { mode: 0, uid: 0, gid: 0 };

/** What a commit made has to be there as it made it. */
function made(what: Made): Expectation {
  return { state: stateOf(what), aspects: 'content' };
}

/** What it changed attributes of: these have to be as it left them. */
function adjusted(was: Was, set: AttributesJson): Expectation {
  const owner = { mode: set.mode ?? was.mode ?? 0, uid: set.uid ?? was.uid ?? 0, gid: set.gid ?? was.gid ?? 0 };
  return { state: { ...stateOf(was), ...owner }, aspects: 'metadata' };
}

function stateOf(what: Made | Was): Exclude<HostState, { type: 'absent' }> {
  switch (what.type) {
    case 'file': return { type: 'file', size: what.size ?? 0, version: what.version, ...OWNER };
    case 'directory': return { type: 'directory', ...OWNER };
    case 'symlink': return { type: 'symlink', target: what.target ?? '', ...OWNER };
    case 'link': return stateOf(what.is ?? { type: 'file' });
    default: return { type: what.type, rdev: what.rdev ?? 0, ...OWNER };
  }
}

function attributes({ mode, uid, gid, atime, mtime, xattrs }: AttributesJson): Attributes {
  return {
    ...(mode !== undefined && { mode }), ...(uid !== undefined && { uid }), ...(gid !== undefined && { gid }),
    ...(atime !== undefined && { atime: BigInt(atime) }), ...(mtime !== undefined && { mtime: BigInt(mtime) }),
    ...(xattrs !== undefined && { xattrs: new Map(Object.entries(xattrs)) }),
  };
}

function times({ atime, mtime }: AttributesJson): Attributes {
  return attributes({ ...(atime !== undefined && { atime }), ...(mtime !== undefined && { mtime }) });
}

/** Of what was set, what was there before. */
function back(set: AttributesJson, was: Was): AttributesJson {
  const { mode, uid, gid, atime, mtime, xattrs } = was;
  return {
    ...(set.mode !== undefined && mode !== undefined && { mode }), ...(set.uid !== undefined && uid !== undefined && { uid }),
    ...(set.gid !== undefined && gid !== undefined && { gid }),
    ...(atime !== undefined && { atime }), ...(mtime !== undefined && { mtime }),
    ...(set.xattrs !== undefined && { xattrs: Object.fromEntries(Object.keys(set.xattrs).map((name) => [name, xattrs?.[name] ?? null])) }),
  };
}

function failure(code: string, words: string): Error {
  return Object.assign(new Error(`${code}: ${words}`), { code });
}

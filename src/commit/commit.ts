import { nanoid } from 'nanoid';
import type { CommitBody, PathVersion } from '../core/event.ts';
import type { TreePath } from '../core/path.ts';
import type { Conflict, Step } from '../core/plan.ts';
import { evolve } from '../core/evolve.ts';
import { Reliances } from '../core/reliance.ts';
import { find, initialState } from '../core/state.ts';
import { Node } from '../core/tree.ts';
import { Changes, type Change } from '../overlay/changes.ts';
import type { World } from '../overlay/world.ts';
import type { Durability } from '../store/store.ts';
import { ConflictError } from './fault.ts';
import type { Loss } from './losses.ts';
import { IntentFile } from './intent.ts';
import { Plan } from './plan.ts';
import { keepRecord } from './record.ts';
import type { Rescue } from './rescue.ts';
import { Selection } from './selection.ts';
import { forecast, transact, type Transaction } from './transaction.ts';

export type Guard = 'changed' | 'reads' | 'none';

/** What is to be committed, and how. */
export interface CommitOptions {
  /** Changes at and below these, with what they need. Default: all. */
  readonly paths?: readonly TreePath[] | undefined;
  /** Default `changed`. */
  readonly guard?: Guard;
  /** With guard `reads`: the actor whose looks count. Default: everybody's. */
  readonly reader?: string;
  /** Nothing is written: the receipt tells what would be. */
  readonly dryRun?: boolean;
  /** Default: the session's own. */
  readonly durability?: Durability;
  readonly onProgress?: (done: number, all: number) => void;
}

/** What a commit did; of a dry run, what it would do. */
export interface Receipt {
  readonly id: string;
  /** Sorted by path; `before` and `after` are versions. Empty where there was nothing to do. */
  readonly changes: readonly Change[];
  /** What the disk is told, in order. */
  readonly steps: readonly string[];
  readonly guard: Guard;
  readonly durability: Durability;
  readonly dryRun: boolean;
  readonly durationMs: number;
  /** What could not be kept, known beforehand. */
  readonly losses: readonly Loss[];
  /** What outsiders wrote meanwhile into files that went away, and where it is. */
  readonly late: readonly Rescue[];
  /** Of a dry run: what stands in the way. Otherwise these are a `ConflictError`. */
  readonly conflicts: readonly Conflict[];
}

/** Publishes changes of `world` to the directory `root`, all that are asked for or none. */
export async function commit(world: World, actor: string, root: string, options: CommitOptions): Promise<Receipt> {
  const { session } = world, { guard = 'changed', dryRun = false, durability = session.durability } = options;
  session.publish();
  const changes = Changes.of(world), selection = Selection.of(world, changes, options.paths), plan = new Plan(world, selection);
  const chosen = changes.filter((change) => selection.covers(change)), id = nanoid();
  const forgotten = Array.from(plan.forgotten(), (path): Loss =>
    ({ path, what: 'links', words: 'was changed by a name that is gone: its other names stay with what it held before' }));
  let count = 0;
  const steps: string[] = [];
  for (const step of plan.steps) {
    count++;
    if (dryRun) steps.push(wordsOf(step));
  }
  const transaction: Transaction = {
    id, root, steps: plan.steps, count, reliances: guard === 'reads' ? [...reliancesOf(world).rows(options.reader)] : [], guard: guard === 'none' ? 'none' : 'expectations', durability,
    ...(options.onProgress !== undefined && { progress: options.onProgress }),
  };
  const receipt = { id, changes: chosen, steps, guard, durability, dryRun, durationMs: 0, losses: [], late: [], conflicts: [] };
  if (dryRun) {
    const { conflicts, losses } = forecast(transaction);
    return { ...receipt, conflicts: conflicts.map((conflict) => attributed(world, conflict)), losses: [...losses, ...forgotten] };
  }
  if (count === 0 && chosen.length === 0) return receipt;
  const body: CommitBody = {
    op: 'commit', id, changes: chosen.length, guard, durability, ...remains(selection, plan), ...learned(world, chosen),
    record: keepRecord(world, plan.steps),
  };
  const intent = { root, id, actor, body }, file = new IntentFile(world);
  session.sync();
  file.write(intent);
  const release = session.hold();
  try {
    const { durationNs, losses, late } = await transact({ ...transaction, confirm: () => {
      release();
      session.append(actor, body);
      session.sync();
    } });
    file.remove();
    world.settle();
    return { ...receipt, durationMs: Number(durationNs) / 1e6, losses: [...losses, ...forgotten], late };
  } catch (error) {
    file.removeUnlessOpen(intent);
    if (error instanceof ConflictError) throw new ConflictError(root, error.conflicts.map((conflict) => attributed(world, conflict)), error.cause);
    throw error;
  } finally {
    release();
  }
}

/** What everybody has seen of the lower so far. */
function reliancesOf(world: World): Reliances {
  const reliances = new Reliances(), state = initialState();
  for (const event of world.session.events()) {
    reliances.note(state, event);
    evolve(state, event);
  }
  return reliances;
}

/** What stays in the overlay, where that is something. */
function remains(selection: Selection, plan: Plan): Pick<CommitBody, 'paths' | 'moves'> {
  const { paths } = selection, moves = plan.directoryMoves;
  if (paths === undefined) return {};
  return { paths, ...(moves.length > 0 && { moves }) };
}

/** Versions of content that had none in the log. */
function learned(world: World, changes: readonly Change[]): { versions?: readonly PathVersion[] } {
  const versions: PathVersion[] = [];
  for (const { path, type } of changes) {
    const node = type === 'file' ? find(world.state, path) : undefined;
    if (node instanceof Node && node.content.kind === 'extents' && node.version !== undefined) versions.push({ path, version: node.version });
  }
  return versions.length === 0 ? {} : { versions };
}

/** A conflict with whose expectation it was. */
function attributed(world: World, conflict: Conflict): Conflict {
  const base = world.state.bases.get(conflict.path);
  if (base === undefined || conflict.actor !== undefined) return conflict;
  return { ...conflict, actor: base.actor, seq: base.seen?.seq ?? base.seq, time: base.time };
}

function wordsOf(step: Step): string {
  switch (step.act) {
    case 'create': return `${step.node.type === 'link' ? 'link' : `create ${step.node.type}`} ${step.path}`;
    case 'move': return `move ${step.from} -> ${step.to}`;
    case 'park': return `take ${step.path} out of the way (${step.slot})`;
    case 'unpark': return `put (${step.slot}) down as ${step.path}`;
    default: return `${step.act} ${step.path}`;
  }
}

import type { Event } from '../core/event.ts';
import { evolve } from '../core/evolve.ts';
import { Owner } from '../core/owner.ts';
import { toBytes, type TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { initialState, type State } from '../core/state.ts';
import type { World } from '../overlay/world.ts';
import { Comparison } from './comparison.ts';
import { gitName, isRefusedByGit } from './git-name.ts';
import { gitMode, isGits, type Omission } from './omission.ts';
import { Side } from './side.ts';
import { Snapshot } from './snapshot.ts';
import { begun, everything, standIn, type TreeOptions } from './visit.ts';

/** What makes a commit: every mark, or also every event that changes something after somebody else's. */
export type CommitPer = 'mark' | 'actor';

/** A history as git is to have it. */
export interface HistoryOptions extends Omit<TreeOptions, 'paths'> {
  /** The branch that is made. */
  readonly branch: string;
  readonly per: CommitPer;
}

/** Ops that change nothing in the tree: there is no need to fold them. */
const TREELESS = new Set<Event['op']>(['read', 'list', 'stat', 'readlink', 'miss', 'run', 'exit', 'refuse', 'flag', 'seal', 'mark', 'fork']);

/**
 * A stream for `git fast-import`: a commit of all that the lower has now, then one for each mark, and one for what came after the last. Contents
 * are written where they are used, a piece at a time, so it takes no memory that grows with them; git stores the same bytes once. A session
 * that was committed begins anew there: what came before is in the lower already.
 */
export function* fastImport(world: World, options: HistoryOptions): Generator<Uint8Array> {
  const stream = new Stream(world, options), { header } = world.session.store;
  yield text('feature done\n');
  yield* stream.base(`What was there before: ${header.root === '' ? 'no directory' : header.root}\n\nPalimpsest-Session: ${header.session}\n`, header.created);
  const start = lastCommit(world), state = initialState(), turn = new Turn();
  for (const event of world.session.events()) {
    if (options.per === 'actor' && event.seq > start && turn.isEndedBy(event)) yield* stream.commit(state, turn.close(undefined));
    if (!TREELESS.has(event.op)) {
      evolve(state, event);
      if (event.seq > start) turn.add(event);
    } else if (event.op === 'mark' && event.seq > start) yield* stream.commit(state, turn.close(event));
  }
  if (turn.last !== undefined) yield* stream.commit(state, turn.close(undefined));
  yield text('done\n');
}

/** The last event that published changes to the lower; 0 where none did. */
function lastCommit(world: World): number {
  let seq = 0;
  for (const event of world.session.events()) if (event.op === 'commit' || event.op === 'revert') seq = event.seq;
  return seq;
}

interface Message {
  readonly author: string;
  readonly time: string;
  readonly text: string;
}

/** What happened since the last commit of the history. */
class Turn {
  last: Event | undefined = undefined;
  private actors = new Set<string>();
  private count = 0;

  add(event: Event): void {
    this.last = event;
    this.actors.add(event.actor);
    this.count++;
  }

  isEndedBy(event: Event): boolean {
    return this.last !== undefined && !TREELESS.has(event.op) && event.actor !== this.last.actor;
  }

  /** The message of the commit that it becomes, at `mark` or without one. */
  close(mark: Extract<Event, { op: 'mark' }> | undefined): Message {
    const event = mark ?? this.last as Event, others = [...this.actors].filter((actor) => actor !== event.actor);
    const title = mark?.label ?? `${this.count} change${this.count === 1 ? '' : 's'}, not marked`;
    const data = mark?.data === undefined ? '' : `\n${JSON.stringify(mark.data, undefined, 2)}\n`;
    const trailers = [`Palimpsest-Seq: ${event.seq}`, ...others.map((actor) => `Co-authored-by: ${identityOf(actor)}`)];
    this.last = undefined;
    this.actors = new Set();
    this.count = 0;
    return { author: event.actor, time: event.time, text: `${title}\n${data}\n${trailers.join('\n')}\n` };
  }
}

class Stream {
  private readonly world: World;
  private readonly options: HistoryOptions;
  private before: Snapshot;

  constructor(world: World, options: HistoryOptions) {
    this.world = world;
    this.options = options;
    this.before = Snapshot.beneath(world);
  }

  *base(message: string, time: string): Generator<Uint8Array> {
    const { omit } = this.options;
    yield this.head({ author: 'palimpsest', time, text: message });
    const enters = (path: TreePath): boolean => !isRefusedByGit(path, 'directory');
    for (const { path } of everything(this.before, { omit }, enters)) {
      if (enters(path)) yield* this.file(this.before, path);
      else omit(repository(path));
    }
    yield text('\n');
  }

  /** A commit of what `state` has and the last one had not. From then on `state` is somebody else's to change. */
  *commit(state: State, message: Message): Generator<Uint8Array> {
    const after = new Snapshot(this.world, { ...state }), { pairs } = new Comparison(this.before, after);
    // What the copy holds stays as it is: whatever changes from here on is copied first.
    state.owner = new Owner();
    yield this.head(message);
    for (const { old, now, type } of pairs) {
      if (old !== undefined && old !== now && isGits(type) && !isRefusedByGit(old, type)) yield text(`D ${gitName(old)}\n`);
    }
    for (const { old, now } of pairs) if (now !== undefined && !this.isSame(old, now, after)) yield* this.file(after, now);
    yield text('\n');
    this.before = after;
  }

  private isSame(old: TreePath | undefined, now: TreePath, after: Snapshot): boolean {
    if (old !== now) return false;
    const [was, is] = [Side.at(this.before, old), Side.at(after, now)];
    const isComparable = was !== undefined && is !== undefined && was.type === is.type && isGits(is.type);
    try {
      return isComparable && !was.isSecret && gitMode(was) === gitMode(is) && was.hasContentOf(is);
    } catch (error) {
      // What cannot be read is looked at again when it is written, and told of there.
      if (error instanceof Refusal) return false;
      throw error;
    }
  }

  private *file(snapshot: Snapshot, path: TreePath): Generator<Uint8Array> {
    const { omit, isRedacted } = this.options, side = Side.at(snapshot, path);
    if (side === undefined || side.type === 'directory') return;
    const refused = refusalOf(side);
    if (refused !== undefined) {
      omit(refused);
      return;
    }
    if (side.type === 'file' && (isRedacted(path) || side.isSecret)) {
      const bytes = standIn(side.version());
      omit({ path, kind: 'redacted', words: `content of ${gitName(path)}, redacted` });
      yield* data(`M ${gitMode(side)} inline ${gitName(path)}\n`, bytes.length, [bytes]);
      return;
    }
    const pieces = side.type === 'symlink' ? [...side.chunks()] : begun(side.spot, snapshot.chunks(side.spot, side.size), omit);
    if (pieces !== undefined) yield* data(`M ${gitMode(side)} inline ${gitName(path)}\n`, side.size, pieces);
  }

  private head({ author, time, text: words }: Message): Uint8Array {
    const message = toBytes(words), who = `${identityOf(author)} ${Math.floor(Date.parse(time) / 1000)} +0000`;
    return Buffer.concat([text(`commit refs/heads/${this.options.branch}\nauthor ${who}\ncommitter ${who}\ndata ${message.length}\n`), message, text('\n')]);
  }
}

/** Why git cannot have what is there. */
function refusalOf({ path, type }: Side): Omission | undefined {
  if (isRefusedByGit(path, type)) return repository(path);
  return isGits(type) ? undefined : { path, kind: 'special', words: `${type} ${gitName(path)}` };
}

function repository(path: TreePath): Omission {
  return { path, kind: 'repository', words: `${gitName(path)}, which git takes for its own` };
}

function* data(command: string, size: number, pieces: Iterable<Uint8Array>): Generator<Uint8Array> {
  yield text(`${command}data ${size}\n`);
  yield* pieces;
  yield text('\n');
}

/** An actor as git names people: what its format gives a meaning to is left out. */
function identityOf(actor: string): string {
  const name = actor.replace(/[<>\0-\x1f\x7f]+/g, ' ').trim() || 'unnamed';
  return `${name} <${name.replace(/[^\w.+-]+/g, '-')}@palimpsest.invalid>`;
}

function text(line: string): Buffer {
  return Buffer.from(line);
}

import { existsSync } from 'node:fs';
import { typeOf } from '../core/attr.ts';
import type { Event, Op } from '../core/event.ts';
import { observationOf, type Observation } from '../core/observation.ts';
import { isWithin, type PathName, type TreePath } from '../core/path.ts';
import { find, nodeOf } from '../core/state.ts';
import { WHITEOUT, type Entry } from '../core/tree.ts';
import type { Version } from '../core/version.ts';
import type { Incident } from '../core/incident.ts';
import type { Totals } from '../core/statistics.ts';
import { summaryOf, type Summary } from '../core/summary.ts';
import { Changes, type Change, type ChangeKind } from '../overlay/changes.ts';
import { versionOfList } from '../overlay/hash.ts';
import { Kernel } from '../overlay/kernel.ts';
import { Namespace } from '../overlay/namespace.ts';
import { createNodeFs, type NodeFs } from '../overlay/node/fs.ts';
import { Served } from '../overlay/served.ts';
import type { World } from '../overlay/world.ts';
import type { Decider } from '../core/guard.ts';
import { GuardedFiles } from '../policy/guarded-files.ts';
import type { Difference } from '../replay/difference.ts';
import { Moments } from '../replay/moments.ts';
import { closure } from './discard.ts';
import { differencesBetween, EXPORT_KEYS, exported, patchOf, type ExportOptions, type Exports, type Patch } from './exports.ts';
import { checkKeys, eventMatcher, type EventFilter } from './filter.ts';
import { followEvents } from './follow.ts';
import { loadProcesses, type Mountable, type OverlayMount, type RunOptions, type RunResult } from './processes.ts';
import { momentOf } from './moment.ts';
import { openWorld, publishable, type Publishable } from './open.ts';
import { checkOptions, isDecider, type OverlayOptions } from './options.ts';
import { demandWhole, recoverAll, rootsGiven } from './interrupted.ts';
import { learnPublished } from '../commit/intent.ts';
import { replayedWorld, type ReplayOptions } from './replay.ts';
import { Publisher, type PublishOptions } from './publisher.ts';
import type { Receipt } from '../commit/commit.ts';
import type { RevertReceipt } from '../commit/revert.ts';
import { spoken, spokenEach, spokenLater } from './spoken.ts';

/** An overlay as one actor has it. */
export class ActorView {
  /** `node:fs`-shaped, all of it over the overlay. */
  readonly fs: NodeFs;
  readonly actor: string;
  private readonly world: World;
  private guarded: GuardedFiles | undefined = undefined;

  constructor(world: World, actor: string) {
    this.world = world;
    this.actor = actor;
    this.fs = createNodeFs(new Kernel(world, actor));
  }

  /** The same files as a layer of tools has them: whole, and guarded by what this actor has seen. */
  get files(): GuardedFiles {
    return this.guarded ??= new GuardedFiles(this.world, this.actor);
  }

  /** What this actor has seen of a path: unseen, absent, or present at a version. */
  observation(path: string): Observation {
    return spoken('observation', () => {
      this.world.session.publish();
      return observationOf(this.world.state.observations, this.actor, treePath(this.world, path));
    });
  }
}

/**
 * A copy-on-write overlay over a lower that stays untouched, and the log of all that was seen and done through it.
 * Paths given to its own methods are relative to the root, or absolute below the mount point.
 */
export class Overlay extends ActorView {
  private readonly all: World;
  private readonly views = new Map<string, ActorView>();
  private servedOnce: Served | undefined = undefined;
  private readonly mounts = new Set<OverlayMount>();
  private readonly publisher: Publisher;
  private closed = false;
  /** What this one is over, where that is another overlay of ours. */
  private beneath: Overlay | undefined = undefined;
  private momentsOnce: Moments | undefined = undefined;
  /** Of a moment: its lower is that of the overlay it is a moment of. */
  private readonly isMoment: boolean;

  private constructor(world: World, actor: string, to: Publishable | 'moment') {
    super(world, actor);
    this.all = world;
    this.isMoment = to === 'moment';
    this.publisher = new Publisher(world, to === 'moment' ? { kind: 'stack', roots: [] } : to);
    this.views.set(actor, this);
  }

  /**
   * Opens an overlay. Throws TypeError for an unknown or ill-typed option, an error with `code` ENOENT or ENOTDIR for a
   * root that is no directory, ERR_INTERRUPTED_COMMIT for one whose commit was interrupted, `LockedSessionError`, `SessionError` or `CorruptLogError` for the session directory.
   */
  static openSync(options: OverlayOptions): Overlay {
    checkOptions(options);
    return spoken('open', () => {
      const { replay, ...rest } = options;
      if (replay !== undefined) return Overlay.overReplayed(replay, rest);
      // First the world: it says in words what is wrong with a root.
      const world = openWorld(options), overlay = new Overlay(world, options.actor ?? 'main', publishable(options));
      try {
        demandWhole(overlay.publisher.roots);
        if (options.readOnly !== true) learnPublished(world);
      } catch (error) {
        overlay.closeSync();
        throw error;
      }
      return overlay;
    });
  }

  /** As `openSync`; rejects where that throws. A commit to the root that was interrupted is ended first. */
  static async open(options: OverlayOptions): Promise<Overlay> {
    checkOptions(options);
    await recoverAll(rootsGiven(options));
    return Overlay.openSync(options);
  }

  /**
   * The overlay as it was at a moment of a session (its end, where none is named), from the session directory alone: read-only, over the lower as the
   * session has kept it (`record: 'content'`): as it was shown last up to then, else as it was first shown later. What it has not kept is an error with `code` ERR_NOT_RECORDED, on a mount EIO. The lower is
   * not needed, and not looked at.
   */
  static replaySync(session: string, options: ReplayOptions = {}): Overlay {
    checkKeys('replay', options, ['at', 'mountPoint']);
    return spoken('replay', () => new Overlay(replayedWorld(session, options), 'main', 'moment'));
  }

  private static overReplayed({ session, at }: NonNullable<OverlayOptions['replay']>, options: OverlayOptions): Overlay {
    const beneath = Overlay.replaySync(session, { mountPoint: '/', ...(at !== undefined && { at }) });
    try {
      const given = { ...options, lower: beneath.fs }, overlay = new Overlay(openWorld(given), options.actor ?? 'main', publishable(given));
      overlay.beneath = beneath;
      return overlay;
    } catch (error) {
      beneath.closeSync();
      throw error;
    }
  }

  /** Names in the directory at `path` that the overlay itself has changed: all that is known of one whose list was not recorded. */
  knownNames(path: string): readonly string[] {
    const found = find(this.all.state, treePath(this.all, path));
    if (found === undefined || found === WHITEOUT || 'lower' in found) return [];
    return (found.names?.names() ?? []).filter((name) => nodeOf(this.all.state, found.names?.get(name) as Entry) !== WHITEOUT);
  }

  /** As `replaySync`; rejects where that throws. */
  static async replay(session: string, options: ReplayOptions = {}): Promise<Overlay> {
    return Overlay.replaySync(session, options);
  }

  /**
   * Mounts the overlay for all processes of this mount namespace, live: what they do shows here at once, and the other way
   * round. Needs root and FUSE. Requests are answered from the event loop: this process itself must not call the mount
   * synchronously. Rejects with a `MachineError` in words where the machine or the mount point does not allow it.
   */
  async mount(mountPoint: string): Promise<OverlayMount> {
    const mounted = await (await loadProcesses()).mount(this.mountable, mountPoint);
    this.mounts.add(mounted);
    void mounted.ended.catch(() => undefined).finally(() => this.mounts.delete(mounted));
    return mounted;
  }

  /**
   * Runs a command over the overlay, in place: it sees the tree under its usual path, in namespaces of its own. Needs FUSE, and
   * root or the capability to mount. The lower has to be one directory.
   */
  async run(command: string, args: readonly string[] = [], options: RunOptions = {}): Promise<RunResult> {
    if (typeof command !== 'string' || command === '') throw new TypeError('run: the command has to be a non-empty string');
    checkKeys('run', options, ['cwd', 'env', 'stdio', 'timeout', 'signal', 'network', 'outside']);
    return (await loadProcesses()).run(this.mountable, [command, ...args], options);
  }

  private get mountable(): Mountable {
    const { all } = this, { root } = all.session.store.header;
    this.servedOnce ??= new Served(all);
    return {
      served: this.servedOnce, actor: this.actor, root: typeof root === 'string' && root.startsWith('/') && existsSync(root) ? root : undefined,
      session: all.session.store.directory, get head() { return { seq: all.state.seq }; },
      discard: (paths) => this.discard(paths === undefined ? {} : { paths }),
    };
  }

  /** The overlay as a shell that is no node:fs asks for it: the mount. */
  get served(): Served {
    return this.servedOnce ??= new Served(this.all);
  }

  /**
   * The overlay as it was after event `seq` (0: before all), or after the last mark of a label: read-only, over the lower as it is now, by the rules that hold
   * now. It costs the events since the nearest checkpoint, or since the nearest moment that was asked for before. It is over when this overlay is
   * closed. Throws `MomentError` where there is no such event or mark.
   */
  at(moment: number | string): Overlay {
    return spoken('at', () => {
      this.momentsOnce ??= new Moments(this.all.session.store);
      return new Overlay(momentOf(this.all, this.momentsOnce, moment), this.actor, 'moment');
    });
  }

  /** The same overlay for another actor. */
  as(actor: string): ActorView {
    if (typeof actor !== 'string' || actor === '') throw new TypeError('an actor has to be a non-empty string');
    let view = this.views.get(actor);
    if (view === undefined) this.views.set(actor, view = new ActorView(this.all, actor));
    return view;
  }

  /**
   * Lets `policy` decide what tools may change, for every actor, as long as no other was there before it. Gives what takes it out again; what
   * the actors have seen stays, and it may be put back. Throws TypeError for what is no policy.
   */
  use(policy: Decider): () => void {
    if (!isDecider(policy)) throw new TypeError('use: a policy is needed, as observationPolicy() makes it');
    return this.all.deciders.register(policy);
  }

  /** Names this point of the log. Gives its sequence number. Throws TypeError for data that is no JSON. */
  mark(label: string, data?: unknown): number {
    return spoken('mark', () => {
      if (typeof label !== 'string') throw new TypeError('the label of a mark has to be a string');
      const text = JSON.stringify(data) as string | undefined;
      if (text === undefined && data !== undefined) throw new TypeError('the data of a mark has to be JSON');
      const plain: unknown = text === undefined ? undefined : JSON.parse(text);
      const { seq } = this.all.session.append(this.actor, { op: 'mark', label, ...(plain === undefined ? undefined : { data: plain }) });
      this.all.session.publish();
      return seq;
    });
  }

  /** The events so far, in order; of the ops asked for, where the filter names some. Throws `CorruptLogError`. */
  *events<O extends Op = Op>(filter: EventFilter<O> = {}): Generator<Extract<Event, { op: O }>> {
    const matches = eventMatcher(filter);
    const source = spoken('events', () => this.all.session.events(filter.from, filter.to));
    for (const event of spokenEach('events', source)) {
      if (matches(event)) yield event as Extract<Event, { op: O }>;
    }
  }

  /**
   * What was read, listed, looked at, missed, flagged and refused, by whom, in the events that `filter` asks for; and how many rows of
   * `changes()` there are now, by kind.
   */
  summary(filter: EventFilter = {}): Summary & { readonly changes: Readonly<Partial<Record<ChangeKind, number>>> } {
    const changes: Partial<Record<ChangeKind, number>> = {};
    for (const { kind } of this.changes()) changes[kind] = (changes[kind] ?? 0) + 1;
    return { ...summaryOf(this.events(filter)), rules: this.all.state.rules, changes };
  }

  /**
   * How much happened in all, by op and by actor, with flags and refusals. From the state: it takes no longer for a longer log. The value is
   * of this moment.
   */
  totals(): Totals & { readonly flags: readonly Incident[]; readonly refusals: readonly Incident[] } {
    const { totals, incidents } = this.all.state, told = [...incidents.values()];
    return {
      ...structuredClone(totals), flags: told.filter(({ op }) => op === 'flag'), refusals: told.filter(({ op }) => op === 'refuse'),
    };
  }

  /** New events as they are published, until the iteration is ended or the overlay closed. */
  follow(): AsyncIterableIterator<Event> {
    return followEvents(this.all.session);
  }

  /** The version of what is at `path` now, hashed if need be; `undefined` where nothing is, or no file or directory. */
  version(path: string): Version | undefined {
    return spoken('version', () => {
      const { all } = this;
      all.session.publish();
      const look = all.walker.look(all.walker.seenAs(treePath(all, path)) as PathName, { follow: true });
      if (look.kind !== 'spot') return undefined;
      const { spot } = look, type = spot.node?.type ?? typeOf(all.attributes.of(spot).mode);
      if (type === 'directory') return versionOfList(new Namespace(all).entries(spot));
      if (type !== 'file') return undefined;
      return spot.node === undefined ? all.versionOfLower(spot.origin as TreePath) : all.contents.versionOf(spot.node);
    });
  }

  /** `sha256:…` over all changes: the same changes, made in any order, give the same. */
  treeVersion(): Version {
    return Changes.versionOf(this.changes());
  }

  /** The absolute path under which the tree is seen. */
  get mountPoint(): string {
    return this.all.walker.mountPoint;
  }

  /** Bytes of a torn last line that opening the session had to cut off its log; 0 where it was whole. */
  get tornBytes(): number {
    return this.all.session.store.tornBytes;
  }

  /** The last event, and the hash over the log up to it: what a later `verify` can be held to. */
  get head(): { seq: number; seal: Version } {
    return spoken('head', () => {
      this.all.session.publish();
      return { seq: this.all.state.seq, seal: this.all.session.store.sealHash() };
    });
  }

  /** The final difference to the lower: one row a path, sorted by path. */
  changes(): readonly Change[] {
    return spoken('changes', () => {
      this.all.session.publish();
      return Changes.of(this.all);
    });
  }

  /**
   * What is different from the lower, or from the tree that `since` is, file by file as git would show it, sorted by path. Each is made when
   * it is asked for. To look at it is no observation.
   */
  differences(options: ExportOptions & { readonly since?: Overlay } = {}): Generator<Difference> {
    checkKeys('differences', options, ['since', 'paths', 'redact']);
    const { since, paths, redact } = options, { all } = this;
    const found = spoken('differences', () => differencesBetween(all, since?.all, { paths: paths?.map((path) => treePath(all, path)), redact }));
    return spokenEach('differences', found);
  }

  /**
   * The changes as a patch that `git apply` takes: with binary contents, modes, renames and symlinks, of a renamed directory each file. What
   * git has no words for is in its `omitted`. All of it is held in memory: `differences()` gives it piece by piece.
   */
  patch(options: ExportOptions = {}): Patch {
    checkKeys('patch', options, ['paths', 'redact']);
    return spoken('patch', () => patchOf(this.differences(options)));
  }

  /**
   * What happened, or the tree that came of it, in a format of others, a piece at a time: of any size in flat memory. `onOmitted` hears of
   * what that format, or `redact`, leaves out. Throws an error with `code` EIO where a file beneath changes while it is told.
   */
  export<F extends keyof Exports>(format: F, options: Exports[F]): Generator<Uint8Array> {
    if (!Object.hasOwn(EXPORT_KEYS, format)) throw new TypeError(`export: unknown format "${format}"`);
    checkKeys('export', options, EXPORT_KEYS[format]);
    const { paths } = options as ExportOptions, { all } = this;
    return spokenEach('export', spoken('export', () => exported(all, format, options, paths?.map((path) => treePath(all, path)))));
  }

  /**
   * Throws changes away: all, or those at and below `paths` with what they need (both ends of a rename). Open
   * descriptors keep what they hold. Throws ENOENT naming a path that is not changed, EBUSY for one that cannot go without
   * a change above it.
   */
  discard(options: { readonly paths?: readonly string[] } = {}): void {
    return spoken('discard', () => {
      const { all } = this;
      checkKeys('discard', options, ['paths']);
      const changes = options.paths === undefined && !all.watchers.areAny ? [] : this.changes();
      const paths = options.paths && closure(all.state, changes, options.paths.map((path) => treePath(all, path)));
      all.session.append(this.actor, { op: 'discard', ...(paths === undefined ? undefined : { paths }) });
      all.session.publish();
      all.inodes.forsake(all.state);
      for (const { path } of changes) if (paths === undefined || paths.some((each) => isWithin(path, each))) all.watchers.renamed(path);
    });
  }

  /**
   * Publishes changes to the lower: all, or those at and below `paths` with what they need (the directories above them, both ends of a
   * rename, all names of a file), all of them or none. Expects what they are based on to be there still; with guard `reads` also all
   * that anybody has read, listed or missed; with `none` nothing. Rejects with a `ConflictError` of all conflicts, with an error that
   * names the path and the cause, or with ENOENT for a path that is not changed: then nothing was done. While it is under way, changes are EBUSY.
   */
  async commit(options: PublishOptions = {}): Promise<Receipt> {
    return spokenLater('commit', this.publisher.commit(this.actor, options, (path) => treePath(this.all, path)));
  }

  /**
   * Takes back what a commit of this session did, and nothing else. Rejects with a `ConflictError` where something of it was changed
   * since: then nothing was done.
   */
  async revert(id: string): Promise<RevertReceipt> {
    return spokenLater('revert', this.publisher.revert(this.actor, id));
  }

  /** Every event so far is where `durability` says. */
  async flush(): Promise<void> {
    return spoken('flush', () => {
      this.all.session.flush();
    });
  }

  /** Seals and closes the session. Descriptors still open are closed. A second call does nothing. */
  async close(): Promise<void> {
    for (const mounted of this.mounts) await mounted.unmount();
    this.closeSync();
  }

  /** As `close`, where nothing is mounted. Throws `Error` where something is: unmounting takes time. */
  closeSync(): void {
    return spoken('close', () => {
      if (this.closed) return;
      if (this.mounts.size > 0) throw new Error('the overlay is mounted: unmount it first, or close it by close()');
      this.closed = true;
      const { all } = this;
      for (const fd of all.descriptors.open()) all.inodes.release(all.descriptors.remove(fd).inode);
      try {
        all.session.close(this.actor);
      } finally {
        if (!this.isMoment) all.lower.close();
        this.beneath?.closeSync();
      }
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** A path of the tree: as it is, or absolute below the mount point. */
function treePath(world: World, path: string): TreePath {
  if (typeof path !== 'string') throw new TypeError('a path has to be a string');
  const mount = world.walker.mountPoint;
  const rest = path === mount ? '' : path.startsWith(mount === '/' ? '/' : mount + '/') ? path.slice(mount === '/' ? 1 : mount.length + 1) : path;
  const parts = rest.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..') || rest.startsWith('/')) throw new TypeError(`"${path}" is no path of the tree`);
  return parts.join('/') as TreePath;
}


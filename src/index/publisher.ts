import { commit, type CommitOptions, type Guard, type Receipt } from '../commit/commit.ts';
import { revert, type RevertReceipt } from '../commit/revert.ts';
import type { TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import type { World } from '../overlay/world.ts';
import type { Durability } from '../store/store.ts';
import { checkKeys } from './filter.ts';
import { rootsOf } from './interrupted.ts';
import type { Publishable } from './open.ts';

/** What is to be published, and how: see `Overlay.commit`. */
export interface PublishOptions {
  readonly paths?: readonly string[];
  readonly guard?: Guard;
  /** With guard `reads`: the actor whose looks count. Default: everybody's. */
  readonly reader?: string;
  readonly dryRun?: boolean;
  readonly durability?: Durability;
  readonly onProgress?: (done: number, all: number) => void;
}

const GUARDS: readonly unknown[] = ['changed', 'reads', 'none'];
const DURABILITIES: readonly unknown[] = ['memory', 'flush', 'write', 'fsync'];

/** Commits and reverts of one overlay: one at a time. */
export class Publisher {
  private readonly world: World;
  private readonly to: Publishable;
  private last: Promise<unknown> = Promise.resolve();

  constructor(world: World, to: Publishable) {
    this.world = world;
    this.to = to;
  }

  commit(actor: string, options: PublishOptions, treePath: (path: string) => TreePath): Promise<Receipt> {
    checkKeys('commit', options, ['paths', 'guard', 'reader', 'dryRun', 'durability', 'onProgress']);
    const { paths, guard, durability } = options;
    if (guard !== undefined && !GUARDS.includes(guard)) throw new TypeError(`commit: guard has to be 'changed', 'reads' or 'none'`);
    if (durability !== undefined && !DURABILITIES.includes(durability)) {
      throw new TypeError(`commit: durability has to be 'memory', 'flush', 'write' or 'fsync'`);
    }
    const given: CommitOptions = { ...options, paths: paths?.map(treePath) };
    return this.inTurn(() => commit(this.world, actor, this.root, given));
  }

  revert(actor: string, id: string): Promise<RevertReceipt> {
    if (typeof id !== 'string' || id === '') throw new TypeError('revert: the id of a commit has to be a non-empty string');
    return this.inTurn(() => revert(this.world, actor, this.root, id));
  }

  /** The directories that it publishes to. */
  get roots(): readonly string[] {
    return rootsOf(this.to);
  }

  private get root(): string {
    if (this.world.session.isReadOnly) throw new Refusal('EROFS', { reason: 'the session is open to be read only' });
    if (this.to.kind === 'directory') return this.to.root;
    throw new Refusal('ENOTSUP', { reason: 'not supported: to commit to what is no directory' });
  }

  private inTurn<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.last.then(act);
    this.last = turn.catch(() => undefined);
    return turn;
  }
}

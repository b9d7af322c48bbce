import { join } from 'node:path';
import type { Attr } from '../core/attr.ts';
import { ROOT, type TreePath } from '../core/path.ts';
import { STAGING_NAME, type Conflict, type NewNode, type Reliance, type Step } from '../core/plan.ts';
import type { Durability } from '../store/store.ts';
import { Barrier } from './barrier.ts';
import { canCarry, Carrier } from './carrier.ts';
import { Examiner } from './examiner.ts';
import { CommitError, ConflictError, isFault } from './fault.ts';
import { Ground } from './ground.ts';
import { Journal, JournalWriter } from './journal.ts';
import { lateWrites } from './late.ts';
import type { Keeper } from './known.ts';
import { Losses, type Loss } from './losses.ts';
import { Mounts } from './mounts.ts';
import { Preparation } from './preparation.ts';
import { LateConflict, Publication } from './publication.ts';
import { goBack, recoverSite, type Recovery } from './recovery.ts';
import { Rescuer, type Rescue } from './rescue.ts';
import { Site } from './site.ts';
import type { Left } from './undoing.ts';
import type { Volume } from './volume.ts';
import { Volumes } from './volumes.ts';

/** ms that a commit waits for another one on the same root. */
const PATIENCE_MS = 10_000;
/** ms after which others get their turn. */
const TURN_MS = 25;

/** A commit as the disk sees it: steps, all of them or none, under the root. */
export interface Transaction {
  /** Of the commit: letters, digits, `_` and `-`. */
  readonly id: string;
  /** Real path of the lower's root. */
  readonly root: string;
  /** Gone through several times, and the same each time. */
  readonly steps: Iterable<Step>;
  /** How many there are; for progress. */
  readonly count: number;
  readonly reliances: Iterable<Reliance>;
  /** `'none'`: what is there is replaced and removed whatever it is; expectations only say how to take it back. */
  readonly guard: 'expectations' | 'none';
  readonly durability: Durability;
  /** Most ms to wait for another committer on this root; default 10,000. */
  readonly patience?: number;
  /**
   * For each file that goes away, its bytes as they were verified, before anything changes: what a revert needs. `path` is its
   * name in the lower before the commit.
   */
  keep?(path: TreePath, size: number): Keeper;
  /** After a step is done: what is at its path now, if anything. All of it counts only once `transact` is done. */
  published?(index: number, now: Attr | undefined): void;
  /**
   * All is done, and for good: to be written down by whoever wants to know. Where the process ends before that is over, or it
   * throws (which `transact` then throws, though all is done), `wasPublished` tells of it later.
   */
  confirm?(): void | Promise<void>;
  /** An earlier commit was interrupted, and has been ended before this one began. */
  recovered?(recovery: Recovery): void;
  /** Each step counts twice: when it is staged, when it is published. */
  progress?(done: number, all: number): void;
}

/** What would happen, and what can be said against it. */
export interface Forecast {
  /** All, in the order of the steps. Where there are any, nothing happens. */
  readonly conflicts: readonly Conflict[];
  readonly losses: readonly Loss[];
}

export interface Done {
  readonly durationNs: bigint;
  readonly losses: readonly Loss[];
  /** What outsiders wrote meanwhile into files that the commit replaced or removed: conflicts noticed when all was done already. */
  readonly late: readonly Rescue[];
  /** Why staging could not be removed, where it could not; the next recovery does that. */
  readonly leftover: string | undefined;
}

/** What `transact` would find, without writing anything. Throws `CommitError` for what cannot be looked at or can never be done. */
export function forecast(transaction: Transaction): Forecast {
  const ground = new Ground(transaction.root);
  try {
    return examine(transaction, ground, new Mounts(ground));
  } finally {
    ground.close();
  }
}

/**
 * Does all steps, or none. Throws `ConflictError` with all conflicts, `LockedRootError` where another committer is at
 * it for longer than patience lasts, `CommitError` for whatever the system refuses: then the disk is as before.
 */
export async function transact(transaction: Transaction): Promise<Done> {
  const started = process.hrtime.bigint();
  const ground = new Ground(transaction.root);
  try {
    if (isNothing(transaction.steps)) {
      const { conflicts, losses } = examine(transaction, ground, new Mounts(ground));
      if (conflicts.length > 0) throw new ConflictError(ground.root, conflicts);
      return { durationNs: process.hrtime.bigint() - started, losses, late: [], leftover: undefined };
    }
    const site = await Site.take(ground, transaction.patience ?? PATIENCE_MS);
    if (site.phase() !== undefined) {
      const { recovery, volumes } = await recoverSite(ground, site);
      site.clear(volumes);
      for (const volume of volumes) if (volume !== site.volume) volume.close();
      if (recovery.outcome !== 'nothing') transaction.recovered?.(recovery);
    }
    const done = await new Committer(transaction, ground, site).commit();
    return { durationNs: process.hrtime.bigint() - started, ...done };
  } finally {
    ground.close();
  }
}

/** One commit under its lock, from examination to the end. */
class Committer {
  private readonly transaction: Transaction;
  private readonly ground: Ground;
  private readonly site: Site;
  private readonly writer: JournalWriter;
  private readonly volumes: Volumes;
  private turn = performance.now();

  constructor(transaction: Transaction, ground: Ground, site: Site) {
    this.transaction = transaction;
    this.ground = ground;
    this.site = site;
    this.writer = this.begin();
    this.volumes = new Volumes(ground, transaction.id, site.volume, ({ index, path }) => this.writer.volume(index, path));
  }

  async commit(): Promise<Omit<Done, 'durationNs'>> {
    let losses: readonly Loss[], isOver = false;
    try {
      losses = await this.prepare();
      await this.publish();
      isOver = true;
    } finally {
      if (!isOver) this.leaveSilently();
    }
    await this.confirm();
    const { late, leftover } = this.finish();
    return { losses, late, leftover };
  }

  private begin(): JournalWriter {
    try {
      return new JournalWriter(this.site.volume.name('staging'), this.transaction.id, this.ground.root, this.transaction.confirm !== undefined);
    } catch (error) {
      this.tidy([this.site.volume]);
      throw CommitError.of(this.ground.root, ROOT, error);
    }
  }

  /**
   * Verifies and stages everything, and seals the journal: up to here nothing of the tree has changed. From the first conflict on
   * nothing more is staged, but all is verified.
   */
  private async prepare(): Promise<readonly Loss[]> {
    const { transaction, ground, volumes, writer } = this;
    try {
      const carrier = new Carrier(ground), examiner = new Examiner(ground, volumes.mounts, transaction.guard), losses = new Losses();
      const preparation = new Preparation({
        ground, volumes, journal: writer, examiner, carrier: canCarry() ? carrier : undefined, losses,
        keep: (path, size) => transaction.keep?.(path, size),
      }, linkedIn(transaction.steps));
      let index = 0;
      for (const step of transaction.steps) {
        await preparation.step(index, step);
        index++;
        transaction.progress?.(index, 2 * transaction.count);
        if (this.isTurn()) await this.giveTurn();
      }
      preparation.finish();
      this.rely(examiner);
      const conflicts = [...examiner.conflicts, ...preparation.conflicts];
      if (conflicts.length > 0) throw new ConflictError(ground.root, conflicts);
      await carrier.finish();
      writer.end();
      return losses.all();
    } catch (error) {
      throw isOurs(error) ? error : CommitError.of(ground.root, ROOT, error);
    } finally {
      writer.close();
    }
  }

  /** Verifies again, then does all of it, or takes it back. */
  private async publish(): Promise<void> {
    const { ground, site, transaction } = this, all = this.volumes.all;
    const journal = new Journal(site.volume.name('staging'), join(ground.root, STAGING_NAME, 'staging'), 'staging');
    try {
      const publication = new Publication(ground, all, transaction.guard), barrier = new Barrier(ground, all);
      const conflicts: Conflict[] = [];
      for (const entry of this.writer.kept ?? journal.entries()) {
        const conflict = publication.verify(entry);
        if (conflict !== undefined) conflicts.push(conflict);
        barrier.add(entry);
      }
      if (conflicts.length > 0) throw new ConflictError(ground.root, conflicts);
      if (transaction.durability === 'fsync') await barrier.staged();
      site.become('journal', 'staging');
      try {
        if (transaction.durability === 'fsync') site.volume.sync();
        await this.publishAll(journal, publication);
        if (transaction.durability === 'fsync') await barrier.published();
        site.become('done', 'journal');
      } catch (error) {
        throw await this.takeBack(journal, error);
      }
      if (transaction.durability === 'fsync') site.volume.sync();
    } catch (error) {
      throw isOurs(error) ? error : CommitError.of(ground.root, ROOT, error);
    } finally {
      journal.close();
    }
  }

  private async publishAll(journal: Journal, publication: Publication): Promise<void> {
    const { transaction, ground } = this;
    let step = -1;
    for (const entry of this.writer.kept ?? journal.entries()) {
      try {
        const later = publication.publish(entry);
        if (later !== undefined) await later;
      } catch (error) {
        throw error instanceof LateConflict ? error : CommitError.of(ground.root, entry.path, error);
      }
      if (entry.act === 'below') continue;
      transaction.published?.(entry.n, ground.find(entry.act === 'move' ? entry.to : entry.path));
      if (entry.n > step) {
        step = entry.n;
        transaction.progress?.(transaction.count + step + 1, 2 * transaction.count);
      }
      if (this.isTurn()) await this.giveTurn();
    }
    publication.finish();
  }

  /** Gives the error to be thrown. */
  private async takeBack(journal: Journal, error: unknown): Promise<unknown> {
    const { ground, site, transaction } = this;
    const fault = error instanceof LateConflict ? new ConflictError(ground.root, [error.conflict]) : isOurs(error) ? error : CommitError.of(ground.root, ROOT, error);
    let left: readonly Left[];
    try {
      const volumes = new Map(this.volumes.all.map((volume) => [volume.index, volume]));
      left = await goBack(ground, site, journal, volumes, new Rescuer(ground, transaction.id));
    } catch (second) {
      return fault instanceof CommitError ? fault.strandedBy(second) : CommitError.of(ground.root, ROOT, second).strandedBy(second);
    }
    if (left.length === 0) return fault;
    const conflicts = fault instanceof ConflictError ? fault.conflicts : [];
    return new ConflictError(ground.root, [...conflicts, ...left.map(leftConflict)], fault);
  }

  private async confirm(): Promise<void> {
    const { transaction, site } = this;
    if (transaction.confirm === undefined) return;
    let isOver = false;
    try {
      await transaction.confirm();
      isOver = true;
    } finally {
      if (!isOver) site.abandon(this.volumes.all);
    }
    try {
      site.become('confirmed', 'done');
    } catch (error) {
      // Then it will be told once more.
      if (!isFault(error)) throw error;
    }
  }

  private rely(examiner: Examiner): void {
    if (this.transaction.guard === 'none') return;
    for (const reliance of this.transaction.reliances) examiner.rely(reliance);
  }

  /** Everything is done: nothing that goes wrong from here on makes it undone. */
  private finish(): { late: readonly Rescue[]; leftover: string | undefined } {
    const { site } = this, all = this.volumes.all;
    let late: readonly Rescue[] = [], leftover: string | undefined;
    // What fails once may be a fault of the moment.
    for (let attempt = 0; attempt < 2; attempt++) {
      leftover = undefined;
      try {
        late = this.lateWrites();
        break;
      } catch (error) {
        leftover = String((error as Error).message);
      }
    }
    if (leftover === undefined) leftover = this.tidy(all);
    else site.abandon(all);
    return { late, leftover };
  }

  private lateWrites(): readonly Rescue[] {
    const { ground, site, transaction, writer } = this, rescuer = new Rescuer(ground, transaction.id);
    const volumes = new Map(this.volumes.all.map((volume) => [volume.index, volume]));
    if (writer.kept !== undefined) return lateWrites(ground, writer.kept, volumes, rescuer);
    const phase = site.phase() ?? 'done';
    const journal = new Journal(site.volume.name(phase), join(ground.root, STAGING_NAME, phase), phase);
    try {
      return lateWrites(ground, journal.entries(), volumes, rescuer);
    } finally {
      journal.close();
    }
  }

  /** After a failure, which is what the caller is told of: where even tidying fails the next recovery does it. */
  private leaveSilently(): void {
    if (this.site.phase() === 'journal') this.site.abandon(this.volumes.all);
    else this.tidy(this.volumes.all);
  }

  /** Gives why it could not, where it could not. */
  private tidy(volumes: readonly Volume[]): string | undefined {
    const { site } = this;
    for (let attempt = 0; ; attempt++) {
      try {
        site.clear(volumes);
        site.leave(volumes);
        return undefined;
      } catch (error) {
        if (attempt < 2) continue;
        site.abandon(volumes);
        return String((error as Error).message);
      }
    }
  }

  private isTurn(): boolean {
    return performance.now() - this.turn >= TURN_MS;
  }

  private async giveTurn(): Promise<void> {
    await new Promise((resolve) => { setImmediate(resolve); });
    this.turn = performance.now();
  }
}

/** Compares everything with the disk. */
function examine(transaction: Transaction, ground: Ground, mounts: Mounts): Forecast {
  const examiner = new Examiner(ground, mounts, transaction.guard), losses = new Losses();
  for (const step of transaction.steps) losses.of(step, examiner.examine(step));
  if (transaction.guard !== 'none') for (const reliance of transaction.reliances) examiner.rely(reliance);
  return { conflicts: examiner.conflicts, losses: losses.all() };
}

/** Paths that later steps make other names of. */
function linkedIn(steps: Iterable<Step>): Set<TreePath> {
  const linked = new Set<TreePath>();
  for (const step of steps) {
    const node: NewNode | undefined = step.act === 'create' || step.act === 'replace' ? step.node : undefined;
    if (node?.type === 'link') linked.add(node.of);
  }
  return linked;
}

function isNothing(steps: Iterable<Step>): boolean {
  for (const step of steps) return step === undefined;
  return true;
}

function leftConflict({ path, found, saved }: Left): Conflict {
  const where = saved.map(({ side, path: place }) => `, ${side === 'before' ? 'what it was before' : 'what the commit made of it'} is now ${JSON.stringify(place)}`).join('');
  return { path, expected: 'as the commit had made it, to be taken back', actual: `${found}, changed since${where}` };
}

/** What needs no path and root any more, bugs included. */
function isOurs(error: unknown): boolean {
  return error instanceof ConflictError || error instanceof CommitError || !isFault(error);
}

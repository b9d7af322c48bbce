import { accessSync, constants } from 'node:fs';
import { PERMISSION_BITS, sameFingerprint, typeOf, type Attr } from '../core/attr.ts';
import { byteLength, childOf, NAME_MAX_BYTES, nameOf, parentOf, type TreePath } from '../core/path.ts';
import type { Below, Conflict, Expectation, HostState, Reliance, Step } from '../core/plan.ts';
import { Refusal } from '../core/refusal.ts';
import { unreachable } from '../core/unreachable.ts';
import { join } from '../lower/listing.ts';
import { versionOfList } from '../overlay/hash.ts';
import { CommitError } from './fault.ts';
import type { Ground } from './ground.ts';
import { digestOf } from './known.ts';
import type { Mounts } from './mounts.ts';
import { Origins } from './origins.ts';

/** Directories of which it is remembered that they may be written. */
const ALLOWED_DIRECTORIES = 1024;

/** What is at the name of a step before the commit begins. `disk` is absent where the commit itself makes what is there. */
export interface Finding {
  readonly disk?: TreePath;
  readonly attr?: Attr;
  /** Of a directory that goes away: lower paths in it that earlier steps have taken out of it. */
  readonly gone?: ReadonlySet<TreePath>;
}

/** Whose expectation it was, where somebody's in particular. */
type Holder = Pick<Conflict, 'actor' | 'seq' | 'time'>;

/**
 * Compares a plan with the disk, step by step, and collects the conflicts. Throws `CommitError` for what no plan can do:
 * a directory that may not be written, a name too long, something mounted on what is to go.
 */
export class Examiner {
  readonly conflicts: Conflict[] = [];
  private readonly ground: Ground;
  private readonly mounts: Mounts;
  private readonly guarded: boolean;
  private readonly origins = new Origins();
  /** Lower directories that may be written. */
  private readonly allowed = new Set<TreePath>();

  constructor(ground: Ground, mounts: Mounts, guard: 'expectations' | 'none') {
    this.ground = ground;
    this.mounts = mounts;
    this.guarded = guard === 'expectations';
  }

  /** Where a name is on the disk, at this point of the plan. */
  diskOf(path: TreePath): TreePath | undefined {
    const origin = this.origins.of(path);
    return origin.kind === 'disk' ? origin.path : undefined;
  }

  /** Looks at what `step` is about, and goes past it. */
  examine(step: Step): Finding {
    const path = step.act === 'move' ? step.from : step.path;
    try {
      const finding = this.finding(step);
      this.origins.pass(step);
      return finding;
    } catch (error) {
      throw CommitError.of(this.ground.root, path, error);
    }
  }

  rely({ path, expected, actor, seq, time }: Reliance): void {
    const holder: Holder = time === undefined ? { actor, seq } : { actor, seq, time };
    try {
      if ('listing' in expected) this.relyOnNames(path, expected.listing, holder);
      else this.expect(path, expected, this.ground.find(path), holder);
    } catch (error) {
      throw CommitError.of(this.ground.root, path, error);
    }
  }

  private finding(step: Step): Finding {
    switch (step.act) {
      case 'create': return this.free(step.path);
      case 'unpark': return this.free(step.path);
      case 'move': {
        this.writable(step.from);
        const found = this.present(step.from, step.before, undefined);
        const target = this.origins.of(step.to);
        // On a directory that folds case both spellings find the same file.
        const other = target.kind === 'disk' ? this.ground.find(target.path) : undefined;
        if (other === undefined || !isCaseOnly(step.from, step.to) || other.ino !== found.attr?.ino) this.free(step.to);
        return found;
      }
      case 'replace':
      case 'remove':
        this.writable(step.path);
        return this.present(step.path, step.before, step.below ?? []);
      case 'park':
        this.writable(step.path);
        return this.present(step.path, step.before, undefined);
      case 'adjust': return this.present(step.path, step.before, undefined);
      default: return unreachable(step);
    }
  }

  private free(path: TreePath): Finding {
    this.writable(path);
    const origin = this.origins.of(path);
    if (origin.kind === 'vacant') return {};
    if (origin.kind === 'new') {
      // Nobody can look there yet.
      if (byteLength(nameOf(path)) > NAME_MAX_BYTES) throw new Refusal('ENAMETOOLONG');
      return {};
    }
    const there = this.ground.lstat(origin.path);
    if (there === 'unwalkable') {
      this.conflict(parentOf(origin.path), 'a directory', this.ground.find(parentOf(origin.path)), {});
      return { disk: origin.path };
    }
    if (there === 'absent') return { disk: origin.path };
    this.conflict(origin.path, 'nothing', there, {});
    return { disk: origin.path, attr: there };
  }

  private present(path: TreePath, before: Expectation, below: Iterable<Below> | undefined): Finding {
    const origin = this.origins.of(path);
    if (origin.kind !== 'disk') throw new RangeError(`the plan changes ${JSON.stringify(path)}, which it has ${origin.kind === 'new' ? 'made' : 'taken away'} itself`);
    const disk = origin.path, attr = this.ground.find(disk);
    const holds = this.expect(disk, before, attr, {});
    if (attr === undefined) return { disk };
    if (below !== undefined && typeOf(attr.mode) === 'directory') {
      const mounted = this.mounts.within(disk);
      if (mounted !== undefined) throw CommitError.of(this.ground.root, mounted, new Refusal('EBUSY', { reason: 'something is mounted there' }));
      const gone = this.origins.gone(path);
      if (holds && this.guarded) this.expectBelow(disk, below, gone);
      return { disk, attr, gone };
    }
    return { disk, attr };
  }

  /** Everything in the directory is expected, and everything expected is there. */
  private expectBelow(disk: TreePath, below: Iterable<Below>, gone: ReadonlySet<TreePath>): void {
    const expected = new Map<TreePath, Expectation>();
    for (const { path, expected: expectation } of below) expected.set(this.lowerOf(path), expectation);
    for (const { path, attr } of walk(this.ground, disk, gone)) {
      const expectation = expected.get(path);
      expected.delete(path);
      if (expectation === undefined) this.conflict(path, 'nothing', attr, {});
      else this.expect(path, expectation, attr, {});
    }
    for (const [path, expectation] of expected) this.expect(path, expectation, undefined, {});
  }

  private lowerOf(path: TreePath): TreePath {
    const origin = this.origins.of(path);
    return origin.kind === 'disk' ? origin.path : path;
  }

  /** Whether what is at `disk`, which looks as `attr` says, is as expected; where not that is a conflict. */
  private expect(disk: TreePath, { state, aspects }: Expectation, attr: Attr | undefined, holder: Holder): boolean {
    if (!this.guarded) return true;
    const type = attr === undefined ? 'absent' : typeOf(attr.mode);
    if (type !== state.type) return this.conflict(disk, wordsOf(state), attr, holder);
    if (attr === undefined || state.type === 'absent') return true;
    if ((aspects === 'metadata' || aspects === 'all') && !hasMetadata(state, attr)) {
      return this.conflict(disk, metadataWords(state), metadataWords({ mode: attr.mode & PERMISSION_BITS, uid: attr.uid, gid: attr.gid }), holder);
    }
    return aspects === 'type' || aspects === 'metadata' || this.expectContent(disk, state, attr, holder);
  }

  private expectContent(disk: TreePath, state: HostState, attr: Attr, holder: Holder): boolean {
    switch (state.type) {
      case 'absent':
      case 'directory': return true;
      case 'symlink': {
        const target = this.ground.readlink(disk);
        return target === state.target || this.conflict(disk, wordsOf(state), wordsOf({ ...state, target }), holder);
      }
      case 'file': {
        const { fingerprint, version } = state;
        if (fingerprint !== undefined && sameFingerprint(fingerprint, attr)) return true;
        if (attr.size !== state.size) return this.conflict(disk, wordsOf(state), attr, holder);
        if (version === undefined) {
          return fingerprint === undefined || this.conflict(disk, 'as it was (its content was never hashed)', 'changed since', holder);
        }
        const now = digestOf(this.ground, disk);
        const found = now === undefined ? 'nothing' : now === 'moving' ? 'being written' : now.version;
        return found === version || this.conflict(disk, version, found, holder);
      }
      default:
        return attr.rdev === state.rdev || this.conflict(disk, `${wordsOf(state)} ${state.rdev}`, `${wordsOf(state)} ${attr.rdev}`, holder);
    }
  }

  private relyOnNames(path: TreePath, listing: string, holder: Holder): void {
    const attr = this.ground.find(path);
    if (attr === undefined || typeOf(attr.mode) !== 'directory') {
      this.conflict(path, 'a directory', attr, holder);
      return;
    }
    const now = versionOfList(this.ground.list(path));
    if (now !== listing) this.conflict(path, `a directory with the names ${listing}`, `one with the names ${now}`, holder);
  }

  /** Whether the directory of `path` may be written at all; asked once a directory. */
  private writable(path: TreePath): void {
    const origin = this.origins.of(parentOf(path));
    if (origin.kind !== 'disk' || this.allowed.has(origin.path)) return;
    if (this.ground.find(origin.path) === undefined) return;
    try {
      this.ground.inside(origin.path, (name) => accessSync(join(name, '.'), constants.W_OK | constants.X_OK));
    } catch (error) {
      // What is no directory (any more) is told as a conflict.
      if (error instanceof Refusal) return;
      throw CommitError.of(this.ground.root, origin.path, error);
    }
    if (this.allowed.size >= ALLOWED_DIRECTORIES) this.allowed.clear();
    this.allowed.add(origin.path);
  }

  private conflict(path: TreePath, expected: string, actual: Attr | string | undefined, holder: Holder): false {
    if (!this.guarded && holder.actor === undefined) return false;
    const found = typeof actual === 'string' ? actual : actual === undefined ? 'nothing' : describe(actual);
    this.conflicts.push({ path, expected, actual: found, ...holder });
    return false;
  }
}

const NONE: ReadonlySet<TreePath> = new Set();

/**
 * Everything below the directory `path` but what is `gone`, each directory before what it holds. Throws EBUSY where another file
 * system begins.
 */
export function* walk(ground: Ground, path: TreePath, gone = NONE): Generator<{ path: TreePath; attr: Attr }> {
  const dev = ground.find(path)?.dev;
  for (const { name } of ground.list(path)) {
    const child = childOf(path, name), attr = gone.has(child) ? undefined : ground.find(child);
    if (attr === undefined) continue;
    const isDirectory = typeOf(attr.mode) === 'directory';
    if (isDirectory && attr.dev !== dev) {
      throw CommitError.of(ground.root, child, new Refusal('EBUSY', { reason: 'another file system begins there' }));
    }
    yield { path: child, attr };
    if (isDirectory) yield* walk(ground, child, gone);
  }
}

/** What `attr` is of, for a human. */
export function describe(attr: Attr): string {
  const type = typeOf(attr.mode);
  return type === 'file' ? `a file of ${attr.size} bytes` : `a ${type}`;
}

function wordsOf(state: HostState): string {
  switch (state.type) {
    case 'absent': return 'nothing';
    case 'file': return `a file of ${state.size} bytes`;
    case 'symlink': return `a symlink to ${JSON.stringify(state.target)}`;
    default: return `a ${state.type}`;
  }
}

function metadataWords({ mode, uid, gid }: { mode: number; uid: number; gid: number }): string {
  return `mode ${mode.toString(8).padStart(4, '0')}, owner ${uid}:${gid}`;
}

function hasMetadata(state: Exclude<HostState, { type: 'absent' }>, attr: Attr): boolean {
  // A symlink has no mode of its own.
  return (state.type === 'symlink' || (attr.mode & PERMISSION_BITS) === state.mode) && attr.uid === state.uid && attr.gid === state.gid;
}

function isCaseOnly(a: TreePath, b: TreePath): boolean {
  return parentOf(a) === parentOf(b) && nameOf(a) !== nameOf(b) && nameOf(a).toLowerCase() === nameOf(b).toLowerCase();
}

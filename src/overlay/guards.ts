import type { Decision, Intent } from '../core/guard.ts';
import { isUndisturbed, linkLookOf, observationOf, type Observation, type Present } from '../core/observation.ts';
import type { TreePath } from '../core/path.ts';
import { Refusal, type FsCode } from '../core/refusal.ts';
import { NOTHING_SHOWN } from '../core/shown.ts';
import type { Version } from '../core/version.ts';
import { fingerprintRecord, originOf } from './attributes.ts';
import { versionOfList } from './hash.ts';
import { viaField, type Observed } from './recorder.ts';
import { Sieve } from './sieve.ts';
import { spotType, type Spot } from './spot.ts';
import type { World } from './world.ts';

type Verb = Intent['verb'];

/** Why a guard does not hold, in the words that follow `cannot write "…": `. */
export const GONE = 'file no longer exists';
export const CHANGED = 'file changed since it was read';
export const NOT_ALL_SHOWN = 'not all of it has been shown';

/** What has no content that could be seen before it is changed. */
const UNSEEABLE: ReadonlySet<string> = new Set(['fifo', 'socket', 'block', 'character']);

/**
 * Asks whoever decides for one actor, and holds what is there against the guard. Whoever calls it applies the change right after, with
 * nothing in between that could wait: that is one step to every other actor.
 */
export class Guards {
  private readonly world: World;
  readonly actor: string;
  private readonly sieve: Sieve | undefined;

  constructor(world: World, actor: string) {
    this.world = world;
    this.actor = actor;
    this.sieve = world.gate && new Sieve(world, world.gate);
  }

  /** Throws EPERM, and records a refusal, where what `verb` does to `target` (`undefined`: a name that is free) is not allowed. */
  demand(at: Observed, verb: Verb, target: Spot | undefined, call: string): void {
    if (this.world.deciders.current === undefined || (target !== undefined && UNSEEABLE.has(spotType(target)))) return;
    this.check(this.decide(at.path, verb, target), at, target, call);
  }

  /** What is decided about `verb` at a path; `undefined`: whatever is there. */
  decide(path: TreePath, verb: Verb, target: Spot | undefined): Decision {
    const { current } = this.world.deciders;
    if (current === undefined) return { kind: 'any' };
    // What its actor wrote last has its version only once it is published.
    this.world.session.publish();
    return current.decide({ verb, actor: this.actor, path }, this.seen(path, target));
  }

  /** Holds what is there against a decision. `version`: what it is known to be. Throws and records as `demand` does. */
  check(decision: Decision, at: Observed, target: Spot | undefined, call: string, version?: Version): void {
    switch (decision.kind) {
      case 'any': return;
      case 'refuse': throw this.refuse(at, call, decision.code);
      case 'absent':
        if (target !== undefined) throw this.refuse(at, call, 'FS_NOT_OBSERVED');
        return;
      case 'version':
        if (target === undefined) throw this.refuse(at, call, 'FS_STALE_VERSION', GONE);
        if ((version ?? this.versionOf(target)) !== decision.version) throw this.refuse(at, call, 'FS_STALE_VERSION', CHANGED);
        return;
      case 'seen':
        if (target === undefined) throw this.refuse(at, call, 'FS_STALE_VERSION', GONE);
        if (!this.isCurrent(decision.seen, target, version)) throw this.refuse(at, call, 'FS_STALE_VERSION', CHANGED);
        if (decision.shown === 'whole' && decision.seen.shown !== 'whole') throw this.refuse(at, call, 'FS_NOT_OBSERVED', NOT_ALL_SHOWN);
    }
  }

  /** Records that a call was refused; says so. */
  refuse(at: Observed, call: string, fsCode: FsCode, reason?: string): Refusal {
    this.world.recorder.refuse(this.actor, { path: at.path, ...viaField(at), call, code: fsCode });
    return new Refusal('EPERM', { fsCode, ...(reason === undefined ? undefined : { reason }) });
  }

  /** Whether what is there is what the actor saw. In doubt it is not. */
  isCurrent(seen: Present, spot: Spot, known?: Version): boolean {
    if (spotType(spot) === 'symlink') return this.isLinkCurrent(seen, spot);
    const version = known ?? (seen.version === undefined ? undefined : this.versionOf(spot));
    if (seen.version !== undefined) return version === seen.version;
    const { node } = spot;
    if (spotType(spot) === 'file' && (node === undefined || node.content.kind === 'lower')) return this.isPrintCurrent(seen, spot);
    if (node !== undefined && node.type === 'file' && node.contentSeq === seen.contentSeq) return true;
    return seen.contentSeq !== undefined && isUndisturbed(this.world.state.observations, this.actor, seen.contentSeq);
  }

  /** The version of a file or directory now; `undefined` of anything else, and of what has changed beneath the overlay's changes. */
  versionOf(spot: Spot): Version | undefined {
    const { world } = this, type = spotType(spot);
    if (type === 'directory') return versionOfList(this.sieve === undefined ? world.entries(spot) : this.sieve.shown(spot, world.entries(spot)));
    if (type !== 'file') return undefined;
    try {
      return spot.node === undefined ? world.versionOfLower(spot.origin as TreePath) : world.contents.versionOf(spot.node);
    } catch (error) {
      if (error instanceof Refusal && error.code === 'EIO') return undefined;
      throw error;
    }
  }

  /** What the actor has seen of a path. To have looked where a symlink leads is to have seen it. */
  private seen(path: TreePath, target: Spot | undefined): Observation {
    const { observations } = this.world.state, seen = observationOf(observations, this.actor, path);
    if (target === undefined || spotType(target) !== 'symlink') return seen;
    const look = linkLookOf(observations, this.actor, path);
    if (look === undefined || (seen.kind === 'present' && seen.contentSeq !== undefined && seen.contentSeq > look.seq)) return seen;
    return { kind: 'present', seq: look.seq, contentSeq: look.seq, version: undefined, fingerprint: undefined, shown: NOTHING_SHOWN };
  }

  private isLinkCurrent(seen: Present, spot: Spot): boolean {
    const { state, lower } = this.world, look = linkLookOf(state.observations, this.actor, spot.path);
    const target = spot.node?.target ?? lower.readlink(originOf(spot) as TreePath);
    if (look !== undefined && look.target === target) return true;
    return seen.contentSeq !== undefined && isUndisturbed(state.observations, this.actor, seen.contentSeq);
  }

  private isPrintCurrent({ fingerprint }: Present, spot: Spot): boolean {
    const attr = this.world.lower.lstat(originOf(spot) as TreePath), now = typeof attr === 'string' ? undefined : fingerprintRecord(attr);
    return fingerprint !== undefined && now !== undefined && now.ctime === fingerprint.ctime && now.mtime === fingerprint.mtime &&
      now.size === fingerprint.size && now.ino === fingerprint.ino && now.dev === fingerprint.dev;
  }
}

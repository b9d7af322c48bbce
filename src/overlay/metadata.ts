import { constants } from 'node:fs';
import { PERMISSION_BITS, type Attr } from '../core/attr.ts';
import { applyAttributes, type AttributeBody } from '../core/evolve.ts';
import { Refusal } from '../core/refusal.ts';
import { inodeRecord } from './attributes.ts';
import type { Guards } from './guards.ts';
import { READ, SEARCH, WRITE } from './permission.ts';
import { viaField, type Observed } from './recorder.ts';
import { spotType, type Spot } from './spot.ts';
import type { SystemTime } from './system.ts';
import type { World } from './world.ts';

/** A chown argument that leaves the owner, or the group, as it is. */
const UNCHANGED = new Set([-1, 0xffffffff]);
const S_ISUID = 0o4000;
const S_ISGID = 0o2000;

/** Modes, owners and times of what a look-up found or a descriptor holds. */
export class Metadata {
  private readonly world: World;
  private readonly guards: Guards | undefined;

  constructor(world: World, guards?: Guards) {
    this.world = world;
    this.guards = guards;
  }

  /** Throws EOPNOTSUPP for a symlink, whose mode Linux does not keep. */
  chmod(actor: string, spot: Spot, at: Observed, mode: number, unlinked: boolean): void {
    const { world } = this, attr = world.attributes.of(spot);
    if (spotType(spot) === 'symlink') throw new Refusal('ENOTSUP');
    world.credentials.demandOwner(attr);
    let bits = mode & PERMISSION_BITS;
    if (!world.credentials.isRoot && !world.credentials.isMember(attr.gid)) bits &= ~S_ISGID;
    this.change(actor, spot, { op: 'chmod', path: at.path, ...viaField(at), mode: (attr.mode & ~PERMISSION_BITS) | bits,
      ...this.common(spot, attr, unlinked) });
  }

  chown(actor: string, spot: Spot, at: Observed, uid: number, gid: number, unlinked: boolean): void {
    const { world } = this, attr = world.attributes.of(spot);
    const owner = UNCHANGED.has(uid) ? attr.uid : uid, group = UNCHANGED.has(gid) ? attr.gid : gid;
    if (!world.credentials.isRoot) {
      const isOwner = attr.uid === world.credentials.uid;
      if (!UNCHANGED.has(uid) && (owner !== attr.uid || !isOwner)) throw new Refusal('EPERM');
      if (!UNCHANGED.has(gid) && (!isOwner || (group !== attr.gid && !world.credentials.isMember(group)))) throw new Refusal('EPERM');
    }
    this.change(actor, spot, { op: 'chown', path: at.path, ...viaField(at), uid: owner, gid: group, mode: this.modeAfterChown(attr, spot),
      ...this.common(spot, attr, unlinked) });
  }

  utimes(actor: string, spot: Spot, at: Observed, { atime, mtime }: { atime: SystemTime; mtime: SystemTime }, unlinked: boolean): void {
    if (atime === 'omit' && mtime === 'omit') return;
    const { credentials } = this.world, attr = this.world.attributes.of(spot);
    // The moment may be set by whoever may write the file, anything else by its owner alone.
    if (atime === 'now' && mtime === 'now' && attr.uid !== credentials.uid) credentials.demand(spot, WRITE);
    else credentials.demandOwner(attr);
    const { mtime: ctime, ...rest } = this.common(spot, attr, unlinked);
    const set = (time: SystemTime, was: bigint): string => (time === 'now' ? ctime : String(time === 'omit' ? was : time));
    this.change(actor, spot, {
      op: 'utimes', path: at.path, ...viaField(at), atime: set(atime, attr.atime), mtime: set(mtime, attr.mtime), ctime, ...rest,
    });
  }

  /** Gives an extended attribute a value (base64), or takes it away where `value` is undefined. What is allowed was checked. */
  setxattr(actor: string, spot: Spot, at: Observed, { name, value }: { name: string; value: string | undefined }, unlinked: boolean): void {
    const place = { path: at.path, ...viaField(at), name }, common = this.common(spot, this.world.attributes.of(spot), unlinked);
    this.change(actor, spot, value === undefined ? { op: 'removexattr', ...place, ...common } : { op: 'setxattr', ...place, value, ...common });
  }

  /** access(2). Throws EACCES. */
  access(spot: Spot, mode: number): void {
    const want = ((mode & constants.R_OK) !== 0 ? READ : 0) | ((mode & constants.W_OK) !== 0 ? WRITE : 0) |
      ((mode & constants.X_OK) !== 0 ? SEARCH : 0);
    if (want !== 0) this.world.credentials.demand(spot, want);
  }

  private common(spot: Spot, attr: Attr, unlinked: boolean) {
    const { world } = this, lower = unlinked ? undefined : world.base(spot);
    return {
      ...(spot.node?.ino === undefined ? { ino: inodeRecord(attr.ino) } : world.identity(spot.node)), mtime: world.now(),
      ...(lower === undefined ? undefined : { lower }), ...(unlinked ? { unlinked: true as const } : undefined),
    };
  }

  private change(actor: string, spot: Spot, body: AttributeBody): void {
    if (body.unlinked !== true) this.guards?.demand({ path: body.path, via: body.via }, 'attributes', spot, body.op);
    this.world.mutate(actor, body);
    if (body.unlinked === true && spot.node !== undefined) applyAttributes(spot.node, body);
    this.world.watchers.changed(body.path);
  }

  /** chown(2): whoever calls it, setuid goes from all but directories, and setgid where its group may execute or is not the caller's. */
  private modeAfterChown(attr: Attr, spot: Spot): number {
    if (spotType(spot) === 'directory') return attr.mode;
    const { credentials } = this.world, dropsGroup = (attr.mode & 0o010) !== 0 || !(credentials.isRoot || credentials.isMember(attr.gid));
    return attr.mode & ~S_ISUID & (dropsGroup ? ~S_ISGID : ~0);
  }
}

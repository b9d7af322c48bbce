import type { TruncateBody } from '../core/event.ts';
import { applyTruncate } from '../core/evolve.ts';
import { Refusal } from '../core/refusal.ts';
import { find } from '../core/state.ts';
import { Node } from '../core/tree.ts';
import type { Version } from '../core/version.ts';
import { inodeRecord } from './attributes.ts';
import { EMPTY_VERSION } from './hash.ts';
import { viaField, type Observed } from './recorder.ts';
import type { Spot } from './spot.ts';
import type { World } from './world.ts';

/** The largest file, in bytes: offsets have to be exact numbers. */
export const MAX_FILE_BYTES = Number.MAX_SAFE_INTEGER;

/** What a change of a file's size means to the overlay. */
export class Resizing {
  private readonly world: World;

  constructor(world: World) {
    this.world = world;
  }

  /** Changes the size of what `target` is; what is gained is zeros. */
  resize(actor: string, target: Spot, at: Observed, size: number, unlinked: boolean): void {
    if (size > MAX_FILE_BYTES) throw new Refusal('EFBIG');
    const { world } = this, attr = world.attributes.of(target);
    const node = target.node, hashed = node === undefined && !unlinked ? world.hashBase(target) : undefined;
    const lower = hashed && world.base({ ...target, attr: hashed.attr }, hashed.version);
    const current = node === undefined ? attr.size : world.attributes.sizeOf(node);
    if (unlinked) return this.resizeOrphan(actor, node as Node, at, size);
    if (size === current && node !== undefined) {
      // As ftruncate(2): the size is the same, the times are not.
      return this.retouch(actor, target, at, node);
    }
    const version: Version | undefined = size === 0 ? EMPTY_VERSION : undefined;
    const identity = node === undefined ? { ino: inodeRecord(attr.ino) } : world.changedBy(at.path, node);
    world.mutate(actor, {
      op: 'truncate', path: at.path, ...viaField(at), size, ...identity,
      ...(version === undefined ? undefined : { version }), mtime: world.now(), ...(lower === undefined ? undefined : { lower }),
    });
    this.clearPrivileges(actor, at);
    world.watchers.changed(at.path);
  }

  /** The same for a file that has no name. */
  resizeOrphan(actor: string, node: Node, at: Observed, size: number): void {
    const { world } = this;
    const body: TruncateBody = { op: 'truncate', path: at.path, ...viaField(at), size, ...world.identity(node), mtime: world.now(), unlinked: true };
    world.mutate(actor, body);
    applyTruncate(node, { ...body, seq: world.state.seq });
  }

  private retouch(actor: string, target: Spot, at: Observed, node: Node): void {
    const { world } = this, size = world.attributes.sizeOf(node);
    world.mutate(actor, { op: 'truncate', path: at.path, ...viaField(at), size, ...world.changedBy(at.path, node), mtime: world.now(),
      ...(node.version === undefined ? undefined : { version: node.version }) });
    world.watchers.changed(target.path);
  }

  /** What a write does to the mode, for a change of size, whose event has no mode. */
  private clearPrivileges(actor: string, at: Observed): void {
    const { world } = this, node = world.credentials.isRoot ? undefined : find(world.state, at.path);
    if (!(node instanceof Node)) return;
    const mode = world.credentials.modeAfterWrite(node.mode as number);
    if (node.mode === mode) return;
    world.mutate(actor, { op: 'chmod', path: at.path, mode, ...world.identity(node), mtime: world.now() });
  }
}

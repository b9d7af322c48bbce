import { byteLength, type PathName } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import type { Xattrs } from '../lower/lower.ts';
import { NO_XATTRS } from '../lower/xattrs.ts';
import { originOf } from './attributes.ts';
import type { Metadata } from './metadata.ts';
import { READ, WRITE } from './permission.ts';
import type { Observed } from './recorder.ts';
import { spotType, type Spot } from './spot.ts';
import type { SystemXattrs } from './system.ts';
import type { World } from './world.ts';

/** Bytes, as Linux has it: of a name, of a value, and of all names of a file, each with the NUL after it. */
const NAME_BYTES = 255;
const VALUE_BYTES = 65536;
const LIST_BYTES = 65536;
/** Sizes of the three forms of a file's capabilities. */
const CAPABILITY_BYTES = new Set([12, 20, 24]);

const NAME_SPACE = /^(user|trusted|security)\./;

/** Name spaces that permission bits have no say in. */
const UNCHECKED = /^(security|system)\./;

/** What a call is about: what was found by its path, or is held by its descriptor. */
export type Held = (target: PathName | number, call: string, options: { follow: boolean }) => { spot: Spot; at: Observed; unlinked: boolean };

/**
 * Extended attributes, by Linux's rules: `user.` on regular files and directories, by their permission bits; `trusted.` for root
 * alone; `security.` set by root alone, told to everyone, kept and not acted on. Anything else, access lists above all, is
 * EOPNOTSUPP. The overlay keeps what was changed; the rest is what the lower file that a node comes from has, whose
 * `security.` is never shown. To look at one is no event: it is neither content nor a name.
 */
export class XattrCalls implements SystemXattrs {
  private readonly world: World;
  private readonly actor: string;
  private readonly metadata: Metadata;
  private readonly held: Held;

  constructor(parts: { world: World; actor: string; metadata: Metadata; held: Held }) {
    this.world = parts.world;
    this.actor = parts.actor;
    this.metadata = parts.metadata;
    this.held = parts.held;
  }

  get(target: PathName | number, name: string, options: { follow: boolean }): Uint8Array {
    demandName(name);
    const { spot } = this.held(target, 'getxattr', options);
    this.demandReadable(spot, name);
    const value = this.valueOf(spot, name);
    if (value === undefined) throw new Refusal('ENODATA');
    return Buffer.from(value, 'base64');
  }

  set(target: PathName | number, name: string, value: Uint8Array, options: { follow: boolean; only?: 'create' | 'replace' }): void {
    demandName(name);
    if (value.length > VALUE_BYTES) throw new Refusal('E2BIG');
    const { spot, at, unlinked } = this.held(target, 'setxattr', options);
    this.demandWritable(spot, name);
    if (name === 'security.capability' && !CAPABILITY_BYTES.has(value.length)) throw new Refusal('EINVAL');
    if (options.only === 'create' && this.has(spot, name)) throw new Refusal('EEXIST');
    if (options.only === 'replace' && !this.has(spot, name)) throw new Refusal('ENODATA');
    this.metadata.setxattr(this.actor, spot, at, { name, value: Buffer.from(value).toString('base64') }, unlinked);
  }

  list(target: PathName | number, options: { follow: boolean }): readonly string[] {
    const { spot } = this.held(target, 'listxattr', options);
    const isShown = (name: string): boolean => !name.startsWith('trusted.') || this.world.credentials.isTrusted;
    const names = [...xattrsOf(this.world, spot).keys()].filter((name) => NAME_SPACE.test(name) && isShown(name)).sort();
    if (names.reduce((sum, name) => sum + byteLength(name) + 1, 0) > LIST_BYTES) throw new Refusal('E2BIG');
    return names;
  }

  remove(target: PathName | number, name: string, options: { follow: boolean }): void {
    demandName(name);
    const { spot, at, unlinked } = this.held(target, 'removexattr', options);
    this.demandWritable(spot, name);
    if (!this.has(spot, name)) throw new Refusal('ENODATA');
    this.metadata.setxattr(this.actor, spot, at, { name, value: undefined }, unlinked);
  }

  /** A value in base64. Throws ENOTSUP where only the lower could tell, and cannot be asked. */
  private valueOf(spot: Spot, name: string): string | undefined {
    if (spot.node?.xattrs?.has(name) === true) return spot.node.xattrs.get(name);
    // No need to ask the lower: it shows none of these.
    if (name.startsWith('security.')) return undefined;
    const below = lowerXattrs(this.world, spot);
    if (below === undefined) throw new Refusal('ENOTSUP', { reason: 'getfattr is not installed, which tells those of the lower' });
    return below.get(name);
  }

  /** Whether there is one to replace; where the lower cannot be asked, only the overlay's own count. */
  private has(spot: Spot, name: string): boolean {
    if (spot.node?.xattrs?.has(name) === true) return spot.node.xattrs.get(name) !== undefined;
    return !name.startsWith('security.') && lowerXattrs(this.world, spot)?.has(name) === true;
  }

  private demandReadable(spot: Spot, name: string): void {
    const { credentials } = this.world;
    if (name.startsWith('trusted.') && !credentials.isRoot) throw new Refusal('ENODATA');
    if (name.startsWith('user.') && !keepsUser(spot)) throw new Refusal('ENODATA');
    if (!UNCHECKED.test(name)) credentials.demand(spot, READ);
    demandNameSpace(name);
  }

  private demandWritable(spot: Spot, name: string): void {
    const { credentials, attributes } = this.world;
    if (/^(trusted|security)\./.test(name) && !credentials.isRoot) throw new Refusal('EPERM');
    if (name.startsWith('user.')) {
      if (!keepsUser(spot)) throw new Refusal('EPERM');
      const attr = attributes.of(spot);
      if (spotType(spot) === 'directory' && (attr.mode & 0o1000) !== 0) credentials.demandOwner(attr);
    }
    if (!UNCHECKED.test(name)) credentials.demand(spot, WRITE);
    demandNameSpace(name);
  }
}

/** All that a spot has: the overlay's changes over what the lower has; those alone where it cannot be asked and there are some. */
export function xattrsOf(world: World, spot: Spot): Xattrs {
  const below = lowerXattrs(world, spot), own = spot.node?.xattrs;
  if (own === undefined) {
    if (below === undefined) throw new Refusal('ENOTSUP', { reason: 'getfattr is not installed, which tells those of the lower' });
    return below;
  }
  const all = new Map(below);
  for (const [name, value] of own) {
    if (value === undefined) all.delete(name);
    else all.set(name, value);
  }
  return all;
}

/** What the lower file that a spot is, or comes from, has; `undefined` where it cannot be asked. */
function lowerXattrs(world: World, spot: Spot): Xattrs | undefined {
  const origin = originOf(spot), base = spot.node?.base;
  if (origin === undefined) return NO_XATTRS;
  const attr = spot.node === undefined ? spot.attr ?? world.lower.lstat(origin) : world.lower.lstat(origin);
  if (typeof attr === 'string') return NO_XATTRS;
  // Another file has taken the name since: what that one has was never this one's.
  if (base !== undefined && (String(attr.ino) !== String(base.ino) || String(attr.dev) !== String(base.dev))) return NO_XATTRS;
  return world.lower.xattrs(origin, attr);
}

function keepsUser(spot: Spot): boolean {
  const type = spotType(spot);
  return type === 'file' || type === 'directory';
}

function demandName(name: string): void {
  const bytes = byteLength(name);
  if (bytes === 0 || bytes > NAME_BYTES) throw new Refusal('ERANGE');
}

function demandNameSpace(name: string): void {
  const [prefix] = NAME_SPACE.exec(name) ?? [];
  if (prefix === undefined) throw new Refusal('ENOTSUP');
  if (prefix === name) throw new Refusal('EINVAL');
}

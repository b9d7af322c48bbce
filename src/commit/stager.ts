import {
  chownSync, closeSync, fchmodSync, fchownSync, fstatSync, ftruncateSync, futimesSync, lchownSync, linkSync, lutimesSync, mkdirSync,
  openSync, symlinkSync, chmodSync, utimesSync, writeSync,
} from 'node:fs';
import { toBytes } from '../core/path.ts';
import type { Attributes, NewNode, Source } from '../core/plan.ts';
import { Refusal } from '../core/refusal.ts';
import type { Version } from '../core/version.ts';
import { attrOf, EXACT } from '../lower/stats.ts';
import { EMPTY_VERSION, RunningVersion, versionOf } from '../overlay/hash.ts';
import { knownOf, type Known } from './known.ts';
import { run } from './program.ts';
import { secondsOf, type Volume } from './volume.ts';

/** What a staging directory's owner needs to do in a directory of his: given until the end. */
const OWNER_BITS = 0o700;
const SET_ID_BITS = 0o6000;
const ZEROS = new Uint8Array(1 << 16);

export type StagedNode = Exclude<NewNode, { type: 'link' }>;

/** Mode and owner that a new thing gets. */
export interface Guise {
  readonly mode: number;
  readonly uid: number | undefined;
  readonly gid: number | undefined;
}

/**
 * Makes the thing that `node` tells of in staging, under `name`, with all but its extended attributes. Gives what is known of it
 * then. A directory's owner may do everything in it until it is finished.
 */
export async function makeStaged(volume: Volume, name: string, node: StagedNode, guise: Guise): Promise<Known> {
  const there = volume.name(name);
  switch (node.type) {
    case 'file': return makeFile(volume, name, node.content, node, guise);
    case 'directory':
      mkdirSync(there, OWNER_BITS);
      if (guise.uid !== undefined || guise.gid !== undefined) chownSync(there, guise.uid ?? -1, guise.gid ?? -1);
      chmodSync(there, guise.mode | OWNER_BITS);
      break;
    case 'symlink':
      symlinkSync(node.target.isWellFormed() ? node.target : Buffer.from(toBytes(node.target)), there);
      if (guise.uid !== undefined || guise.gid !== undefined) lchownSync(there, guise.uid ?? -1, guise.gid ?? -1);
      if (node.mtime !== undefined) lutimesSync(there, secondsOf(node.atime ?? node.mtime), secondsOf(node.mtime));
      break;
    default:
      await makeSpecial(volume, name, node.type, node.rdev ?? 0);
      if (guise.uid !== undefined || guise.gid !== undefined) chownSync(there, guise.uid ?? -1, guise.gid ?? -1);
      chmodSync(there, guise.mode);
      if (node.mtime !== undefined) utimesSync(there, secondsOf(node.atime ?? node.mtime), secondsOf(node.mtime));
  }
  const attr = volume.find(name);
  if (attr === undefined) throw new Refusal('EIO', { reason: 'it vanished from staging' });
  return knownOf(attr, Date.now(), node.type === 'symlink' ? { target: node.target } : {});
}

function makeFile(volume: Volume, name: string, content: Source, times: Attributes, guise: Guise): Known {
  const fd = openSync(volume.name(name), 'wx', 0o600);
  try {
    const version = fill(fd, content);
    fchmodSync(fd, guise.mode);
    if (times.mtime !== undefined) futimesSync(fd, secondsOf(times.atime ?? times.mtime), secondsOf(times.mtime));
    let now = attrOf(fstatSync(fd, EXACT));
    const uid = guise.uid ?? now.uid, gid = guise.gid ?? now.gid;
    if (uid !== now.uid || gid !== now.gid) {
      fchownSync(fd, uid, gid);
      // A change of owner takes bits away.
      fchmodSync(fd, guise.mode);
      now = attrOf(fstatSync(fd, EXACT));
    }
    return knownOf(now, Date.now(), { version });
  } finally {
    closeSync(fd);
  }
}

/** Writes all pieces where they belong; what lies between them stays a hole. */
function fill(fd: number, content: Source): Version {
  let version: Version | undefined, end = 0, running: RunningVersion | undefined;
  for (const { at, bytes } of content.pieces()) {
    for (let from = 0; from < bytes.length;) from += writeSync(fd, bytes, from, bytes.length - from, at + from);
    if (at === 0 && bytes.length === content.size) version = versionOf(bytes);
    else {
      running ??= new RunningVersion();
      addZeros(running, at - end);
      running.add(bytes);
    }
    end = at + bytes.length;
  }
  if (version === undefined) {
    if (end < content.size) {
      ftruncateSync(fd, content.size);
      running ??= new RunningVersion();
      addZeros(running, content.size - end);
    }
    version = running === undefined ? EMPTY_VERSION : running.finish();
  }
  if (end > content.size || (content.version !== undefined && version !== content.version)) {
    throw new Refusal('EIO', { reason: 'the bytes to be committed are not those that they were' });
  }
  return version;
}

function addZeros(running: RunningVersion, count: number): void {
  for (let left = count; left > 0; left -= ZEROS.length) running.add(left < ZEROS.length ? ZEROS.subarray(0, left) : ZEROS);
}

async function makeSpecial(volume: Volume, name: string, type: 'fifo' | 'character' | 'block', rdev: number): Promise<void> {
  const there = `/proc/self/fd/3/${name}`, { major, minor } = partsOf(rdev);
  const args = type === 'fifo' ? [there, 'p'] : [there, type === 'block' ? 'b' : 'c', String(major), String(minor)];
  const { status, stderr } = await run('mknod', ['-m', '600', ...args], [volume.fd], undefined);
  if (status !== 0) throw new Refusal('EPERM', { reason: `a ${type} cannot be made: ${stderr.trim().replace(/^.*: /, '')}` });
}

/** As glibc takes a device number apart. */
function partsOf(rdev: number): { major: number; minor: number } {
  const wide = BigInt(rdev);
  return {
    major: Number(((wide >> 8n) & 0xfffn) | ((wide >> 32n) & 0xfffff000n)),
    minor: Number((wide & 0xffn) | ((wide >> 12n) & 0xffffff00n)),
  };
}

/** Another name in staging for what is staged already. */
export function linkStaged(volume: Volume, from: string, name: string): void {
  linkSync(volume.name(from), volume.name(name));
}

/** The ways in which what is wanted cannot be given: its owner, since only root gives files away. */
export function guiseOf(wanted: Attributes, kept: Known | undefined, type: NewNode['type']): Guise & { lost: boolean } {
  const mode = wanted.mode ?? kept?.mode ?? ((type === 'directory' ? 0o777 : 0o666) & ~process.umask());
  const uid = wanted.uid ?? kept?.uid, gid = wanted.gid ?? kept?.gid;
  const self = process.geteuid?.();
  if (self === 0 || self === undefined) return { mode, uid, gid, lost: false };
  const isOwn = uid === undefined || uid === self;
  const isOurGroup = gid === undefined || gid === process.getegid?.() || (process.getgroups?.() ?? []).includes(gid);
  if (isOwn && isOurGroup) return { mode, uid, gid, lost: false };
  // Nobody may act as another than it belonged to.
  return { mode: mode & ~SET_ID_BITS, uid: undefined, gid: isOurGroup ? gid : undefined, lost: true };
}

/** What is said of an owner that is lost. */
export function ownerWords(wanted: Attributes, kept: Known | undefined): string {
  return `its owner ${wanted.uid ?? kept?.uid ?? ''}:${wanted.gid ?? kept?.gid ?? ''} cannot be kept: only root gives files away`;
}

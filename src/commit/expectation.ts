import type { Fingerprint } from '../core/attr.ts';
import { PERMISSION_BITS } from '../core/attr.ts';
import type { Base } from '../core/base.ts';
import type { FingerprintRecord, LowerBase } from '../core/event.ts';
import type { Expectation, HostState } from '../core/plan.ts';
import { unreachable } from '../core/unreachable.ts';

/** What a change expects where the lower was as `base` says. */
export function expectationOf(base: Base, aspects: Expectation['aspects']): Expectation {
  return { state: stateOf(base), aspects };
}

function stateOf({ found, seen, racy }: Base): HostState {
  if (seen?.kind === 'absent') return { type: 'absent' };
  if (seen !== undefined) {
    const { fingerprint, version } = seen, { mode = 0o644, uid = 0, gid = 0 } = found ?? {};
    // When it was seen is not known so exactly: where its content was hashed, only that counts.
    const print = version === undefined ? { fingerprint: fingerprintOf(fingerprint) } : { version };
    return { type: 'file', size: fingerprint.size, ...print, mode: mode & PERMISSION_BITS, uid, gid };
  }
  return found === undefined ? { type: 'absent' } : foundState(found, racy === true);
}

function foundState(found: LowerBase, isRacy: boolean): HostState {
  const { type, uid, gid, version } = found, owner = { mode: found.mode & PERMISSION_BITS, uid, gid };
  switch (type) {
    case 'file': {
      const print = isRacy && version !== undefined ? undefined : fingerprintOf(found);
      return { type, size: found.size, version, fingerprint: print, ...owner };
    }
    case 'directory': return { type, ...owner };
    case 'symlink': return { type, target: found.target ?? '', ...owner };
    case 'fifo': case 'socket': case 'block': case 'character': return { type, rdev: found.rdev ?? 0, ...owner };
    default: return unreachable(type);
  }
}

/** A fingerprint as an event holds it, for comparison. */
export function fingerprintOf({ dev, ino, size, mtime, ctime }: FingerprintRecord): Fingerprint {
  return { dev: BigInt(dev), ino: BigInt(ino), size, mtime: BigInt(mtime), ctime: BigInt(ctime) };
}

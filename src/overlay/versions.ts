import { sameFingerprint, type Attr } from '../core/attr.ts';
import type { TreePath } from '../core/path.ts';
import type { Version } from '../core/version.ts';

/** Most lower files whose version is remembered; about 300 bytes each. */
const REMEMBERED_FILES = 100_000;
/**
 * A file changed this shortly before the look could be changed again within the same tick of the file system's clock
 * and show the same fingerprint (git calls it racy). Kernel ticks are 1 to 10 ms.
 */
const RACY_MS = 20;

/**
 * Versions of lower files by path and fingerprint: only a cache, so forgetting costs a hash and nothing else.
 * A version is the content; the fingerprint says whether it needs to be hashed again.
 */
export class LowerVersions {
  private readonly known = new Map<TreePath, { readonly attr: Attr; readonly version: Version }>();

  /** The version that `path` had when it looked as it does in `attr`. */
  get(path: TreePath, attr: Attr): Version | undefined {
    const entry = this.known.get(path);
    return entry !== undefined && sameFingerprint(entry.attr, attr) ? entry.version : undefined;
  }

  /** `attr` was taken from the descriptor that the hashed bytes came from; `now` in ms since 1970, at that look. */
  set(path: TreePath, attr: Attr, version: Version, now: number): void {
    const settled = BigInt(Math.floor(now) - RACY_MS) * 1_000_000n;
    if (attr.ctime >= settled || attr.mtime >= settled) return;
    if (this.known.size >= REMEMBERED_FILES && !this.known.has(path)) {
      const oldest = this.known.keys().next();
      if (!oldest.done) this.known.delete(oldest.value);
    }
    this.known.set(path, { attr, version });
  }
}

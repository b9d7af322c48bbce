import { typeBits, type Attr } from '../core/attr.ts';
import { ROOT, type TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { vacancyByLooks } from './lower.ts';
import { sortEntries } from './listing.ts';
import type { Absence, Lower, LowerEntry, LowerFile, LowerStatFs, Vacancy, WholeFile, Xattrs } from './lower.ts';
import { NO_XATTRS } from './xattrs.ts';

/**
 * Several lowers side by side, each under a name of its own in a root directory that is nowhere on disk. Closes them with
 * it. Throws RangeError without any.
 */
export function namedLowers(lowers: ReadonlyMap<string, Lower>): Lower {
  const [first] = lowers.values();
  if (first === undefined) throw new RangeError('named lowers need at least one');
  return new NamedLowers(lowers, first);
}

class NamedLowers implements Lower {
  readonly root: string;
  private readonly lowers: ReadonlyMap<string, Lower>;
  private readonly first: Lower;
  private readonly names: readonly LowerEntry[];
  private readonly attr: Attr;

  constructor(lowers: ReadonlyMap<string, Lower>, first: Lower) {
    this.lowers = lowers;
    this.first = first;
    this.root = Array.from(lowers, ([name, lower]) => `${name}=${lower.root}`).join(':');
    this.names = sortEntries(Array.from(lowers.keys(), (name) => ({ name, type: 'directory' as const })));
    this.attr = rootAttr(first, lowers.size);
  }

  lstat(path: TreePath): Attr | Absence {
    return this.within(path, this.attr, (lower, rest) => lower.lstat(rest));
  }

  vacancy(path: TreePath): Attr | Vacancy | 'unwalkable' {
    return vacancyByLooks(this, path);
  }

  readlink(path: TreePath): string {
    return this.owner(path, 'EINVAL', (lower, rest) => lower.readlink(rest));
  }

  list(path: TreePath): readonly LowerEntry[] {
    return path === ROOT ? this.names : this.owner(path, 'ENOENT', (lower, rest) => lower.list(rest));
  }

  open(path: TreePath): LowerFile | Attr | Absence {
    return this.within<LowerFile | Attr | Absence>(path, this.attr, (lower, rest) => lower.open(rest));
  }

  slurp(path: TreePath, limit: number): WholeFile | LowerFile | Attr | Absence {
    return this.within<WholeFile | LowerFile | Attr | Absence>(path, this.attr, (lower, rest) => lower.slurp(rest, limit));
  }

  xattrs(path: TreePath, attr: Attr): Xattrs | undefined {
    return path === ROOT ? NO_XATTRS : this.owner(path, 'ENOENT', (lower, rest) => lower.xattrs(rest, attr));
  }

  statfs(): LowerStatFs {
    return this.first.statfs();
  }

  watch(...[path, options, changed, failed]: Parameters<Lower['watch']>): { close(): void } {
    if (path !== ROOT) return this.owner(path, 'ENOENT', (lower, rest) => lower.watch(rest, options, changed, failed));
    if (!options.recursive) return { close: () => undefined };
    const watches = Array.from(this.lowers, ([name, lower]) =>
      lower.watch(ROOT, options, (event, below) => changed(event, `${name}/${below}`), failed));
    return { close: () => { for (const watch of watches) watch.close(); } };
  }

  close(): void {
    for (const lower of this.lowers.values()) lower.close();
  }

  /** What the lower that has `path` says of it; of the root, `root`. */
  private within<T>(path: TreePath, root: T, ask: (lower: Lower, rest: TreePath) => T | Absence): T | Absence {
    if (path === ROOT) return root;
    const { name, rest } = split(path), lower = this.lowers.get(name);
    if (lower === undefined) return rest === ROOT ? 'absent' : 'unwalkable';
    return ask(lower, rest);
  }

  /** The same where something has to be there. */
  private owner<T>(path: TreePath, code: 'EINVAL' | 'ENOENT', ask: (lower: Lower, rest: TreePath) => T): T {
    const { name, rest } = split(path), lower = this.lowers.get(name);
    if (path === ROOT || lower === undefined) throw new Refusal(code);
    return ask(lower, rest);
  }
}

function split(path: TreePath): { name: string; rest: TreePath } {
  const slash = path.indexOf('/');
  return slash < 0 ? { name: path, rest: ROOT } : { name: path.slice(0, slash), rest: path.slice(slash + 1) as TreePath };
}

/** A directory that everybody may read; it belongs to whom the first lower does, and is as old. */
function rootAttr(first: Lower, count: number): Attr {
  const below = first.lstat(ROOT);
  if (typeof below === 'string') throw new Refusal('ENOENT');
  // No file system has a file number 0, so none of the lowers does.
  return { ...below, ino: 0n, mode: typeBits('directory') | 0o755, nlink: 2 + count, size: 4096, blocks: 8, rdev: 0 };
}

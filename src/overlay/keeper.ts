import { sameFingerprint, typeOf, type Attr } from '../core/attr.ts';
import type { EventBody, ExtentRecord, KeptRecord, LowerBase, ReadBody } from '../core/event.ts';
import { childOf, ROOT, SYMLINK_LIMIT, type TreePath } from '../core/path.ts';
import { find, nodeOf, type State } from '../core/state.ts';
import { WHITEOUT, type Node } from '../core/tree.ts';
import type { Lower, LowerEntry, LowerFile } from '../lower/lower.ts';
import type { Store } from '../store/store.ts';
import { baseRecord } from './attributes.ts';
import { versionOf } from './hash.ts';

/** A file up to this size is kept whole; a larger one by pieces of this size, as far as they were read. */
const PIECE_BYTES = 1 << 20;
/** A larger file of which nobody says what is read of it (on a mount) is not kept. */
const WHOLE_LIMIT_BYTES = 64 << 20;

/** What was told of a lower path last. */
interface Told {
  /** `undefined`: nothing is there. */
  readonly attr: Attr | undefined;
  /** Pieces of the content that are kept, or all of it. */
  readonly pieces: Set<number> | 'whole';
  list: readonly LowerEntry[] | undefined;
}

/**
 * Keeps what the lower shows, as an event is about to tell of it: metadata, targets, contents that are read or replaced, listings with the
 * metadata of what they name. Each is kept once, and again when it has changed. What it keeps it looks at itself, right before the event is
 * appended: an outsider who is quicker is kept as he left it.
 */
export class Keeper {
  private readonly state: State;
  private readonly store: Store;
  private readonly lower: Lower;
  private readonly isRedacted: (path: TreePath) => boolean;
  /** Where the tree is seen: absolute targets lead there. */
  private readonly mounts: readonly string[];
  private readonly told = new Map<TreePath, Told>();

  constructor(parts: { state: State; store: Store; lower: Lower; isRedacted: (path: TreePath) => boolean; mounts: readonly string[] }) {
    this.state = parts.state;
    this.store = parts.store;
    this.lower = parts.lower;
    this.isRedacted = parts.isRedacted;
    this.mounts = parts.mounts;
  }

  /** What an event has to tell besides; stored are the contents already. Throws EFBIG where they have no room. */
  readonly keep = (body: EventBody): readonly KeptRecord[] | undefined => {
    const records: KeptRecord[] = [];
    if (!('path' in body) || body.path === undefined || body.op === 'refuse') return undefined;
    if (body.via !== undefined) this.keepLinks(records, body.via);
    this.keepPath(records, body.path, body);
    if ('to' in body) this.keepPath(records, body.to, body);
    return records.length === 0 ? undefined : records;
  };

  /** The symlinks that the name as asked leads through. */
  private keepLinks(records: KeptRecord[], via: string): void {
    let rest = parts(via), links = 0;
    for (let at = 1; at <= rest.length; at++) {
      const path = rest.slice(0, at).join('/') as TreePath, found = find(this.state, path);
      if (found === undefined || found === WHITEOUT) return;
      let target = 'lower' in found ? undefined : found.target;
      if ('lower' in found) {
        const attr = this.lower.lstat(found.lower);
        if (typeof attr === 'string') return;
        if (typeOf(attr.mode) !== 'symlink') continue;
        if (this.told.get(found.lower)?.attr === undefined) this.tell(records, found.lower, attr);
        target = this.lower.readlink(found.lower);
      }
      if (target === undefined) continue;
      if (++links > SYMLINK_LIMIT) return;
      const mount = this.mounts.find((each) => target.startsWith(each + '/') || target === each || each === '/');
      if (target.startsWith('/') && mount === undefined) return;
      rest = parts([...target.startsWith('/') ? [target.slice((mount as string).length)] : [...rest.slice(0, at - 1), target], ...rest.slice(at)].join('/'));
      at = 0;
    }
  }

  private keepPath(records: KeptRecord[], path: TreePath, body: EventBody): void {
    let node: Node | undefined = this.state.root, origin: TreePath | undefined = ROOT;
    for (let start = 0; start < path.length;) {
      if (!this.passes(records, node, origin)) return;
      const slash = path.indexOf('/', start), end = slash < 0 ? path.length : slash, name = path.slice(start, end);
      const entry: ReturnType<NonNullable<Node['names']>['get']> = node?.names?.get(name);
      if (entry === undefined) {
        origin = node === undefined ? origin && childOf(origin, name) : node.below(name);
        node = undefined;
      } else {
        const next = nodeOf(this.state, entry);
        if (next === WHITEOUT) return;
        node = next;
        origin = next.origin;
      }
      if (origin === undefined && node === undefined) return;
      start = end + 1;
    }
    if (origin !== undefined) this.keepShown(records, { path, node, origin }, body);
  }

  /** A directory on the way: told once. False where the way ends here. */
  private passes(records: KeptRecord[], node: Node | undefined, origin: TreePath | undefined): boolean {
    if (origin === undefined || node?.opaque === true || this.told.get(origin)?.attr !== undefined) return true;
    const attr = this.lower.lstat(origin);
    if (typeof attr === 'string') return false;
    this.tell(records, origin, attr);
    return true;
  }

  private keepShown(records: KeptRecord[], spot: { path: TreePath; node: Node | undefined; origin: TreePath }, body: EventBody): void {
    const { node, origin } = spot, found = this.lower.lstat(origin), told = this.told.get(origin);
    if (typeof found === 'string') {
      if (told !== undefined && told.attr === undefined) return;
      this.told.set(origin, { attr: undefined, pieces: 'whole', list: undefined });
      records.push({ path: origin });
      return;
    }
    const isNew = told?.attr === undefined || !sameFingerprint(told.attr, found) || told.attr.mode !== found.mode || told.attr.uid !== found.uid || told.attr.gid !== found.gid;
    const type = typeOf(found.mode), content = (type === 'file' && (node === undefined || node.content.kind === 'lower') && wantsContent(body))
      ? this.content(spot, body, isNew ? undefined : told) : undefined;
    const list = type === 'directory' && body.op === 'list' && node?.opaque !== true ? this.list(origin, isNew ? undefined : told) : undefined;
    if (!isNew && content === undefined && list === undefined) return;
    const attr = content?.attr ?? found;
    const kept = this.tell(records, origin, attr, { ...content?.fields, ...list?.fields });
    this.told.set(origin, { attr, pieces: content?.pieces ?? (isNew ? new Set() : told.pieces), list: list?.list ?? (isNew ? undefined : told.list) });
    if (body.op === 'read' && kept.blob !== undefined && body.version === kept.blob) (body as { blob?: string }).blob = kept.blob;
  }

  private tell(records: KeptRecord[], path: TreePath, attr: Attr, more: Partial<KeptRecord> = {}): KeptRecord {
    const record = { path, base: this.base(path, attr), ...more };
    records.push(record);
    if (!this.told.has(path)) this.told.set(path, { attr, pieces: new Set(), list: undefined });
    return record;
  }

  private base(path: TreePath, attr: Attr): LowerBase {
    return baseRecord(attr, { target: typeOf(attr.mode) === 'symlink' ? this.lower.readlink(path) : undefined });
  }

  private content({ path, origin }: { path: TreePath; origin: TreePath }, body: EventBody, told: Told | undefined):
  { attr: Attr; pieces: Told['pieces']; fields: Partial<KeptRecord> } | undefined {
    if (told?.pieces === 'whole' || this.isRedacted(path) || this.isRedacted(origin)) return undefined;
    const found = this.lower.slurp(origin, PIECE_BYTES);
    if (typeof found === 'string' || !('kind' in found)) return undefined;
    if (found.kind === 'whole') {
      const blob = versionOf(found.bytes);
      this.store.putBlob(blob, found.bytes);
      return { attr: found.attr, pieces: 'whole', fields: { blob } };
    }
    try {
      return this.pieces(found, body, told?.pieces ?? new Set());
    } finally {
      found.close();
    }
  }

  private pieces(file: LowerFile, body: EventBody, before: ReadonlySet<number>): ReturnType<Keeper['content']> {
    const { attr } = file, pieces = new Set(before), extents: ExtentRecord[] = [];
    if (body.op !== 'read') return undefined;
    for (const [start, end] of rangesOf(body, attr.size)) {
      for (let at = start - start % PIECE_BYTES; at < end; at += PIECE_BYTES) {
        if (pieces.has(at)) continue;
        const bytes = Buffer.allocUnsafeSlow(Math.min(PIECE_BYTES, attr.size - at)), length = file.read(bytes, 0, bytes.length, at);
        // Shorter than it was: what follows tells another file.
        if (length < bytes.length) return undefined;
        const blob = versionOf(bytes);
        this.store.putBlob(blob, bytes);
        pieces.add(at);
        extents.push({ at, length, blob });
      }
    }
    return extents.length === 0 ? undefined : { attr, pieces, fields: { extents } };
  }

  /** A listing is kept with what a look at each name would show: whoever is shown a list of a mount may be shown that as well. */
  private list(origin: TreePath, told: Told | undefined): { list: readonly LowerEntry[]; fields: Partial<KeptRecord> } | undefined {
    const list = this.lower.list(origin);
    if (told?.list === list) return undefined;
    const entries: [string, LowerBase][] = [];
    for (const { name } of list) {
      const path = childOf(origin, name), attr = this.lower.lstat(path);
      if (typeof attr !== 'string') entries.push([name, this.base(path, attr)]);
    }
    const bytes = Buffer.from(JSON.stringify(entries)), blob = versionOf(bytes);
    this.store.putBlob(blob, bytes);
    return { list, fields: { blob } };
  }
}

/** The names of a path, `..` resolved. */
function parts(path: string): string[] {
  const found: string[] = [];
  for (const name of path.split('/')) {
    if (name === '..') found.pop();
    else if (name !== '' && name !== '.') found.push(name);
  }
  return found;
}

/** Whether an event shows, or is about to replace, what a file holds. */
function wantsContent({ op }: EventBody): boolean {
  return op === 'read' || op === 'write' || op === 'truncate' || op === 'delete' || op === 'rename';
}

/** What of a file was read. On a mount nobody says. */
function rangesOf({ ranges }: ReadBody, size: number): readonly (readonly [number, number])[] {
  return ranges ?? (size <= WHOLE_LIMIT_BYTES ? [[0, size]] : []);
}

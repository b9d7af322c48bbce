import { typeOf } from '../core/attr.ts';
import { ROOT, type TreePath } from '../core/path.ts';
import type { Step } from '../core/plan.ts';
import { canCarry } from './carrier.ts';
import type { Finding } from './examiner.ts';
import { knownOf } from './known.ts';
import { guiseOf, ownerWords } from './stager.ts';

/** Something that a commit cannot keep, and tells of beforehand: other names of a replaced file, attributes, an owner. */
export interface Loss {
  readonly path: TreePath;
  readonly what: 'links' | 'xattrs' | 'owner';
  readonly words: string;
}

interface Shared {
  /** The first of its names that is edited. */
  path: TreePath | undefined;
  names: number;
  gone: number;
}

/** Collects what a plan cannot keep. */
export class Losses {
  private readonly losses: Loss[] = [];
  /** Edited files that have other names, by device and inode: those names that are not edited in the same way still lead to the old file. */
  private readonly shared = new Map<string, Shared>();
  private edits = 0;

  of(step: Step, { disk, attr }: Finding): void {
    if (step.act === 'remove' && attr !== undefined && attr.nlink > 1) this.gone(`${attr.dev}:${attr.ino}`);
    if (step.act !== 'create' && step.act !== 'replace') return;
    const { node } = step;
    const isEdit = step.act === 'replace' && step.attributes === 'kept' && attr !== undefined && typeOf(attr.mode) === node.type;
    if (node.type !== 'link') {
      const kept = isEdit ? knownOf(attr, 0) : undefined;
      if (guiseOf(node, kept, node.type).lost) this.losses.push({ path: step.path, what: 'owner', words: ownerWords(node, kept) });
      if (isEdit || node.xattrs !== undefined) this.edits++;
    }
    if (step.act !== 'replace' || attr === undefined || disk === undefined || typeOf(attr.mode) !== 'file' || attr.nlink < 2) return;
    const key = `${attr.dev}:${attr.ino}`, entry = this.gone(key);
    if (entry.path === undefined && (isEdit || node.type === 'link')) {
      entry.path = disk;
      entry.names = attr.nlink;
    }
  }

  /** One more name that leads elsewhere from now on. */
  private gone(key: string): Shared {
    let entry = this.shared.get(key);
    if (entry === undefined) this.shared.set(key, entry = { path: undefined, names: 0, gone: 0 });
    entry.gone++;
    return entry;
  }

  all(): readonly Loss[] {
    const links: Loss[] = [];
    for (const { path, names, gone } of this.shared.values()) {
      const left = names - gone;
      if (path !== undefined && left > 0) links.push({ path, what: 'links', words: `${left} other name${left > 1 ? 's' : ''} of the file stay${left > 1 ? '' : 's'} with what it held before: the link is broken` });
    }
    const xattrs: Loss[] = this.edits === 0 || canCarry() ? [] : [{
      path: ROOT, what: 'xattrs', words: 'extended attributes and access lists of replaced files cannot be kept: getfattr and setfattr are not installed',
    }];
    return [...this.losses, ...links, ...xattrs];
  }
}

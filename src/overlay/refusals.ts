import type { TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';

/** A path that leads out of the tree, where that is not allowed. */
export function outsideTree(): Refusal {
  return new Refusal('EACCES', { fsCode: 'FS_SANDBOX_DENIED', reason: 'outside the tree' });
}

/** Nothing is there. */
export function notFound(): Refusal {
  return new Refusal('ENOENT', { fsCode: 'FS_NOT_FOUND' });
}

/** A lower file that content of the overlay still comes from is not what it was. */
export function changedBelow(origin: TreePath | undefined): Refusal {
  return new Refusal('EIO', {
    fsCode: 'FS_IO_ERROR', reason: `the lower file "${origin}" has changed beneath the overlay's changes to it`,
  });
}

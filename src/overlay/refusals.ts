import { Refusal } from '../core/refusal.ts';

/** A path that leads out of the tree, where that is not allowed. */
export function outsideTree(): Refusal {
  return new Refusal('EACCES', { fsCode: 'FS_SANDBOX_DENIED', reason: 'outside the tree' });
}

/** Nothing is there. */
export function notFound(): Refusal {
  return new Refusal('ENOENT', { fsCode: 'FS_NOT_FOUND' });
}

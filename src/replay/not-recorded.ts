import { Refusal } from '../core/refusal.ts';
import type { TreePath } from '../core/path.ts';

/**
 * The log tells nothing of what was asked for. For others EIO; a face that has errors of its own gives it the code ERR_NOT_RECORDED, so that nobody takes it for
 * something that is not there.
 */
export class NotRecorded extends Refusal {
  constructor(path: TreePath, what: string) {
    super('EIO', { fsCode: 'FS_IO_ERROR', reason: `${what} "${path}" was not recorded`, unrecorded: true });
  }
}

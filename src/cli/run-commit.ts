import { ConflictError } from '../index.ts';
import { tellConflicts } from './conflict.ts';
import { say } from './output.ts';
import { publishing } from './reading.ts';
import { quoted } from './text.ts';

/** Publishes what a run has changed, and tells of it. Gives whether it was published; what stands in the way is told. */
export async function commitRun(session: string): Promise<boolean> {
  try {
    const { id, changes, losses } = await publishing({ session }, (overlay) => overlay.commit());
    for (const { path, words } of losses) say(`note: ${quoted(path)}: ${words}`);
    say(changes.length === 0 ? 'nothing to commit' : `${changes.length} ${changes.length === 1 ? 'change' : 'changes'} published as ${id}`);
    return true;
  } catch (error) {
    if (!(error instanceof ConflictError)) throw error;
    tellConflicts(error, `nothing was published; the changes are in ${session}`);
    return false;
  }
}

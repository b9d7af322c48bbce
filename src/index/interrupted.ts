import { recover, type Recovery } from '../commit/recovery.ts';
import { pending } from '../commit/site.ts';
import { LockedRootError } from '../commit/fault.ts';
import { unreachable } from '../core/unreachable.ts';
import { SessionError } from '../store/fault.ts';
import { publishable, type Publishable } from './open.ts';
import type { OverlayOptions } from './options.ts';

/** The directories that commits of an overlay go to. */
export function rootsOf(to: Publishable): readonly string[] {
  switch (to.kind) {
    case 'directory': return [to.root];
    case 'stack': return to.roots.slice(0, 1);
    case 'named': return [...to.roots.values()];
    case 'shaped': return [];
    default: return unreachable(to);
  }
}

/** The same of an overlay that is about to be opened; none where that will fail. */
export function rootsGiven(options: OverlayOptions): readonly string[] {
  try {
    return rootsOf(publishable(options));
  } catch (error) {
    if (error instanceof SessionError || /^E[A-Z]+$/.test(String((error as { code?: unknown }).code))) return [];
    throw error;
  }
}

/** Ends commits to these directories that were interrupted, whosever they were. One that a live process is at is none. */
export async function recoverAll(roots: readonly string[]): Promise<readonly Recovery[]> {
  const recoveries: Recovery[] = [];
  for (const root of roots) {
    const found = pending(root);
    if (found === undefined || found.pid !== undefined) continue;
    try {
      const recovery = await recover(root, { patience: 0 });
      if (recovery.outcome !== 'nothing') recoveries.push(recovery);
    } catch (error) {
      if (!(error instanceof LockedRootError)) throw error;
    }
  }
  return recoveries;
}

/** Throws an error with `code` ERR_INTERRUPTED_COMMIT where a directory holds half of what somebody was killed over. */
export function demandWhole(roots: readonly string[]): void {
  for (const root of roots) {
    const found = pending(root);
    if (found?.state !== 'published' || found.pid !== undefined) continue;
    const words = `a commit to ${root} was interrupted: palimpsest recover ends it, and so does Overlay.open`;
    throw Object.assign(new Error(words), { code: 'ERR_INTERRUPTED_COMMIT', root });
  }
}

import { glance, LockedSessionError, Overlay, SessionLog, type SessionGlance } from '../index.ts';
import type { ControlRequest } from '../mount/control.ts';
import type { SessionOption } from './options.ts';
import { sessionToRead } from './session-directory.ts';

/** Hands the log of the session asked for to `act`; works beside its live writer, and without its root. */
export async function withLog<T>(options: SessionOption, act: (log: SessionLog) => T | Promise<T>): Promise<T> {
  const log = SessionLog.openSync(sessionToRead(options.session));
  try {
    return await act(log);
  } finally {
    log.close();
  }
}

/** Hands the session asked for to `act`, read-only; works beside its live writer. */
export async function withTree<T>(options: SessionOption, act: (overlay: Overlay, session: SessionGlance) => T | Promise<T>): Promise<T> {
  const session = sessionToRead(options.session);
  const overlay = Overlay.openSync({ session, readOnly: true });
  try {
    return await act(overlay, glance(session));
  } finally {
    overlay.closeSync();
  }
}

/**
 * Changes the session asked for: by `act`, or where another process has it open, by asking that. Gives what `act` gave, or the
 * number of the event that followed. Throws an error that names the process, where that does not listen.
 */
export async function withWriter<T>(
  options: SessionOption, actor: string, request: ControlRequest, act: (overlay: Overlay) => T,
): Promise<{ readonly done: T } | { readonly asked: number }> {
  const session = sessionToRead(options.session);
  let overlay: Overlay;
  try {
    overlay = Overlay.openSync({ session, actor });
  } catch (error) {
    if (!(error instanceof LockedSessionError)) throw error;
    const { askWriter } = await import('../mount/ask.ts'), asked = await askWriter(session, request);
    if (asked === undefined) throw error;
    return { asked };
  }
  try {
    return { done: act(overlay) };
  } finally {
    overlay.closeSync();
  }
}

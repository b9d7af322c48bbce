import { Overlay, SessionLog } from '../index.ts';
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
export async function withTree<T>(options: SessionOption, act: (overlay: Overlay, directory: string) => T | Promise<T>): Promise<T> {
  const session = sessionToRead(options.session);
  const overlay = Overlay.openSync({ session, readOnly: true });
  try {
    return await act(overlay, session);
  } finally {
    overlay.closeSync();
  }
}

/** Hands the session asked for to `act` for changing it. Throws an error that names the process which has it open. */
export async function withWriter<T>(options: SessionOption, actor: string, act: (overlay: Overlay) => T | Promise<T>): Promise<T> {
  const overlay = Overlay.openSync({ session: sessionToRead(options.session), actor });
  try {
    return await act(overlay);
  } finally {
    overlay.closeSync();
  }
}

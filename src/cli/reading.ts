import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { glance, isParcel, LockedSessionError, Overlay, SessionLog, unpackSession, type SessionGlance, rootsGiven } from '../index.ts';
import type { ControlRequest } from '../mount/control.ts';
import { momentOption, type SessionOption, type TreeOption } from './options.ts';
import { recoverFirst } from './recover.ts';
import { sessionToRead } from './session-directory.ts';

/** Hands the log of the session asked for to `act`; works beside its live writer, and without its root. */
export async function withLog<T>(options: SessionOption, act: (log: SessionLog) => T | Promise<T>): Promise<T> {
  return withDirectory(options, async (session) => {
    const log = SessionLog.openSync(session);
    try {
      return await act(log);
    } finally {
      log.close();
    }
  });
}

/** Hands the session asked for to `act`, read-only, as it is or as it was; works beside its live writer. */
export async function withTree<T>(options: TreeOption, act: (overlay: Overlay, session: SessionGlance) => T | Promise<T>): Promise<T> {
  return withDirectory(options, async (session) => {
    if (options.replay !== true) await recoverFirst(rootsGiven({ session }));
    const overlay = options.replay === true ? Overlay.replaySync(session) : Overlay.openSync({ session, readOnly: true });
    try {
      return await act(options.at === undefined ? overlay : overlay.at(momentOption(options.at)), glance(session));
    } finally {
      overlay.closeSync();
    }
  });
}

/** Hands over the directory of the session asked for; of one that is packed in a file, a directory that goes away again. */
export async function withDirectory<T>({ session }: SessionOption, act: (directory: string) => Promise<T>): Promise<T> {
  if (session === undefined || !isParcel(session)) return act(sessionToRead(session));
  const scratch = mkdtempSync(join(tmpdir(), 'palimpsest-'));
  try {
    const directory = join(scratch, 'session');
    unpackSession(session, directory);
    return await act(directory);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/**
 * Changes the session asked for: by `act`, or where another process has it open, by asking that. Gives what `act` gave, or the
 * number of the event that followed. Throws an error that names the process, where that does not listen.
 */
export async function withWriter<T>(
  options: SessionOption, actor: string, request: ControlRequest, act: (overlay: Overlay) => T | Promise<T>,
): Promise<{ readonly done: T } | { readonly asked: number }> {
  const session = sessionToRead(options.session);
  await recoverFirst(rootsGiven({ session }));
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
    return { done: await act(overlay) };
  } finally {
    overlay.closeSync();
  }
}

/** Hands the session asked for to `act`, which commits or reverts. Throws `LockedSessionError` where another process has it open. */
export async function publishing<T>(options: SessionOption, act: (overlay: Overlay) => Promise<T>): Promise<T> {
  const session = sessionToRead(options.session);
  await recoverFirst(rootsGiven({ session }));
  const overlay = Overlay.openSync({ session });
  try {
    return await act(overlay);
  } finally {
    overlay.closeSync();
  }
}

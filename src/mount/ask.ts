import { closeSync, existsSync, openSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { SESSION_SOCKET, type ControlRequest } from './control.ts';

/**
 * Asks the run that this process is in, whose socket is `path`. Gives the number of the event that followed. Throws an error
 * with the words of the refusal, or that there is no such run any more.
 */
export async function askInside(path: string, request: ControlRequest): Promise<number> {
  const socket = await connected(path);
  if (socket === undefined) throw new Error('the run has ended');
  return dialogue(socket, request);
}

/** Asks whoever has a session open; `undefined` where nobody listens there. */
export async function askWriter(session: string, request: ControlRequest): Promise<number | undefined> {
  const socket = await connected(join(session, SESSION_SOCKET));
  return socket === undefined ? undefined : dialogue(socket, request);
}

async function dialogue(socket: Socket, request: ControlRequest): Promise<number> {
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
  try {
    socket.write(JSON.stringify(request) + '\n');
    for (;;) {
      const { done, value } = await lines.next();
      if (done === true) throw new Error('the session was closed before it answered');
      const answer = JSON.parse(value) as { look?: string; seq?: number; error?: string };
      if (answer.error !== undefined) throw new Error(answer.error);
      if (answer.look === undefined) return answer.seq as number;
      // That this process looks the name up is what tells who it is.
      existsSync(answer.look);
      socket.write('{"looked":true}\n');
    }
  } finally {
    socket.destroy();
  }
}

/** By way of its directory's descriptor, as it listens. */
async function connected(path: string): Promise<Socket | undefined> {
  let directory: number | undefined;
  try {
    directory = openSync(dirname(path), 'r');
    const socket = connect(`/proc/self/fd/${directory}/${SESSION_SOCKET}`);
    await new Promise<void>((done, failed) => socket.once('connect', done).once('error', failed));
    return socket;
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ECONNREFUSED')) return undefined;
    throw error;
  } finally {
    if (directory !== undefined) closeSync(directory);
  }
}

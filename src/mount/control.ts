import { closeSync, existsSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { nanoid } from 'nanoid';
import type { Order, Service } from './orders.ts';

/** Names the socket of the run that a process is in. */
export const SOCKET_VARIABLE = 'PALIMPSEST_SOCKET';
/** The socket of whoever has a session open, in its directory. */
export const SESSION_SOCKET = 'control';

/** What can be asked of whoever has a session open: a line of JSON. */
export type ControlRequest =
  | { readonly kind: 'mark'; readonly label: string; readonly data?: unknown; readonly actor?: string }
  | { readonly kind: 'discard'; readonly paths?: readonly string[] };

/**
 * A socket on which whoever serves a session is asked for what only it can do.
 *
 *     → {"kind": "mark", …}     ← {"look": "/root/.palimpsest-bell-…"}     only inside of a run
 *     → {"looked": true}        ← {"seq": 12} or {"error": "…"}
 *
 * A socket does not tell who speaks. So a process inside of a run gets a name in the root to look up, and the kernel tells who
 * did. Outside, whoever may write to the session's directory may ask.
 */
export class Control {
  /** Where others find it. */
  readonly path: string;
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  private readonly remove: () => void;

  private constructor(place: { path: string; remove: () => void }, answer: (socket: Socket) => Promise<void>) {
    this.path = place.path;
    this.remove = place.remove;
    this.server = createServer((socket) => {
      this.sockets.add(socket.on('close', () => this.sockets.delete(socket)).on('error', () => socket.destroy()));
      void answer(socket);
    });
  }

  /** For processes inside a run, which ask for marks: at a place of its own, outside of `root`. */
  static async inside(service: Service, root: string): Promise<Control> {
    const place = [tmpdir(), '/run', '/dev/shm', '/var/tmp'].find((each) => existsSync(each) && !isWithin(each, root));
    if (place === undefined) throw new Error(`there is no place for a socket outside of ${root}`);
    const directory = mkdtempSync(join(place, 'palimpsest-'));
    const remove = (): void => rmSync(directory, { recursive: true, force: true });
    return new Control({ path: join(directory, SESSION_SOCKET), remove }, (socket) => answerInside(socket, service, root)).listen();
  }

  /** For everybody else: in the session's directory. */
  static async ofSession(service: Service, session: string): Promise<Control> {
    const path = join(session, SESSION_SOCKET), remove = (): void => rmSync(path, { force: true });
    // The lock is ours, so whoever left it there is gone.
    remove();
    return new Control({ path, remove }, (socket) => answerOutside(socket, service)).listen();
  }

  close(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
    this.remove();
  }

  /** By way of its directory's descriptor: a socket's path may have no more than 107 bytes. */
  private async listen(): Promise<Control> {
    const directory = openSync(join(this.path, '..'), 'r');
    try {
      await new Promise<void>((done, failed) => {
        this.server.once('error', failed).listen(`/proc/self/fd/${directory}/${SESSION_SOCKET}`, done);
      });
      return this;
    } finally {
      closeSync(directory);
    }
  }
}

async function answerInside(socket: Socket, service: Service, root: string): Promise<void> {
  const lines = linesOf(socket);
  await speak(socket, async () => {
    const request = await requestFrom(lines), claim = nanoid();
    if (request.kind !== 'mark') throw new TypeError(`${request.kind} is not for a process inside of a run`);
    socket.write(JSON.stringify({ look: `${root}/${service.bell}-${claim}` }) + '\n');
    await lines.next();
    return { ...request, data: request.data, actor: request.actor, claim };
  }, service);
}

async function answerOutside(socket: Socket, service: Service): Promise<void> {
  const lines = linesOf(socket);
  await speak(socket, async () => {
    const request = await requestFrom(lines);
    return request.kind === 'mark' ? { ...request, data: request.data, actor: request.actor, claim: undefined } : { kind: 'discard', paths: request.paths };
  }, service);
}

async function speak(socket: Socket, ask: () => Promise<Order>, service: Service): Promise<void> {
  try {
    socket.write(JSON.stringify({ seq: await service.order(await ask()) }) + '\n');
  } catch (error) {
    socket.write(JSON.stringify({ error: error instanceof Error ? error.message : String(error) }) + '\n');
  }
  socket.end();
}

function linesOf(socket: Socket): AsyncIterator<string> {
  return createInterface({ input: socket })[Symbol.asyncIterator]();
}

async function requestFrom(lines: AsyncIterator<string>): Promise<ControlRequest> {
  const { value } = await lines.next(), request: unknown = JSON.parse(String(value));
  if (typeof request !== 'object' || request === null || !('kind' in request)) throw new TypeError('a request is an object with a kind');
  switch (request.kind) {
    case 'mark':
      if (!('label' in request) || typeof request.label !== 'string') throw new TypeError('a mark needs a label');
      if ('actor' in request && (typeof request.actor !== 'string' || request.actor === '')) throw new TypeError('an actor is a non-empty string');
      return request as ControlRequest;
    case 'discard':
      if ('paths' in request && !(Array.isArray(request.paths) && request.paths.every((path) => typeof path === 'string'))) {
        throw new TypeError('paths are a list of strings');
      }
      return request as ControlRequest;
    default: throw new TypeError(`unknown request "${String(request.kind)}"`);
  }
}

function isWithin(path: string, root: string): boolean {
  return path === root || path.startsWith(root === '/' ? root : root + '/');
}

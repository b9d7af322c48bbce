import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { nanoid } from 'nanoid';
import type { Service } from './orders.ts';

/** Names the socket of the run that a process is in. */
export const SOCKET_VARIABLE = 'PALIMPSEST_SOCKET';

/** A mark as a process inside asks for it. */
interface MarkRequest {
  readonly label: string;
  readonly data?: unknown;
  /** Acts from here on for the process that asks, and for all that descends from its parent. */
  readonly actor?: string;
}

/**
 * Takes marks from inside a run, on a socket. A socket does not tell who speaks; so whoever asks gets a name in the root to
 * look up, and the kernel tells who did.
 *
 *     → {"label": …, "data": …, "actor": …}    ← {"look": "/root/.palimpsest-bell-…"}
 *     → {"looked": true}                       ← {"seq": 12} or {"error": "…"}
 */
export class Marks {
  readonly path: string;
  private readonly directory: string;
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();

  private constructor(service: Service, root: string, directory: string) {
    this.directory = directory;
    this.path = join(directory, 'marks');
    this.server = createServer((socket) => {
      this.sockets.add(socket.on('close', () => this.sockets.delete(socket)).on('error', () => socket.destroy()));
      void answer(socket, service, root);
    });
  }

  /** Listens at a place of its own, outside of `root`. */
  static async listen(service: Service, root: string): Promise<Marks> {
    const place = [tmpdir(), '/run', '/dev/shm', '/var/tmp'].find((each) => existsSync(each) && !isWithin(each, root));
    if (place === undefined) throw new Error(`there is no place for a socket outside of ${root}`);
    const marks = new Marks(service, root, mkdtempSync(join(place, 'palimpsest-')));
    await new Promise<void>((done, failed) => marks.server.once('error', failed).listen(marks.path, done));
    return marks;
  }

  close(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

async function answer(socket: Socket, service: Service, root: string): Promise<void> {
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
  const say = (words: object): void => void socket.write(JSON.stringify(words) + '\n');
  try {
    const request = asRequest(await lines.next()), claim = nanoid();
    say({ look: `${root}/${service.bell}-${claim}` });
    await lines.next();
    const { label, data, actor } = request;
    say({ seq: await service.order({ kind: 'mark', label, data, actor, claim }) });
  } catch (error) {
    say({ error: error instanceof Error ? error.message : String(error) });
  }
  socket.end();
}

function asRequest({ value }: IteratorResult<string, unknown>): MarkRequest {
  const request: unknown = JSON.parse(String(value));
  if (typeof request !== 'object' || request === null || !('label' in request) || typeof request.label !== 'string') {
    throw new TypeError('a mark needs a label');
  }
  if ('actor' in request && (typeof request.actor !== 'string' || request.actor === '')) throw new TypeError('an actor has to be a non-empty string');
  return request as MarkRequest;
}

function isWithin(path: string, root: string): boolean {
  return path === root || path.startsWith(root === '/' ? root : root + '/');
}

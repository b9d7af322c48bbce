import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { CommitBody, RevertBody } from '../core/event.ts';
import type { World } from '../overlay/world.ts';
import { INTENT_FILE } from '../store/open.ts';
import { acknowledge, pending, wasPublished } from './site.ts';

/** What a session is about to publish: the event that follows once that is done. */
export interface Intent {
  readonly root: string;
  /** Of the transaction. */
  readonly id: string;
  readonly actor: string;
  readonly body: CommitBody | RevertBody;
}

/**
 * A commit ends in two places: on the disk, and in the log. A process killed between the two leaves this file in its session,
 * and the disk says what became of it; so whoever opens the session next appends the event that is missing.
 */
export class IntentFile {
  private readonly file: string | undefined;

  constructor(world: World) {
    const { directory } = world.session.store;
    this.file = directory === undefined ? undefined : join(directory, INTENT_FILE);
  }

  /** Before anything is published; survives a power cut. */
  write(intent: Intent): void {
    if (this.file === undefined) return;
    const fd = openSync(`${this.file}.new`, 'w', 0o600);
    try {
      writeSync(fd, JSON.stringify(intent));
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(`${this.file}.new`, this.file);
  }

  read(): Intent | undefined {
    if (this.file === undefined) return undefined;
    try {
      return JSON.parse(readFileSync(this.file, 'utf8')) as Intent;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  }

  /** The log has the event, or nothing was published. */
  remove(): void {
    if (this.file !== undefined) rmSync(this.file, { force: true });
  }

  /** After a failure: the disk may still be told otherwise by a recovery. */
  removeUnlessOpen({ root, id }: Intent): void {
    if (pending(root) === undefined && !wasPublished(root, id)) this.remove();
  }
}

/** Appends the event of a commit that was done on the disk, and whose session was killed before it could write that down. */
export function learnPublished(world: World): void {
  const file = new IntentFile(world), intent = file.read();
  if (intent === undefined) return;
  const { root, id, actor, body } = intent;
  if (wasPublished(root, id)) {
    if (!isKnown(world, body)) world.session.append(actor, body);
    world.session.sync();
    acknowledge(root, id);
    file.remove();
  } else if (pending(root) === undefined) file.remove();
}

function isKnown(world: World, body: CommitBody | RevertBody): boolean {
  for (const event of world.session.events()) if (event.op === body.op && event.id === body.id) return true;
  return false;
}

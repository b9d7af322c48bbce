import type { Change, Event } from '../index.ts';
import { Overlay, SessionLog } from '../index.ts';
import { say } from './output.ts';
import { quoted } from './text.ts';

/** Most paths of a kind that a summary lists; the rest is counted. */
const LISTED = 20;

/** Says on stderr what a run read, looked for in vain and changed. */
export function tellRun(session: string, { from, to, faults }: { from: number; to: number; faults: readonly unknown[] }): void {
  const read = new Set<string>(), missed = new Set<string>(), listed = new Set<string>(), flagged: Event[] = [];
  for (const event of SessionLog.openSync(session).events({ from, to })) {
    if (event.op === 'read') read.add(event.path);
    else if (event.op === 'miss') missed.add(event.path);
    else if (event.op === 'list') listed.add(event.path);
    else if (event.op === 'flag' || event.op === 'refuse') flagged.push(event);
  }
  const overlay = Overlay.openSync({ session });
  const changes = overlay.changes();
  overlay.closeSync();
  say(`palimpsest: read ${read.size} files, listed ${listed.size} directories, missed ${missed.size} names; ${changes.length} changes, ` +
    `${flagged.length} flags and refusals`);
  some('read', [...read]);
  some('missed', [...missed]);
  some('changed', changes.map((change: Change) => `${change.kind} ${change.path}`));
  say(`palimpsest: session ${quoted(session)}`);
  for (const fault of faults) say(`palimpsest: a fault of our own: ${fault instanceof Error ? fault.stack ?? fault.message : String(fault)}`);
}

function some(word: string, names: readonly string[]): void {
  for (const name of names.slice(0, LISTED)) say(`  ${word} ${quoted(name)}`);
  if (names.length > LISTED) say(`  ${word} ${names.length - LISTED} more`);
}

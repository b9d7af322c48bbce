import { Overlay, summaryOf, type Change, type Incident } from '../index.ts';
import { say } from './output.ts';
import { quoted } from './text.ts';

/** Most paths of a kind that a summary lists; the rest is counted. */
const LISTED = 20;

/** Says on stderr what a run read, looked for in vain and changed. */
export function tellRun(session: string, { from, to, faults }: { from: number; to: number; faults: readonly unknown[] }): void {
  const overlay = Overlay.openSync({ session, readOnly: true });
  const { read, missed, listed, flags, refusals } = summaryOf(overlay.events({ from, to })), changes = overlay.changes();
  overlay.closeSync();
  say(`palimpsest: read ${read.length} files, listed ${listed.length} directories, missed ${missed.length} names; ${changes.length} changes, ` +
    `${flags.length} flags, ${refusals.length} refusals`);
  some('read', read);
  some('missed', missed);
  some('changed', changes.map((change: Change) => `${change.kind} ${change.path}`));
  some('flagged', flags.map((incident) => told(incident)));
  some('refused', refusals.map((incident) => told(incident)));
  say(`palimpsest: session ${quoted(session)}`);
  for (const fault of faults) say(`palimpsest: a fault of our own: ${fault instanceof Error ? fault.stack ?? fault.message : String(fault)}`);
}

function told({ call, path, outside, rule, programs }: Incident): string {
  const by = programs.length === 0 ? '' : `, by ${programs.join(' and ')}`;
  return `${path ?? outside ?? ''} (${call}${rule === undefined ? '' : `, rule ${rule}`}${by})`;
}

function some(word: string, names: readonly string[]): void {
  for (const name of names.slice(0, LISTED)) say(`  ${word} ${quoted(name)}`);
  if (names.length > LISTED) say(`  ${word} ${names.length - LISTED} more`);
}

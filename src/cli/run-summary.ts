import { Overlay, summaryOf, type Change, type Incident } from '../index.ts';
import { say } from './output.ts';
import { quoted, visible } from './text.ts';

/** Most paths that a summary lists: what was read or missed is the longest list and asked for least; the rest is counted. */
const LISTED = { read: 10, missed: 10, changed: 20, flagged: 20, refused: 20 } as const;

/** What there is to tell of a run. */
interface Told {
  readonly from: number;
  readonly to: number;
  readonly timedOut: boolean;
  readonly faults: readonly unknown[];
}

/** Says on stderr what a run read, looked for in vain and changed. */
export function tellRun(session: string, { from, to, timedOut, faults }: Told): void {
  const overlay = Overlay.openSync({ session, readOnly: true });
  const { read, missed, listed, flags, refusals } = summaryOf(overlay.events({ from, to })), changes = overlay.changes();
  overlay.closeSync();
  if (timedOut) say('palimpsest: the time is up, and the command was ended');
  say(`palimpsest: read ${counted(read, 'file')}, listed ${counted(listed, 'directory', 'directories')}, missed ${counted(missed, 'name')}; ` +
    `${counted(changes, 'change')}, ${counted(flags, 'flag')}, ${counted(refusals, 'refusal')}`);
  some('read', read.map((path) => quoted(path)));
  some('missed', missed.map((path) => quoted(path)));
  some('changed', changes.map((change) => changed(change)));
  some('flagged', flags.map((incident) => told(incident)));
  some('refused', refusals.map((incident) => told(incident)));
  say(`palimpsest: session ${quoted(session)}`);
  for (const fault of faults) say(`palimpsest: a fault of our own: ${fault instanceof Error ? fault.stack ?? fault.message : String(fault)}`);
}

function changed({ kind, path, from, type }: Change): string {
  const slash = type === 'directory' ? '/' : '';
  return `${kind} ${from === undefined ? '' : `${quoted(from + slash)} → `}${quoted(path + slash)}`;
}

function told({ call, path, outside, rule, programs }: Incident): string {
  const by = programs.length === 0 ? '' : `, by ${programs.join(' and ')}`;
  return quoted(path ?? outside ?? '') + visible(` (${call}${rule === undefined ? '' : `, rule ${rule}`}${by})`);
}

function some(word: keyof typeof LISTED, shown: readonly string[]): void {
  const most = LISTED[word];
  for (const each of shown.slice(0, most)) say(`  ${word} ${each}`);
  if (shown.length > most) say(`  ${word} ${shown.length - most} more`);
}

function counted({ length }: readonly unknown[], one: string, many = `${one}s`): string {
  return `${length} ${length === 1 ? one : many}`;
}

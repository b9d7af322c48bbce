import type { Event } from './event.ts';
import type { TreePath } from './path.ts';

/** Flags, or refusals, that are the same but for their time and process: what somebody was told no for, or did where a rule was watching. */
export interface Incident {
  readonly op: 'flag' | 'refuse';
  readonly actor: string;
  readonly call: string;
  readonly path?: TreePath;
  /** The absolute path outside the tree. */
  readonly outside?: string;
  readonly rule?: string;
  readonly code?: string;
  /** Names of the processes, where there were some. */
  readonly programs: readonly string[];
  readonly count: number;
  /** The first one's sequence number. */
  readonly seq: number;
}

/** Adds `event` to those found so far, which are in the order of their first. */
export function noteIncident(found: Map<string, Incident>, event: Extract<Event, { op: 'flag' | 'refuse' }>): void {
  const { op, actor, call, path, rule, seq } = event, refused = event.op === 'refuse' ? event : undefined;
  const key = incidentKey({ op, actor, call, path, rule, code: refused?.code, outside: refused?.outside });
  const known = found.get(key), program = event.process?.name, before = known?.programs ?? [];
  const programs = program === undefined || before.includes(program) ? before : [...before, program];
  if (known !== undefined) {
    found.set(key, { ...known, programs, count: known.count + 1 });
    return;
  }
  found.set(key, {
    op, actor, call, ...(path === undefined ? undefined : { path }), ...(refused?.outside === undefined ? undefined : { outside: refused.outside }),
    ...(rule === undefined ? undefined : { rule }), ...(refused === undefined ? undefined : { code: refused.code }), programs, count: 1, seq,
  });
}

/** What two events have in common that are the same incident. */
export function incidentKey({ op, actor, call, path, rule, code, outside }: { readonly [K in keyof Incident]?: Incident[K] | undefined }): string {
  return JSON.stringify([op, actor, call, path, rule, code, outside]);
}

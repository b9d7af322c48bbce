import type { Event } from '../index.ts';
import { nameField } from './path.ts';
import { paint } from './paint.ts';
import { quoted, visible } from './text.ts';

/** What a run was told no for, or did where a rule was watching. */
export type Incident = Extract<Event, { op: 'refuse' | 'flag' }>;

/** Refusals and flags of a log; the same ones counted together, in the order of their first. */
export class Incidents {
  private readonly found = new Map<string, { first: Incident; count: number }>();

  add(event: Event): void {
    if (event.op !== 'refuse' && event.op !== 'flag') return;
    const { op, actor, call, path, rule } = event, refused = event.op === 'refuse' ? event : undefined;
    const key = JSON.stringify([op, actor, call, path, rule, refused?.code, refused?.outside]);
    const known = this.found.get(key);
    if (known === undefined) this.found.set(key, { first: event, count: 1 });
    else known.count++;
  }

  of(op: Incident['op']): readonly { first: Incident; count: number }[] {
    return [...this.found.values()].filter(({ first }) => first.op === op);
  }
}

/** One line for a terminal. */
export function incidentLine({ first, count }: { first: Incident; count: number }): string {
  const name = 'outside' in first && first.outside !== undefined ? first.outside : first.path ?? '';
  const words = [visible(first.call), quoted(name)];
  if (first.op === 'refuse') words.unshift(paint.red(visible(first.code)));
  const notes = [
    ...(first.rule === undefined ? [] : [`rule ${visible(first.rule)}`]),
    ...('outside' in first && first.outside !== undefined ? ['outside the root'] : []),
    ...(first.actor === 'main' ? [] : [`by ${visible(first.actor)}`]),
    ...(count === 1 ? [] : [`${count} times`]),
  ];
  return words.join(' ') + (notes.length === 0 ? '' : paint.dim(` (${notes.join(', ')})`));
}

/** The same as a JSON object. */
export function incidentJson({ first, count }: { first: Incident; count: number }): object {
  const { call, path, rule, actor, seq } = first, refused = first.op === 'refuse' ? first : undefined;
  return {
    ...(refused && { code: refused.code }), call, ...nameField('path', path), ...nameField('outside', refused?.outside),
    ...(rule === undefined ? {} : { rule }), actor, first: seq, count,
  };
}

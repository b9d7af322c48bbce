import type { Incident } from '../index.ts';
import { nameField } from './path.ts';
import { paint } from './paint.ts';
import { quoted, visible } from './text.ts';

/** Flags and refusals, as they are printed. */

/** One line for a terminal. */
export function incidentLine({ code, call, path, outside, rule, actor, count, programs }: Incident): string {
  const words = [visible(call), quoted(outside ?? path ?? '')];
  if (code !== undefined) words.unshift(paint.red(visible(code)));
  const notes = [
    ...(rule === undefined ? [] : [`rule ${visible(rule)}`]),
    ...(outside === undefined ? [] : ['outside the root']),
    ...(programs.length === 0 ? [] : [`by ${programs.map((name) => visible(name)).join(' and ')}`]),
    ...(actor === 'main' ? [] : [`as ${visible(actor)}`]),
    ...(count === 1 ? [] : [`${count} times`]),
  ];
  return words.join(' ') + (notes.length === 0 ? '' : paint.dim(` (${notes.join(', ')})`));
}

/** The same as a JSON object. */
export function incidentJson({ code, call, path, outside, rule, actor, programs, seq, count }: Incident): object {
  return {
    ...(code !== undefined && { code }), call, ...nameField('path', path), ...nameField('outside', outside),
    ...(rule === undefined ? {} : { rule }), actor, ...(programs.length > 0 && { programs }), first: seq, count,
  };
}

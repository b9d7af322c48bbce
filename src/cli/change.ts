import type { Change, ChangeKind } from '../index.ts';
import { nameField, nulRecord } from './path.ts';
import { paint } from './paint.ts';
import { quoted } from './text.ts';

/** Rows of the change list, as they are printed. */

const PAINT: Readonly<Record<ChangeKind, (text: string) => string>> = {
  create: paint.green, delete: paint.red, update: paint.yellow, type: paint.yellow, rename: paint.cyan, link: paint.cyan,
  mode: paint.magenta, owner: paint.magenta, times: paint.magenta, xattr: paint.magenta,
};
const WIDTH = Math.max(...Object.keys(PAINT).map(({ length }) => length)) + 2;

/** One line for a terminal. */
export function changeLine(change: Change): string {
  const { kind, path, from, type } = change, slash = type === 'directory' ? '/' : '';
  const name = quoted(path + slash) + detail(change);
  const origin = from === undefined ? '' : quoted(from + slash) + (kind === 'link' ? ' = ' : ' → ');
  return PAINT[kind](kind.padEnd(WIDTH)) + origin + name;
}

function detail({ kind, before, after, type, mode, owner }: Change): string {
  const notes: string[] = [];
  if (kind === 'mode' || kind === 'owner') notes.push(`${before} → ${after}`);
  else if (kind === 'rename' && before !== after) notes.push('changed');
  else if (type !== 'file' && type !== 'directory') notes.push(type);
  if (kind !== 'create' && kind !== 'mode' && mode !== undefined) notes.push(`mode ${mode}`);
  if (kind !== 'create' && kind !== 'owner' && owner !== undefined) notes.push(`owner ${owner}`);
  return notes.length === 0 ? '' : paint.dim(` (${notes.join(', ')})`);
}

/** The row as a JSON object. */
export function changeJson({ path, kind, type, from, origin, ...rest }: Change): object {
  return { ...nameField('path', path), kind, type, ...nameField('from', from), ...nameField('origin', origin), ...rest };
}

/** The record of `-z`: the kind, the path, and where it came from for what is renamed or linked. */
export function changeRecord({ kind, path, from }: Change): Uint8Array {
  return nulRecord([kind], path, ...(from === undefined ? [] : [from]));
}

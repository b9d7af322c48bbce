import { isDeepStrictEqual } from 'node:util';
import { decodeEvent, encodeEvent } from '../../src/core/encode.ts';
import type { Event } from '../../src/core/event.ts';
import { evolve } from '../../src/core/evolve.ts';
import { slices } from '../../src/core/extents.ts';
import { readSet } from '../../src/core/observation.ts';
import { Owner } from '../../src/core/owner.ts';
import { initialState, nodeOf } from '../../src/core/state.ts';
import type { State } from '../../src/core/state.ts';
import type { Totals } from '../../src/core/statistics.ts';
import { Node, WHITEOUT } from '../../src/core/tree.ts';

/** What `checkLaws` needs of an overlay. */
export interface Lawful {
  events(): Iterable<Event>;
  readonly head: { readonly seq: number };
  totals?(): Totals;
}

/**
 * The laws of every overlay, whatever was done with it: its events count from 1 without gaps, each survives encoding, and
 * folding them is the same in one go and in two, where the first half belongs to someone else and stays as it is. Throws
 * Error naming the law. That the replayed state is the live one shows in reopening: see `test/model/layered.ts`.
 */
export function checkLaws(overlay: Lawful): void {
  const events = [...overlay.events()];
  for (const [index, event] of events.entries()) {
    if (event.seq !== index + 1) throw new Broken('seq counts from 1 without gaps', `event ${index + 1} has ${event.seq}`);
    const again = decodeEvent(`${encodeEvent(event)}}`);
    if (!isDeepStrictEqual(again, event)) {
      throw new Broken('decode(encode(e)) is e', `${JSON.stringify(event)} became ${JSON.stringify(again)}`);
    }
  }
  if (overlay.head.seq !== events.length) throw new Broken('head is the last event', `${overlay.head.seq} of ${events.length}`);
  const whole = fold(initialState(), events), totals = overlay.totals?.();
  if (totals !== undefined && countsOf(totals) !== countsOf(whole.totals)) {
    throw new Broken('the live totals are the replayed ones', `${countsOf(totals)}, not ${countsOf(whole.totals)}`);
  }
  checkSplit(events, whole, events.length >> 1);
  checkSplit(events, whole, Math.max(0, events.length - 1));
}

class Broken extends Error {
  override readonly name = 'BrokenLaw';
  constructor(law: string, what: string) {
    super(`${law}: ${what}`);
  }
}

function fold(state: State, events: readonly Event[]): State {
  for (const event of events) evolve(state, event);
  return state;
}

function checkSplit(events: readonly Event[], whole: State, at: number): void {
  const prefix = fold(initialState(), events.slice(0, at));
  const before = pictureOf(prefix);
  const { root, links, bases } = prefix;
  prefix.owner = new Owner();
  const rest = fold(prefix, events.slice(at));
  if (pictureOf(rest) !== pictureOf(whole)) {
    throw new Broken('fold(all) is fold(prefix) then the rest', `not where split after ${at}:\n${pictureOf(whole)}\n${pictureOf(rest)}`);
  }
  const kept = pictureOf({ ...initialState(), root, links, bases, nextIno: 0 });
  if (treeOf(kept) !== treeOf(before)) {
    throw new Broken('a shared state is not changed by its next owner', `split after ${at}:\n${before}\n${kept}`);
  }
}

/** All of a state but its owners, as text: one line a name, then links, bases and what was seen. */
function pictureOf(state: State): string {
  const lines: string[] = [];
  const visit = (name: string, node: Node): void => {
    lines.push(`${name}: ${textOf(node)}`);
    for (const child of node.names?.names() ?? []) {
      const entry = node.names?.get(child);
      if (entry instanceof Node) visit(`${name}/${child}`, entry);
      else lines.push(`${name}/${child}: ${entry === WHITEOUT ? 'whiteout' : JSON.stringify(entry)}`);
      if (entry !== undefined) nodeOf(state, entry);
    }
  };
  visit('', state.root);
  for (const key of state.links.names()) lines.push(`link ${key}: ${textOf(state.links.get(key) as Node)}`);
  for (const path of state.bases.names()) lines.push(`base ${path}: ${JSON.stringify(state.bases.get(path))}`);
  lines.push(SEEN);
  for (const row of readSet(state.observations)) lines.push(JSON.stringify(row));
  lines.push(`next ${state.nextIno}`, JSON.stringify(state.rules), countsOf(state.totals), JSON.stringify([...state.incidents]));
  return lines.join('\n');
}

function countsOf({ events, first, last, total, ops, actors }: Totals): string {
  return JSON.stringify([events, first, last, total, [...ops], [...actors]]);
}

const SEEN = '--- seen';

function treeOf(picture: string): string {
  return picture.slice(0, picture.indexOf(SEEN));
}

function textOf(node: Node): string {
  const { owner: _owner, names: _names, content, ...fields } = node;
  const told = content.kind === 'extents' ? { kind: content.kind, extents: slices(content.map, 0, content.map.size) } : content;
  return JSON.stringify({ ...fields, content: told }, (_, value: unknown) => {
    if (typeof value === 'bigint') return `${value}n`;
    if (value instanceof Map) return [...(value as Map<unknown, unknown>)];
    return value;
  });
}

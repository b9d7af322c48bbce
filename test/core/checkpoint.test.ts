import { describe, expect, it } from 'vitest';
import { decodeState, encodeState } from '../../src/core/checkpoint.ts';
import type { Event, LowerBase } from '../../src/core/event.ts';
import { evolve } from '../../src/core/evolve.ts';
import { fromBytes } from '../../src/core/path.ts';
import type { TreePath } from '../../src/core/path.ts';
import { FIRST_INO, initialState } from '../../src/core/state.ts';
import type { State } from '../../src/core/state.ts';
import type { Version } from '../../src/core/version.ts';

const p = (path: string): TreePath => path as TreePath;
const version = (digit: string): Version => `sha256:${digit.repeat(64)}` as Version;
const mtime = '1764536400000000001';
const odd = fromBytes(Uint8Array.of(0x63, 0x61, 0x66, 0xe9));
const lower: LowerBase = {
  type: 'file', mode: 0o100640, uid: 1, gid: 2, size: 9, nlink: 1, dev: 65024, ino: '18446744073709551615', mtime: '-5', ctime: '7',
  atime: '3', birthtime: '2', version: version('a'),
};
const directory: LowerBase = { ...lower, type: 'directory', mode: 0o40755, nlink: 3, ino: 12 };
const link: LowerBase = { ...lower, type: 'symlink', mode: 0o120777, ino: 13, target: `../${odd}` };
const own = { uid: 5, gid: 6, mtime };

type Body = Event extends infer E ? E extends Event ? Omit<E, 'seq' | 'time' | 'actor'> : never : never;

/** Changes of every kind, one after another, all possible. */
const BODIES: readonly Body[] = [
  { op: 'read', path: p('read'), version: version('b'), size: 9 },
  { op: 'mkdir', path: p('new'), mode: 0o40755, ino: FIRST_INO, ...own },
  { op: 'write', path: p(`new/${odd}`), version: version('c'), size: 4, mode: 0o100644, ino: FIRST_INO + 1, created: own, blob: version('c'), mtime },
  { op: 'write', path: p('new/unknown'), size: 4, mode: 0o100644, ino: FIRST_INO + 2, created: own, blob: version('d'), mtime },
  { op: 'write', path: p('a/taken'), version: version('e'), size: 12, mode: 0o100640, ino: '18446744073709551615', mtime, lower,
    extents: [{ at: 0, length: 4, lower: 0 }, { at: 4, length: 4 }, { at: 8, length: 4, blob: version('f'), from: 1 }] },
  { op: 'chmod', path: p('a/mode'), ino: 14, mode: 0o100600, mtime, lower: { ...lower, ino: 14 } },
  { op: 'utimes', path: p('a/mode'), ino: 14, atime: '-1', ctime: '8', mtime: '0' },
  { op: 'setxattr', path: p('a/mode'), name: 'user.kept', value: 'AA==', mtime },
  { op: 'removexattr', path: p('a/mode'), name: 'user.gone', mtime },
  { op: 'link', path: p('new/unknown'), to: p('new/second'), ino: FIRST_INO + 2, mtime },
  { op: 'symlink', path: p('new/link'), target: 'taken', ino: FIRST_INO + 3, ...own },
  { op: 'mknod', path: p('new/null'), type: 'character', mode: 0o20666, rdev: 259, ino: FIRST_INO + 4, ...own },
  { op: 'rename', path: p('tree'), to: p('moved'), whiteout: true, mtime, lower: directory },
  { op: 'rename', path: p('b/link'), to: p('moved/link'), whiteout: true, mtime, lower: link },
  { op: 'delete', path: p('b/gone'), whiteout: true, mtime, lower: { ...lower, ino: 15 } },
  { op: 'mark', label: 'here' },
  { op: 'refuse', call: 'open', code: 'EACCES', outside: '/etc/passwd' },
  { op: 'flag', call: 'open', path: p('a/taken'), rule: 'a/**' },
  { op: 'flag', call: 'open', path: p('a/taken'), rule: 'a/**' },
];

function stateAfter(count: number): State {
  const state = initialState();
  BODIES.slice(0, count).forEach((body, at) => {
    evolve(state, { seq: at + 1, time: '2026-11-30T20:00:00.000Z', actor: at % 2 === 0 ? 'main' : 'other', ...body } as Event);
  });
  return state;
}

describe('a checkpoint', () => {
  it.each(BODIES.map(({ op }, at) => [at + 1, op] as const))('of %i events, the last a %s, is the state it was made of', (count) => {
    const state = stateAfter(count), text = encodeState(state), restored = decodeState(text) as State;
    // What only an unpublished event may still change is not kept.
    expect(restored).toEqual({ ...state, observations: { ...state.observations, last: restored.observations.last } });
    expect(encodeState(restored)).toBe(text);
  });

  it('of another version is none', () => {
    const text = encodeState(stateAfter(3));
    expect(decodeState(text.replace(/"checkpoint":\d+/, '"checkpoint":2'))).toBeUndefined();
    expect(decodeState(text.replace(/"checkpoint":\d+/, '"checkpoint":99'))).toBeUndefined();
  });
});

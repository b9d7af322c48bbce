import fs from 'node:fs';
import type { WarmRow } from '../row.ts';
import { callOf, sumOf } from '../subject.ts';
import { seeded, SOURCES } from '../tree.ts';

const looks = {
  kind: 'warm', shape: SOURCES, changes: false, events: 1, paths: ({ files }) => [...files],
} satisfies Partial<WarmRow>;

export const existsMiss: WarmRow = {
  ...looks, name: 'exists-miss', work: 'existsSync of nothing', needs: ['exists'],
  limits: { ours: { ratio: 2.5 }, 'ours on disk': { ratio: 2.5 } },
  paths: ({ files }) => files.map((file) => file + 'x'),
  run: (subject, paths) => sumOf(subject, paths, callOf(subject, 'exists')),
};

export const statMiss: WarmRow = {
  ...looks, name: 'stat-miss', work: 'statSync of nothing, caught', needs: ['statMiss'],
  limits: { ours: { ratio: 0.8 }, 'ours on disk': { ratio: 0.8 } },
  paths: existsMiss.paths,
  run: (subject, paths) => sumOf(subject, paths, callOf(subject, 'statMiss')),
};

export const statLower: WarmRow = {
  ...looks, name: 'stat-lower', work: 'statSync of a lower file', needs: ['stat'],
  limits: { ours: { ratio: 2 }, 'ours on disk': { ratio: 2 } },
  run: (subject, paths) => sumOf(subject, paths, callOf(subject, 'stat')),
};

export const statMixed: WarmRow = {
  ...statLower, name: 'stat-mixed', work: 'statSync, lower and overlay files in turn', needs: ['stat', 'write'],
  changes: true,
  limits: { ours: { ratio: 1 }, 'ours on disk': { ratio: 1 } },
  paths: ({ files }) => files.map((file, i) => (i % 2 === 0 ? file : file + '.new')),
  prepare: (subject, paths) => {
    const bytes = seeded(100), write = callOf(subject, 'write');
    return sumOf(subject, created(paths), (path) => write(path, bytes));
  },
  restore: (paths) => {
    for (const path of created(paths)) fs.rmSync(path);
  },
};

/**
 * Five kinds in turn, each path once: what a real program's log looks like. It has no target of its own; it guards against a
 * row that is fast only because its kind is alone.
 */
export const mixed: WarmRow = {
  ...looks, name: 'mixed', work: 'read, stat, miss, new file and exists in turn', changes: true,
  needs: ['read', 'stat', 'exists', 'write'], limits: {},
  paths: ({ files }) => files.map((file, i) => file + ['', '', 'x', '.new', ''][i % 5]),
  run: (subject, paths) => {
    const bytes = seeded(1000);
    const read = callOf(subject, 'read'), stat = callOf(subject, 'stat');
    const exists = callOf(subject, 'exists'), write = callOf(subject, 'write');
    let i = 0;
    return sumOf(subject, paths, (path) => {
      switch (i++ % 5) {
        case 0: return read(path);
        case 1: return stat(path);
        case 2: return exists(path);
        case 3: return write(path, bytes);
        default: return exists(path);
      }
    });
  },
  restore: (paths) => {
    for (const path of created(paths)) fs.rmSync(path);
  },
};

function created(paths: readonly string[]): string[] {
  return paths.filter((path) => path.endsWith('.new'));
}

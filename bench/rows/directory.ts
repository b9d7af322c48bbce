import fs from 'node:fs';
import type { WarmRow } from '../row.ts';
import { callOf, sumOf } from '../subject.ts';
import { CROWD, seeded, SOURCES, SPARSE, type Shape } from '../tree.ts';

/** Overlay files that each listed directory holds besides its lower ones. */
const ADDED = 100;

function added(paths: readonly string[]): string[] {
  return paths.flatMap((path) => Array.from({ length: ADDED }, (_, i) => `${path}/added-${i}.ts`));
}

export const readdir: WarmRow = {
  kind: 'warm', name: 'readdir', work: 'readdir of 10,000 lower and 100 overlay names', shape: CROWD,
  needs: ['list', 'write'], changes: true, events: 1,
  limits: { ours: { ratio: 1.15 }, 'ours on disk': { ratio: 1.15 } },
  paths: ({ directories }) => [...directories],
  prepare: (subject, paths) => {
    const bytes = seeded(10), write = callOf(subject, 'write');
    return sumOf(subject, added(paths), (path) => write(path, bytes));
  },
  run: (subject, paths) => sumOf(subject, paths, callOf(subject, 'list')),
  restore: (paths) => {
    for (const path of added(paths)) fs.rmSync(path);
  },
};

export const walk: WarmRow = {
  kind: 'warm', name: 'walk', work: 'walk of 20,000 files', shape: SOURCES, needs: ['walk'], changes: false, events: 1,
  limits: { ours: { ratio: 1.1 }, 'ours on disk': { ratio: 1.1 } },
  paths: () => [''],
  run: (subject, paths) => sumOf(subject, paths, callOf(subject, 'walk')),
};

export const renameCrowd = renaming('rename-dir', 'rename a lower directory of 10,000', CROWD);
export const renameSparse = renaming('rename-small', 'rename a lower directory of 10', SPARSE);

function renaming(name: string, work: string, shape: Shape): WarmRow {
  return {
    kind: 'warm', name, work, shape, needs: ['rename', 'list'], changes: true, events: 1,
    peerPaths: 1,
    limits: { ours: { ratio: 0.3 }, 'ours on disk': { ratio: 0.3 } },
    paths: ({ directories }) => [...directories],
    run: (subject, paths) => {
      const rename = callOf(subject, 'rename');
      return sumOf(subject, paths, (path) => rename(path, path + '-moved'));
    },
    verify: (subject, paths) => callOf(subject, 'list')(paths[0] + '-moved'),
    restore: (paths) => {
      for (const path of paths) fs.renameSync(path + '-moved', path);
    },
  };
}

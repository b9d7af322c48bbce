import type { WarmRow } from '../row.ts';
import { callOf, sumInFlight, sumLater, sumOf, type Subject } from '../subject.ts';
import { BULK, FILE_BYTES, seeded, SOURCES } from '../tree.ts';
import fs from 'node:fs';

function readAll(subject: Subject, paths: readonly string[]): ReturnType<typeof sumOf> {
  return sumOf(subject, paths, callOf(subject, 'read'));
}

const sources = {
  kind: 'warm', shape: SOURCES, needs: ['read'], changes: false, events: 1,
  paths: ({ files }) => [...files], run: readAll,
} satisfies Partial<WarmRow>;

export const readFirst: WarmRow = {
  ...sources, name: 'read-first', work: 'read 4 KiB of the lower, first time',
  limits: { ours: { ratio: 1.35 }, 'ours on disk': { ratio: 1.35 } },
};

export const readAgain: WarmRow = {
  ...sources, name: 'read-again', work: 'the same again',
  limits: { ours: { ratio: 1.1 }, 'ours on disk': { ratio: 1.1 } },
  prepare: readAll,
};

export const readUpper: WarmRow = {
  ...sources, name: 'read-upper', work: 'read an overlay file of 4 KiB', needs: ['read', 'write'], changes: true,
  limits: { ours: { ratio: 0.3 }, 'ours on disk': { ratio: 0.3 } },
  paths: ({ files }) => files.map((file) => file + '.new'),
  prepare: (subject, paths) => {
    const bytes = seeded(FILE_BYTES), write = callOf(subject, 'write');
    return sumOf(subject, paths, (path) => write(path, bytes));
  },
  restore: (paths) => {
    for (const path of paths) fs.rmSync(path);
  },
};

const promised = { ...sources, needs: ['readLater'] } satisfies Partial<WarmRow>;

export const promisesSerial: WarmRow = {
  ...promised, name: 'promises-serial', work: 'promises.readFile of 4 KiB, one after another',
  limits: { ours: { ratio: 0.1 }, 'ours on disk': { ratio: 0.1 } },
  run: (subject, paths) => sumLater(paths, callOf(subject, 'readLater')),
};

export const promisesInFlight: WarmRow = {
  ...promised, name: 'promises-16', work: 'promises.readFile of 4 KiB, 16 in flight',
  limits: { ours: { ratio: 0.3 }, 'ours on disk': { ratio: 0.3 } },
  run: (subject, paths) => sumInFlight(paths, 16, callOf(subject, 'readLater')),
};

const bulk = { ...sources, shape: BULK, paths: ({ files }) => [...files] } satisfies Partial<WarmRow>;

export const bulkFirst: WarmRow = {
  ...bulk, name: 'bulk-first', work: 'read 64 MiB, its version not known',
  limits: { ours: { ratio: 1.9 }, 'ours on disk': { ratio: 1.9 } },
};

export const bulkAgain: WarmRow = {
  ...bulk, name: 'bulk-again', work: 'read 64 MiB, its version known',
  limits: { ours: { ratio: 1.05 }, 'ours on disk': { ratio: 1.05 } },
  prepare: readAll,
};

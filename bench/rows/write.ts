import fs from 'node:fs';
import type { WarmRow } from '../row.ts';
import { callOf, sumOf } from '../subject.ts';
import { FILE_BYTES, seeded, SOURCES } from '../tree.ts';

/** Writes to one file, of the row that appends to one. */
const APPENDS = 50_000;
const LINE_BYTES = 100;

const writes = { kind: 'warm', shape: SOURCES, changes: true, events: 1 } satisfies Partial<WarmRow>;

/** Contents that differ from file to file, so that none is stored once for all. */
function differing(length: number): () => Buffer {
  const bytes = seeded(length);
  let i = 0;
  return () => {
    bytes.writeUInt32LE(++i, 8);
    return bytes;
  };
}

export const writeNew: WarmRow = {
  ...writes, name: 'write-new', work: 'write a new file of 4 KiB', needs: ['write', 'read'],
  limits: { ours: { ratio: 0.1 }, 'ours on disk': { ratio: 0.25 } },
  paths: ({ files }) => files.map((file) => file + '.new'),
  run: (subject, paths) => {
    const next = differing(FILE_BYTES), write = callOf(subject, 'write');
    return sumOf(subject, paths, (path) => write(path, next()));
  },
  verify: (subject, paths) => sumOf(subject, paths.slice(-10), callOf(subject, 'read')),
  restore: (paths) => {
    for (const path of paths) fs.rmSync(path);
  },
};

export const overwrite: WarmRow = {
  ...writes, name: 'overwrite', work: 'overwrite a lower file of 4 KiB', needs: ['write', 'read'],
  limits: { ours: { ratio: 0.06 }, 'ours on disk': { ratio: 0.06 } },
  paths: ({ files }) => [...files],
  run: writeNew.run,
  verify: (subject, paths) => sumOf(subject, paths.slice(-10), callOf(subject, 'read')),
};

export const appendOne: WarmRow = {
  ...writes, name: 'append-one', work: 'append 100 B to one file, 50,000 times', needs: ['append', 'read'],
  limits: { ours: { ratio: 0.4 }, 'ours on disk': { ratio: 0.4 } },
  // One path on purpose: its events may be one. The bytes may not.
  events: 1 / APPENDS,
  paths: ({ directories, files }) => {
    const times = Math.min(APPENDS, files.length * 2.5);
    return Array.from({ length: times }, () => `${directories[0] as string}/events.log`);
  },
  run: (subject, paths) => {
    const next = differing(LINE_BYTES), append = callOf(subject, 'append');
    return sumOf(subject, paths, (path) => append(path, next()));
  },
  verify: (subject, paths) => callOf(subject, 'read')(paths[0] as string),
  restore: (paths) => fs.rmSync(paths[0] as string),
};

export const appendLower: WarmRow = {
  ...writes, name: 'append-lower', work: 'append 100 B to a lower file of 4 KiB', needs: ['append', 'read'],
  limits: { ours: { ratio: 0.5 }, 'ours on disk': { ratio: 0.5 } },
  paths: ({ files }) => [...files],
  run: appendOne.run,
  verify: (subject, paths) => sumOf(subject, paths.slice(-10), callOf(subject, 'read')),
  restore: (paths) => {
    for (const path of paths) fs.truncateSync(path, FILE_BYTES);
  },
};

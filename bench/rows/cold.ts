import fs from 'node:fs';
import { join } from 'node:path';
import { gauge } from '../cold.ts';
import { loadSubject, openSubject } from '../open.ts';
import type { ColdRow } from '../row.ts';
import { callOf, SUBJECTS, type SubjectName } from '../subject.ts';
import { CROWD, plant } from '../tree.ts';

const MIB = 1 << 20;
const GIB = 2 ** 30;

/** Where the one file is that an opened overlay reads first. */
const FIRST = 'd0/first.ts';

function opening(name: string, work: string, files: (n: number) => number): ColdRow {
  return {
    kind: 'cold', name, work, subjects: SUBJECTS.filter((name) => name !== 'raw again'), shows: 'time and memory',
    peerRounds: 1,
    limits: { ours: { micros: 15_000, bytes: 4 * MIB }, 'ours on disk': { micros: 15_000, bytes: 4 * MIB } },
    stage: (scratch, n) => {
      const root = join(scratch, 'tree');
      plant(root, CROWD, files(n) / CROWD.files(1));
      fs.writeFileSync(join(root, FIRST), Buffer.alloc(4096, 'first\n'));
      return scratch;
    },
    act: async (subject, scratch) => {
      await loadSubject(subject);
      const session = join(scratch, `session-${process.pid}`);
      return gauge(async () => {
        const opened = await openSubject(subject, join(scratch, 'tree'), session);
        return callOf(opened, 'read')(opened.at(FIRST));
      });
    },
  };
}

export const openCrowd = opening('open', 'open over 100,000 files, read one', (n) => CROWD.files(n));
export const openFew = opening('open-small', 'open over 10 files, read one', () => 10);

/** Where the byte goes: the middle. */
const POKE_AT = GIB / 2;

/** A small file that is written to first, so that the code has run before: what is asked is what the size costs. */
const WARM = 'warm.bin';
const WARM_POKES = 20;

export const byteInGib: ColdRow = {
  kind: 'cold', name: 'byte-in-gib', work: '1 byte into a lower file of 1 GiB',
  subjects: ['raw', 'ours', 'ours on disk', 'memfs', 'unionfs', 'just-bash', 'nx'], shows: 'time and memory',
  peerRounds: 1,
  limits: { ours: { micros: 1000, bytes: MIB }, 'ours on disk': { micros: 1000, bytes: MIB } },
  stage: (scratch, n) => {
    const size = n < 1000 ? 16 * MIB : GIB;
    for (const root of ['tree', 'raw']) {
      const file = join(scratch, root, 'big.bin');
      fs.mkdirSync(join(scratch, root), { recursive: true });
      fs.writeFileSync(file, Buffer.alloc(MIB, 'data'));
      fs.truncateSync(file, size);
      fs.writeFileSync(join(scratch, root, WARM), Buffer.alloc(MIB, 'data'));
    }
    return JSON.stringify({ scratch, at: Math.min(POKE_AT, size / 2) });
  },
  act: async (name: SubjectName, argument) => {
    const { scratch, at } = JSON.parse(argument) as { scratch: string; at: number };
    await loadSubject(name);
    const subject = await openSubject(name, join(scratch, name === 'raw' ? 'raw' : 'tree'), join(scratch, `session-${process.pid}`));
    const poke = callOf(subject, 'poke');
    for (let i = 0; i < WARM_POKES; i++) await poke(subject.at(WARM), i);
    await subject.settle?.();
    return gauge(async () => {
      const written = await poke(subject.at('big.bin'), at);
      await subject.settle?.();
      return written;
    });
  },
};

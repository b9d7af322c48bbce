import fs from 'node:fs';
import { join } from 'node:path';
import { gauge } from '../cold.ts';
import { openOurs } from '../ours.ts';
import type { ColdRow } from '../row.ts';
import { callOf, type Subject } from '../subject.ts';
import { plant, seeded, SOURCES } from '../tree.ts';

/** Events of the session, for each file that the benchmark was asked for: a million for 20,000. */
const EVENTS_PER_FILE = 50;

export const session: ColdRow = {
  kind: 'cold', name: 'session', work: 'open a session of 1,000,000 events (raw: parse them all)',
  subjects: ['raw', 'ours on disk'], shows: 'time and memory',
  limits: { 'ours on disk': { micros: 300_000 } },
  stage: async (scratch, n) => {
    const tree = plant(join(scratch, 'tree'), SOURCES, n);
    const subject = openOurs(tree.root, join(scratch, 'session'));
    fill(subject, tree.files, n * EVENTS_PER_FILE);
    await subject.close();
    return JSON.stringify({ scratch, events: n * EVENTS_PER_FILE });
  },
  act: async (name, argument) => {
    const { scratch, events } = JSON.parse(argument) as { scratch: string; events: number };
    const directory = join(scratch, 'session');
    if (name === 'raw') return gauge(() => (parseAll(join(directory, 'log.jsonl')) >= events ? 1 : 0));
    let opened: Subject | undefined;
    const sample = await gauge(() => (opened = openOurs(join(scratch, 'tree'), directory)) && 1);
    // After the clock stopped: the head that is asked here hashes the whole log.
    return { ...sample, sum: (opened?.events?.() ?? 0) >= events ? 1 : 0 };
  },
};

/** Reads, stats, misses, new files and overwrites in turn, over all files, again and again. */
function fill(subject: Subject, files: readonly string[], events: number): void {
  const read = callOf(subject, 'read'), stat = callOf(subject, 'stat');
  const exists = callOf(subject, 'exists'), write = callOf(subject, 'write');
  const bytes = seeded(200);
  for (let i = 0; (subject.events?.() ?? events) < events; i++) {
    // Steps of 7 make neighbours differ; the kinds shift by one each time around.
    const path = subject.at(files[(i * 7) % files.length] as string);
    switch ((i + Math.floor(i / files.length)) % 5) {
      case 0: void read(path); break;
      case 1: void stat(path); break;
      case 2: void exists(path + 'x'); break;
      case 3: bytes.writeUInt32LE(i, 8); void write(path + '.new', bytes); break;
      default: void stat(path); break;
    }
  }
}

/** Events in a log, each parsed. */
function parseAll(log: string): number {
  const lines = fs.readFileSync(log, 'utf8').split('\n');
  let events = -1;
  for (const line of lines) {
    if (line === '') continue;
    JSON.parse(line);
    events++;
  }
  return events;
}

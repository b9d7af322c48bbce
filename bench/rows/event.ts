import fs from 'node:fs';
import { join } from 'node:path';
import { encodeEvent } from '../../src/core/encode.ts';
import type { Event, EventBody } from '../../src/core/event.ts';
import type { Header } from '../../src/core/format.ts';
import type { TreePath } from '../../src/core/path.ts';
import type { Version } from '../../src/core/version.ts';
import { createMemoryStore, openDirectoryStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import type { WarmRow } from '../row.ts';
import { callOf, sumOf, type Subject, type SubjectName } from '../subject.ts';
import { SOURCES } from '../tree.ts';

const HEADER: Header = { palimpsest: 1, session: 'bench', root: '/tree', created: '2024-01-01T00:00:00.000Z' };
const VERSION = `sha256:${'0123456789abcdef'.repeat(4)}` as Version;

/** From the event's object to the log's bytes, in memory or in its file; raw writes each line with a call of its own. */
export const event: WarmRow = {
  kind: 'warm', name: 'event', work: 'one event appended (raw: a writeSync each)', shape: SOURCES, needs: ['log'],
  changes: false, events: 1,
  limits: { ours: { micros: 1.1 }, 'ours on disk': { micros: 1.1 } },
  open: openLog,
  paths: ({ files }) => [...files],
  run: (subject, paths) => sumOf(subject, paths, callOf(subject, 'log')),
};

function openLog(name: SubjectName, scratch: string): Subject | undefined {
  switch (name) {
    case 'raw':
    case 'raw again': return rawLog(name, scratch);
    case 'ours': return storeLog(name, createMemoryStore({ header: HEADER }));
    case 'ours on disk':
      return storeLog(name, openDirectoryStore({ directory: join(scratch, 'log'), header: HEADER, durability: 'flush' }));
    default: return undefined;
  }
}

function storeLog(name: SubjectName, store: Store): Subject {
  return {
    name,
    waits: false,
    at: (path) => path,
    log: (path) => {
      store.append(encodeEvent(eventOf(store.lastSeq + 1, path)));
      return 1;
    },
    settle: () => store.flush(),
    events: () => store.lastSeq,
    close: () => store.close(),
  };
}

function rawLog(name: SubjectName, scratch: string): Subject {
  const fd = fs.openSync(join(scratch, 'raw.jsonl'), 'a');
  let seq = 0;
  return {
    name,
    waits: false,
    at: (path) => path,
    log: (path) => {
      fs.writeSync(fd, encodeEvent(eventOf(++seq, path)) + '}\n');
      return 1;
    },
    close: () => fs.closeSync(fd),
  };
}

/** A read, a stat, a miss and a write in turn. */
function eventOf(seq: number, path: string): Event {
  return { seq, time: '2024-01-01T00:00:00.000Z', actor: 'main', ...bodyOf(seq, path as TreePath) };
}

function bodyOf(seq: number, path: TreePath): EventBody {
  const mtime = '1704067200000000000';
  switch (seq % 4) {
    case 0: return { op: 'miss', path, call: 'stat' };
    case 1: return {
      op: 'read', path, version: VERSION, size: 4096, fingerprint: { dev: 64768, ino: seq, size: 4096, mtime, ctime: mtime },
    };
    case 2: return {
      op: 'stat', path, exists: 'file', mode: 0o100644, uid: 0, gid: 0, size: 4096, nlink: 1, ino: seq, rdev: 0, mtime, ctime: mtime,
    };
    default: return { op: 'write', path, version: VERSION, size: 4096, mode: 0o100644, ino: seq, blob: VERSION, mtime };
  }
}

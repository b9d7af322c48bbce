import { readFileSync, readdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createMemoryStore, openDirectoryStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { verifyLog } from '../../src/store/verify.ts';
import { HEADER, eventJson, flip, scratch, thrown } from './session.ts';

const EVENTS = 1200, KEPT = 1000;

/** A session of 1,200 events with a checkpoint after the thousandth. */
function session(data = '{"tree":"ä"}'): string {
  const directory = join(scratch(), 's');
  const store = openDirectoryStore({ directory, header: HEADER });
  for (let seq = 1; seq <= EVENTS; seq++) store.append(eventJson(seq));
  store.saveCheckpoint(KEPT, data);
  store.close();
  return directory;
}

function seqs(store: Store, from?: number, to?: number): number[] {
  return Array.from(store.read(from, to), (line) => (JSON.parse(line) as { seq: number }).seq);
}

describe('a checkpoint', () => {
  it('is there when the session is opened again, and every event can still be read', () => {
    const directory = session();
    const store = openDirectoryStore({ directory, header: HEADER });
    expect(store.loadCheckpoint()).toEqual({ seq: KEPT, data: '{"tree":"ä"}' });
    expect(store.lastSeq).toBe(EVENTS);
    expect(seqs(store)).toEqual(Array.from({ length: EVENTS }, (_, i) => i + 1));
    expect(seqs(store, 555, 556)).toEqual([555, 556]);
    expect(seqs(store, KEPT, KEPT + 1)).toEqual([KEPT, KEPT + 1]);
    store.append(eventJson(EVENTS + 1));
    store.saveCheckpoint(EVENTS + 1, 'later');
    expect(store.loadCheckpoint()).toEqual({ seq: EVENTS + 1, data: 'later' });
    store.close();
    const again = openDirectoryStore({ directory, readOnly: true });
    expect(again.loadCheckpoint()).toEqual({ seq: EVENTS + 1, data: 'later' });
    again.close();
  });

  it('spares opening a large log the events before it: damage there is found by reading and by verifying', () => {
    const directory = session(), path = join(directory, 'log.jsonl');
    const log = readFileSync(path), at = log.indexOf('"seq":400,') + 30;
    flip(log, at, 1);
    writeFileSync(path, log);
    expect(thrown(() => openDirectoryStore({ directory, header: HEADER }))).toMatchObject({ code: 'ERR_CORRUPT_LOG', line: 401 });
    const store = openDirectoryStore({ directory, header: HEADER, checkedWholeBytes: 0 });
    expect(store.loadCheckpoint()?.seq).toBe(KEPT);
    expect(seqs(store, 401)).toHaveLength(EVENTS - 400);
    expect(thrown(() => seqs(store))).toMatchObject({ code: 'ERR_CORRUPT_LOG', line: 401, goodSeq: 399 });
    store.close();
    expect(verifyLog(directory).damage).toMatchObject({ line: 401, reason: 'bad crc' });
  });

  it('does not hide damage behind it', () => {
    const directory = session(), path = join(directory, 'log.jsonl');
    const log = readFileSync(path);
    flip(log, log.indexOf('"seq":1100,') + 30, 1);
    writeFileSync(path, log);
    expect(thrown(() => openDirectoryStore({ directory, header: HEADER }))).toMatchObject({ line: 1101, goodSeq: 1099 });
  });

  it('that is damaged anywhere is as none', () => {
    const directory = session(), path = join(directory, 'checkpoint');
    const whole = readFileSync(path);
    for (let at = 0; at < whole.length; at++) {
      const changed = Buffer.from(whole);
      flip(changed, at, 1 << (at % 7));
      writeFileSync(path, changed);
      const store = openDirectoryStore({ directory, readOnly: true });
      expect(store.loadCheckpoint()).toBeUndefined();
      expect(store.lastSeq).toBe(EVENTS);
      expect(seqs(store, EVENTS - 2)).toEqual([EVENTS - 2, EVENTS - 1, EVENTS]);
      store.close();
    }
    for (let cut = 0; cut < whole.length; cut += 7) {
      writeFileSync(path, whole.subarray(0, cut));
      const store = openDirectoryStore({ directory, readOnly: true });
      expect(store.loadCheckpoint()).toBeUndefined();
      store.close();
    }
  });

  it('of another log, or of one that is shorter by now, is as none, and a writer makes a new one', () => {
    const directory = session(), path = join(directory, 'log.jsonl');
    truncateSync(path, readFileSync(path).indexOf('{"seq":900,'));
    const store = openDirectoryStore({ directory, header: HEADER });
    expect(store.lastSeq).toBe(899);
    expect(store.loadCheckpoint()).toBeUndefined();
    for (let seq = 900; seq <= EVENTS; seq++) store.append(eventJson(seq, ',"other":1'));
    store.close();
    const again = openDirectoryStore({ directory, header: HEADER });
    expect(again.loadCheckpoint()).toBeUndefined();
    again.saveCheckpoint(1100, 'new');
    expect(again.loadCheckpoint()).toEqual({ seq: 1100, data: 'new' });
    again.close();

    const foreign = session();
    writeFileSync(join(foreign, 'checkpoint'), readFileSync(join(directory, 'checkpoint')));
    const third = openDirectoryStore({ directory: foreign, header: HEADER });
    expect(third.loadCheckpoint()).toBeUndefined();
    third.close();
  });

  it('is replaced whole: what a killed writer left of a new one is nothing', () => {
    const directory = session();
    writeFileSync(join(directory, 'checkpoint.part'), 'half');
    const store = openDirectoryStore({ directory, header: HEADER });
    expect(store.loadCheckpoint()?.seq).toBe(KEPT);
    store.saveCheckpoint(EVENTS, 'whole');
    expect(readdirSync(directory).sort()).toEqual(['checkpoint', 'lock', 'log.jsonl']);
    store.close();
  });

  it('holds large states', () => {
    const data = JSON.stringify({ tree: 'ö'.repeat(3_000_000) });
    const directory = session(data);
    const store = openDirectoryStore({ directory, header: HEADER });
    expect(store.loadCheckpoint()?.data === data).toBe(true);
    store.close();
  });

  it('of an event that is not there is a bug of the caller', () => {
    const directory = session();
    const store = openDirectoryStore({ directory, header: HEADER });
    for (const seq of [0, EVENTS + 1]) expect(() => store.saveCheckpoint(seq, '')).toThrow(RangeError);
    store.close();
  });

  it('is nothing in memory', () => {
    const store = createMemoryStore({ header: HEADER });
    store.append(eventJson(1));
    store.saveCheckpoint(1, 'x');
    expect(store.loadCheckpoint()).toBeUndefined();
  });
});

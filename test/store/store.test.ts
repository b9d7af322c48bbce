import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { headerLine } from '../../src/store/log.ts';
import { createMemoryStore, openDirectoryStore } from '../../src/store/open.ts';
import type { Header } from '../../src/core/format.ts';
import type { Durability, Store, StoreLimits } from '../../src/store/store.ts';
import { HEADER, blob, digestOf, eventJson, scratch, thrown } from './session.ts';

interface Kind {
  readonly name: string;
  /** Events enough to leave the tail behind where a barrier an event would not take seconds for it. */
  readonly many: number;
  create(options?: { header?: Header; limits?: Partial<StoreLimits> }): Store;
}

const durabilities: readonly Durability[] = ['memory', 'flush', 'write', 'fsync'];
const kinds: readonly Kind[] = [
  { name: 'in memory', many: 900, create: (options) => createMemoryStore({ header: HEADER, ...options }) },
  ...durabilities.map((durability): Kind => ({
    name: `in a directory with durability ${durability}`,
    many: durability === 'fsync' ? 60 : 900,
    create: (options) => openDirectoryStore({ directory: join(scratch(), 's'), header: HEADER, durability, ...options }),
  })),
];

/** sha256 of a log's header and of what `read` gives. */
function hashOfLines(store: Store): string {
  const sum = createHash('sha256').update(headerLine(store.header));
  for (const line of store.read()) sum.update(line + '\n');
  return `sha256:${sum.digest('hex')}`;
}

for (const kind of kinds) {
  describe(`a store ${kind.name}`, () => {
    it('reads back what was appended, from any event to any', () => {
      const store = kind.create();
      const count = kind.many;
      for (let seq = 1; seq <= count; seq++) store.append(eventJson(seq, `,"fill":"${'x'.repeat(seq % 400)}"`));
      expect(store.lastSeq).toBe(count);
      for (const [from, to] of [[1, count], [1, 1], [count, count], [33, 50], [0, 3], [count - 1, count + 9], [5, 4]] as const) {
        const seqs = Array.from(store.read(from, to), (line) => (JSON.parse(line) as { seq: number }).seq);
        const first = Math.max(from, 1), last = Math.min(to, count);
        expect(seqs).toEqual(Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i));
      }
      expect([...store.read(7, 7)][0]?.startsWith(eventJson(7) + ',"fill":"xxxxxxx","crc":"')).toBe(true);
      store.close();
    });

    it('takes lines far longer than its buffers', () => {
      const store = kind.create();
      const long = `,"data":"${'é'.repeat(300_000)}"`;
      store.append(eventJson(1));
      store.append(eventJson(2, long));
      store.append(eventJson(3));
      expect(Array.from(store.read(), (line) => line.length)).toEqual([
        eventJson(1).length + 18, eventJson(2, long).length + 18, eventJson(3).length + 18]);
      store.close();
    });

    it('goes on reading what was there when the reading began, while more is appended', () => {
      const store = kind.create();
      store.append(eventJson(1));
      store.append(eventJson(2));
      const lines = store.read();
      lines.next();
      for (let seq = 3; seq < kind.many; seq++) store.append(eventJson(seq));
      expect([...lines]).toHaveLength(1);
      store.close();
    });

    it('gives blobs of every size back at once and in parts', () => {
      const store = kind.create();
      for (const size of [0, 1, 4096, 65_535, 65_536, 300_000]) {
        const { bytes, digest } = blob(size, size);
        expect(store.hasBlob(digest)).toBe(false);
        store.putBlob(digest, bytes);
        store.putBlob(digest, bytes);
        expect(store.hasBlob(digest)).toBe(true);
        expect(digestOf(store.getBlob(digest))).toBe(digest);
        const part = new Uint8Array(10).fill(1);
        const at = Math.max(0, size - 5), count = Math.min(5, size);
        expect(store.readBlob(digest, part, 2, 8, at)).toBe(count);
        expect([...part]).toEqual([1, 1, ...bytes.subarray(at, at + count), ...Array.from({ length: 8 - count }, () => 1)]);
        expect(store.readBlob(digest, part, 0, 4, size + 3)).toBe(0);
      }
      store.close();
    });

    it('refuses a blob it does not have with EIO and its digest', () => {
      const store = kind.create();
      const { digest } = blob(1, 10);
      for (const act of [() => store.getBlob(digest), () => store.readBlob(digest, new Uint8Array(1), 0, 1, 0)]) {
        expect(thrown(act)).toMatchObject({ code: 'EIO', reason: `blob ${digest} is gone` });
      }
      store.close();
    });

    it('seals with the sha256 of every byte of the log before', () => {
      const store = kind.create();
      for (let seq = 1; seq <= kind.many; seq++) {
        store.append(eventJson(seq));
        if (seq % 50 !== 0) continue;
        const seal = store.sealHash();
        expect(seal).toBe(hashOfLines(store));
      }
      expect(store.sealHash()).toBe(hashOfLines(store));
      store.close();
    });

    it('starts after the fork point of its header', () => {
      const parent = { session: 'p', seq: 41, seal: digestOf(new Uint8Array()) };
      const store = kind.create({ header: { ...HEADER, parent } });
      expect(store.lastSeq).toBe(41);
      store.append(eventJson(42));
      expect([...store.read()]).toHaveLength(1);
      expect([...store.read(1, 41)]).toHaveLength(0);
      store.close();
    });

    it('takes an event with the wrong seq for a bug and keeps the log as it was', () => {
      const store = kind.create();
      store.append(eventJson(1));
      expect(() => store.append(eventJson(3))).toThrow('event 2 expected');
      store.append(eventJson(2));
      expect([...store.read()]).toHaveLength(2);
      store.close();
    });

    it('refuses to exceed its limits by name, and goes on within them', () => {
      const store = kind.create({ limits: { logBytes: 1000, blobBytes: 100_000 } });
      expect(thrown(() => {
        for (let seq = 1; seq < 20; seq++) store.append(eventJson(seq));
      })).toMatchObject({ code: 'EFBIG', reason: 'log limit of 1000 bytes reached' });
      const { lastSeq } = store;
      expect([...store.read()]).toHaveLength(lastSeq);
      const small = blob(1, 50_000), large = blob(2, 90_000);
      store.putBlob(small.digest, small.bytes);
      expect(thrown(() => store.putBlob(large.digest, large.bytes)))
        .toMatchObject({ code: 'EFBIG', reason: 'blob limit of 100000 bytes reached' });
      expect(store.hasBlob(large.digest)).toBe(false);
      expect(store.getBlob(small.digest)).toEqual(small.bytes);
      store.flush();
      store.close();
    });

    it('refuses everything but closing once it is closed', () => {
      const store = kind.create();
      store.close();
      store.close();
      for (const act of [() => store.append(eventJson(1)), () => store.read(), () => store.flush()]) {
        expect(thrown(act)).toMatchObject({ code: 'EBADF' });
      }
    });
  });
}

describe('a session directory', () => {
  it('is found again as it was left', () => {
    const directory = join(scratch(), 'a', 'b');
    const sizes = [0, 10, 4096, 60_000, 70_000];
    let seal = '';
    for (let round = 0; round < 4; round++) {
      const store = openDirectoryStore({ directory, header: HEADER });
      expect(store.header).toEqual(HEADER);
      expect(store.lastSeq).toBe(round * 500);
      expect(store.tornBytes).toBe(0);
      expect(round === 0 || store.sealHash() === seal).toBe(true);
      for (let past = 0; past < round; past++) {
        for (const size of sizes) expect(store.getBlob(blob(past, size).digest)).toEqual(blob(past, size).bytes);
      }
      for (let i = 1; i <= 500; i++) store.append(eventJson(round * 500 + i));
      for (const size of sizes) store.putBlob(blob(round, size).digest, blob(round, size).bytes);
      seal = store.sealHash();
      store.close();
    }
    expect(digestOf(readFileSync(join(directory, 'log.jsonl')))).toBe(seal);
    expect(readdirSync(directory).sort()).toEqual(['blobs', 'log.jsonl']);
  });

  it('is for its owner alone', () => {
    const directory = join(scratch(), 's');
    const store = openDirectoryStore({ directory, header: HEADER });
    store.append(eventJson(1));
    for (const size of [10, 100_000]) store.putBlob(blob(1, size).digest, blob(1, size).bytes);
    store.saveCheckpoint(1, '{}');
    const modes = readdirSync(directory, { recursive: true, encoding: 'utf8' })
      .map((name) => [name, statSync(join(directory, name)).mode & 0o777] as const);
    expect(modes.length).toBe(6);
    for (const [name, mode] of modes) expect([name, mode]).toEqual([name, name === 'blobs' ? 0o700 : 0o600]);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    store.close();
  });

  it('holds what was appended within 50 ms, without being asked', async () => {
    const directory = join(scratch(), 's');
    const store = openDirectoryStore({ directory, header: HEADER });
    const { bytes, digest } = blob(1, 100);
    store.putBlob(digest, bytes);
    store.append(eventJson(1));
    const reader = openDirectoryStore({ directory, readOnly: true });
    expect(reader.lastSeq).toBe(0);
    await expect.poll(() => reader.refresh(), { timeout: 5000 }).toBe(1);
    expect(reader.getBlob(digest)).toEqual(bytes);
    reader.close();
    store.close();
  });

  it('has every event in its file before append returns, with durability write and fsync', () => {
    for (const durability of ['write', 'fsync'] as const) {
      const directory = join(scratch(), 's');
      const store = openDirectoryStore({ directory, header: HEADER, durability });
      for (let seq = 1; seq <= 5; seq++) {
        const { bytes, digest } = blob(seq, 100);
        store.putBlob(digest, bytes);
        store.append(eventJson(seq));
        const reader = openDirectoryStore({ directory, readOnly: true });
        expect(reader.lastSeq).toBe(seq);
        expect(reader.getBlob(digest)).toEqual(bytes);
        reader.close();
      }
      store.close();
    }
  });

  it('is read beside its live writer, and not written by a reader', () => {
    const directory = join(scratch(), 's');
    const store = openDirectoryStore({ directory, header: HEADER });
    const reader = openDirectoryStore({ directory, readOnly: true });
    for (let round = 0; round < 5; round++) {
      const small = blob(round, 5000), large = blob(round, 80_000);
      store.putBlob(small.digest, small.bytes);
      store.putBlob(large.digest, large.bytes);
      store.append(eventJson(round + 1));
      store.flush();
      expect(reader.refresh()).toBe(round + 1);
      expect([...reader.read()]).toEqual([...store.read()]);
      expect(reader.getBlob(small.digest)).toEqual(small.bytes);
      expect(reader.getBlob(large.digest)).toEqual(large.bytes);
      expect(reader.sealHash()).toBe(store.sealHash());
    }
    for (const act of [() => reader.append(eventJson(6)), () => reader.putBlob(blob(9, 1).digest, blob(9, 1).bytes)]) {
      expect(thrown(act)).toMatchObject({ code: 'EROFS' });
    }
    reader.close();
    store.close();
  });

  it('finds blobs by its catalog once there are many', () => {
    const directory = join(scratch(), 's');
    const count = 320, size = 60_000;
    for (const half of [0, 1]) {
      const store = openDirectoryStore({ directory, header: HEADER });
      for (let i = half * count / 2; i < (half + 1) * count / 2; i++) store.putBlob(blob(i, size + i).digest, blob(i, size + i).bytes);
      store.close();
      expect(existsSync(join(directory, 'blobs', 'catalog'))).toBe(true);
    }
    const store = openDirectoryStore({ directory, header: HEADER });
    for (let i = 0; i < count; i++) expect(digestOf(store.getBlob(blob(i, size + i).digest))).toBe(blob(i, size + i).digest);
    expect(store.hasBlob(blob(1, 5).digest)).toBe(false);
    store.close();
  });

  it('renews its catalog at a checkpoint only when enough is new, and always when closed', () => {
    const directory = join(scratch(), 's'), catalog = join(directory, 'blobs', 'catalog');
    const store = openDirectoryStore({ directory, header: HEADER });
    const put = (from: number, to: number) => {
      for (let length = from; length < to; length++) store.putBlob(blob(length, length).digest, blob(length, length).bytes);
    };
    store.append(eventJson(1));
    put(1, 3_000);
    put(60_000, 60_100);
    store.saveCheckpoint(1, '');
    const first = statSync(catalog).size;
    // More than opening should scan, but a tenth of the names in the catalog; then as many as there are.
    put(60_200, 60_400);
    store.saveCheckpoint(1, '');
    expect(statSync(catalog).size).toBe(first);
    put(3_000, 6_000);
    store.saveCheckpoint(1, '');
    const second = statSync(catalog).size;
    expect(second).toBeGreaterThan(first * 1.9);
    put(60_400, 60_600);
    store.close();
    expect(statSync(catalog).size).toBeGreaterThan(second);
    const again = openDirectoryStore({ directory });
    for (const length of [1, 2_999, 3_000, 5_999, 60_000, 60_399, 60_400, 60_599]) {
      expect(digestOf(again.getBlob(blob(length, length).digest))).toBe(blob(length, length).digest);
    }
    again.close();
  });

  it('is refused by name when it is not what was asked for', () => {
    const top = scratch();
    const open = (directory: string, header?: Header) => openDirectoryStore({ directory, ...(header && { header }) });
    expect(thrown(() => open(join(top, 'none')))).toMatchObject({ code: 'ERR_NO_SESSION' });
    expect(existsSync(join(top, 'none'))).toBe(false);
    const directory = join(top, 's');
    open(directory, HEADER).close();
    expect(thrown(() => open(directory, { ...HEADER, root: '/other' }))).toMatchObject({
      code: 'ERR_SESSION_ROOT', message: expect.stringContaining('/srv/repo, not /other') as string,
    });
    expect(readdirSync(directory)).toEqual(['log.jsonl']);
    open(directory, HEADER).close();
  });
});

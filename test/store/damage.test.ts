import { copyFileSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { CorruptLogError } from '../../src/store/fault.ts';
import { openDirectoryStore } from '../../src/store/open.ts';
import { verifyBlobs, verifyLog } from '../../src/store/verify.ts';
import { HEADER, blob, digestOf, eventJson, flip, scratch, thrown } from './session.ts';

/** A line with the crc that belongs to it. */
function line(json: string): string {
  return `${json},"crc":"${crc32(json).toString(16).padStart(8, '0')}"}\n`;
}

const HEADER_LINE = line(JSON.stringify(HEADER).slice(0, -1));

function sealLine(seq: number, before: string): string {
  return line(`{"seq":${seq},"time":"2026-11-30T20:00:00.000Z","actor":"main","op":"seal","hash":"${digestOf(Buffer.from(before))}"`);
}

/** A log of `count` events, with a seal every seventh. */
function logOf(count: number): string {
  let log = HEADER_LINE;
  for (let seq = 1; seq <= count; seq++) log += seq % 7 === 0 ? sealLine(seq, log) : line(eventJson(seq));
  return log;
}

/** A session directory with this log. */
function sessionWith(log: string | Uint8Array, directory = join(scratch(), 's')): string {
  mkdirSync(directory, { recursive: true });
  // Not written over the old one: ext4 waits for the disk at the close of a file that was truncated.
  rmSync(join(directory, 'log.jsonl'), { force: true });
  writeFileSync(join(directory, 'log.jsonl'), log);
  return directory;
}

function linesOf(directory: string): string[] {
  const store = openDirectoryStore({ directory, readOnly: true });
  const lines = [...store.read()];
  store.close();
  return lines;
}

describe('the example log of the format', () => {
  const example = readFileSync(join(import.meta.dirname, 'example.jsonl'));

  it('has right crcs and seals for our reader, and is read line by line', () => {
    const directory = sessionWith(example);
    const lines = example.toString().trimEnd().split('\n');
    expect(verifyLog(directory)).toMatchObject({
      goodSeq: 17, goodBytes: example.length, tornBytes: 0, damage: undefined });
    expect(linesOf(directory)).toEqual(lines.slice(1));
  });

  it('is written byte for byte by our writer', () => {
    const lines = example.toString().trimEnd().split('\n');
    const { crc: _, ...header } = JSON.parse(lines[0] as string) as typeof HEADER & { crc: string };
    const store = openDirectoryStore({ directory: join(scratch(), 's'), header });
    const seals: string[] = [];
    for (const text of lines.slice(1)) {
      seals.push(store.sealHash());
      store.append(text.slice(0, -18));
    }
    store.close();
    for (const seq of [15, 17]) expect(lines[seq]).toContain(`"hash":"${seals[seq - 1]}"`);
    expect(readFileSync(join(store.directory as string, 'log.jsonl'))).toEqual(example);
  });
});

describe('a torn log', () => {
  it('is cut to its whole lines, wherever in its last 8 KiB it ends', () => {
    const log = Buffer.from(logOf(90)), directory = sessionWith(log);
    const all = log.toString().trimEnd().split('\n').slice(1);
    const headerEnd = Buffer.byteLength(HEADER_LINE);
    expect(log.length).toBeGreaterThan(8192 + headerEnd);
    for (let cut = log.length - 1; cut >= log.length - 8192; cut--) {
      truncateSync(join(directory, 'log.jsonl'), cut);
      const whole = log.lastIndexOf(10, cut - 1) + 1;
      const reader = openDirectoryStore({ directory, readOnly: true });
      const lines = [...reader.read()];
      reader.close();
      const text = lines.join('\n');
      expect([reader.tornBytes, headerEnd + Buffer.byteLength(text) + 1]).toEqual([cut - whole, whole]);
      expect(text === all.slice(0, lines.length).join('\n')).toBe(true);
      if (cut % 64 === 0) checkCut(log.subarray(0, cut), lines.length, whole);
    }
  });

  /** A writer cuts the torn line off and goes on behind the last whole one. */
  function checkCut(torn: Uint8Array, events: number, whole: number): void {
    const directory = sessionWith(torn);
    const store = openDirectoryStore({ directory, header: HEADER });
    expect([store.tornBytes, store.lastSeq]).toEqual([torn.length - whole, events]);
    expect(statSync(join(directory, 'log.jsonl')).size).toBe(whole);
    store.append(eventJson(events + 1));
    store.close();
    expect(verifyLog(directory)).toMatchObject({ goodSeq: events + 1, tornBytes: 0, damage: undefined });
  }

  it('is left as it is by a reader, and only its whole lines are read', () => {
    const log = logOf(5) + '{"seq":6,"ti', directory = sessionWith(log);
    const store = openDirectoryStore({ directory, readOnly: true });
    expect(store.tornBytes).toBe(12);
    expect(store.lastSeq).toBe(5);
    expect(verifyLog(directory)).toMatchObject({ goodSeq: 5, tornBytes: 12, damage: undefined });
    store.close();
    expect(readFileSync(join(directory, 'log.jsonl'), 'utf8')).toBe(log);
  });

  it('with less than a header is an error that says so, and stays as it is', () => {
    for (let cut = 1; cut < HEADER_LINE.length; cut += 9) {
      const directory = sessionWith(HEADER_LINE.slice(0, cut));
      expect(thrown(() => openDirectoryStore({ directory, header: HEADER }))).toMatchObject({
        code: 'ERR_CORRUPT_LOG', line: 1, goodSeq: undefined });
      expect(statSync(join(directory, 'log.jsonl')).size).toBe(cut);
    }
  });

  it('of no bytes at all is a session whose making was cut short: it is made', () => {
    const directory = sessionWith('');
    openDirectoryStore({ directory, header: HEADER }).close();
    expect(readFileSync(join(directory, 'log.jsonl'), 'utf8')).toBe(HEADER_LINE);
  });
});

describe('a changed byte', () => {
  it('anywhere in a log names its line, and nothing is changed by the finding', () => {
    const log = Buffer.from(logOf(15)), directory = sessionWith(log);
    let line = 1;
    for (let at = 0; at < log.length - 1; at++) {
      const before = log[at] as number;
      for (const mask of [0x01, 0x20, 0x80, before ^ 10].filter((bits) => bits !== 0)) {
        const changed = Buffer.from(log);
        flip(changed, at, mask);
        sessionWith(changed, directory);
        // A writer takes the lock first, which is most of its time here: every 16th byte does.
        const error = thrown(() => openDirectoryStore({ directory, header: HEADER, readOnly: at % 16 !== 0 }));
        expect([at, error]).toEqual([at, expect.any(CorruptLogError)]);
        expect([at, (error as CorruptLogError).line]).toEqual([at, line]);
        expect(readFileSync(join(directory, 'log.jsonl')).equals(changed)).toBe(true);
      }
      if (before === 10) line++;
    }
  });

  it('in the last newline of a log tears the last line off, and no more', () => {
    const log = Buffer.from(logOf(15)), all = log.toString().trimEnd().split('\n').slice(1);
    flip(log, log.length - 1, 0x20);
    expect(linesOf(sessionWith(log))).toEqual(all.slice(0, -1));
  });

  it('anywhere in a pack is EIO for that blob alone, whose digest it names, until the blob is put again', () => {
    const directory = join(scratch(), 's');
    const blobs = [blob(1, 0), blob(2, 30), blob(3, 1), blob(4, 200)];
    const store = openDirectoryStore({ directory, header: HEADER });
    for (const { bytes, digest } of blobs) store.putBlob(digest, bytes);
    store.close();
    const path = join(directory, 'blobs', '000000.pack'), pack = readFileSync(path);
    let hurt = 0;
    for (let at = 0; at < pack.length; at++) {
      const changed = Buffer.from(pack);
      flip(changed, at, 1 << (at % 8));
      writeFileSync(path, changed);
      const opened = openDirectoryStore({ directory, header: HEADER });
      const faults = blobs.filter(({ digest }) => !opened.hasBlob(digest));
      for (const { digest } of faults) {
        expect(thrown(() => opened.getBlob(digest))).toMatchObject({ code: 'EIO', reason: `blob ${digest} is gone` });
      }
      for (const { bytes, digest } of blobs.filter((entry) => !faults.includes(entry))) {
        expect(opened.getBlob(digest)).toEqual(bytes);
      }
      expect(faults.length).toBeLessThanOrEqual(1);
      hurt += faults.length;
      for (const { bytes, digest } of faults) opened.putBlob(digest, bytes);
      opened.close();
      const again = openDirectoryStore({ directory, header: HEADER });
      for (const { bytes, digest } of blobs) expect(again.getBlob(digest)).toEqual(bytes);
      again.close();
    }
    expect(hurt).toBe(pack.length - 8);
  });

  it('in a catalogued blob is found at its first read and by verifying; a damaged catalog is done without', () => {
    const directory = join(scratch(), 's');
    const blobs = Array.from({ length: 150 }, (_, i) => blob(i, 60_000 + i));
    const store = openDirectoryStore({ directory, header: HEADER });
    for (const { bytes, digest } of blobs) store.putBlob(digest, bytes);
    store.close();
    expect(verifyBlobs(directory).bad.size).toBe(0);
    const path = join(directory, 'blobs', '000000.pack'), pack = readFileSync(path);
    const { bytes, digest } = blobs[70] as { bytes: Uint8Array; digest: string };
    flip(pack, pack.indexOf(bytes) + 100, 1);
    writeFileSync(path, pack);
    const { bad } = verifyBlobs(directory);
    expect([...bad.keys()]).toEqual([digest]);
    expect([...bad.values()][0]?.reason).toBe(`blob ${digest} has other bytes than its digest says`);

    const catalogPath = join(directory, 'blobs', 'catalog'), catalog = readFileSync(catalogPath);
    for (let at = 0; at < catalog.length; at += 611) {
      const changed = Buffer.from(catalog);
      flip(changed, at, 4);
      writeFileSync(catalogPath, changed);
      const opened = openDirectoryStore({ directory, readOnly: true });
      expect(blobs.filter((entry) => !opened.hasBlob(entry.digest)).map((entry) => entry.digest)).toEqual([digest]);
      opened.close();
    }
  });

  it('or more, a whole pack that somebody removed, leaves the rest as it is and room for the blobs to come back', () => {
    const directory = join(scratch(), 's'), blobs = join(directory, 'blobs');
    const one = blob(1, 1000), two = blob(2, 1000);
    for (const { bytes, digest } of [one, two]) {
      const store = openDirectoryStore({ directory, header: HEADER });
      store.putBlob(digest, bytes);
      store.close();
      // As if a GiB had been written between the two.
      if (digest === one.digest) renameSync(join(blobs, '000000.pack'), join(blobs, '000007.pack'));
    }
    const store = openDirectoryStore({ directory, header: HEADER });
    for (const { bytes, digest } of [one, two]) expect(store.getBlob(digest)).toEqual(bytes);
    store.close();
    expect(readdirSync(blobs)).toEqual(['000007.pack']);
  });

  it('in a blob of its own file is EIO that names the digest; so is a file that is gone or longer', () => {
    const directory = join(scratch(), 's');
    const { bytes, digest } = blob(1, 100_000);
    const store = openDirectoryStore({ directory, header: HEADER });
    store.putBlob(digest, bytes);
    store.close();
    const path = join(directory, 'blobs', digest.slice(7));
    const changed = Buffer.from(bytes);
    flip(changed, 77_777, 1);
    for (const content of [changed, bytes.subarray(1), Buffer.concat([bytes, Buffer.from('x')])]) {
      writeFileSync(path, content);
      const opened = openDirectoryStore({ directory, header: HEADER });
      expect(thrown(() => opened.readBlob(digest, new Uint8Array(4), 0, 4, 0))).toMatchObject({
        code: 'EIO', reason: `blob ${digest} has other bytes than its digest says` });
      opened.putBlob(digest, bytes);
      expect(opened.getBlob(digest)).toEqual(bytes);
      opened.close();
    }
    expect(readdirSync(join(directory, 'blobs'))).toEqual([digest.slice(7)]);
  });
});

describe('a changed log', () => {
  const lines = logOf(20).trimEnd().split('\n').map((text) => text + '\n');
  const cases: readonly { what: string; change: (copy: string[]) => void; line: number; reason: string }[] = [
    { what: 'a dropped line', change: (copy) => copy.splice(4, 1), line: 5, reason: 'seq gap' },
    { what: 'a repeated line', change: (copy) => copy.splice(4, 0, copy[3] as string), line: 5, reason: 'seq repeated' },
    { what: 'two swapped lines', change: (copy) => copy.splice(4, 2, copy[5] as string, copy[4] as string), line: 5, reason: 'seq gap' },
    { what: 'an inserted line', change: (copy) => copy.splice(4, 0, line('{"note":1')), line: 5, reason: 'no seq' },
    { what: 'an empty line', change: (copy) => copy.splice(4, 0, '\n'), line: 5, reason: 'not JSON' },
    { what: 'words', change: (copy) => copy.splice(4, 0, 'hello\n'), line: 5, reason: 'not JSON' },
    { what: 'a line without a crc', change: (copy) => (copy[4] = eventJson(4) + '}\n'), line: 5, reason: 'no crc' },
    { what: 'a line of another text', change: (copy) => (copy[4] = (copy[4] as string).replace('miss', 'mist')), line: 5, reason: 'bad crc' },
    { what: 'a line of another text with its crc', change: (copy) => (copy[4] = line(eventJson(4, ',"x":1'))), line: 8, reason: 'seal mismatch' },
    { what: 'a second header', change: (copy) => copy.push(HEADER_LINE), line: 22, reason: 'no seq' },
  ];
  for (const { what, change, line: at, reason } of cases) {
    it(`by ${what} is refused with its line, the reason and how to salvage the lines before`, () => {
      const copy = [...lines];
      change(copy);
      const directory = sessionWith(copy.join(''));
      const error = thrown(() => openDirectoryStore({ directory, header: HEADER })) as CorruptLogError;
      expect(error).toBeInstanceOf(CorruptLogError);
      expect(error).toMatchObject({ line: at, reason, goodSeq: at - 2, goodBytes: Buffer.byteLength(copy.slice(0, at - 1).join('')) });
      expect(error.message).toContain(`log.jsonl line ${at}: ${reason}`);
      expect(error.message).toContain(`head -n ${at - 1}`);
      expect(readdirSync(directory)).toEqual(['log.jsonl']);
      const salvaged = sessionWith(copy.slice(0, at - 1).join(''));
      expect(linesOf(salvaged)).toHaveLength(at - 2);
    });
  }

  it('that is no JSON under a right crc is found by verifying', () => {
    const directory = sessionWith(HEADER_LINE + line(eventJson(1)) + line('{"seq":2,oops'));
    expect(verifyLog(directory).damage).toMatchObject({ line: 3, reason: 'not JSON' });
  });
});

describe('a log of another kind', () => {
  const cases = [
    { what: 'a newer format', log: line('{"palimpsest":2,"session":"s"'), code: 'ERR_SESSION_FORMAT', words: 'format 2, newer than 1' },
    { what: 'a newer format without crc', log: '{"palimpsest":3}\n', code: 'ERR_SESSION_FORMAT', words: 'format 3, newer than 1' },
    {
      what: 'a newer format, or a damaged header', log: HEADER_LINE.replace('":1', '":2'), code: 'ERR_SESSION_FORMAT',
      words: 'unless its line 1 is damaged',
    },
    { what: 'JSON of something else', log: '{"level":"info"}\n', code: 'ERR_NOT_A_SESSION', words: 'does not begin with {"palimpsest":1' },
  ] as const;
  for (const { what, log, code, words } of cases) {
    it(`(${what}) is refused by name and left alone`, () => {
      const directory = sessionWith(log);
      const error = thrown(() => openDirectoryStore({ directory, header: HEADER }));
      expect(error).toMatchObject({ code, message: expect.stringContaining(words) as string });
      expect(readFileSync(join(directory, 'log.jsonl'), 'utf8')).toBe(log);
    });
  }

  it('is never begun among other files', () => {
    const directory = scratch();
    copyFileSync(import.meta.filename, join(directory, 'notes.ts'));
    expect(thrown(() => openDirectoryStore({ directory, header: HEADER }))).toMatchObject({
      code: 'ERR_NOT_A_SESSION', message: expect.stringContaining('holds other files (notes.ts)') as string });
    expect(readdirSync(directory)).toEqual(['notes.ts']);
  });
});

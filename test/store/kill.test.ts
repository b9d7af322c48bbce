import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openDirectoryStore } from '../../src/store/open.ts';
import { verifyLog } from '../../src/store/verify.ts';
import { has, run, script } from './child.ts';
import { HEADER, blob, digestOf, eventJson, scratch } from './session.ts';

/**
 * A writer killed on entering its k-th system call, for every k that changes something on disk (a sample of them unless
 * KILL_POINTS=all). The child says on stdout which events append has returned from.
 */
const WRITER = `
  import { existsSync, writeSync } from 'node:fs';
  const [, , directory, durability] = process.argv;
  const blobOf = (i, length) => {
    const bytes = new Uint8Array(length);
    for (let at = 0; at < length; at++) bytes[at] = (i * 31 + at * 7 + (at >> 8)) & 255;
    return bytes;
  };
  existsSync('/marker-begin');
  for (let round = 0; round < 2; round++) {
    const store = openDirectoryStore({ directory, header: HEADER, durability });
    for (let i = 0; i < 4; i++) {
      const seq = store.lastSeq + 1, bytes = blobOf(seq, seq % 4 === 0 ? 70_000 : 500 * seq);
      const digest = digestOf(bytes);
      store.putBlob(digest, bytes);
      store.append(eventJson(seq, ',"blob":"' + digest + '"'));
      writeSync(1, seq + '\\n');
      if (i === 1) store.saveCheckpoint(seq, 'state after ' + seq);
    }
    store.close();
  }
  existsSync('/marker-end');
`;
const EVENTS = 8;

const CALLS = [
  'openat', 'close', 'write', 'pwrite64', 'ftruncate', 'fsync', 'fdatasync', 'rename', 'link', 'unlink', 'mkdir', 'fstat', 'statx',
];

interface Point {
  readonly call: string;
  /** Of that call on the main thread, from 1, as strace counts for `when=`. */
  readonly ordinal: number;
}

/** The calls between the writer's markers. */
function pointsOf(writer: string, durability: string): Point[] {
  const trace = join(scratch(), 'trace');
  run('strace', ['-f', '-o', trace, '-e', `trace=${CALLS.join(',')},access,faccessat,faccessat2`,
    process.execPath, writer, join(scratch(), 's'), durability]);
  const points: Point[] = [], counts = new Map<string, number>();
  let main: string | undefined, inside = false;
  for (const text of readFileSync(trace, 'utf8').split('\n')) {
    const found = /^(\d+) +(\w+)\(/.exec(text);
    if (found === null) continue;
    const [, pid, call] = found as unknown as [string, string, string];
    main ??= pid;
    if (pid !== main) continue;
    const ordinal = (counts.get(call) ?? 0) + 1;
    counts.set(call, ordinal);
    if (text.includes('/marker-begin')) inside = true;
    else if (text.includes('/marker-end')) inside = false;
    else if (inside && CALLS.includes(call)) points.push({ call, ordinal });
  }
  return points;
}

/** What a killed writer left must be a prefix of what it did, with all that append had returned from. */
function checkRemains(directory: string, promised: number): void {
  expect(existsSync(join(directory, 'log.jsonl')) ? verifyLog(directory).damage : undefined).toBeUndefined();
  const store = openDirectoryStore({ directory, header: HEADER });
  expect(store.header).toEqual(HEADER);
  expect(store.lastSeq).toBeGreaterThanOrEqual(promised);
  expect(store.lastSeq).toBeLessThanOrEqual(EVENTS);
  let seq = 0;
  for (const text of store.read()) {
    seq++;
    const { digest } = blob(seq, seq % 4 === 0 ? 70_000 : 500 * seq);
    expect(JSON.parse(text)).toMatchObject({ seq, blob: digest });
    expect(digestOf(store.getBlob(digest))).toBe(digest);
  }
  expect(seq).toBe(store.lastSeq);
  const checkpoint = store.loadCheckpoint();
  expect(checkpoint).toEqual(checkpoint && { seq: checkpoint.seq, data: `state after ${checkpoint.seq}` });
  store.append(eventJson(seq + 1));
  store.close();
  expect(verifyLog(directory)).toMatchObject({ goodSeq: seq + 1, tornBytes: 0, damage: undefined });
}

describe.skipIf(!has('strace', ['-V']))('a writer killed at a system call', () => {
  for (const durability of ['write', 'flush', 'fsync'] as const) {
    it(`leaves a prefix of what it did, with durability ${durability}`, () => {
      const writer = script(WRITER);
      const points = pointsOf(writer, durability);
      expect(points.length).toBeGreaterThan(60);
      const wanted = process.env['KILL_POINTS'] === 'all' ? points.length : 7;
      // Another sample each run; the point is named where one fails.
      const offset = Math.random();
      for (let i = 0; i < wanted; i++) {
        const { call, ordinal } = points[Math.floor((i + offset) * points.length / wanted)] as Point;
        const directory = join(scratch(), 's');
        const { signal, stdout } = run('strace', ['-f', '-o', '/dev/null', '-e', `trace=${call}`,
          '-e', `inject=${call}:signal=KILL:when=${ordinal}`, process.execPath, writer, directory, durability]);
        const acknowledged = stdout.split('\n').length - 1;
        try {
          // A run may make a call less than the one that was counted, and so come to its end.
          expect([signal, acknowledged]).toEqual(signal === null ? [null, EVENTS] : ['SIGKILL', acknowledged]);
          checkRemains(directory, durability === 'flush' ? 0 : acknowledged);
        } catch (error) {
          throw new Error(`killed at ${call} number ${ordinal}, ${acknowledged} acknowledged`, { cause: error });
        }
      }
    }, 3_600_000);
  }
});

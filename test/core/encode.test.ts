import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CorruptEventError, decodeEvent, decodeHeader, encodeByTable, encodeEvent, encodeHeader,
} from '../../src/core/encode.ts';
import { FORMAT_VERSION } from '../../src/core/format.ts';
import type { Header } from '../../src/core/format.ts';
import type { Event, Op } from '../../src/core/event.ts';
import { fromBytes, toBytes } from '../../src/core/path.ts';
import type { TreePath } from '../../src/core/path.ts';
import { anyEvent, bodies } from '../support/event-arbitrary.ts';

const stamp = '{"seq":1,"time":"2026-11-30T20:00:00.037Z","actor":"main","op":';

function reasonOf(decode: () => unknown): string {
  try {
    decode();
  } catch (error) {
    if (error instanceof CorruptEventError) return error.reason;
    throw error;
  }
  throw new Error('decoded without complaint');
}

function outcomeOf(decode: () => unknown): string {
  try {
    decode();
  } catch (error) {
    if (!(error instanceof CorruptEventError)) return String(error);
  }
  return 'decoded or refused';
}

describe('encodeEvent', () => {
  it.each(Object.keys(bodies) as Op[])('gives %s back as it was', (op) => {
    fc.assert(fc.property(anyEvent(op), (event) => {
      const line = encodeEvent(event);
      expect(decodeEvent(line + '}')).toStrictEqual(event);
      expect(decodeEvent(line + ',"crc":"01234567"}')).toStrictEqual(event);
    }), { numRuns: 150 });
  });

  it('writes by hand what the table writes', () => {
    fc.assert(fc.property(anyEvent('read', 'miss', 'stat', 'list', 'write', 'rename', 'delete'), (event) => {
      expect(encodeEvent(event)).toBe(encodeByTable(event));
    }), { numRuns: 1000 });
  });

  it('begins with the stamp, has process last and leaves the end to the store', () => {
    const event: Event = {
      seq: 4, time: '2026-11-30T20:00:00.148Z', actor: 'agent-1', op: 'miss', path: 'src/config.json' as TreePath, call: 'open',
      process: { pid: 42, name: 'node', parent: 40 },
    };
    expect(encodeEvent(event)).toBe('{"seq":4,"time":"2026-11-30T20:00:00.148Z","actor":"agent-1","op":"miss",' +
      '"path":"src/config.json","call":"open","process":{"pid":42,"name":"node","parent":40}');
  });

  it('writes names that are no UTF-8 as base64 of their bytes', () => {
    const path = fromBytes(Uint8Array.of(0x63, 0x61, 0x66, 0xe9)) as TreePath;
    const event: Event = { seq: 1, time: '2026-11-30T20:00:00.037Z', actor: 'main', op: 'delete', path, mtime: '1' };
    expect(encodeEvent(event)).toBe(stamp + '"delete","path64":"Y2Fm6Q==","mtime":"1"');
    expect(toBytes(path)).toEqual(Uint8Array.of(0x63, 0x61, 0x66, 0xe9));
    const discard: Event = { seq: 1, time: event.time, actor: 'main', op: 'discard', paths: ['a' as TreePath, path] };
    expect(encodeEvent(discard)).toBe(stamp + '"discard","paths64":["YQ==","Y2Fm6Q=="]');
  });

  it('is one line of UTF-8 text, whatever the names', () => {
    fc.assert(fc.property(anyEvent(), (event) => {
      const line = encodeEvent(event);
      expect(line).not.toMatch(/[\n\r\0]/);
      expect(line.isWellFormed()).toBe(true);
    }));
  });

  it.each([NaN, Infinity, 0.5, 2 ** 53])('refuses to write %s as a size', (size) => {
    const event = { seq: 1, time: '2026-11-30T20:00:00.037Z', actor: 'main', op: 'read', path: 'a' as TreePath, size } as const;
    expect(() => encodeEvent(event)).toThrow(RangeError);
    expect(() => encodeByTable(event)).toThrow(RangeError);
  });
});

describe('decodeEvent', () => {
  const version = `sha256:${'0'.repeat(64)}`;
  it.each<[string, string]>([
    ['', 'no JSON'],
    ['{"seq":1,"ti', 'no JSON'],
    ['[1]', 'no JSON object'],
    ['null', 'no JSON object'],
    ['{"seq":1}', 'field "op" is missing'],
    [stamp + '"frobnicate"}', 'unknown op "frobnicate"'],
    [stamp + '"constructor"}', 'unknown op "constructor"'],
    [stamp + '7}', 'unknown op 7'],
    [stamp + '"miss","call":"open"}', 'field "path" is missing'],
    [stamp + '"miss","path":"a"}', 'field "call" is missing'],
    [stamp + '"miss","path":"a","call":"open","why":1}', 'unknown field "why"'],
    [stamp + '"miss","path":"a","call":"open","__proto__":1}', 'unknown field "__proto__"'],
    [stamp + '"miss","path":1,"call":"open"}', 'field "path" is not a resolved path'],
    [stamp + '"miss","path":"/a","call":"open"}', 'field "path" is not a resolved path'],
    [stamp + '"miss","path":"a/../../b","call":"open"}', 'field "path" is not a resolved path'],
    [stamp + '"miss","path":"a\\u0000b","call":"open"}', 'field "path" is not a resolved path'],
    [stamp + '"miss","path64":"Li4=","call":"open"}', 'field "path64" is not a resolved path'],
    [stamp + '"miss","path64":"Y","call":"open"}', 'field "path64" is not base64'],
    [stamp + '"miss","path":"a","path64":"YQ==","call":"open"}', 'both "path" and "path64"'],
    [stamp + '"read","path":"a"}', 'field "size" is missing'],
    [stamp + '"read","path":"a","size":-1}', 'field "size" is not a whole number'],
    [stamp + '"read","path":"a","size":9007199254740992}', 'field "size" is not a whole number'],
    [stamp + '"read","path":"a","size":1,"version":"sha256:0"}', 'field "version" is not a version (sha256:…)'],
    [stamp + '"read","path":"a","size":1,"version":null}', 'field "version" is not a version (sha256:…)'],
    [stamp + '"read","path":"a","size":1,"ranges":[[2,1]]}', 'field "ranges" is not a list of byte ranges [start, end)'],
    [stamp + '"read","path":"a","size":1,"fingerprint":{"dev":1,"ino":1,"size":1,"mtime":"1"}}',
      'field "fingerprint.ctime" is missing'],
    [stamp + '"read","path":"a","size":1,"fingerprint":3}', 'field "fingerprint" is not an object'],
    [stamp + '"read","path":"a","size":1,"process":{"pid":1,"name":"x","age":3}}', 'unknown field "process.age"'],
    [stamp + '"write","path":"a","size":1,"mode":1,"ino":1,"mtime":"1","extents":[{"at":0}]}',
      'field "extents[0].length" is missing'],
    [stamp + `"list","path":"a","version":"${version}"}`, 'field "count" is missing'],
    [stamp + '"delete","path":"a","mtime":"1","whiteout":false}', 'field "whiteout" is not true'],
    [stamp + '"delete","path":"a","mtime":"1.5"}', 'field "mtime" is not a time in ns as a decimal string'],
    ['{"seq":0,"time":"2026-11-30T20:00:00.037Z","actor":"main","op":"revert","id":"x"}', 'field "seq" is not a whole number from 1'],
    ['{"seq":1,"time":"yesterday","actor":"main","op":"revert","id":"x"}', 'field "time" is not an ISO 8601 time in ms, UTC'],
    ['{"seq":1,"time":"2026-11-30T20:00:00.037Z","op":"revert","id":"x"}', 'field "actor" is missing'],
  ])('refuses %s', (line, reason) => {
    expect(reasonOf(() => decodeEvent(line))).toBe(reason);
  });

  it('supplies the mtime and the owner that older writers left out', () => {
    expect(decodeEvent(stamp + '"mkdir","path":"out","mode":16877,"ino":3}')).toEqual({
      seq: 1, time: '2026-11-30T20:00:00.037Z', actor: 'main', op: 'mkdir', path: 'out', mode: 16877, ino: 3, uid: 0, gid: 0,
      mtime: '1796068800037000000',
    });
  });

  it('throws nothing but CorruptEventError for text with one character changed', () => {
    fc.assert(fc.property(anyEvent(), fc.nat(), fc.string({ unit: 'binary-ascii', maxLength: 1 }), (event, at, char) => {
      const line = encodeEvent(event) + '}', cut = at % line.length;
      const broken = line.slice(0, cut) + char + line.slice(cut + 1);
      expect(outcomeOf(() => decodeEvent(broken))).toBe('decoded or refused');
    }), { numRuns: 1000 });
  });
});

describe('the header', () => {
  const header: Header = {
    palimpsest: 1, session: 'V1StGXR8_Z5jdHi6B-myT', root: '/srv/r"epo', created: '2026-11-30T20:00:00.000Z',
    parent: { session: 'x', seq: 12, seal: `sha256:${'a'.repeat(64)}` },
  };

  it('comes back as it was, with a parent and without', () => {
    expect(decodeHeader(encodeHeader(header) + ',"crc":"00000000"}')).toEqual(header);
    const { parent: _, ...orphan } = header;
    expect(decodeHeader(encodeHeader(orphan) + '}')).toEqual(orphan);
    expect(encodeHeader(orphan)).toMatch(/^\{"palimpsest":1,"session":"V1S/);
  });

  it.each<[string, string]>([
    [stamp + '"revert","id":"x"}', 'no palimpsest log: the first line has no field "palimpsest"'],
    ['{"palimpsest":2,"tree":"x"}', `unknown format version 2; this program reads version ${FORMAT_VERSION}`],
    ['{"palimpsest":1,"root":"/","created":"2026-11-30T20:00:00.000Z"}', 'field "session" is missing'],
    ['{"palimpsest":1,"session":"s","root":"/","created":"2026-11-30T20:00:00.000Z","parent":{"session":"p","seq":1}}',
      'field "parent.seal" is missing'],
    ['not', 'no JSON'],
  ])('is refused as %s', (line, reason) => {
    expect(reasonOf(() => decodeHeader(line))).toBe(reason);
  });
});

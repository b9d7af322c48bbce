import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeEvent, decodeHeader, encodeEvent, encodeHeader } from '../../src/core/encode.ts';
import { FORMAT_VERSION } from '../../src/core/format.ts';
import { LOG_SCHEMA } from '../../src/core/schema.ts';
import type { Op } from '../../src/core/event.ts';
import { anyEvent, bodies } from '../support/event-arbitrary.ts';

const validate = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false }).compile(LOG_SCHEMA);

function complaints(line: string): string[] {
  return validate(JSON.parse(line)) ? [] : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

const sealed = (json: string): string => `${json},"crc":"${crc32(json).toString(16).padStart(8, '0')}"}`;

const example = readFileSync(join(import.meta.dirname, 'example-log.jsonl'), 'utf8').trimEnd().split('\n');

describe('the schema of a log line', () => {
  it('names the format version and every op', () => {
    expect(LOG_SCHEMA['$id']).toBe(`urn:palimpsest:log-line:${FORMAT_VERSION}`);
    expect(Object.keys(LOG_SCHEMA['$defs'] as object).sort()).toEqual(['header', ...Object.keys(bodies)].sort());
  });

  it.each(Object.keys(bodies) as Op[])('accepts what is written for %s', (op) => {
    fc.assert(fc.property(anyEvent(op), (event) => {
      const line = sealed(encodeEvent(event));
      expect(complaints(line)).toEqual([]);
    }), { numRuns: 60 });
  });

  it('accepts a header, with a parent and without', () => {
    const header = { palimpsest: 1, session: 's', root: '/srv/repo', created: '2026-11-30T20:00:00.000Z' } as const;
    expect(complaints(sealed(encodeHeader(header)))).toEqual([]);
    expect(complaints(sealed(encodeHeader({ ...header, parent: { session: 'p', seq: 3, seal: 'sha256:x' } })))).toEqual([]);
  });

  it('refuses each line that the decoder refuses for a field', () => {
    const stamp = '{"seq":1,"time":"2026-11-30T20:00:00.037Z","actor":"main","op":';
    for (const rest of [
      '"frobnicate","path":"a"', '"miss","path":"a"', '"miss","call":"open"', '"miss","path":"/a","call":"open"',
      '"miss","path":"a/../b","call":"open"', '"miss","path":"a","path64":"YQ==","call":"open"', '"miss","path":"a","call":"open","x":1',
      '"read","path":"a","size":-1', '"read","path":"a","size":1,"version":"sha256:0"', '"read","path":"a","size":1,"fingerprint":{}',
      '"delete","path":"a","mtime":"1.5"', '"discard","paths":["/a"]', '"stat","path":"a"',
    ]) {
      expect(complaints(sealed(stamp + rest)), rest).not.toEqual([]);
      expect(() => decodeEvent(sealed(stamp + rest)), rest).toThrow();
    }
    expect(complaints(stamp + '"revert","id":"x"}')).not.toEqual([]);
  });
});

describe('the example log', () => {
  it('has lines that the schema accepts, the decoder reads, and whose crcs are right', () => {
    expect(example.length).toBe(18);
    for (const line of example) {
      expect(complaints(line), line).toEqual([]);
      expect(sealed(line.slice(0, line.lastIndexOf(',"crc"')))).toBe(line);
    }
    const [header, ...events] = example as [string, ...string[]];
    expect(decodeHeader(header).session).toBe('V1StGXR8_Z5jdHi6B-myT');
    expect(events.map((line) => decodeEvent(line).seq)).toEqual(events.map((_, index) => index + 1));
  });

  it('is written again byte for byte where it leaves nothing to be supplied', () => {
    const [header, ...events] = example as [string, ...string[]];
    expect(sealed(encodeHeader(decodeHeader(header)))).toBe(header);
    const again = events.map((line) => sealed(encodeEvent(decodeEvent(line))));
    const supplied = events.filter((line, index) => again[index] !== line).map((line) => (JSON.parse(line) as { op: string }).op);
    expect(supplied).toEqual(['mkdir', 'rename', 'symlink', 'delete']);
  });
});

import { hash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { Version } from '../../src/core/version.ts';
import type { Header } from '../../src/core/format.ts';

/** What the store's tests share: a header, events, blobs, and directories that are gone afterwards. */

export const HEADER: Header = {
  palimpsest: 1, session: 'V1StGXR8_Z5jdHi6B-myT', root: '/srv/repo', created: '2026-11-30T20:00:00.000Z',
};

/** The JSON that a session hands to `append` as event `seq`. */
export function eventJson(seq: number, more = ''): string {
  return `{"seq":${seq},"time":"2026-11-30T20:00:00.000Z","actor":"main","op":"miss","path":"src/ä-${seq}","call":"open"${more}`;
}

/** The bytes of the `i`th test blob and their digest. */
export function blob(i: number, length: number): { bytes: Uint8Array; digest: Version } {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at++) bytes[at] = (i * 31 + at * 7 + (at >> 8)) & 255;
  return { bytes, digest: digestOf(bytes) };
}

export function digestOf(bytes: Uint8Array): Version {
  return `sha256:${hash('sha256', bytes)}` as Version;
}

/** Changes the byte at `at` by these bits. */
export function flip(bytes: Uint8Array, at: number, bits: number): void {
  bytes[at] = (bytes[at] as number) ^ bits;
}

const made: string[] = [];

/** A new directory, removed after the test file. */
export function scratch(): string {
  const path = mkdtempSync(join(tmpdir(), 'palimpsest-store-'));
  made.push(path);
  return path;
}

afterAll(() => {
  for (const path of made) rmSync(path, { recursive: true, force: true });
});

/** What `act` throws. */
export function thrown(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}

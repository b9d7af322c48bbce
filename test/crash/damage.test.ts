import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { flawOf, stageOf } from './stage.ts';
import type { Stage } from './stage.ts';

/**
 * A session directory is damaged and opened again: it is a prefix of what happened, or an error that says where; no
 * state that never was, no bytes that no one wrote. A sample by default, every byte with `CRASH=all`.
 */
const ALL = process.env['CRASH'] === 'all';
const CUT_BYTES = 8192;
/** Places in the log, and in each other file, that a short run harms. */
const SAMPLE = 60, SAMPLE_ELSEWHERE = 20;

describe('a damaged session', () => {
  let stage: Stage, session: string, log: Buffer;
  beforeAll(async () => {
    stage = await stageOf();
    session = path.join(stage.scratch, 'damaged');
    log = fs.readFileSync(path.join(stage.scratch, 'unharmed', 'log.jsonl'));
  });
  afterAll(() => stage.clear());

  /** A copy of the unharmed session, with `file` replaced. */
  function damage(file: string, bytes: Buffer): void {
    fs.rmSync(session, { recursive: true, force: true });
    fs.cpSync(path.join(stage.scratch, 'unharmed'), session, { recursive: true });
    fs.writeFileSync(path.join(session, file), bytes);
  }

  function* sample(from: number, to: number, count: number): IterableIterator<number> {
    const step = ALL ? 1 : Math.max(1, (to - from) / count);
    for (let at = from; at < to; at += step) yield Math.floor(at);
  }

  it('opens as a prefix wherever its log is cut', { timeout: 3_600_000 }, async () => {
    const flaws: string[] = [];
    for (const length of sample(Math.max(1, log.length - CUT_BYTES), log.length, SAMPLE)) {
      damage('log.jsonl', log.subarray(0, length));
      const flaw = await flawOf(stage, session, 0).catch((error: unknown) => `did not open: ${String(error)}`);
      if (flaw !== undefined) flaws.push(`cut to ${length} of ${log.length}: ${flaw}`);
    }
    expect(flaws).toEqual([]);
  });

  it('opens as a prefix, or says which line is damaged, wherever one byte of its log is another', { timeout: 3_600_000 }, async () => {
    const flaws: string[] = [];
    for (const at of sample(0, log.length, SAMPLE)) {
      const bytes = Buffer.from(log);
      bytes[at] = (bytes[at] as number) ^ (1 << at % 8);
      damage('log.jsonl', bytes);
      const line = log.subarray(0, at).toString('latin1').split('\n').length;
      const flaw = await flawOf(stage, session, 0).catch((error: unknown) => (
        new RegExp(`line ${line}\\b|line ${line + 1}\\b`).test(String(error)) ? undefined : `error does not name line ${line}: ${String(error)}`));
      if (flaw !== undefined) flaws.push(`byte ${at}: ${flaw}`);
    }
    expect(flaws).toEqual([]);
  });

  it('never gives other bytes or states when one byte of any other file is another', { timeout: 3_600_000 }, async () => {
    const flaws: string[] = [];
    const unharmed = path.join(stage.scratch, 'unharmed');
    const files = fs.readdirSync(unharmed, { recursive: true, encoding: 'utf8' })
      .filter((name) => name !== 'log.jsonl' && fs.statSync(path.join(unharmed, name)).isFile());
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) {
      const whole = fs.readFileSync(path.join(unharmed, file));
      for (const at of sample(0, whole.length, SAMPLE_ELSEWHERE)) {
        const bytes = Buffer.from(whole);
        bytes[at] = (bytes[at] as number) ^ (1 << at % 8);
        damage(file, bytes);
        const flaw = await flawOf(stage, session, stage.events.length).catch((error: unknown) => {
          // A named fault is an answer; a TypeError or its like is a bug.
          const { code, name } = error as { code?: unknown; name?: unknown };
          return typeof code === 'string' || /Corrupt|Format|Session|Store/.test(String(name)) ? undefined : String(error);
        });
        if (flaw !== undefined) flaws.push(`${file} byte ${at}: ${flaw}`);
        if (flaws.length > 20) break;
      }
    }
    expect(flaws).toEqual([]);
  });
});

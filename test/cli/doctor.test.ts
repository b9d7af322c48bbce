import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { palimpsest, type Outcome } from './command.ts';

interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly neededFor: string;
  readonly remedy: string;
}

describe('doctor', () => {
  let scratch: string;
  beforeEach(() => { scratch = fs.mkdtempSync(join(tmpdir(), 'palimpsest-doctor-')); });
  afterEach(() => fs.rmSync(scratch, { recursive: true, force: true }));

  const run = (args: readonly string[], env: Readonly<Record<string, string>>): Outcome => palimpsest(['doctor', ...args], { env: { XDG_STATE_HOME: scratch, ...env } });
  const checksOf = ({ stdout }: Outcome): Check[] => stdout.trimEnd().split('\n').map((line) => JSON.parse(line) as Check);

  it('says of each thing whether it is there, and what for', () => {
    const plain = run([], {}), json = run(['--json'], {}), checks = checksOf(json);
    expect(checks.slice(0, 3)).toMatchObject([
      { name: `Node ${process.versions.node}`, ok: true, neededFor: 'everything' }, { name: '/proc', ok: true },
      { name: `a place for sessions, ${scratch}/palimpsest`, ok: true },
    ]);
    const status = checks.every(({ ok }) => ok) ? 0 : 1;
    expect([plain.status, json.status, plain.stderr]).toEqual([status, status, '']);
    for (const { name, ok, neededFor, remedy } of checks) {
      expect(plain.stdout).toContain(`${ok ? 'ok     ' : 'missing'}  ${name}, for ${neededFor}\n${ok ? '' : `         ${remedy}\n`}`);
    }
  });

  it('names what is missing and how to get it, with exit status 1', () => {
    fs.writeFileSync(join(scratch, 'file'), '', { mode: 0o444 });
    for (const place of [join(scratch, 'file'), '/proc/nowhere']) {
      const { status, stdout } = run([], { XDG_STATE_HOME: place });
      expect(status).toBe(1);
      expect(stdout).toContain(`missing  a place for sessions, ${place}/palimpsest, for sessions without --session\n         make it writable, or set XDG_STATE_HOME to a directory that is\n`);
    }
  });
});

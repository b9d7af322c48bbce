import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { LockedSessionError } from '../../src/store/fault.ts';
import { openDirectoryStore } from '../../src/store/open.ts';
import { gone, run, script, start } from './child.ts';
import { HEADER, eventJson, scratch, thrown } from './session.ts';

/** Opens the session argv[2], says so, and holds it until stdin ends. */
const HOLDER = `
  const store = openDirectoryStore({ directory: process.argv[2], header: HEADER });
  console.log('open');
  process.stdin.resume();
  process.stdin.on('end', () => store.close());
`;

/** At the agreed time tries to open argv[2]: prints "won", or the error. The winner holds it until killed. */
const CONTENDER = `
  while (Date.now() < Number(process.argv[3]));
  try {
    openDirectoryStore({ directory: process.argv[2], header: HEADER });
    console.log('won');
    setInterval(() => {}, 1000);
  } catch (error) {
    console.log(error.name + ' ' + error.pid);
  }
`;

function lockOf(directory: string): Record<string, unknown> {
  return JSON.parse(readFileSync(join(directory, 'lock'), 'utf8')) as Record<string, unknown>;
}

describe('the lock of a session', () => {
  it('names pid, boot and start, and is gone after close', () => {
    const directory = join(scratch(), 's');
    const store = openDirectoryStore({ directory, header: HEADER });
    expect(lockOf(directory)).toMatchObject({
      pid: process.pid, boot: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim() });
    store.close();
    expect(readdirSync(directory)).toEqual(['log.jsonl']);
  });

  it('refuses the same process a second time', () => {
    const directory = join(scratch(), 's');
    const store = openDirectoryStore({ directory, header: HEADER });
    const error = thrown(() => openDirectoryStore({ directory, header: HEADER }));
    expect(error).toBeInstanceOf(LockedSessionError);
    expect(error).toMatchObject({ pid: process.pid, message: `session ${directory} is open in process ${process.pid}, this one` });
    store.append(eventJson(1));
    store.close();
    openDirectoryStore({ directory, header: HEADER }).close();
  });

  it('of a live process is an error with its pid, and not of one that was killed', async () => {
    const directory = join(scratch(), 's');
    const { child, line } = await start(script(HOLDER), [directory]);
    expect(line).toBe('open');
    const error = thrown(() => openDirectoryStore({ directory, header: HEADER }));
    expect(error).toBeInstanceOf(LockedSessionError);
    expect(error).toMatchObject({ pid: child.pid, message: `session ${directory} is open in process ${child.pid}` });
    openDirectoryStore({ directory, readOnly: true }).close();
    child.kill('SIGKILL');
    await gone(child);
    expect(existsSync(join(directory, 'lock'))).toBe(true);
    openDirectoryStore({ directory, header: HEADER }).close();
    expect(readdirSync(directory)).toEqual(['log.jsonl']);
  }, 20_000);

  it('is given up, and what was held back is written, when a process exits without closing', () => {
    const directory = join(scratch(), 's');
    const path = script(`
      openDirectoryStore({ directory: process.argv[2], header: HEADER }).append(eventJson(1));
      process.exit(3);
    `);
    expect(run(process.execPath, [path, directory])).toMatchObject({ status: 3, stderr: '' });
    expect(readdirSync(directory)).toEqual(['log.jsonl']);
    const store = openDirectoryStore({ directory, header: HEADER });
    expect(store.lastSeq).toBe(1);
    store.close();
  }, 20_000);

  const dead: readonly { what: string; change: (lock: Record<string, unknown>) => unknown }[] = [
    { what: 'of another boot', change: (lock) => ({ ...lock, boot: '00000000-0000-4000-8000-000000000000' }) },
    { what: 'of an earlier process with this pid', change: (lock) => ({ ...lock, start: '1' }) },
    { what: 'of a pid that is nobody', change: (lock) => ({ ...lock, pid: 4_190_000, start: '77' }) },
    { what: 'that a power cut left empty', change: () => undefined },
  ];
  for (const { what, change } of dead) {
    it(`${what} is taken over`, () => {
      const directory = join(scratch(), 's');
      const store = openDirectoryStore({ directory, header: HEADER });
      const lock = lockOf(directory);
      store.close();
      const changed = change(lock);
      writeFileSync(join(directory, 'lock'), changed === undefined ? '' : JSON.stringify(changed));
      const next = openDirectoryStore({ directory, header: HEADER });
      expect(lockOf(directory)).toMatchObject({ pid: process.pid, start: lock['start'] });
      expect(readdirSync(directory).sort()).toEqual(['lock', 'log.jsonl']);
      next.close();
    });
  }

  it('of another pid namespace counts as live, and the error says what to do', () => {
    const directory = join(scratch(), 's');
    const store = openDirectoryStore({ directory, header: HEADER });
    const lock = lockOf(directory);
    store.close();
    writeFileSync(join(directory, 'lock'), JSON.stringify({ ...lock, namespace: 'pid:[1]', nonce: 'x' }));
    expect(thrown(() => openDirectoryStore({ directory, header: HEADER }))).toMatchObject({
      name: 'LockedSessionError', message: expect.stringContaining(`remove ${join(directory, 'lock')}`) as string });
  });

  it('is released by its owner alone', () => {
    const directory = join(scratch(), 's');
    const store = openDirectoryStore({ directory, header: HEADER });
    const other = JSON.stringify({ ...lockOf(directory), nonce: 'someone-else' });
    writeFileSync(join(directory, 'lock'), other);
    store.close();
    expect(readFileSync(join(directory, 'lock'), 'utf8')).toBe(other);
  });

  it('has exactly one winner when many take a dead one over at once', async () => {
    const rounds = Number(process.env['LOCK_ROUNDS'] ?? 3), contenders = 6;
    const contender = script(CONTENDER);
    for (let round = 0; round < rounds; round++) {
      const directory = join(scratch(), 's');
      openDirectoryStore({ directory, header: HEADER }).close();
      writeFileSync(join(directory, 'lock'), JSON.stringify({
        pid: 4_190_000, boot: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(), start: '1',
        namespace: namespaceOfLock(), nonce: `dead-${round}`,
      }));
      // A claim whose holder died on the way is in the way, too.
      if (round % 2 === 1) {
        writeFileSync(join(directory, `lock.dead-${round}.claim`),
          JSON.stringify({ pid: 4_190_001, boot: 'x', start: '1', namespace: '', nonce: 'y' }));
      }
      const at = String(Date.now() + 1500);
      const runs = await Promise.all(Array.from({ length: contenders }, () => start(contender, [directory, at])));
      const winners = runs.filter(({ line }) => line === 'won');
      expect(winners).toHaveLength(1);
      const pids = new Set(runs.map(({ child }) => child.pid));
      for (const { line } of runs.filter((entry) => entry.line !== 'won')) {
        expect(line).toMatch(/^LockedSessionError \d+$/);
        expect(pids).toContain(Number(line.split(' ')[1]));
      }
      expect(lockOf(directory)['pid']).toBe(winners[0]?.child.pid);
      for (const { child } of runs) child.kill('SIGKILL');
      await Promise.all(runs.map(({ child }) => gone(child)));
      expect(readdirSync(directory).filter((name) => name.endsWith('.claim'))).toEqual([]);
    }
  }, 120_000);
});

/** The pid namespace as a lock of this process names it. */
function namespaceOfLock(): unknown {
  const directory = join(scratch(), 's');
  const store = openDirectoryStore({ directory, header: HEADER });
  const { namespace } = lockOf(directory);
  store.close();
  return namespace;
}

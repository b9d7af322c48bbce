import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { SessionLog, type Event } from '../../src/index.ts';
import { lack, program } from './union.ts';

const missing = lack('palimpsest');
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(`CI must be able to mount: ${missing}`);

/** Enough that two processes meet at one name many times. */
const NAMES = 200;

describe.runIf(missing === undefined)('what a run observes', () => {
  let scratch = '';
  afterEach(() => fs.rmSync(scratch, { recursive: true, force: true }));

  /** Runs a script of the shell over a fresh tree; gives the events. */
  function eventsOf(plant: (root: string) => void, script: string): Event[] {
    scratch = fs.mkdtempSync(join(fs.realpathSync(tmpdir()), 'palimpsest-observed-'));
    const root = join(scratch, 'root'), session = join(scratch, 'session');
    fs.mkdirSync(root);
    plant(root);
    const { status, stderr } = spawnSync(process.execPath, [program(), 'run', '--session', session, '--', 'sh', '-ec', script], { cwd: root, encoding: 'utf8' });
    expect(status, stderr).toBe(0);
    return [...SessionLog.openSync(session).events()];
  }

  it('tells of each of two processes that ask for the same missing name at once', () => {
    const asking = `for (let i = 0; i < ${NAMES}; i++) if (require("fs").existsSync("missing-" + i)) process.exit(1)`;
    const events = eventsOf(() => undefined, `node -e '${asking}' & one=$!; node -e '${asking}' & two=$!; wait $one && wait $two`);
    const askers = new Map<string, Set<number | undefined>>();
    for (const event of events) {
      if (event.op === 'miss') askers.set(event.path, (askers.get(event.path) ?? new Set()).add(event.process?.pid));
    }
    for (let i = 0; i < NAMES; i++) expect([`missing-${i}`, askers.get(`missing-${i}`)?.size]).toEqual([`missing-${i}`, 2]);
  });

  it('tells which of several names of a file was opened', () => {
    const events = eventsOf((root) => {
      fs.writeFileSync(join(root, 'a'), 'one file');
      fs.linkSync(join(root, 'a'), join(root, 'b'));
      fs.writeFileSync(join(root, 'single'), 'another');
    }, 'cat b; cat a; cat b; ln single double; cat double; cat single; rm double; cat single; ln -s single link; cat link');
    const reads = events.flatMap((event) => (event.op === 'read' ? [event.path] : []));
    expect(reads).toEqual(['b', 'a', 'b', 'double', 'single', 'single', 'single']);
  });

  it('tells who is behind each event', () => {
    const events = eventsOf((root) => fs.writeFileSync(join(root, 'a'), 'a'), 'cat a; (head -c 1 a; echo b >b) | wc -c; mkdir c');
    const by = (op: Event['op'], path: string): unknown => events.find((event) => event.op === op && 'path' in event && event.path === path)?.process?.name;
    expect([by('read', 'a'), by('write', 'b'), by('mkdir', 'c')]).toEqual(['cat', 'sh', 'mkdir']);
    expect(events.filter(({ op }) => op === 'read').map((event) => event.process?.name)).toEqual(['cat', 'head']);
  });
});

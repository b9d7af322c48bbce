import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SessionLog, type Event } from '../../src/index.ts';
import { palimpsest } from '../cli/command.ts';
import { CAN_MOUNT } from './launcher.ts';

/** A project whose tests read its sources, look for what is not there, list, make and remove files. */
const FILES: Readonly<Record<string, string>> = {
  'package.json': '{"name":"tiny","version":"1.0.0","type":"commonjs","scripts":{"test":"node test/all.js"}}\n',
  'src/sum.js': "exports.sum = (a, b) => a + b;\n",
  'src/index.js': "const { sum } = require('./sum.js');\nexports.total = (list) => list.reduce(sum, 0);\n",
  'test/all.js': `const fs = require('node:fs'), path = require('node:path');
const { total } = require('../src');
if (total([1, 2, 3]) !== 6) throw new Error('sum');
const here = path.join(__dirname, '..');
console.log(fs.readdirSync(path.join(here, 'fixtures')).map((name) => name + ' ' + fs.statSync(path.join(here, 'fixtures', name)).size).join(', '));
if (fs.existsSync(path.join(here, 'none'))) throw new Error('none');
fs.mkdirSync(path.join(here, 'out'));
fs.writeFileSync(path.join(here, 'out/report'), 'ok ' + fs.readFileSync(path.join(here, 'fixtures/data')).length + '\\n');
fs.appendFileSync(path.join(here, 'log'), 'more\\n');
fs.rmSync(path.join(here, 'fixtures/old'));
console.log(fs.readFileSync(path.join(here, 'out/report'), 'utf8').trim());
`,
  'fixtures/data': 'x'.repeat(200_000),
  'fixtures/old': 'old\n',
  'log': 'first\n',
  'untouched': 'nobody looks at this\n',
};

let scratch: string;
beforeAll(() => { scratch = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'palimpsest-hermetic-'))); });
afterAll(() => fs.rmSync(scratch, { recursive: true, force: true }));

const env = { PATH: process.env['PATH'], HOME: '/nonexistent', npm_config_cache: '/nonexistent', npm_config_update_notifier: 'false' };

/** What a run read and missed in the project, as sets. */
function seenIn(session: string): Record<string, string[]> {
  const log = SessionLog.openSync(session), found: Record<string, Set<string>> = { read: new Set(), list: new Set(), write: new Set() };
  for (const event of log.events() as Iterable<Event>) if (event.op in found && 'path' in event) found[event.op]?.add(event.path as string);
  log.close();
  return Object.fromEntries(Object.entries(found).map(([op, paths]) => [op, [...paths].sort()]));
}

describe.runIf(CAN_MOUNT)('a recorded run of npm test', () => {
  it('is replayed elsewhere, without its root: the same files, the same reads, the same words', { timeout: 120_000 }, () => {
    const root = join(scratch, 'project'), session = join(scratch, 'session'), moved = join(scratch, 'moved/session'), again = join(scratch, 'again');
    for (const [name, content] of Object.entries(FILES)) {
      fs.mkdirSync(join(root, name, '..'), { recursive: true });
      fs.writeFileSync(join(root, name), content);
    }
    const run = palimpsest(['run', '--session', session, '--record', 'content', '-q', '--', 'npm', '--silent', 'test'], { cwd: root, env });
    expect(run).toMatchObject({ status: 0, stdout: 'data 200000, old 4\nok 200000\n' });
    expect(palimpsest(['replay', '--session', session, '--verify'], { cwd: root, env })).toMatchObject({ status: 0, stdout: '', stderr: '' });
    fs.mkdirSync(join(scratch, 'moved'));
    fs.renameSync(session, moved);
    fs.rmSync(root, { recursive: true });
    const empty = join(scratch, 'empty');
    fs.mkdirSync(empty);
    const said = (...args: string[]): unknown => {
      const { status, stdout, stderr } = palimpsest([args[0] as string, '--session', moved, ...args.slice(1)], { cwd: empty, env });
      return status === 0 ? stdout : `${status} ${stderr}`;
    };

    const beginning = palimpsest(['replay', '--session', moved, '--at', '0', '--root', empty, '--into', again, '--', 'npm', '--silent', 'test'], { cwd: empty, env });
    expect(beginning).toMatchObject({ status: 0, stdout: run.stdout });
    expect(seenIn(again)).toEqual(seenIn(moved));
    expect(said('cat', '--replay', 'out/report')).toBe('ok 200000\n');
    expect(said('cat', '--replay', 'log')).toBe('first\nmore\n');
    expect(said('cat', '--replay', 'untouched')).toMatch(/^1 palimpsest: .*was not recorded/);
    expect(said('diff', '--replay', '--stat', '-z')).toBe('0\t1\tfixtures/old\u00001\t0\tlog\u00001\t0\tout/report\u0000');
    expect(fs.readdirSync(empty)).toEqual([]);
    expect(palimpsest(['replay', '--session', moved, '--root', empty, '--', 'cat', 'untouched'], { cwd: empty, env })).toMatchObject({
      status: 1, stdout: '', stderr: expect.stringContaining('Input/output error') as string });
  });
});

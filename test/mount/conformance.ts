/**
 * `npm run conformance:mount`: suites that nobody here wrote, in a directory of a mount.
 *
 *     conformance.ts [--make palimpsest|overlay|fuse-overlayfs|plain] [--only REGEXP] [--json FILE] [--operations N]
 *                    [--seeds N] [--dir DIR] [--write-back] [SUITE[=PATH]…]
 *
 * Suites: `node` (Node's own fs tests), `syscalls` (libfuse's test_syscalls), both fetched and the default; and, of a
 * source tree that is given as PATH, `pjdfstest`, `unionmount`, `fsx` (PATH is the binary). Other makes than ours show
 * what a suite comes to elsewhere. Says what failed and exits 1 where something did; needs root.
 */
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { pjdfstest } from './pjdfstest.ts';
import { fsxSuite, nodeSuite, syscallSuite } from './suites.ts';
import { lineOf, type Tally } from './tally.ts';
import { lack, MAKES, mountUnion, type Make } from './union.ts';
import { unionmount } from './unionmount.ts';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    make: { type: 'string', default: 'palimpsest' },
    only: { type: 'string', default: '' },
    json: { type: 'string' },
    operations: { type: 'string', default: '20000' },
    seeds: { type: 'string', default: '2' },
    dir: { type: 'string', default: tmpdir() },
    'write-back': { type: 'boolean', default: false },
  },
});
const make = MAKES.find((each) => each === options.make);
if (make === undefined) throw new Error(`no make ${options.make}; there are ${MAKES.join(', ')}`);
const only = new RegExp(options.only);
const total = { passed: 0, failed: 0, skipped: 0 };
const why = lack(make);
if (why !== undefined) {
  console.log(`conformance on a mount: ${why}`);
  if (process.env['CI'] === 'true') process.exit(1);
  total.skipped++;
} else {
  for (const named of positionals.length > 0 ? positionals : ['node', 'syscalls']) await judge(named, make);
}
if (options.json !== undefined) {
  mkdirSync(dirname(resolve(options.json)), { recursive: true });
  writeFileSync(options.json, JSON.stringify(total, null, 1));
}
console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exit(total.failed === 0 ? 0 : 1);

async function judge(named: string, make: Make): Promise<void> {
  const started = Date.now();
  const tally = await runSuite(named, make);
  for (const line of tally.failed) console.log(`${make}: ${line}`);
  console.log(`${named.split('=')[0]} on ${make}: ${lineOf(tally)}, ${((Date.now() - started) / 1000).toFixed(0)} s`);
  total.passed += tally.passed;
  total.failed += tally.failed.length;
  total.skipped += tally.skipped;
}

async function runSuite(named: string, make: Make): Promise<Tally> {
  const [suite, path = ''] = named.split(/=(.*)/s);
  const scratch = mkdtempSync(join(realpathSync(options.dir), 'palimpsest-conformance-'));
  // Suites also act as users other than root.
  chmodSync(scratch, 0o755);
  try {
    if (suite === 'unionmount') return unionmount(scratch, make, path, only);
    const lower = join(scratch, 'lower');
    mkdirSync(lower);
    const union = mountUnion(make, lower, scratch, { flags: options['write-back'] ? ['--write-back'] : [] });
    try {
      switch (suite) {
        case 'node': return nodeSuite(union.path);
        case 'syscalls': return path === '' ? syscallSuite(union.path) : syscallSuite(union.path, path);
        case 'pjdfstest': return await pjdfstest(union.path, path, only);
        case 'fsx': return fsxSuite(union.path, path, { operations: Number(options.operations), seeds: Number(options.seeds) });
        default: throw new Error(`no suite ${suite}`);
      }
    } finally {
      union.unmount();
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

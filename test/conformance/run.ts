/**
 * `npm run conformance`: Node's own fs tests in process, over `overlay.fs`.
 *
 *     run.ts [--variant plain,filled] [--subject MODULE] [--only REGEXP] [--json FILE] [--jobs N] [--timeout S]
 *            [--suite DIR] [--dir DIR] [--all] [--verbose]
 *
 * Variants: `plain`, the overlay over an empty directory; `filled`, where what a test makes is first made in the lower
 * (subject/filled.cjs). `--subject` takes any other module that exports `({ testDir, suiteDir }) => fs`, and expects
 * what `expected.json` lists under its file name. `--dir` has the tests work in there instead of in the temporary
 * directory, and `--all` also runs those that `excluded.json` names: together with subject/real.cjs they judge the file
 * system that DIR is on. One process a test. A test passes when it exits 0 and leaves its
 * real directory untouched. Exits 0 when every test passed or is listed in `expected.json` with just that outcome;
 * otherwise says which did not and exits 1. A test that fails is tried once more, alone: its time limits are short.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { differences } from './ledger.ts';

type Outcome = 'passed' | 'failed' | 'skipped' | 'touched';

interface Result {
  readonly outcome: Outcome;
  readonly seconds: number;
  /** Of a failed test: its first line that names an error, and the end of what it printed. */
  readonly error?: string;
  readonly output?: string;
  readonly retried?: true;
}

/** Test → what is known to happen to it, and why. */
type Known = Readonly<Record<string, { outcome: Outcome; reason: string }>>;

const here = import.meta.dirname, root = join(here, '..', '..');
const { values: options } = parseArgs({
  options: {
    variant: { type: 'string', default: 'plain' },
    subject: { type: 'string' },
    only: { type: 'string', default: '' },
    json: { type: 'string' },
    jobs: { type: 'string', default: '2' },
    timeout: { type: 'string', default: '30' },
    suite: { type: 'string', default: join(root, '.cache', 'node-tests') },
    dir: { type: 'string', default: tmpdir() },
    all: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
  },
});

/** Most failed tests that are tried once more. */
const RETRIES = 12;

/** Output kept of one test, in characters. */
const OUTPUT_LENGTH = 4000;

const fetched = spawnSync('sh', [join(here, 'fetch.sh'), resolve(options.suite)], { stdio: 'inherit' });
if (fetched.status !== 0) process.exit(1);
const suiteDir = realpathSync(join(options.suite, 'test'));
const excluded = JSON.parse(readFileSync(join(here, 'excluded.json'), 'utf8')) as Readonly<Record<string, string>>;
const expected = JSON.parse(readFileSync(join(here, 'expected.json'), 'utf8')) as Readonly<Record<string, Known>>;

const only = new RegExp(options.only);
const tests = ['parallel', 'sequential'].flatMap((directory) =>
  readdirSync(join(suiteDir, directory))
    .filter((name) => /^test-(?:fs|file|filehandle)[-.].*\.m?js$/.test(name) || name === 'test-file.js')
    .map((name) => `${directory}/${name}`))
  .filter((test) => (options.all || excluded[test] === undefined) && only.test(test));

const subjects = options.subject === undefined
  ? options.variant.split(',').map((variant) => join(here, 'subject', `${variant}.cjs`)) : [resolve(options.subject)];
const totals = { passed: 0, failed: 0, skipped: 0 };
const report: Record<string, unknown> = {};
for (const subject of subjects) {
  const name = basename(subject, '.cjs');
  const started = Date.now();
  const results = await runAll(subject);
  const surprises = judge(results, knownOf(subject));
  const count = (outcome: Outcome): number => [...results.values()].filter((result) => result.outcome === outcome).length;
  for (const surprise of surprises.values()) console.log(surprise);
  const retried = [...results].filter(([, result]) => result.retried && result.outcome === 'passed').map(([test]) => test);
  console.log(`conformance ${name}: ${count('passed')} of ${results.size} pass, ${count('failed')} fail, ` +
    `${count('skipped')} skipped, ${count('touched')} touched the directory, ` +
    `${((Date.now() - started) / 1000).toFixed(0)} s${retried.length > 0 ? `; at the second try: ${retried.join(', ')}` : ''}`);
  const passed = [...results].filter(([test, { outcome }]) => outcome === 'passed' && !surprises.has(test)).length;
  totals.passed += passed;
  totals.failed += surprises.size;
  // Neither passed nor a surprise: listed, with its reason.
  totals.skipped += results.size - passed - surprises.size;
  report[name] = { surprises: Object.fromEntries(surprises), retried, results: Object.fromEntries([...results].toSorted(([a], [b]) => (a < b ? -1 : 1))) };
}
if (options.json !== undefined) {
  mkdirSync(dirname(resolve(options.json)), { recursive: true });
  writeFileSync(options.json, JSON.stringify({ node: process.version, ...totals, subjects: report }, null, 1));
}
console.log(`${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
process.exit(totals.failed === 0 && totals.passed > 0 ? 0 : 1);

async function runAll(subject: string): Promise<Map<string, Result>> {
  const results = new Map<string, Result>(), queue = [...tests];
  const work = async (): Promise<void> => {
    for (let test = queue.shift(); test !== undefined; test = queue.shift()) {
      const result = await runOne(test, subject);
      results.set(test, result);
      if (options.verbose) console.log(result.outcome.padEnd(8), test, result.error ?? '');
    }
  };
  await Promise.all(Array.from({ length: Number(options.jobs) }, work));
  const failed = [...judge(results, knownOf(subject)).keys()].filter((test) => results.get(test)?.outcome === 'failed');
  // Load may make a few late; where many fail, it was not that.
  for (const test of failed.length > RETRIES ? [] : failed) results.set(test, { ...await runOne(test, subject), retried: true });
  return results;
}

/** What `expected.json` says of this subject: what holds for all of them, and what for this one. */
function knownOf(subject: string): Known {
  return { ...expected['any'], ...expected[basename(subject, '.cjs')] };
}

/** The tests that did not go as `known` says, with a line each. */
function judge(results: ReadonlyMap<string, Result>, known: Known): Map<string, string> {
  const surprises = new Map<string, string>();
  for (const [test, { outcome, error }] of results) {
    const listed = known[test]?.outcome ?? 'passed';
    // A skip hangs on the machine (root or not, memory), so one that passes after all is no news. Among the excluded
    // ones are those for other platforms.
    if (outcome === listed || (listed === 'skipped' && outcome === 'passed')) continue;
    if (outcome === 'skipped' && excluded[test] !== undefined) continue;
    surprises.set(test, outcome === 'passed'
      ? `${test} passes, but is expected to be ${listed}: take it out of expected.json`
      : `${test} ${outcome}${error === undefined ? '' : `: ${error}`}`);
  }
  return surprises;
}

async function runOne(test: string, subject: string): Promise<Result> {
  const file = join(suiteDir, test);
  const scratch = mkdtempSync(join(realpathSync(options.dir), 'conformance-'));
  const testDir = join(scratch, 'dir'), ledger = join(scratch, 'ledger');
  mkdirSync(testDir);
  utimesSync(testDir, 0, 0);
  const { ctimeMs } = statSync(testDir);
  const started = Date.now();
  const { code, output } = await runProcess([...flagsOf(file), file], {
    NODE_TEST_DIR: testDir,
    TEST_THREAD_ID: '0',
    // Flags are passed as the test's first lines ask; what a library leaves in the global scope is not the matter here.
    NODE_SKIP_FLAG_CHECK: '1',
    NODE_TEST_KNOWN_GLOBALS: '0',
    NODE_OPTIONS: `--require ${join(here, 'preload.cjs')}`,
    CONFORMANCE_SUBJECT: subject,
    CONFORMANCE_SUITE: suiteDir,
    CONFORMANCE_LEDGER: ledger,
  });
  const touched = touchedBy(subject, { testDir, ctimeMs, ledger });
  rmSync(scratch, { recursive: true, force: true });
  const seconds = (Date.now() - started) / 1000;
  if (code !== 0) {
    const line = /^(?:Uncaught )?\w*Error\b[^:\n]*: .*$/m.exec(output)?.[0] ?? output.trim().split('\n').at(-1) ?? '';
    const error = code === 'timeout' ? `not done after ${options.timeout} s` : line;
    return { outcome: 'failed', seconds, error: error.slice(0, 300), output: output.slice(-OUTPUT_LENGTH) };
  }
  if (touched !== undefined) return { outcome: 'touched', seconds, error: touched };
  return { outcome: /^1\.\.0 # Skipped/m.test(output) ? 'skipped' : 'passed', seconds };
}

/**
 * What happened to the real directory, if something did. ctime moves with any change of the directory, a name made
 * and removed again included. A subject that itself fills the directory keeps a ledger of what it made.
 */
function touchedBy(subject: string, { testDir, ctimeMs, ledger }: { testDir: string; ctimeMs: number; ledger: string }): string | undefined {
  switch (basename(subject, '.cjs')) {
    case 'real': return undefined;
    case 'filled': return differences(testDir, ledger)[0];
    default: return statSync(testDir).ctimeMs === ctimeMs ? undefined : `left there: ${readdirSync(testDir).join(' ')}`;
  }
}

async function runProcess(args: string[], env: Record<string, string>): Promise<{ code: number | string; output: string }> {
  const child = spawn(process.execPath, args, {
    cwd: dirname(suiteDir), detached: true, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env },
  });
  let output = '', late = false;
  const collect = (data: string): void => {
    if (output.length < 100_000) output += data;
  };
  child.stdout.setEncoding('utf8').on('data', collect);
  child.stderr.setEncoding('utf8').on('data', collect);
  const killGroup = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  };
  const timer = setTimeout(() => {
    late = true;
    killGroup();
  }, Number(options.timeout) * 1000);
  const code = await new Promise<number | string>((done) => {
    child.on('error', (error) => { done(error.message); });
    child.on('exit', (status, signal) => { done(signal ?? status ?? 'lost'); });
  });
  clearTimeout(timer);
  killGroup(); // what the test left running
  return { code: late ? 'timeout' : code, output };
}

function flagsOf(file: string): string[] {
  return /^\/\/ Flags: (.+)$/m.exec(readFileSync(file, 'utf8').slice(0, 3000))?.[1]?.trim().split(/\s+/) ?? [];
}

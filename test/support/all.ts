/**
 * `npm test`: everything that must hold before a change is good, one step after another. A step that fails does not
 * stop the next ones. The last line printed is `N passed, N failed, N skipped`, over the tests of vitest and
 * conformance; a step without tests of its own counts only where it fails.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

interface Step {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  /** Where the step leaves its figures as JSON, and how to read them. */
  readonly report?: { readonly file: string; read(report: Record<string, number>): Counts };
}

const root = join(import.meta.dirname, '..', '..');
const bin = (name: string): string => join(root, 'node_modules', '.bin', name);
const cache = join(root, '.cache');

const vitestReport = join(cache, 'vitest.json');
const conformanceReport = join(cache, 'conformance.json'), mountReport = join(cache, 'conformance-mount.json');
const STEPS: readonly Step[] = [
  { name: 'install', command: ['sh', 'test/support/install.sh'] },
  { name: 'build', command: ['npm', 'run', '--silent', 'build'] },
  { name: 'types', command: ['npm', 'run', '--silent', 'types'] },
  { name: 'lint', command: ['npm', 'run', '--silent', 'lint'] },
  { name: 'unused', command: ['npm', 'run', '--silent', 'unused'] },
  {
    name: 'tests',
    // One file after another: namespaces that a run makes keep another test's mount alive while they last. Once more, since real processes
    // on a machine under load are sometimes late; a retry shows in the report.
    command: [bin('vitest'), 'run', '--no-file-parallelism', '--retry=1', '--reporter=default', '--reporter=json', `--outputFile.json=${vitestReport}`],
    report: {
      file: vitestReport,
      read: (report) => ({
        passed: report['numPassedTests'] ?? 0,
        failed: report['numFailedTests'] ?? 0,
        skipped: (report['numPendingTests'] ?? 0) + (report['numTodoTests'] ?? 0),
      }),
    },
  },
  {
    name: 'conformance',
    command: [bin('tsx'), 'test/conformance/run.ts', '--variant', 'plain,filled', '--json', conformanceReport],
    report: { file: conformanceReport, read: counted },
  },
  {
    name: 'conformance on a mount',
    command: [bin('tsx'), 'test/mount/conformance.ts', '--json', mountReport],
    report: { file: mountReport, read: counted },
  },
];

mkdirSync(cache, { recursive: true });
const total = { passed: 0, failed: 0, skipped: 0 };
const broken: string[] = [];
for (const { name, command: [program, ...args], report } of STEPS) {
  if (report !== undefined) rmSync(report.file, { force: true });
  console.log(`\n── ${name}`);
  const started = Date.now();
  const { status } = spawnSync(program, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  console.log(`── ${name}: ${status === 0 ? 'ok' : 'FAILED'} after ${((Date.now() - started) / 1000).toFixed(1)} s`);
  const counts = report === undefined ? undefined : figures(report);
  total.passed += counts?.passed ?? 0;
  total.skipped += counts?.skipped ?? 0;
  // What fails without a failed test (a file that does not load, a type error) is one failure, never none.
  total.failed += counts?.failed || (status === 0 ? 0 : 1);
  if (status !== 0) broken.push(name);
}
if (broken.length > 0) console.log(`\nfailed: ${broken.join(', ')}`);
console.log(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exit(broken.length === 0 && total.failed === 0 && total.passed > 0 ? 0 : 1);

function counted(report: Record<string, number>): Counts {
  return { passed: report['passed'] ?? 0, failed: report['failed'] ?? 0, skipped: report['skipped'] ?? 0 };
}

function figures({ file, read }: NonNullable<Step['report']>): Counts | undefined {
  try {
    return read(JSON.parse(readFileSync(file, 'utf8')) as Record<string, number>);
  } catch (error) {
    // The step died before it could write; its exit status tells.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SUITE_MS, type Tally } from './tally.ts';

const here = import.meta.dirname, project = join(here, '..', '..');

/** Node's own fs tests, all of them, through the real `node:fs` in `directory`. */
export function nodeSuite(directory: string): Tally {
  const scratch = mkdtempSync(join(tmpdir(), 'palimpsest-node-suite-')), report = join(scratch, 'report.json');
  try {
    const { status } = spawnSync(join(project, 'node_modules/.bin/tsx'), [
      join(project, 'test/conformance/run.ts'), '--subject', join(project, 'test/conformance/subject/real.cjs'),
      '--all', '--dir', directory, '--json', report,
    ], { stdio: ['ignore', 'ignore', 'inherit'], timeout: SUITE_MS });
    if (status === null) throw new Error('the node suite did not end');
    const { passed, skipped, subjects } = JSON.parse(readFileSync(report, 'utf8')) as
      { passed: number; skipped: number; subjects: Record<string, { surprises: Record<string, string> }> };
    return { passed, skipped, failed: Object.values(subjects['real']?.surprises ?? {}) };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** libfuse's test of system calls; `program` is built where it is missing. */
export function syscallSuite(directory: string, program = join(project, '.cache', 'test_syscalls')): Tally {
  mkdirSync(join(program, '..'), { recursive: true });
  const built = spawnSync('sh', [join(here, 'syscalls.sh'), program], { stdio: ['ignore', 'inherit', 'inherit'] });
  if (built.status !== 0) throw new Error('test_syscalls could not be built');
  const work = mkdtempSync(join(directory, 'syscalls-'));
  // It compares modes with what it asked for.
  const { stderr } = spawnSync('sh', ['-c', 'umask 0; exec "$0" "$1"', program, work], { encoding: 'utf8', timeout: SUITE_MS });
  const lines = stderr.split('\n').filter((line) => /^ *\d+ \[/.test(line));
  const failed = lines.filter((line) => !line.endsWith(' OK'));
  const passed = new Set(lines.filter((line) => line.endsWith(' OK')).map((line) => line.split('[')[0])).size;
  if (passed + failed.length === 0) throw new Error(`test_syscalls said nothing: ${stderr}`);
  rmSync(work, { recursive: true, force: true });
  return { passed, failed, skipped: 0 };
}

/** Ways to call fsx: everything; without mmap; small; reopening often, so that data must survive a close. */
const FSX_WAYS = [[], ['-W', '-R'], ['-l', '65536', '-o', '4096'], ['-c', '50']];

/** fsx: random reads, writes, truncates and mappings, held against memory. `program` is its binary. */
export function fsxSuite(directory: string, program: string, options: { operations: number; seeds: number }): Tally {
  const failed: string[] = [];
  let passed = 0;
  for (let seed = 1; seed <= options.seeds; seed++) {
    for (const way of FSX_WAYS) {
      const work = mkdtempSync(join(directory, 'fsx-'));
      const args = ['-q', '-N', String(options.operations), '-S', String(seed), ...way, '-P', tmpdir(), join(work, 'file')];
      const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', timeout: SUITE_MS });
      if (status === 0) passed++;
      else failed.push(`seed ${seed} ${way.join(' ')}: ${(stdout + stderr).trim().split('\n').slice(-3).join(' | ')}`);
      rmSync(work, { recursive: true, force: true });
    }
  }
  return { passed, failed, skipped: 0 };
}

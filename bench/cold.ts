import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { startClock } from './clock.ts';
import type { Sample } from './row.ts';
import type { SubjectName } from './subject.ts';

/** Runs a cold row's act in a process of its own. Throws with its words when it fails. */
export function sampleCold(row: string, subject: SubjectName, argument: string): Sample {
  const compiled = import.meta.filename.endsWith('.js');
  const child = fileURLToPath(new URL(compiled ? './child.js' : './child.ts', import.meta.url));
  const loader = compiled ? [] : ['--import', 'tsx'];
  const text = execFileSync(process.execPath, ['--no-warnings', '--expose-gc', ...loader, child, row, subject, argument],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 20 });
  return JSON.parse(text) as Sample;
}

/** Time and resident memory that `act` takes; garbage of before is collected first. */
export async function gauge(act: () => number | Promise<number>): Promise<Sample> {
  // Twice: the first collection may leave what only it found unreachable.
  globalThis.gc?.();
  globalThis.gc?.();
  const before = process.memoryUsage.rss(), stop = startClock();
  const sum = await act();
  const elapsed = stop();
  return { ...elapsed, bytes: Math.max(0, process.memoryUsage.rss() - before), sum };
}

#!/usr/bin/env node
import { readFileSync } from 'node:fs';

/** The command. What is asked for most is answered before anything is loaded; each verb loads what it needs. */
const args = process.argv.slice(2);
if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
  process.stdout.write(version() + '\n');
} else {
  if (args[0] === 'run' || args[0] === 'shell') await startAhead();
  const { runCommand } = await import('./program.ts');
  process.exitCode = await runCommand(args, version());
}

/** What serves a run loads while this thread reads the command line. Without the privilege another process does all of it. */
async function startAhead(): Promise<void> {
  const [{ canMount }, thread] = await Promise.all([import('../mount/privilege.ts'), import('../mount/thread.ts')]);
  if (canMount()) thread.startAhead();
}

function version(): string {
  // From src/cli and from dist/bundle alike.
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string };
  return manifest.version;
}

#!/usr/bin/env node
import { readFileSync } from 'node:fs';

/** The command. What is asked for most is answered before anything is loaded; each verb loads what it needs. */
const args = process.argv.slice(2);
if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
  process.stdout.write(version() + '\n');
} else {
  const { runCommand } = await import('./program.ts');
  process.exitCode = await runCommand(args, version());
}

function version(): string {
  // From src/cli and from dist/bundle alike.
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string };
  return manifest.version;
}

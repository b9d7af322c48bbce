import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT } from '../../bench/project.ts';

/** Ours, its peers, and a plain copy, which shows what the machine's own file system does. */
export const MAKES = ['palimpsest', 'overlay', 'fuse-overlayfs', 'plain'] as const;
export type Make = (typeof MAKES)[number];

/** A file system over a lower directory, mounted for programs to work in. */
export interface Union {
  readonly make: Make;
  /** Where it is seen. */
  readonly path: string;
  /** Ours: the session's directory. */
  readonly session: string | undefined;
  /** Throws where something still uses it. What was kept remains in the scratch directory. */
  unmount(): void;
}

/** The built program, as arguments of `node`. Throws where the project is not built. */
export function program(): string {
  const { bin } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8')) as { bin?: Record<string, string> };
  const file = join(PROJECT, bin?.['palimpsest'] ?? 'bin');
  if (!existsSync(file)) throw new Error(`${file} is not there: npm run build`);
  return file;
}

/** What of this machine is missing for a mount of that make; nothing where it can be had. */
export function lack(make: Make): string | undefined {
  if (make === 'plain') return undefined;
  if (process.getuid?.() !== 0) return 'mounting takes root';
  if (make !== 'overlay' && !existsSync('/dev/fuse')) return '/dev/fuse is not there';
  if (make === 'fuse-overlayfs' && spawnSync(make, ['--version']).status !== 0) return 'fuse-overlayfs is not installed';
  if (make === 'overlay' && !/\toverlay$/m.test(readFileSync('/proc/filesystems', 'utf8'))) return 'the kernel has no overlay file system';
  return undefined;
}

/**
 * Mounts over `lower`; the mount point and all that is kept lie in `scratch`, where a second call finds it again. What
 * serves the mount is started by way of `prefix`, a program and its arguments; ours with `flags`.
 */
export function mountUnion(
  make: Make, lower: string, scratch: string, { prefix = [], flags = [] }: { prefix?: readonly string[]; flags?: readonly string[] } = {},
): Union {
  const [path, upper, work, session] = ['mount', 'upper', 'work', 'session'].map((name) => join(scratch, name)) as [string, string, string, string];
  for (const directory of [path, upper, work]) mkdirSync(directory, { recursive: true });
  const layers = `lowerdir=${lower},upperdir=${upper},workdir=${work}`;
  switch (make) {
    case 'palimpsest':
      run(...prefix, process.execPath, program(), 'mount', '--root', lower, '--session', session, ...flags, path);
      break;
    case 'overlay':
      run('mount', '-t', 'overlay', 'overlay', '-o', layers, path);
      break;
    case 'fuse-overlayfs':
      run(...prefix, 'fuse-overlayfs', '-o', `${layers},allow_other`, path);
      break;
    case 'plain':
      cpSync(lower, path, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true });
      break;
  }
  return {
    make, path,
    session: make === 'palimpsest' ? session : undefined,
    unmount: () => {
      if (make !== 'plain') takeDown(path);
      if (make === 'palimpsest') awaitEnd(session);
    },
  };
}

/** A look that is under way (the server's own, too) makes a mount busy for that moment. */
function takeDown(path: string): void {
  for (const until = Date.now() + 10_000; ;) {
    const { status, stderr } = spawnSync('umount', [path], { encoding: 'utf8' });
    if (status === 0) return;
    if (Date.now() > until || !stderr.includes('busy')) throw new Error(stderr);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
  }
}

/** Waits for a session's server: it writes the end of the log after the mount is gone; its lock goes last. */
export function awaitEnd(session: string): void {
  const until = Date.now() + 30_000;
  while (existsSync(join(session, 'lock'))) {
    if (Date.now() > until) throw new Error(`${session} is still locked`);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
  }
}

/** Runs a program to its end. Throws with its words. */
function run(...[file, ...args]: string[]): void {
  execFileSync(file as string, args, { stdio: ['ignore', 'pipe', 'pipe'] });
}

import type { StdioOptions } from 'node:child_process';
import { openSync, readdirSync, readFileSync } from 'node:fs';

/** A standard stream: this process's own one, nothing, a pipe to this process, or a descriptor. */
export type Standard = 'inherit' | 'ignore' | 'pipe' | number;

/** O_CLOEXEC of the kernel, in octal as /proc shows it. */
const CLOSED_ON_EXEC = 0o2000000;

let found: { readonly descriptors: readonly number[]; readonly nothing: number } | undefined;

/**
 * Standard streams for a child, by number, that keep from it what this process was itself given beyond 2: a descriptor of
 * a lower directory would be a way around the overlay. Node closes its own; what a shell opened for us it passes on.
 */
export function withoutInherited(streams: Readonly<Record<number, Standard>>): StdioOptions {
  found ??= look();
  const all: Record<number, Standard> = {};
  for (const descriptor of found.descriptors) all[descriptor] = found.nothing;
  Object.assign(all, streams);
  return Array.from({ length: Math.max(...Object.keys(all).map(Number)) + 1 }, (_, number) => all[number] ?? 'ignore');
}

function look(): { descriptors: number[]; nothing: number } {
  const descriptors = readdirSync('/proc/self/fd').map(Number).filter((descriptor) => descriptor > 2 && isPassedOn(descriptor));
  return { descriptors, nothing: descriptors.length === 0 ? -1 : openSync('/dev/null', 'r+') };
}

function isPassedOn(descriptor: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8'));
    return flags !== null && (parseInt(flags[1] as string, 8) & CLOSED_ON_EXEC) === 0;
  } catch (error) {
    // The descriptor with which the list was read.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

import { spawn, type SpawnOptions } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Names of programs that were looked for. */
const looked = new Map<string, boolean>();

/** Whether a program of this name can be started. */
export function hasProgram(name: string): boolean {
  let found = looked.get(name);
  if (found === undefined) {
    found = (process.env['PATH'] ?? '').split(delimiter).some((directory) => isExecutable(join(directory, name)));
    looked.set(name, found);
  }
  return found;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    // Whatever is in the way: it cannot be started.
    return false;
  }
}

export interface Ended {
  readonly status: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

/**
 * Runs a program to its end. `descriptors` are its 3, 4, …; it has no other way into the tree. Rejects where it cannot be
 * started.
 */
export function run(program: string, args: readonly string[], descriptors: readonly number[], input: Uint8Array | undefined): Promise<Ended> {
  const options: SpawnOptions = {
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe', ...descriptors], env: { ...process.env, LC_ALL: 'C' },
  };
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, options), out: Buffer[] = [];
    let stderr = '';
    child.on('error', reject);
    child.stdout?.on('data', (chunk: Buffer) => out.push(chunk));
    child.stderr?.on('data', (chunk: Buffer) => { stderr += chunk.toString(); });
    // One that has seen enough closes its input.
    child.stdin?.on('error', () => undefined).end(input);
    child.on('close', (status) => resolve({ status: status ?? -1, stdout: Buffer.concat(out), stderr }));
  });
}

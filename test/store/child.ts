import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { scratch } from './session.ts';

/** Real child processes over the store: its sources as JavaScript, since this Node runs no TypeScript. */

const SOURCES = join(import.meta.dirname, '..', '..', 'src');

let built: string | undefined;

/** A directory, readable for all, with `core` and `store` as JavaScript. */
function javascript(): string {
  if (built !== undefined) return built;
  const directory = built = scratch();
  chmodSync(directory, 0o755);
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}');
  const compilerOptions: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true,
    rewriteRelativeImportExtensions: true,
  };
  for (const part of ['core', 'store']) {
    for (const name of readdirSync(join(SOURCES, part)).filter((entry) => entry.endsWith('.ts'))) {
      const { outputText } = ts.transpileModule(readFileSync(join(SOURCES, part, name), 'utf8'), { compilerOptions });
      const path = join(directory, part, name.replace(/\.ts$/, '.js'));
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, outputText);
    }
  }
  return directory;
}

let scripts = 0;

/** A module file with `body`, in which the store's `openDirectoryStore` and `HEADER` are there. */
export function script(body: string): string {
  const directory = javascript(), path = join(directory, `script-${scripts++}.js`);
  writeFileSync(path, `
    import { openDirectoryStore } from './store/open.js';
    import { createHash } from 'node:crypto';
    const HEADER = { palimpsest: 1, session: 'V1StGXR8_Z5jdHi6B-myT', root: '/srv/repo', created: '2026-11-30T20:00:00.000Z' };
    const eventJson = (seq, more = '') => '{"seq":' + seq + ',"actor":"main","op":"miss","path":"x"' + more;
    const digestOf = (bytes) => 'sha256:' + createHash('sha256').update(bytes).digest('hex');
    ${body}
  `);
  return path;
}

export interface ChildRun {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command to its end. */
export function run(command: string, args: readonly string[], options: { uid?: number } = {}): ChildRun {
  const { status, signal, stdout, stderr, error } = spawnSync(command, args, {
    encoding: 'utf8', ...(options.uid !== undefined && { uid: options.uid, gid: options.uid }),
  });
  if (error !== undefined) throw error;
  return { status, signal, stdout, stderr };
}

/** Starts a script and waits for its first line on stdout. */
export async function start(path: string, args: readonly string[] = []): Promise<{ child: ChildProcess; line: string }> {
  const child = spawn(process.execPath, [path, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  const line = await new Promise<string>((resolve, reject) => {
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      const end = text.indexOf('\n');
      if (end >= 0) resolve(text.slice(0, end));
    });
    child.on('error', reject);
    child.on('exit', () => resolve(text));
  });
  return { child, line };
}

/** Waits until a child is gone. */
export function gone(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => child.once('exit', () => resolve()));
}

/** Whether a tool that a test stands on is here; under CI it has to be. */
export function has(tool: string, args: readonly string[]): boolean {
  const found = spawnSync(tool, args).status === 0;
  if (!found && process.env['CI'] === 'true') throw new Error(`${tool} is missing, and CI is set`);
  return found;
}

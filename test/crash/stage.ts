import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import ts from 'typescript';
import { Overlay } from '../../src/index.ts';
import type { Event } from '../../src/core/event.ts';
import { census } from '../model/census.ts';
import { Player } from '../model/player.ts';
import { buildTree, testimony } from '../model/tree.ts';
import { realWorld } from '../model/world.ts';
import { perform } from './performance.ts';
import { SCRIPT } from './script.ts';

const PROJECT = path.join(import.meta.dirname, '..', '..');
/** Where the writer and what it imports lie as JavaScript: a child that translates first would take ten times as long. */
const BUILT = path.join(PROJECT, '.cache', `crash-${process.pid}`);

/** A place to kill sessions in, and what an unharmed one comes to. */
export interface Stage {
  readonly scratch: string;
  readonly root: string;
  /** Events of the unharmed session as far as they are the same each time, seals left out. */
  readonly events: readonly string[];
  /** The tree after as many events as there were when a step of the script was complete. */
  readonly trees: ReadonlyMap<number, readonly string[]>;
  clear(): void;
}

export interface Run {
  readonly signal: string | null;
  readonly status: number | null;
  readonly stderr: string;
  /** Seq of the last event that was acknowledged as stored. */
  readonly safe: number;
  /** Seq of the last event of the last step that was reported as done. */
  readonly done: number;
}

/** Makes the writer that `runWriter` runs; gives the directory that is to be removed afterwards. */
export function buildWriter(): string {
  const compilerOptions: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true, rewriteRelativeImportExtensions: true,
  };
  for (const top of ['src', 'test/model', 'test/crash', 'test/commit']) {
    for (const name of fs.readdirSync(path.join(PROJECT, top), { recursive: true, encoding: 'utf8' })) {
      if (!name.endsWith('.ts') || name.endsWith('.test.ts')) continue;
      const source = fs.readFileSync(path.join(PROJECT, top, name), 'utf8');
      const to = path.join(BUILT, top, name.replace(/\.ts$/, '.js'));
      fs.mkdirSync(path.dirname(to), { recursive: true });
      fs.writeFileSync(to, ts.transpileModule(source, { compilerOptions, fileName: name }).outputText);
    }
  }
  fs.writeFileSync(path.join(BUILT, 'package.json'), '{"type":"module"}');
  return BUILT;
}

/** Runs the writer, by way of `before` (strace and its options), and waits for its end. */
export async function runWriter(stage: Stage, session: string, durability: string, before: readonly string[] = []): Promise<Run> {
  const progress = path.join(stage.scratch, `progress-${path.basename(session)}`);
  const fd = fs.openSync(progress, 'w');
  const writer = [process.execPath, path.join(BUILT, 'test/crash/writer.js'), stage.root, session, durability];
  const [command, ...args] = [...before, ...writer];
  const child = spawn(command as string, args, { stdio: ['ignore', 'ignore', 'pipe', fd] });
  fs.closeSync(fd);
  let stderr = '';
  child.stderr?.on('data', (chunk) => { stderr += String(chunk); });
  const [status, signal] = await new Promise<[number | null, string | null]>((resolve, reject) => {
    child.on('error', reject).on('close', (...ended) => resolve(ended));
  });
  const lines = fs.readFileSync(progress, 'utf8').split('\n').filter((line) => /^\d+ \d+$/.test(line));
  const [done, safe] = (lines.at(-1) ?? '0 0').split(' ').map(Number) as [number, number];
  return { signal, status, stderr, done, safe };
}

/** Plays the script in a real directory and in an unharmed session. */
export async function stageOf(): Promise<Stage> {
  const scratch = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'palimpsest-crash-')));
  const root = path.join(scratch, 'lower'), session = path.join(scratch, 'unharmed');
  buildTree(root, 'mixed');
  const ends: number[] = [];
  await perform(Overlay.openSync({ root, session, actor: 'ann' }), root, 'flush', ({ seq }) => ends.push(seq));
  const overlay = Overlay.openSync({ root, session, actor: 'ann' });
  const all = [...overlay.events()];
  await overlay.close();

  const trees = new Map<number, readonly string[]>();
  // As long as the lower's own path: the length of absolute links is part of the tree.
  const oracle = path.join(scratch, 'oracl'), told = { root: oracle, since: Date.now() - 60_000 };
  const player = new Player(realWorld(oracle, 'mixed'), told.since);
  const umask = process.umask(0o022);
  trees.set(0, census(fs, told));
  for (const [index, step] of SCRIPT.entries()) {
    if (step !== 'flush') await player.play(step);
    const events = storyOf(all.filter(({ seq }) => seq <= (ends[index] as number)));
    trees.set(events.length, census(fs, told));
  }
  process.umask(umask);
  return { scratch, root, events: storyOf(all), trees, clear: () => fs.rmSync(scratch, { recursive: true, force: true }) };
}

/** Events without what is of the moment: times, and the seals that tell of the bytes of those. */
export function storyOf(events: Iterable<Event>): string[] {
  return [...events].filter(({ op }) => op !== 'seal').map((event) => JSON.stringify(event, (key, value: unknown) =>
    (key === 'time' || key === 'mtime' || key === 'ctime' || key === 'atime' || key === 'seq' ? undefined : value)));
}

/**
 * What is wrong with the session at `session` after it was harmed: `undefined` where it opens as a prefix of the unharmed
 * one that holds at least the events up to `safe`. Throws what opening threw.
 */
export async function flawOf(stage: Stage, session: string, safe: number): Promise<string | undefined> {
  const overlay = Overlay.openSync({ root: stage.root, session, actor: 'ann' });
  try {
    const all = [...overlay.events()], story = storyOf(all);
    for (const [index, line] of story.entries()) {
      if (line !== stage.events[index]) return `event ${index + 1} is ${line}, not ${stage.events[index]}`;
    }
    const last = all.at(-1)?.seq ?? 0;
    if (last < safe) return `${last} events are left of ${safe} that were acknowledged`;
    const tree = stage.trees.get(story.length);
    if (tree === undefined) return undefined;
    const now = census(overlay.as('auditor').fs, { root: stage.root, since: Date.now() - 600_000 });
    const differing = now.flatMap((line, index) => (line === tree[index] ? [] : [`${line}, not ${tree[index]}`]));
    return differing.length > 0 || now.length !== tree.length ? `after ${last} events the tree is another: ${differing.join('\n')}` : undefined;
  } finally {
    await overlay.close();
  }
}

/** Whether the lower is as it was; the argument is an earlier answer. */
export function lowerOf(stage: Stage): string[] {
  return testimony(stage.root, 'mixed');
}

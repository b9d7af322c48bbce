import { execFileSync, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Overlay } from '../../src/index.ts';
import { manifest, treeOf, type Fs } from '../libraries/twin.ts';
import { program } from './union.ts';
import { witness, type Deeds } from './witness.ts';
import { STEADY, type Work } from './works.ts';

/** What came of a work: what it printed, and what is there afterwards. */
export interface Done {
  readonly status: number | null;
  readonly output: string;
  readonly tree: Record<string, string>;
}

/** A tree for a work, and the same one again, so that it is done twice in one place: paths are the same each time. */
export interface Bench {
  readonly root: string;
  readonly session: string;
  /** Done without us, by the machine's own file system. */
  readonly plain: Done;
  /** A line a path of what a change of the lower would move. */
  lower(): string;
  clear(): void;
}

/** No work takes longer, in ms. */
const WORK_MS = 600_000;

/** What of this machine a work needs and does not find. */
export function lacking(work: Work): string[] {
  return work.programs.filter((name) => spawnSync('sh', ['-c', 'command -v "$0"', name]).status !== 0);
}

/** Plants a work's tree, does the work on it, and puts a fresh copy of the tree in its place. */
export function benchOf(work: Work): Bench {
  const scratch = fs.mkdtempSync(join(fs.realpathSync(tmpdir()), 'palimpsest-work-'));
  const [root, pristine, control] = ['tree', 'pristine', 'control'].map((name) => join(scratch, name)) as [string, string, string];
  fs.mkdirSync(root);
  work.plant(root);
  execFileSync('cp', ['-a', root, pristine]);
  const done = scriptIn(root, ['sh', '-ec', work.script]);
  const plain = { ...done, tree: compared(work, treeOf({ fs, dir: root })) };
  fs.renameSync(root, control);
  fs.renameSync(pristine, root);
  return {
    root, session: join(scratch, 'session'), plain,
    lower: () => manifest(root),
    clear: () => fs.rmSync(scratch, { recursive: true, force: true }),
  };
}

/** Does the work inside `palimpsest run`; then looks at the tree through the library, in the session that the run left. */
export async function doneInRun(work: Work, { root, session }: Bench): Promise<Done> {
  const done = scriptIn(root, [process.execPath, program(), 'run', '--root', root, '--session', session, '--', 'sh', '-ec', work.script]);
  const overlay = Overlay.openSync({ root, session });
  try {
    return { ...done, tree: compared(work, treeOf({ fs: overlay.fs as Fs, dir: root })) };
  } finally {
    await overlay.close();
  }
}

/** The same, without us, before the eyes of a witness; the tree is afterwards as it was. */
export function witnessed(work: Work, { root }: Bench): Deeds {
  const kept = `${root}.kept`;
  fs.renameSync(root, kept);
  execFileSync('cp', ['-a', kept, root]);
  try {
    return witness(root, ['sh', '-ec', work.script], { ...process.env, ...STEADY });
  } finally {
    fs.rmSync(root, { recursive: true });
    fs.renameSync(kept, root);
  }
}

/** Only standard output: what a program complains of may name a process or a time. */
function scriptIn(cwd: string, [file, ...args]: readonly string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(file as string, args, {
    cwd, encoding: 'utf8', timeout: WORK_MS, killSignal: 'SIGKILL', maxBuffer: 1 << 26, env: { ...process.env, ...STEADY },
  });
  return { status, output: status === 0 ? stdout : `${stdout}\n${stderr}` };
}

function compared({ own, chance }: Work, tree: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(tree).map(([path, what]) =>
    [chance === undefined ? path : path.replace(chance, '*'), own?.test(path) === true ? what.replace(/ [0-9a-f]{64}$/, '') : what]));
}

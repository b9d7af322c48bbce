import fs from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { measure, Trees, type Options } from './harness.ts';
import { mountedTableOf } from './mounted-table.ts';
import { measureMounted, PLACES, type MountResult } from './mounted.ts';
import { installedPeers } from './peers.ts';
import { PROJECT } from './project.ts';
import { MOUNT_ROWS } from './rows/mount.ts';
import { ROWS } from './rows/rows.ts';
import type { Result } from './result.ts';
import { SUBJECTS } from './subject.ts';
import { tableOf } from './table.ts';

const USAGE = `npm run bench [-- NAME…] [--json FILE] [--readme] [--only SUBJECT] [--n N] [--rounds N] [--dir DIR]

  NAME           rows whose name contains it; all without (of those on a mount, what this machine can mount)
  --json FILE    every sample, as JSON
  --readme       the table into README.md, between its bench marks
  --only NAME    beside raw only these subjects; again for more (ours, 'ours on disk', memfs, unionfs, just-bash, nx;
                 on a mount ours, 'kernel overlayfs', fuse-overlayfs)
  --n N          files in a tree (20000)
  --rounds N     rounds that count (7)
  --walk         files in the order of a walk; otherwise jumping from directory to directory, which costs us more
  --cpu          processor time instead of wall time, for a machine that does other work too
  --dir DIR      work in there (the temporary directory): its file system is what is measured

just-bash and nx take part after \`npm run bench:peers\`.

`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'string' }, readme: { type: 'boolean' }, only: { type: 'string', multiple: true },
    n: { type: 'string', default: '20000' }, rounds: { type: 'string', default: '7' }, dir: { type: 'string' }, cpu: { type: 'boolean' }, walk: { type: 'boolean' },
    help: { type: 'boolean' },
  },
});

const wanted = ({ name }: { name: string }): boolean => positionals.length === 0 || positionals.some((part) => name.includes(part));
const rows = ROWS.filter(wanted), mountRows = MOUNT_ROWS.filter(wanted);
if (values.help === true || rows.length + mountRows.length === 0) {
  process.stderr.write(USAGE + [...ROWS, ...MOUNT_ROWS].map(({ name, work }) => `  ${name.padEnd(18)}${work}\n`).join(''));
  process.exit(values.help === true ? 0 : 2);
}

const present = [...SUBJECTS.slice(0, 4), ...installedPeers()];
const scratch = fs.mkdtempSync(join(values.dir ?? os.tmpdir(), 'palimpsest-bench-'));
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    fs.rmSync(scratch, { recursive: true, force: true });
    process.exit(1);
  });
}
const options: Options = {
  n: Number(values.n), rounds: Number(values.rounds), peerRounds: 3, peerMillis: 6000, scratch,
  order: values.walk === true ? 'walk' : 'shuffled', clock: values.cpu === true ? 'cpu' : 'wall',
  subjects: present.filter((name) => name.startsWith('raw') || values.only === undefined || values.only.includes(name)),
};

const machine = {
  node: process.version, cpu: os.cpus()[0]?.model, cpus: os.cpus().length, kernel: os.release(), load: os.loadavg(),
  date: new Date().toISOString(),
};
const results: Result[] = [], mountResults: MountResult[] = [];
try {
  const trees = new Trees(options);
  for (const row of rows) {
    process.stderr.write(`${row.name}…\n`);
    const result = await measure(row, options, trees);
    results.push(result);
    // After each row: a run is long, and what was measured should not be lost with it.
    keep();
    for (const [name, { failure }] of Object.entries(result.subjects)) {
      if (failure !== undefined) process.stderr.write(`  ${name}: ${failure}\n`);
    }
  }
  for (const row of mountRows) {
    for (const place of PLACES) {
      process.stderr.write(`${row.name}, ${place}…\n`);
      const result = measureMounted(row, place, { n: options.n, rounds: options.rounds, scratch, only: values.only });
      mountResults.push(result);
      keep();
      for (const [name, { failure }] of Object.entries(result.subjects)) {
        if (failure !== undefined) process.stderr.write(`  ${name}: ${failure}\n`);
      }
    }
  }
} finally {
  fs.rmSync(scratch, { recursive: true, force: true });
}

const table = [results.length > 0 ? [tableOf(results)] : [], mountResults.length > 0 ? [mountedTableOf(mountResults)] : []].flat().join('\n\n');
process.stdout.write(table + '\n');
if (values.readme === true) intoReadme(table);
// A peer's failure is a finding; ours is a bug. And peers leave handles open that would keep the process.
process.exit(results.some(({ subjects }) => subjects.ours?.failure ?? subjects['ours on disk']?.failure) ||
  mountResults.some(({ subjects }) => subjects.ours?.failure) ? 1 : 0);

function keep(): void {
  if (values.json !== undefined) fs.writeFileSync(values.json, JSON.stringify({ machine, options, results: [...results, ...mountResults] }, null, 1) + '\n');
}

/** Replaces what is between the marks. Throws where README.md has none. */
function intoReadme(table: string): void {
  const file = join(PROJECT, 'README.md'), text = fs.readFileSync(file, 'utf8');
  const [begin, end] = ['<!-- bench:begin -->', '<!-- bench:end -->'];
  const from = text.indexOf(begin), to = text.indexOf(end);
  if (from < 0 || to < from) throw new Error(`README.md has no ${begin} … ${end}`);
  const words = `${machine.cpu ?? 'unknown processor'}, ${machine.cpus} cores, Node ${process.version.slice(1)}, ${options.n} files, ` +
    `median of ${options.rounds} rounds (least–most), ${machine.date.slice(0, 10)}.`;
  fs.writeFileSync(file, `${text.slice(0, from)}${begin}\n${words}\n\n${table}\n${text.slice(to)}`);
}

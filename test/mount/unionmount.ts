import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Tally } from './tally.ts';
import { awaitEnd, program, type Make } from './union.ts';

/** One of its tests that lasts longer hangs, in ms. */
const TEST_MS = 120_000;

/** What the suite knows ours by: it mounts with `mount -t fuse.NAME NAME MOUNTPOINT -o…`. */
const NAME = 'palimpsest-union';

/**
 * unionmount-testsuite: copy-up, whiteouts, opaque directories. `tree` is its source; runs as root. Each test gets a
 * fresh union, once with and once without a slash at the end of its names. A test may mount again and find what it did.
 */
export function unionmount(scratch: string, make: Make, tree: string, only: RegExp): Tally {
  const suite = resolve(tree), tools = mkdtempSync(join(tmpdir(), 'palimpsest-unionmount-'));
  const failed: string[] = [];
  let passed = 0;
  try {
    if (make === 'palimpsest') writeProgram(join(tools, 'mount'));
    for (const name of namesOf(suite).filter((name) => only.test(name))) {
      for (const slash of [0, 1]) {
        const base = mkdtempSync(join(scratch, 'unionmount-'));
        chmodSync(base, 0o755);
        const { status, stdout, stderr } = spawnSync('python3', ['./run', ...KINDS[make], `--ts=${slash}`, name], {
          cwd: suite, encoding: 'utf8', timeout: TEST_MS, killSignal: 'SIGKILL',
          env: { ...process.env, PATH: `${tools}:${process.env['PATH']}`, UNIONMOUNT_BASEDIR: base, PYTHONDONTWRITEBYTECODE: '1' },
        });
        if (status === 0) passed++;
        else failed.push(`${name} ${slash === 1 ? 'with a slash' : 'without a slash'}: ${(stdout + stderr).trim().split('\n').at(-1)?.slice(0, 300)}`);
        unmountBelow(base);
        awaitEnd(join(base, '0', 'u', 'session'));
        rmSync(base, { recursive: true, force: true });
      }
    }
  } finally {
    rmSync(tools, { recursive: true, force: true });
  }
  return { passed, failed, skipped: 0 };
}

/** How its runner is told what to mount. */
const KINDS: Record<Make, readonly string[]> = {
  'plain': ['--no'],
  'overlay': ['--ov', '--samefs'],
  'fuse-overlayfs': ['--ov', '--fuse=fuse-overlayfs', '--samefs'],
  'palimpsest': ['--ov', `--fuse=${NAME}`, '--samefs'],
};

/** All that its own runner knows, and the renames of directories, which are for those that can. */
function namesOf(suite: string): string[] {
  const listed = /^tests = \[([^\]]*)\]/m.exec(readFileSync(join(suite, 'run'), 'utf8'))?.[1] ?? '';
  const names = [...listed.matchAll(/^ *"([a-z0-9-]+)"/gm)].map(([, name]) => name as string);
  return [...names, 'rename-dir', 'rename-empty-dir', 'rename-pop-dir', 'rename-move-dir'];
}

/**
 * A mount(8) that knows `-t fuse.NAME NAME MOUNTPOINT -o… -olowerdir=…,upperdir=…,…` itself and leaves all else to the
 * real one. The session lies in the upper directory, so that a second mount goes on with it. A file that the suite has put
 * there, to know the upper's device by, is made in the union.
 */
function writeProgram(file: string): void {
  writeFileSync(file, `#!/bin/sh
set -e
[ "$1 $2" = "-t fuse.${NAME}" ] || PATH=\${PATH#*:} exec mount "$@"
mountpoint=$4
for argument; do case $argument in -olowerdir=*) options=,\${argument#-o},;; esac; done
lower=\${options##*,lowerdir=} upper=\${options##*,upperdir=}
lower=\${lower%%,*} upper=\${upper%%,*}
"${process.execPath}" "${program()}" mount --root "$lower" --session "$upper/session" "$mountpoint" >&2
[ -e "$mountpoint/f" ] || [ ! -e "$upper/f" ] || cp -p "$upper/f" "$mountpoint/f"
`);
  chmodSync(file, 0o755);
}

/** A test leaves its union mounted. */
function unmountBelow(base: string): void {
  const below = readFileSync('/proc/mounts', 'utf8').split('\n').map((line) => line.split(' ')[1] ?? '').filter((at) => at.startsWith(`${base}/`));
  for (const at of below.reverse()) {
    if (spawnSync('umount', [at]).status !== 0) spawnSync('umount', ['-l', at]);
  }
}

import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import type { NodeType } from '../../src/core/attr.ts';

/**
 * Programs of system calls, those above all that `node:fs` has no names for, and what a real kernel makes of them: Python can make
 * all of these calls, and one process of it (`oracle.py`) plays a whole program in a directory.
 */

const ORACLE = path.join(import.meta.dirname, 'oracle.py');
/** Whether there is no Python here to play them; where it has to be, the tests fail instead. */
export const LACKS_ORACLE = spawnSync('python3', ['--version']).status !== 0 && process.env['CI'] === undefined;
/** How long the oracle may take for one program. */
const PATIENCE_MS = 120_000;
export const NOBODY = 65534;
const SLOTS = 3;
const isRoot = process.geteuid?.() === 0;
const { O_CREAT, O_EXCL, O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY } = fs.constants;

interface OnSlot { readonly slot: number }
interface OnPath { readonly path: string }

export type Step =
  | { readonly op: 'open' | 'tmpfile' } & OnSlot & OnPath & { readonly flags: number; readonly mode: number }
  | { readonly op: 'close' } & OnSlot
  | { readonly op: 'linkOpen' } & OnSlot & OnPath
  | { readonly op: 'write' } & OnSlot & { readonly at: number; readonly text: string; readonly times: number }
  | { readonly op: 'read' } & OnSlot & { readonly at: number; readonly length: number }
  | { readonly op: 'ftruncate' } & OnSlot & { readonly size: number }
  | { readonly op: 'fallocate' } & OnSlot & { readonly mode: number; readonly offset: number; readonly length: number }
  | { readonly op: 'seek' } & OnSlot & { readonly offset: number; readonly wanted: 'data' | 'hole' }
  | { readonly op: 'copyRange'; readonly from: number; readonly to: number; readonly fromAt: number; readonly toAt: number; readonly length: number }
  | { readonly op: 'fsetxattr' } & OnSlot & { readonly name: string; readonly value: string }
  | { readonly op: 'fchmod' } & OnSlot & { readonly mode: number }
  | { readonly op: 'rename' } & OnPath & { readonly to: string; readonly exchange: boolean; readonly noReplace: boolean }
  | { readonly op: 'link' } & OnPath & { readonly to: string }
  | { readonly op: 'unlink' | 'rmdir' } & OnPath
  | { readonly op: 'mkdir' | 'chmod' } & OnPath & { readonly mode: number }
  | { readonly op: 'mknod' } & OnPath & { readonly type: NodeType; readonly mode: number; readonly rdev: number }
  | { readonly op: 'symlink' } & OnPath & { readonly target: string }
  | { readonly op: 'chown' } & OnPath & { readonly uid: number; readonly gid: number }
  | { readonly op: 'utimes' } & OnPath & { readonly atime: string; readonly mtime: string }
  | { readonly op: 'setxattr' } & OnPath & { readonly name: string; readonly value: string; readonly only?: 'create' | 'replace' }
  | { readonly op: 'removexattr' } & OnPath & { readonly name: string }
  | { readonly op: 'reopen' };

const slot = fc.nat({ max: SLOTS - 1 }), flag = fc.boolean();
/** What may come and go: the root may not, and in a real directory it is a name like any other. */
const anyName = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom('a', 'b', 'big', 'd', 'd/a', 'd/e', 'd/e/a', 'g', 'g/a', 's', 's/a', 'p', 'l', 'n') },
  { weight: 1, arbitrary: fc.constantFrom('n'.repeat(255), 'n'.repeat(256), 'a/x', 'd/') },
);
const anyPath = fc.oneof({ weight: 20, arbitrary: anyName }, { weight: 1, arbitrary: fc.constant('') });
const anyDirectory = fc.constantFrom('', 'd', 'd/e', 'g', 's', 'n', 'a');
const mode = fc.constantFrom(0o644, 0o600, 0o755, 0o777, 0o4755, 0o6755, 0o2644, 0o2770, 0o1777);
const owner = fc.constantFrom(-1, -1, 0, 7, NOBODY);
const offset = fc.oneof(fc.constantFrom(0, 1, 100, 4096, 65535, 65536, 65537, 131072), fc.nat({ max: 200_000 }));
const time = fc.constantFrom('now', 'omit', '1000000000000000001', '5', '1234567890123456789');
const xattr = { name: fc.constantFrom('user.a', 'user.b', 'user.low', 'user.', 'odd.a'), value: fc.constantFrom('1', 'value') };

function step(op: Step['op'], fields: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<Step> {
  return fc.record({ op: fc.constant(op), ...fields }) as fc.Arbitrary<unknown> as fc.Arbitrary<Step>;
}

/** One call. */
export const anyStep: fc.Arbitrary<Step> = fc.oneof<fc.WeightedArbitrary<Step>[]>(
  { weight: 6, arbitrary: step('open', { slot, path: anyPath, mode, flags: fc.constantFrom(O_RDONLY, O_RDWR, O_RDWR, O_WRONLY, O_RDWR | O_CREAT, O_RDWR | O_CREAT | O_EXCL, O_WRONLY | O_TRUNC) }) },
  { weight: 3, arbitrary: step('tmpfile', { slot, path: anyDirectory, mode, flags: fc.constantFrom(O_RDWR, O_WRONLY, O_RDWR | O_EXCL, O_RDONLY) }) },
  { weight: 1, arbitrary: step('close', { slot }) },
  { weight: 4, arbitrary: step('linkOpen', { slot, path: anyName }) },
  { weight: 6, arbitrary: step('write', { slot, at: offset, text: fc.constantFrom('x', 'abc', '0123456789abcdef'), times: fc.constantFrom(1, 3, 5000) }) },
  { weight: 3, arbitrary: step('read', { slot, at: offset, length: fc.constantFrom(1, 1000, 200_000) }) },
  { weight: 3, arbitrary: step('ftruncate', { slot, size: offset }) },
  { weight: 7, arbitrary: step('fallocate', { slot, mode: fc.constantFrom(0, 1, 3, 3, 16, 17, 17, 2, 18, 64), offset: fc.oneof(offset, fc.constant(-1)), length: fc.oneof(offset, fc.constant(-1)) }) },
  { weight: 3, arbitrary: step('seek', { slot, offset, wanted: fc.constantFrom('data', 'hole') }) },
  { weight: 5, arbitrary: step('copyRange', { from: slot, to: slot, fromAt: offset, toAt: offset, length: fc.constantFrom(0, 1, 5000, 70_000, 150_000) }) },
  { weight: 1, arbitrary: step('fsetxattr', { slot, ...xattr }) },
  { weight: 1, arbitrary: step('fchmod', { slot, mode }) },
  { weight: 10, arbitrary: step('rename', { path: anyName, to: anyName, exchange: flag, noReplace: fc.nat({ max: 3 }).map((roll) => roll === 0) }) },
  { weight: 3, arbitrary: step('link', { path: anyName, to: anyName }) },
  { weight: 4, arbitrary: step('unlink', { path: anyName }) },
  { weight: 2, arbitrary: step('rmdir', { path: anyName }) },
  { weight: 3, arbitrary: step('mkdir', { path: anyName, mode }) },
  { weight: 4, arbitrary: step('mknod', { path: anyName, type: fc.constantFrom('file', 'fifo', 'socket', 'character', 'block'), mode, rdev: fc.constantFrom(0, 0x103, 0x12345678) }) },
  { weight: 1, arbitrary: step('symlink', { path: anyName, target: fc.constantFrom('a', 'd', '/none', 't'.repeat(4095), 't'.repeat(4096)) }) },
  { weight: 2, arbitrary: step('chmod', { path: anyPath, mode }) },
  { weight: 2, arbitrary: step('chown', { path: anyPath, uid: owner, gid: owner }) },
  { weight: 3, arbitrary: step('utimes', { path: anyPath, atime: time, mtime: time }) },
  { weight: 3, arbitrary: step('setxattr', { path: anyPath, ...xattr, only: fc.constantFrom(undefined, 'create', 'replace') }) },
  { weight: 1, arbitrary: step('removexattr', { path: anyPath, name: xattr.name }) },
  { weight: 1, arbitrary: fc.constant<Step>({ op: 'reopen' }) },
);

/** The tree that programs start from; `s` is sticky, `g` gives its group. */
export function plant(root: string): void {
  const at = (name: string): string => path.join(root, name);
  for (const name of ['d', 'd/e', 'g', 's']) fs.mkdirSync(at(name));
  for (const name of ['a', 'b', 'd/a', 'd/e/a', 'g/a', 's/a']) fs.writeFileSync(at(name), `content of ${name}`);
  fs.linkSync(at('b'), at('d/b'));
  fs.symlinkSync('a', at('l'));
  fs.writeFileSync(at('big'), 'start');
  fs.truncateSync(at('big'), 150_000);
  spawnSync('mkfifo', [at('p')]);
  const setxattr = spawnSync('python3', ['-c', 'import os,sys\nfor p in sys.argv[1:]: os.setxattr(p, "user.low", p[-1].encode())', at('a'), at('d'), at('d/a')]);
  if (setxattr.status !== 0) throw new Error(String(setxattr.stderr));
  if (isRoot) {
    for (const name of ['d/a', 'd', 's', 'g/a']) fs.chownSync(at(name), NOBODY, NOBODY);
    fs.chownSync(at('g'), NOBODY, 7);
  }
  fs.chmodSync(at('s'), 0o1777);
  fs.chmodSync(at('g'), 0o2777);
  for (const name of ['a', 'b', 'd/a', 'd/e/a', 'g/a', 's/a', 'big', 'd/e', 'd', 'g', 's', '']) fs.utimesSync(at(name), 1_000_000_000, 1_100_000_000);
}

/** Without hard links: whether one may link what one does not own is a setting of the kernel, not a property of the file system. */
export function fitsNobody({ op }: Step): boolean {
  return op !== 'link' && op !== 'linkOpen';
}

/**
 * What `program` gives in the directory `root`, step by step, and what the tree is then. Times from `since` (ns) on are `now`.
 * `user`: who plays it, if not this process's own.
 */
export function playReal(root: string, program: readonly Step[], since: bigint, user?: number): { outcomes: unknown[]; census: unknown[] } {
  const { status, stdout, stderr, error } = spawnSync('python3', [ORACLE], {
    input: JSON.stringify({ root, since: String(since), umask: 0o022, ...(user === undefined ? {} : { user }), steps: program }), encoding: 'utf8', maxBuffer: 2 ** 28, timeout: PATIENCE_MS,
  });
  if (status !== 0) throw new Error(`the oracle failed in ${root}: ${error?.message ?? stderr}`);
  return JSON.parse(stdout) as { outcomes: unknown[]; census: unknown[] };
}

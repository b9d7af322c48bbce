import fs from 'node:fs';
import path from 'node:path';
import { toBytes } from '../../src/core/path.ts';
import { WORK } from './program.ts';
import type { Program } from './program.ts';

/** The trees that programs start from, and the proof that a lower is still as it was. */

type Plan = readonly Planned[];
type Planned =
  | { readonly at: string; readonly file: string; readonly mode?: number; readonly uid?: number; readonly gid?: number }
  | { readonly at: string; readonly directory: true; readonly mode?: number; readonly uid?: number; readonly gid?: number }
  | { readonly at: string; readonly target: string }
  | { readonly at: string; readonly hardLinkOf: string };

const MIXED: Plan = [
  { at: 'a', file: 'alpha\n' },
  { at: 'b', file: '#!/bin/sh\n', mode: 0o755 },
  { at: 'd', directory: true },
  { at: 'd/a', file: '' },
  { at: 'd/b', file: 'beta beta beta', mode: 0o4755, uid: 1000, gid: 1000 },
  { at: 'd/d', directory: true, mode: 0o700 },
  { at: 'd/d/a', file: 'deep' },
  { at: 'd/d/f', file: 'deeper', mode: 0o600 },
  { at: 'e', directory: true, mode: 0o2775, gid: 1000 },
  { at: 'f', hardLinkOf: 'a' },
  { at: 'd/f', hardLinkOf: 'a' },
  { at: 'l', target: 'a' },
  { at: 'd/l', target: '../d/d' },
  { at: 'm', target: 'd' },
  { at: 'n', target: '@/d/d' },
  { at: 'd/e', target: 'none' },
  { at: 'o', target: 'o' },
  { at: 't', directory: true, mode: 0o1777 },
  { at: 't/a', file: 'in a sticky directory' },
];

export const LONG_NAME = 'x'.repeat(255);
export const AWKWARD_NAMES: readonly string[] = [
  'sp ace', 'new\nline', `q'u"ote`, 'back\\slash', '100%41', '-rf', 'e\u0301', '\u00e9', LONG_NAME, '\udcff\udcfe', '...', '.h', '😀',
];

const AWKWARD: Plan = [
  ...AWKWARD_NAMES.filter((_, index) => index % 2 === 0).map((name) => ({ at: name, file: name })),
  ...AWKWARD_NAMES.filter((_, index) => index % 2 === 1).flatMap((name): Plan => [
    { at: name, directory: true }, { at: `${name}/a`, file: 'inside' },
  ]),
  { at: 'l', target: 'sp ace' },
  { at: 'a', hardLinkOf: '100%41' },
];

const LARGE: Plan = [
  { at: 'a', file: 'sixteen bytes..\n'.repeat(5000) },
  { at: 'b', file: '0123456789abcdef'.repeat(70_000) },
  { at: 'd', directory: true },
  ...Array.from({ length: 80 }, (_, index) => ({ at: `d/${index}`, file: String(index) })),
];

/** Whoever may do less than root: the kernel's overflow user, which every system has. */
export const NOBODY = 65534;
const mine = { uid: NOBODY, gid: NOBODY };

/** For a program that runs as nobody: files of its own, of its group, of others, each more or less open. */
const GUARDED: Plan = [
  { at: 'a', file: 'mine', ...mine },
  { at: 'b', file: 'theirs, readable' },
  { at: 'f', file: 'theirs, closed', mode: 0o600 },
  { at: 'd', directory: true, ...mine },
  { at: 'd/a', file: 'mine, read-only', mode: 0o444, ...mine },
  { at: 'd/b', file: 'theirs in my directory' },
  { at: 'd/f', file: 'mine, closed to myself', mode: 0, ...mine },
  { at: 'd/d', directory: true, mode: 0o500, ...mine },
  { at: 'd/d/a', file: 'in a read-only directory', ...mine },
  { at: 'e', directory: true, mode: 0o755 },
  { at: 'e/a', file: 'mine in their directory', ...mine },
  { at: 'e/e', directory: true, mode: 0o700 },
  { at: 'e/e/a', file: 'out of reach', ...mine },
  { at: 't', directory: true, mode: 0o1777 },
  { at: 't/a', file: 'theirs in a sticky directory' },
  { at: 't/b', file: 'mine in a sticky directory', ...mine },
  { at: 'n', directory: true, mode: 0o2775, gid: NOBODY },
  { at: 'n/a', file: 'by group', mode: 0o060, gid: NOBODY },
  { at: 'n/b', file: 'setuid', mode: 0o6755, ...mine },
  { at: 'o', directory: true, mode: 0o444, ...mine },
  { at: 'o/a', file: 'in a directory without search', ...mine },
  { at: 'm', target: 'd' },
  { at: 'l', target: 'e/e/a' },
];

const PLANS: Record<Program['lower'], Plan> = { mixed: MIXED, awkward: AWKWARD, large: LARGE, empty: [], guarded: GUARDED };

/** Seconds since 1970 that no test run reaches: what is older was set on purpose. */
const EPOCH = 1_000_000_000;

/** Bytes of a path below `root`, for any name. */
export function hostPath(root: string, name: string): Buffer {
  return Buffer.from(toBytes(name === '' ? root : `${root}/${name}`));
}

/** Makes `root` anew as the tree `name`: modes, owners, links, and old times all over. */
export function buildTree(root: string, name: Program['lower']): void {
  fs.rmSync(root, { recursive: true, force: true });
  const work = path.join(root, WORK);
  fs.mkdirSync(work, { recursive: true, mode: 0o755 });
  const at = (name: string): Buffer => hostPath(work, name);
  if (name === 'guarded') fs.chownSync(work, NOBODY, NOBODY);
  for (const entry of PLANS[name]) {
    if ('file' in entry) fs.writeFileSync(at(entry.at), Buffer.from(toBytes(entry.file)));
    else if ('directory' in entry) fs.mkdirSync(at(entry.at));
    else if ('target' in entry) fs.symlinkSync(entry.target.replace(/^@/, work), at(entry.at));
    else fs.linkSync(at(entry.hardLinkOf), at(entry.at));
    if (!('file' in entry || 'directory' in entry)) continue;
    if (entry.uid !== undefined || entry.gid !== undefined) fs.chownSync(at(entry.at), entry.uid ?? 0, entry.gid ?? 0);
    fs.chmodSync(at(entry.at), entry.mode ?? ('file' in entry ? 0o644 : 0o755));
  }
  // Children before their directories, since making one changes the other's time. Access times older than the last
  // change, so that under `relatime` any read that may change them does.
  let second = EPOCH;
  for (const entry of [...PLANS[name]].reverse()) fs.lutimesSync(at(entry.at), EPOCH - 1000, ++second + 0.5);
  for (let up = work; up.length >= root.length; up = path.dirname(up)) fs.lutimesSync(up, EPOCH - 1000, ++second);
}

/** Names of everything `buildTree` made, relative to the root. */
function namesOf(name: Program['lower']): string[] {
  const parents = WORK.split('/').map((_, index, all) => all.slice(0, index).join('/'));
  return [...parents, WORK, ...PLANS[name].map((entry) => `${WORK}/${entry.at}`)];
}

/**
 * Content and metadata of every entry of a lower, one line each. Looks without leaving traces: files are read with
 * O_NOATIME and directories not at all, since any change of their names shows in their mtime and ctime. Access times
 * are told of regular files alone: Linux gives no way to list a directory or read a link without touching it.
 */
export function testimony(root: string, name: Program['lower']): string[] {
  return namesOf(name).map((entry) => {
    const host = hostPath(root, entry);
    const stats = fs.lstatSync(host, { bigint: true });
    const { ino, mode, nlink, uid, gid, size, mtimeNs, ctimeNs } = stats;
    const fields = [ino, mode.toString(8), nlink, uid, gid, size, mtimeNs, ctimeNs];
    if (stats.isSymbolicLink()) return [entry, ...fields, fs.readlinkSync(host)].join('|');
    if (!stats.isFile()) return [entry, ...fields].join('|');
    // Nobody may read a stranger's file, but not ask for O_NOATIME.
    const isStrange = name === 'guarded' && Number(uid) !== NOBODY;
    return [entry, ...fields, isStrange ? '-' : stats.atimeNs, contentOf(host)].join('|');
  });
}

function contentOf(host: Buffer): string {
  const O_NOATIME = 0o1000000;
  const fd = fs.openSync(host, fs.constants.O_RDONLY | O_NOATIME);
  try {
    return fs.readFileSync(fd, 'latin1');
  } finally {
    fs.closeSync(fd);
  }
}

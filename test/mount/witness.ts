import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { dirname, join, normalize, resolve } from 'node:path';
import { treeOf } from '../libraries/twin.ts';

/** What a command did below a directory, by names relative to it. */
export interface Deeds {
  /** Files opened for reading or executed; `rewritten` were opened for both, or perhaps made by the opening. */
  readonly read: ReadonlySet<string>;
  readonly rewritten: ReadonlySet<string>;
  readonly listed: ReadonlySet<string>;
  readonly missed: ReadonlySet<string>;
  /** Whose type, mode or content is another one afterwards. */
  readonly changed: ReadonlySet<string>;
  /** Changed by some call, whatever became of it later; `touched` may have been, as what is opened for writing. */
  readonly altered: ReadonlySet<string>;
  readonly touched: ReadonlySet<string>;
  /** Made by an opening or a mkdir, so that a look-up of the name may have missed before. */
  readonly made: ReadonlySet<string>;
}

const CALLS = ['open', 'openat', 'openat2', 'creat', 'stat', 'lstat', 'newfstatat', 'statx', 'access', 'faccessat', 'faccessat2', 'readlink',
  'readlinkat', 'execve', 'execveat', 'chdir', 'fchdir', 'clone', 'clone3', 'fork', 'vfork', 'rename', 'renameat', 'renameat2', 'unlink', 'unlinkat',
  'mkdir', 'mkdirat', 'rmdir', 'symlink', 'symlinkat', 'link', 'linkat', 'mknod', 'mknodat', 'truncate', 'chmod', 'fchmodat', 'chown', 'lchown', 'fchownat',
  'utime', 'utimes', 'futimesat', 'utimensat', 'setxattr', 'lsetxattr', 'fsetxattr', 'removexattr', 'lremovexattr', 'fremovexattr', 'getdents64',
  'fchmod', 'fchown', 'ftruncate', 'fallocate', 'write', 'pwrite64', 'writev', 'pwritev', 'pwritev2', 'sendfile', 'copy_file_range'];

/** Calls of which only the first name counts, whatever other strings they hold. */
const ONE_NAME = /^(?:open|creat|stat|lstat|newfstatat|statx|access|faccess|readlink|exec|chdir)/;

/** Calls that change what a descriptor is open on; of a copy, the second one. */
const BY_DESCRIPTOR = /^(?:fchmod|fchown|ftruncate|fallocate|p?writev?2?|pwrite64|sendfile|copy_file_range|fsetxattr|fremovexattr|utimensat)$/;
/** Calls that change names, all of them that they hold. */
const NAMES = /^(?:rename|unlink|mkdir|rmdir|symlink|mknod)/;
/** Calls that change what their name leads to. */
const BY_NAME = /^(?:truncate$|chmod|fchmodat|l?chown|fchownat|utime|futimesat|l?setxattr|l?removexattr)/;

interface Call {
  readonly process: string;
  readonly name: string;
  readonly text: string;
  readonly result: string;
  /** Of a descriptor that was returned: what it is open on. */
  readonly opened: string | undefined;
  readonly error: string | undefined;
}

/** Runs a command in `root` with strace(1) as the witness of what it does there. Throws where it cannot trace, or the command fails. */
export function witness(root: string, argv: readonly string[], env: Readonly<Record<string, string | undefined>>): Deeds {
  const trace = `${root}.trace`, before = stateOf(root);
  const args = ['-f', '-qq', '-y', '-s', '0', '-o', trace, '-e', `trace=${CALLS.join(',')}`, '-e', 'signal=none', ...argv];
  const { status, stderr } = spawnSync('strace', args, { cwd: root, env: { ...env }, encoding: 'utf8', maxBuffer: 1 << 26 });
  if (status !== 0) throw new Error(`strace: exit ${status}: ${stderr}`);
  const deeds = { read: new Set<string>(), rewritten: new Set<string>(), listed: new Set<string>(), missed: new Set<string>(), made: new Set<string>(), altered: new Set<string>(), touched: new Set<string>() };
  const directories = new Map<string, string>();
  for (const call of callsOf(fs.readFileSync(trace, 'utf8'))) note(call, root, directories, deeds);
  fs.rmSync(trace);
  // What was opened as a file and then listed was none; it may be gone by now.
  for (const name of deeds.listed) deeds.read.delete(name);
  const after = stateOf(root);
  const changed = new Set([...before.keys(), ...after.keys()].filter((name) => before.get(name) !== after.get(name)));
  return { ...deeds, changed };
}

type Noted = Record<'read' | 'rewritten' | 'listed' | 'missed' | 'made' | 'altered' | 'touched', Set<string>>;

function note({ process, name, text, result, opened, error }: Call, root: string, directories: Map<string, string>, deeds: Noted): void {
  const cwd = directories.get(process) ?? root;
  const add = (set: Set<string>, path: string, follow: 'follow' | 'stay'): void => {
    const below = path.startsWith('/') ? nameBelow(root, path, follow) : undefined;
    if (below !== undefined) set.add(below);
  };
  if (/^(?:clone3?|v?fork)$/.test(name)) {
    if (Number(result) > 0) directories.set(result, cwd);
    return;
  }
  const descriptors = [...text.matchAll(/\d<((?:[^>\\]|\\.)*)>/g)].map(([, of = '']) => plainly(of)), [descriptor] = descriptors;
  if (name === 'getdents64' || name === 'fchdir') {
    if (descriptor === undefined || error !== undefined) return;
    if (name === 'fchdir') directories.set(process, descriptor);
    else add(deeds.listed, descriptor, 'stay');
    return;
  }
  if (BY_DESCRIPTOR.test(name) && (name !== 'utimensat' || text.includes(', NULL, '))) {
    const into = name === 'copy_file_range' ? descriptors[1] : descriptor;
    // What is done to a file that has no name any more need not be told.
    if (into !== undefined && error === undefined && (Number(result) > 0 || !/write|send|copy/.test(name)) && !into.endsWith(' (deleted)')) add(deeds.altered, into, 'stay');
    return;
  }
  const named = [...text.matchAll(/(?:(?:AT_FDCWD|\d+)<((?:[^>\\]|\\.)*)>, )?"((?:[^"\\]|\\.)*)"/g)]
    .map(([, at, path = '']) => resolve(at === undefined ? cwd : plainly(at), plainly(path)));
  // An empty name means the descriptor itself.
  const paths = /"", .*AT_EMPTY_PATH/.test(text) ? [] : ONE_NAME.test(name) ? named.slice(0, 1) : name.startsWith('symlink') ? named.slice(-1) : named;
  const [path] = paths;
  if (path === undefined) return;
  if (error === 'ENOENT') {
    for (const each of paths) if (each === path || !fs.existsSync(each)) add(deeds.missed, each, 'stay');
    return;
  }
  if (error !== undefined) return;
  if (name === 'chdir') directories.set(process, path);
  else if (name.startsWith('exec')) add(deeds.read, path, 'follow');
  else if (NAMES.test(name)) for (const each of paths) add(deeds.altered, each, 'stay');
  else if (name.startsWith('link')) {
    add(deeds.altered, paths.at(-1) as string, 'stay');
    add(deeds.touched, path, 'stay');
  } else if (BY_NAME.test(name)) add(deeds.altered, path, /^l|AT_SYMLINK_NOFOLLOW/.test(name + text) ? 'stay' : 'follow');
  if (name.startsWith('mkdir')) add(deeds.made, path, 'stay');
  else if (name === 'creat' || name.startsWith('open')) {
    const what = opened === undefined ? path : plainly(opened), creates = name === 'creat' || /O_CREAT|O_TMPFILE/.test(text);
    if (creates) add(deeds.made, path, 'stay');
    if (!text.includes('O_TMPFILE')) {
      if (creates || /O_WRONLY|O_RDWR|O_TRUNC/.test(text)) add(deeds.touched, what, 'stay');
      if (name === 'creat' || /O_TRUNC|O_CREAT.*O_EXCL|O_EXCL.*O_CREAT/.test(text)) add(deeds.altered, what, 'stay');
    }
    if (/O_DIRECTORY|O_PATH|O_WRONLY|O_EXCL|O_TMPFILE/.test(text) || name === 'creat' || isDirectory(what)) return;
    add(creates || text.includes('O_RDWR') ? deeds.rewritten : deeds.read, what, 'stay');
  }
}

/** Lines of strace as calls; those told in two parts, because another process came between, as one. */
function callsOf(trace: string): Call[] {
  const begun = new Map<string, string>(), calls: Call[] = [];
  for (const line of trace.split('\n')) {
    const [, process = '', rest = ''] = /^(\d+)\s+(.*)$/.exec(line) ?? [];
    if (rest.endsWith('<unfinished ...>')) {
      begun.set(process, rest.slice(0, -'<unfinished ...>'.length));
      continue;
    }
    const ending = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest)?.[1], whole = ending === undefined ? rest : (begun.get(process) ?? '') + ending;
    const [, name, text = '', result = '', opened, error] = /^(\w+)\((.*)\)\s+= (-?\d+|\?)(?:<((?:[^>\\]|\\.)*)>)?\s*(\w+)?/.exec(whole) ?? [];
    if (name !== undefined) calls.push({ process, name, text, result, opened, error: result === '-1' ? error : undefined });
  }
  return calls;
}

function plainly(quoted: string): string {
  const bytes = quoted.replaceAll(/\\([0-7]{1,3}|x[0-9a-f]{2}|.)/g, (_, code: string) =>
    (/^[0-7]/.test(code) ? String.fromCharCode(Number.parseInt(code, 8)) : { n: '\n', t: '\t', r: '\r', v: '\v', f: '\f' }[code] ?? code));
  return Buffer.from(bytes, 'latin1').toString();
}

/** The name below the root that a path leads to, through symlinks as far as they are there now; `undefined`: it leads elsewhere. */
function nameBelow(root: string, path: string, follow: 'follow' | 'stay'): string | undefined {
  let head = path.replace(/ \(deleted\)$/, ''), tail = '';
  if (follow === 'follow' && fs.existsSync(head)) head = fs.realpathSync(head);
  for (; head !== '/'; head = dirname(head)) {
    const above = dirname(head);
    if (fs.existsSync(above)) {
      head = join(fs.realpathSync(above), head.slice(above.length));
      break;
    }
    tail = head.slice(above.length) + tail;
  }
  const full = normalize(head + tail);
  return full === root ? '' : full.startsWith(`${root}/`) ? full.slice(root.length + 1) : undefined;
}

/** Name → type, mode and content. */
function stateOf(dir: string): Map<string, string> {
  return new Map(Object.entries(treeOf({ fs, dir })));
}

function isDirectory(path: string): boolean {
  return fs.statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

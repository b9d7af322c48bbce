import { toolPath } from './tool.ts';

/** A directory at which the FUSE file system shows. */
export interface Root {
  /** Where: an absolute real path of a directory, not `/`; no root lies in another. */
  readonly path: string;
  /** Which directory of the FUSE file system: `''` is its root, otherwise names joined by `/`. */
  readonly from: string;
}

/** What a run's namespaces are made of. */
export interface SpaceOptions {
  /** From `openDevice`. The caller closes it, after the end. */
  readonly device: number;
  /** Called when the device is bound to the mount: read(2) of it gives EPERM before. From then on the server must answer. */
  readonly attached: () => void;
  readonly roots: readonly Root[];
  /** Directories that show empty and read-only inside: the session. They must be there. */
  readonly masked: readonly string[];
  /** `none`: a network of its own, in which there is only the loopback. */
  readonly network: 'shared' | 'none';
  /** `read-only`: nothing but the roots and `writable` can be written, nor created in. */
  readonly outside: 'as it is' | 'read-only';
  /** With `read-only` outside: directories that stay writable. `/dev` and `/proc` always do. */
  readonly writable: readonly string[];
  /** A name in the first root that the server answers with ENOENT and takes as a call for its attention (`ring`). */
  readonly bell: string;
}

/** Descriptors that the script starts with. `life`: its end is the end of the run. `orders`: for the ringer. */
export const INIT_FD = { replies: 1, errors: 2, device: 3, life: 4, orders: 5 } as const;

/** What the machine around a new space is like: read from the host before it is made. */
export interface Surroundings {
  readonly uid: number;
  readonly gid: number;
  /** `st_mode` of the first root. */
  readonly mode: number;
  /** Each mount point once. */
  readonly mountPoints: readonly string[];
  /** Mount points of other `/proc`s than `/proc`, and of the FUSE connections' control files. */
  readonly procs: readonly string[];
  readonly controls: readonly string[];
  /** Those of `writable` that are there. */
  readonly writable: readonly string[];
}

/**
 * The script that makes a run's inside, for `sh -c`, started by `unshare --mount --pid` without a fork. It becomes two processes.
 *
 * The *ringer* is the shell itself: in the new mount namespace, but outside of the pid namespace, where nobody in the run can see
 * or kill it. It looks the bell up when told to, and in the end waits for the other. It lets go of the device at once,
 * which `unshare --fork` would hold: as long as anybody but the server holds the device, the kernel does not notice that
 * the server has died, and whoever asked it something waits for ever.
 *
 * *Init* is its first child, and so pid 1 in there.
 * - It says who it is and waits for the word to go on. The end of `life` at any moment (the server has ended, however)
 *   is its own end, and with it the kernel kills everything in the namespace and takes the mounts away. Only the
 *   server holds the other end of that pipe.
 * - While it holds the device it does nothing that the server must answer: mount(8) with `--internal-only` does not look at what
 *   it has mounted.
 * - In the end it is a `cat` that ignores SIGCHLD, so the kernel buries the run's orphans. A shell would not do: shells catch
 *   SIGCHLD, whatever the trap. It keeps its capabilities, so that nothing in the run can trace it, and as pid 1
 *   it cannot be killed from inside.
 */
export function initScript(options: SpaceOptions, around: Surroundings): string {
  const { device, life, orders } = INIT_FD, [first] = options.roots;
  const init = [
    `exec ${orders}<&-`,
    `IFS= read -r self rest </proc/self/stat`,
    `echo "pid \${self%% *}"`,
    `IFS= read -r word <&${life} && [ "$word" = go ] || exit 1`,
    ...(options.network === 'none' ? [`${toolPath('ip')} link set lo up || exit 1`] : []),
    ...(options.outside === 'read-only' ? sealing(around) : []),
    ...mounting(options, around),
    `exec ${device}<&-`,
    `echo attached`,
    ...showing(options),
    ...hiding(options, around),
    `cd / && echo mounted`,
    `exec ${toolPath('env')} --ignore-signal=CHLD ${toolPath('cat')} <&${life} ${life}<&- >/dev/null 2>&1`,
  ];
  const ringer = [
    `exec ${device}<&- ${life}<&-`,
    // From inside the root: its path may come to lead elsewhere, when a directory above it is renamed.
    `while IFS= read -r order <&${orders}; do`,
    `[ -n "$in" ] || { cd ${quoted(first?.path ?? '/')} && in=yes; }`,
    `[ -e ${quoted(`./${options.bell}`)} ]; echo rung; done`,
    `wait $!`,
  ];
  return `(\n${init.join('\n')}\n) &\n${ringer.join('\n')}\n`;
}

const MOUNT = (): string => `${toolPath('mount')} -i -n`;

/** Read-only all around: each mount point by itself, for there is no recursive remount below util-linux 2.39. */
function sealing(around: Surroundings): string[] {
  // With what is mounted below: in a user namespace the kernel allows nothing else, and what is there should stay.
  const writable = around.writable.map((path) => `${MOUNT()} --rbind ${quoted(path)} ${quoted(path)} || exit 1`);
  const inside = (path: string, tops: readonly string[]): boolean =>
    tops.some((top) => path === top || path.startsWith(`${top}/`));
  // What cannot be remounted is found by the server, which reads the mount table afterwards.
  const sealed = around.mountPoints.filter((path) => !inside(path, ['/dev', '/proc', ...around.writable]))
    .map((path) => `${MOUNT()} -o remount,bind,ro ${quoted(path)} 2>/dev/null`);
  return [...writable, ...sealed];
}

function mounting(options: SpaceOptions, around: Surroundings): string[] {
  const [first] = options.roots;
  if (first === undefined) return [];
  const how = [
    `fd=${INIT_FD.device}`, `rootmode=${around.mode.toString(8)}`, `user_id=${around.uid}`, `group_id=${around.gid}`,
    'allow_other', 'default_permissions',
  ];
  return [`${MOUNT()} -t fuse.palimpsest -o ${how.join(',')} palimpsest ${quoted(first.path)} || exit 1`];
}

/** One connection serves all roots: it is mounted on the first, and its directories are bound to where they belong. */
function showing(options: SpaceOptions): string[] {
  const [first, ...others] = options.roots;
  if (first === undefined || (others.length === 0 && first.from === '')) return [];
  return [...others, first].map(({ path, from }) =>
    `${MOUNT()} --bind ${quoted(from === '' ? first.path : `${first.path}/${from}`)} ${quoted(path)} || exit 1`);
}

function hiding(options: SpaceOptions, around: Surroundings): string[] {
  const empty = `${MOUNT()} -t tmpfs -o ro,nosuid,nodev,noexec,size=4k,mode=555 palimpsest`;
  return [
    ...[...options.masked, ...around.controls].map((path) => `${empty} ${quoted(path)} || exit 1`),
    `${MOUNT()} -t proc -o nosuid,nodev,noexec proc /proc || exit 1`,
    ...around.procs.map((path) => `${MOUNT()} --bind /proc ${quoted(path)} || exit 1`),
  ];
}

/** A word of the shell's that means exactly this text. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

import type { Decider } from '../core/guard.ts';
import type { Durability } from '../store/store.ts';
import type { Rule } from '../policy/rules.ts';
import type { FsShape } from '../lower/shaped.ts';

/** Options of `Overlay.open`; see the fields. Anything else is refused by name. */
export interface OverlayOptions {
  /** The lower: a directory. May be left out where `session` exists: its log names it. */
  readonly root?: string;
  /** The lower instead of `root`: directories, of which the first that has a name wins, or any `fs`-shaped object. */
  readonly lower?: readonly string[] | FsShape;
  /** Several directories side by side instead, each by a name of its own: paths begin with it. The tree is seen at `/`. */
  readonly roots?: Readonly<Record<string, string>>;
  /**
   * The lower instead of `root`: the tree of a session that was recorded, at its end or at a moment, from that session alone. See `Overlay.replay`.
   */
  readonly replay?: { readonly session: string; readonly at?: number | string };
  /** Session directory; made when it is not there, resumed when it is. Without: in memory. */
  readonly session?: string;
  /**
   * Reads an existing session, beside its live writer too: takes no lock, records nothing; what would change something is EROFS.
   * Shows what the log held when it was opened.
   */
  readonly readOnly?: boolean;
  /** Who acts, by `overlay.fs`. Default `main`. */
  readonly actor?: string;
  /**
   * Absolute path under which the tree is seen. Default: the real path of `root`, or of the first of several directories;
   * `/` for an fs-shaped lower.
   */
  readonly mountPoint?: string;
  /** What a path outside the tree gets: EACCES, or the real file system to read from. Default `deny`. */
  readonly outside?: 'deny' | 'readonly';
  /** When an event is safe: see the README. Default `flush`. */
  readonly durability?: Durability;
  /** Most bytes of the log and of all blobs; an operation that would exceed one fails with EFBIG. */
  readonly limits?: { readonly logBytes?: number; readonly blobBytes?: number };
  /**
   * `content`: keeps what is read, the names that are listed and the metadata shown, so that the session can be replayed without the lower. Default `hash`: digests
   * of it.
   */
  readonly record?: 'hash' | 'content';
  /** Globs of paths whose contents are never stored, only their digests. */
  readonly redact?: readonly string[];
  /**
   * Path rules: what may be touched, seen or found at all: see `Rule`. They stay with the session until it is opened with
   * others; `[]` takes them off.
   */
  readonly rules?: readonly Rule[];
  /**
   * Decides what an actor may change by what it has seen: `observationPolicy(…)`. It guards every call on the overlay, by `fs` and by a mount too: what is
   * refused is EPERM with an `fsCode`. To have tools guarded alone, leave it out and `use` the policy.
   */
  readonly policy?: Decider;
  /** Wall clock in ms since 1970. */
  readonly clock?: () => number;
}

/** The words `durability` may be. */
const DURABILITIES: readonly unknown[] = ['memory', 'flush', 'write', 'fsync'];

const CHECKS: Record<keyof OverlayOptions, (value: unknown) => string | undefined> = {
  root: nonEmptyString,
  lower: (value) => Array.isArray(value)
    ? value.length > 0 && value.every((entry) => typeof entry === 'string' && entry !== '') ? undefined : 'a list of directories'
    : typeof value === 'object' && value !== null ? undefined : 'a list of directories or an fs-shaped object',
  roots: (value) => isRoots(value) ? undefined : 'directories by name, the names without slashes',
  replay: (value) => isReplay(value) ? undefined : '{ session, at } with a directory, and the number of an event or the label of a mark',
  session: nonEmptyString,
  readOnly: (value) => typeof value === 'boolean' ? undefined : 'true or false',
  actor: nonEmptyString,
  mountPoint: (value) => typeof value === 'string' && isNormal(value) ? undefined : 'an absolute path without `.`, `..` and NUL',
  outside: (value) => value === 'deny' || value === 'readonly' ? undefined : "'deny' or 'readonly'",
  durability: (value) => DURABILITIES.includes(value) ? undefined : "'memory', 'flush', 'write' or 'fsync'",
  limits: (value) => isLimits(value) ? undefined : '{ logBytes, blobBytes } with positive numbers',
  record: (value) => value === 'hash' || value === 'content' ? undefined : "'hash' or 'content'",
  redact: (value) => Array.isArray(value) && value.every((entry) => typeof entry === 'string') ? undefined : 'a list of globs',
  rules: (value) => Array.isArray(value) ? undefined : 'a list of { match, on, effect }',
  policy: (value) => isDecider(value) ? undefined : 'a policy, as observationPolicy() makes it',
  clock: (value) => typeof value === 'function' ? undefined : 'a function',
};

/** Throws TypeError naming the first option that is unknown or of another kind than it should be. */
export function checkOptions(options: unknown): asserts options is OverlayOptions {
  if (typeof options !== 'object' || options === null) throw invalid('options', 'an object');
  for (const [name, value] of Object.entries(options)) {
    const check = Object.hasOwn(CHECKS, name) ? CHECKS[name as keyof OverlayOptions] : undefined;
    if (check === undefined) throw Object.assign(new TypeError(`unknown option "${name}"`), { code: 'ERR_UNKNOWN_OPTION' });
    const wanted = value === undefined ? undefined : check(value);
    if (wanted !== undefined) throw invalid(name, wanted);
  }
  const { root, lower, roots, replay, session, readOnly } = options as OverlayOptions;
  if (readOnly === true && session === undefined) throw invalid('session', 'given, to be read only');
  const ways = [root, lower, roots, replay].filter((way) => way !== undefined).length;
  if (ways > 1 || (ways === 0 && session === undefined)) throw invalid('root', 'given, or `lower` or `roots` in its place');
}

function nonEmptyString(value: unknown): string | undefined {
  if (typeof value !== 'string' || value === '') return 'a non-empty string';
  return value.includes('\0') ? 'without NUL' : undefined;
}

function isNormal(path: string): boolean {
  return path.startsWith('/') && !path.includes('\0') && !path.split('/').some((part) => part === '.' || part === '..');
}

function isRoots(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const entries = Object.entries(value);
  return entries.length > 0 && entries.every(([name, path]) =>
    name !== '' && name !== '.' && name !== '..' && !/[/\0]/.test(name) && nonEmptyString(path) === undefined);
}

function isReplay(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { session, at, ...rest } = value as { session?: unknown; at?: unknown };
  return Object.keys(rest).length === 0 && nonEmptyString(session) === undefined && (at === undefined || typeof at === 'number' || typeof at === 'string');
}

function isLimits(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.entries(value).every(([name, bytes]) =>
    (name === 'logBytes' || name === 'blobBytes') && typeof bytes === 'number' && bytes > 0);
}

/** Whether something may stand in the decider's slot. */
export function isDecider(value: unknown): value is Decider {
  return typeof value === 'object' && value !== null && typeof (value as Partial<Decider>).decide === 'function' &&
    typeof (value as Partial<Decider>).name === 'string';
}

function invalid(name: string, wanted: string): TypeError {
  return Object.assign(new TypeError(`option "${name}" has to be ${wanted}`), { code: 'ERR_INVALID_OPTION' });
}

import { existsSync, realpathSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { nanoid } from 'nanoid';
import { encodeState } from '../core/checkpoint.ts';
import { ROOT, type TreePath } from '../core/path.ts';
import { Refusal } from '../core/refusal.ts';
import { initialState, type State } from '../core/state.ts';
import { openDirectoryLower } from '../lower/directory.ts';
import type { Lower } from '../lower/lower.ts';
import { fsShapedLower, type FsShape } from '../lower/shaped.ts';
import { namedLowers } from '../lower/named.ts';
import { stackLowers } from '../lower/stack.ts';
import { Attributes } from '../overlay/attributes.ts';
import { Clock } from '../overlay/clock.ts';
import { Contents } from '../overlay/contents.ts';
import { Descriptors } from '../overlay/descriptor.ts';
import { OpenInodes } from '../overlay/inode.ts';
import { foldRest } from '../overlay/log-reader.ts';
import { OutsideFs } from '../overlay/outside.ts';
import { Credentials } from '../overlay/permission.ts';
import { Keeper } from '../overlay/keeper.ts';
import { Recorder } from '../overlay/recorder.ts';
import { savedState } from '../overlay/saved-state.ts';
import { Session } from '../overlay/session.ts';
import { LowerVersions } from '../overlay/versions.ts';
import { Walker } from '../overlay/walker.ts';
import { Watchers } from '../overlay/watchers.ts';
import { World } from '../overlay/world.ts';
import { SessionError } from '../store/fault.ts';
import { glance } from '../store/glance.ts';
import { createMemoryStore, openDirectoryStore } from '../store/open.ts';
import type { Header } from '../core/format.ts';
import type { Store } from '../store/store.ts';
import { anyOf } from '../policy/glob.ts';
import { Rules, sameRules, type Rule } from '../policy/rules.ts';
import { Gate } from '../overlay/gate.ts';
import type { OverlayOptions } from './options.ts';

/** Puts an overlay's parts together. Throws what the lower or the session directory throws; nothing is left open then. */
export function openWorld(given: OverlayOptions): World {
  const options = withLower(given), asked = options.rules && new Rules(options.rules);
  const lower = openLower(options);
  let store: Store | undefined;
  try {
    demandApart(options);
    const clock = new Clock(options.clock);
    store = openStore(options, lower, clock);
    return assemble(options, { lower, store, clock, asked });
  } catch (error) {
    store?.close();
    lower.close();
    throw error;
  }
}

/** A lower as `Overlay.open` takes it. */
export type NamedLower =
  | { readonly root: string } | { readonly lower: readonly string[] } | { readonly roots: Readonly<Record<string, string>> };

/** The options with the lower that the session's header names, where they name none. */
function withLower(options: OverlayOptions): OverlayOptions {
  const { root, lower, roots, session } = options;
  if (session === undefined || root !== undefined || lower !== undefined || roots !== undefined) return options;
  const named = lowerOf(glance(session).header);
  if (named === undefined) throw new SessionError('ERR_SESSION_ROOT', session, 'is about no directory: its lower has to be given');
  return { ...options, ...named };
}

/** The lower that a session's header names, as `Overlay.open` takes it; `undefined` where that was no directory. */
export function lowerOf({ root, roots, layers }: Pick<Header, 'root' | 'roots' | 'layers'>): NamedLower | undefined {
  if (roots !== undefined) return { roots: Object.fromEntries(roots.map(({ name, path }) => [name, path])) };
  if (layers !== undefined) return { lower: layers };
  return root === '' ? undefined : { root };
}

/** Where an overlay's changes can be published. */
export type Publishable =
  | { readonly kind: 'directory'; readonly root: string }
  | { readonly kind: 'stack'; readonly roots: readonly string[] }
  | { readonly kind: 'named'; readonly roots: ReadonlyMap<string, string> }
  | { readonly kind: 'shaped'; readonly fs: FsShape };

/** What `openWorld` opens as a lower for the same options. */
export function publishable(given: OverlayOptions): Publishable {
  const options = withLower(given), { root, lower, roots } = options;
  if (roots !== undefined) return { kind: 'named', roots: new Map(Object.entries(roots).map(([name, path]) => [name, realpathSync.native(path)])) };
  if (root === undefined && !Array.isArray(lower)) return { kind: 'shaped', fs: lower as FsShape };
  const directories = directoriesOf(options).map((each) => realpathSync.native(each)), [first] = directories;
  return directories.length === 1 && first !== undefined ? { kind: 'directory', root: first } : { kind: 'stack', roots: directories };
}

/** The lower that options name. Throws where it is no directory. */
export function openLower(options: OverlayOptions): Lower {
  const { root, lower, roots } = options;
  if (root !== undefined) return openDirectoryLower(root);
  if (roots === undefined && !Array.isArray(lower)) return fsShapedLower(lower as FsShape);
  const opened: Lower[] = [];
  try {
    for (const directory of directoriesOf(options)) opened.push(openDirectoryLower(directory));
    if (roots !== undefined) return namedLowers(new Map(Object.keys(roots).map((name, at) => [name, opened[at] as Lower])));
    return opened.length === 1 ? opened[0] as Lower : stackLowers(opened);
  } catch (error) {
    for (const each of opened) each.close();
    throw error;
  }
}

/** The directories that the lower is made of. */
function directoriesOf({ root, lower, roots }: OverlayOptions): readonly string[] {
  if (root !== undefined) return [root];
  if (roots !== undefined) return Object.values(roots);
  return Array.isArray(lower) ? lower as readonly string[] : [];
}

function openStore(options: OverlayOptions, lower: Lower, clock: Clock): Store {
  const roots = options.roots && Object.entries(options.roots).map(([name, path]) => ({ name, path: realpathSync.native(path) }));
  const layers = Array.isArray(options.lower) && options.lower.length > 1 ? (options.lower as readonly string[]).map((path) => realpathSync.native(path)) : undefined;
  const header: Header = { palimpsest: 1, session: nanoid(), root: lower.root, ...(roots && { roots }), ...(layers && { layers }), created: clock.iso() };
  const limits = options.limits ?? {};
  if (options.session === undefined) return createMemoryStore({ header, limits });
  const directory = resolve(options.session);
  if (options.readOnly === true) return openDirectoryStore({ directory, header, readOnly: true });
  return openDirectoryStore({ directory, header, limits, durability: options.durability ?? 'flush' });
}

interface Parts {
  readonly lower: Lower;
  readonly store: Store;
  readonly clock: Clock;
  /** The rules that were asked for; without, those that the session has hold. */
  readonly asked: Rules | undefined;
}

/** A world over its parts. Throws what restoring the state throws; the parts are left as they are then. */
export function assemble(options: OverlayOptions, { lower, store, clock, asked }: Parts): World {
  const state = restore(store), versions = new LowerVersions(), credentials = Credentials.ofProcess();
  const isRedacted = matcher(options.redact);
  const contents = new Contents({ store, lower, versions, isRedacted, now: () => clock.now() });
  const attributes = new Attributes(lower, deviceOf(lower));
  credentials.learn((spot) => attributes.of(spot));
  const durability = options.session === undefined ? 'memory' : options.durability ?? 'flush';
  const mounts = mountsOf(options);
  const keeper = options.record === 'content' ? new Keeper({ state, store, lower, isRedacted, mounts }) : undefined;
  const session = new Session({
    state, store, clock, durability, settle: contents.settle, checkpoint: encodeState, readOnly: options.readOnly === true, keep: keeper?.keep,
  });
  const recorder = new Recorder(session);
  const rules = asked ?? new Rules(state.rules as readonly Rule[]);
  if (options.readOnly !== true && !sameRules(rules.list, state.rules)) session.append(options.actor ?? 'main', { op: 'rules', rules: rules.list });
  const gate = rules.list.length === 0 ? undefined : new Gate({ rules, lower, recorder });
  const world = new World({
    session, lower, contents, attributes, versions, credentials,
    walker: new Walker({ state, lower, credentials, mounts, gate }),
    recorder, gate, inodes: new OpenInodes(), descriptors: new Descriptors(),
    watchers: new Watchers({ state, lower, gate }), outside: new OutsideFs({ access: options.outside ?? 'deny', mounts }),
  });
  if (options.policy !== undefined) world.deciders.register(options.policy);
  world.guardsCalls = options.policy !== undefined;
  return world;
}

/** The device that files of the overlay's own report: that of the root, where it can be told. */
function deviceOf(lower: Lower): bigint {
  try {
    const attr = lower.lstat(ROOT);
    return typeof attr === 'string' ? 0n : attr.dev;
  } catch (error) {
    if (error instanceof Refusal && error.unrecorded) return 0n;
    throw error;
  }
}

/** The state that a store's log tells, from its checkpoint on where it has one. Throws `CorruptLogError`. */
export function restore(store: Store): State {
  const state = savedState(store) ?? initialState();
  foldRest(store, state);
  return state;
}

/** Where the tree is seen: as asked, else under the real path of the root and the path it was named by. */
function mountsOf({ root, lower, mountPoint }: OverlayOptions): readonly string[] {
  if (mountPoint !== undefined) return [mountPoint.length > 1 ? mountPoint.replace(/\/+$/, '') : mountPoint];
  const first = root ?? (Array.isArray(lower) ? (lower as readonly string[])[0] : undefined);
  return first === undefined ? ['/'] : [...new Set([realpathSync.native(first), resolve(first)])];
}

/** Throws where the session would be written into the lower, which is never written. */
function demandApart(options: OverlayOptions): void {
  const { session } = options;
  if (session === undefined) return;
  let there = resolve(session);
  while (!existsSync(there)) there = dirname(there);
  const real = realpathSync.native(there);
  for (const directory of directoriesOf(options)) {
    const below = realpathSync.native(directory);
    if (real !== below && !real.startsWith(below === '/' ? below : below + '/')) continue;
    throw Object.assign(new TypeError(`option "session" (${session}) has to lie outside the lower ${directory}`), { code: 'ERR_INVALID_OPTION' });
  }
}

function matcher(globs: readonly string[] | undefined): (path: TreePath) => boolean {
  if (globs === undefined || globs.length === 0) return () => false;
  return anyOf(globs);
}

import fc from 'fast-check';
import type { NodeType } from '../../src/core/attr.ts';
import type {
  Event, EventBody, ExtentRecord, FingerprintRecord, Inode, LowerBase, Op, ProcessInfo,
} from '../../src/core/event.ts';
import { fromBytes } from '../../src/core/path.ts';
import type { TreePath } from '../../src/core/path.ts';
import type { Version } from '../../src/core/version.ts';

/**
 * Arbitrary events: every op, every field there and not there, names of any bytes. They are well-formed one by one; that a
 * sequence of them could have happened is not promised.
 */

/** Any name a Linux directory can hold: plain, with quotes and newlines, beyond the BMP, or no UTF-8 at all. */
export /** What JSON gives back as it was: it has no -0. */
const jsonValue = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as unknown);

const anyName: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('a', 'b', 'src', 'app.ts', 'x y', 'ü') },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', minLength: 1, maxLength: 8 }) },
  { weight: 1, arbitrary: fc.uint8Array({ minLength: 1, maxLength: 8 }).map(fromBytes) },
).map((name) => name.replace(/[/\0]/g, '_')).filter((name) => name !== '.' && name !== '..');

export const anyPath: fc.Arbitrary<TreePath> =
  fc.array(anyName, { maxLength: 4 }).map((names) => names.join('/') as TreePath);

export const anyVersion: fc.Arbitrary<Version> =
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'.split('')), minLength: 64, maxLength: 64 })
    .map((hex) => `sha256:${hex}` as Version);

const count = fc.oneof(fc.nat({ max: 5 }), fc.maxSafeNat());
const id = fc.nat({ max: 2 ** 31 - 1 });
const text = fc.string({ unit: 'binary', maxLength: 12 });
const nanoseconds = fc.bigInt({ min: -(2n ** 62n), max: 2n ** 63n }).map(String);
const inode: fc.Arbitrary<Inode> = fc.oneof(fc.maxSafeNat(), fc.bigInt({ min: 2n ** 53n, max: 2n ** 64n - 1n }).map(String));
const yes = fc.constant(true as const);
const nodeType: fc.Arbitrary<NodeType> =
  fc.constantFrom('file', 'directory', 'symlink', 'fifo', 'socket', 'block', 'character');
const base64 = fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes).toString('base64'));
const ranges = fc.array(fc.tuple(count, count).map(([a, b]): [number, number] => a < b ? [a, b] : [b, a]), { maxLength: 3 });

const fingerprint: fc.Arbitrary<FingerprintRecord> = fc.record(
  { dev: inode, ino: inode, size: count, mtime: nanoseconds, ctime: nanoseconds }, { noNullPrototype: true });
const lowerBase: fc.Arbitrary<LowerBase> = fc.record({
  type: nodeType, mode: id, uid: id, gid: id, size: count, nlink: count, dev: inode, ino: inode, rdev: count,
  mtime: nanoseconds, ctime: nanoseconds, atime: nanoseconds, birthtime: nanoseconds, version: anyVersion, target: anyName,
}, { noNullPrototype: true, requiredKeys: ['type', 'mode', 'uid', 'gid', 'size', 'nlink', 'dev', 'ino', 'mtime', 'ctime'] });
const extent: fc.Arbitrary<ExtentRecord> = fc.record(
  { at: count, length: count, blob: anyVersion, from: count, lower: count }, { noNullPrototype: true, requiredKeys: ['at', 'length'] });
const process: fc.Arbitrary<ProcessInfo> = fc.record(
  { pid: id, name: text, parent: id, inferred: fc.boolean() }, { noNullPrototype: true, requiredKeys: ['pid', 'name'] });

const place = { path: anyPath, via: anyName };
const mutation = { ...place, mtime: nanoseconds, lower: lowerBase, unlinked: yes, dev: inode };
const owner = { uid: id, gid: id };

type Fields<O extends Op> = Omit<Extract<EventBody, { op: O }>, 'op'>;
type Arbitraries<T> = { readonly [K in keyof T]-?: fc.Arbitrary<Exclude<T[K], undefined>> };
type Optional<T> = { [K in keyof T]-?: object extends Pick<T, K> ? K : never }[keyof T];

/** The body of one op; the keys named in `optional` may be missing. */
function body<O extends Op>(
  op: O, fields: Arbitraries<Fields<O>>, ...optional: Optional<Fields<O>>[]
): fc.Arbitrary<EventBody> {
  const requiredKeys = Object.keys(fields).filter((key) => !optional.some((name) => name === key));
  return fc.record(fields as { [key: string]: fc.Arbitrary<unknown> }, { noNullPrototype: true, requiredKeys })
    .map((rest) => Object.assign({ op }, rest) as unknown as EventBody);
}

/** By op, an arbitrary of its body. */
export const bodies: { readonly [O in Op]: fc.Arbitrary<EventBody> } = {
  read: body('read', { ...place, version: anyVersion, fingerprint, size: count, ranges, search: yes, blob: anyVersion },
    'via', 'version', 'fingerprint', 'ranges', 'search', 'blob'),
  list: body('list', { ...place, version: anyVersion, count, lower: anyVersion, blob: anyVersion }, 'via', 'lower', 'blob'),
  stat: body('stat', {
    ...place, exists: nodeType, mode: id, ...owner, size: count, nlink: count, ino: inode, rdev: count, mtime: nanoseconds,
    ctime: nanoseconds,
  }, 'via'),
  readlink: body('readlink', { ...place, target: anyName }, 'via'),
  miss: body('miss', { ...place, call: text }, 'via'),
  write: body('write', {
    ...mutation, version: anyVersion, size: count, mode: id, ino: inode, created: fc.record(owner, { noNullPrototype: true }), blob: anyVersion,
    extents: fc.array(extent, { maxLength: 3 }), before: anyVersion,
    splices: fc.array(fc.tuple(count, count, count), { maxLength: 3 }),
  }, 'via', 'version', 'created', 'blob', 'extents', 'before', 'splices', 'lower', 'unlinked', 'dev'),
  truncate: body('truncate', { ...mutation, size: count, ino: inode, version: anyVersion }, 'via', 'version', 'lower', 'unlinked', 'dev'),
  mkdir: body('mkdir', { ...mutation, mode: id, ino: inode, ...owner }, 'via', 'lower', 'unlinked', 'dev'),
  mknod: body('mknod', { ...mutation, type: nodeType, mode: id, rdev: count, ino: inode, ...owner }, 'via', 'lower', 'unlinked', 'dev'),
  symlink: body('symlink', { ...mutation, target: anyName, ino: inode, ...owner }, 'via', 'lower', 'unlinked', 'dev'),
  link: body('link', { ...mutation, to: anyPath, ino: inode }, 'via', 'lower', 'unlinked', 'dev'),
  rename: body('rename', { ...mutation, to: anyPath, exchange: yes, onto: lowerBase, whiteout: yes },
    'via', 'exchange', 'onto', 'whiteout', 'lower', 'unlinked', 'dev'),
  delete: body('delete', { ...mutation, whiteout: yes }, 'via', 'whiteout', 'lower', 'unlinked', 'dev'),
  chmod: body('chmod', { ...mutation, ino: inode, mode: id }, 'via', 'ino', 'lower', 'unlinked', 'dev'),
  chown: body('chown', { ...mutation, ino: inode, ...owner, mode: id }, 'via', 'ino', 'lower', 'unlinked', 'dev'),
  utimes: body('utimes', { ...mutation, ino: inode, atime: nanoseconds, ctime: nanoseconds }, 'via', 'ino', 'lower', 'unlinked', 'dev'),
  setxattr: body('setxattr', { ...mutation, ino: inode, name: anyName, value: base64 }, 'via', 'ino', 'lower', 'unlinked', 'dev'),
  removexattr: body('removexattr', { ...mutation, ino: inode, name: anyName }, 'via', 'ino', 'lower', 'unlinked', 'dev'),
  discard: body('discard', { paths: fc.array(anyPath, { maxLength: 3 }) }, 'paths'),
  undo: body('undo', { events: fc.array(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), { maxLength: 3 }) }),
  run: body('run', { argv: fc.array(text, { maxLength: 3 }), cwd: text }),
  exit: body('exit', { status: fc.option(fc.integer({ min: -1, max: 255 })), signal: text }, 'signal'),
  mark: body('mark', { label: text, data: jsonValue }, 'data'),
  refuse: body('refuse', { ...place, outside: anyName, call: text, code: text, rule: text }, 'path', 'via', 'outside', 'rule'),
  rules: body('rules', { rules: fc.array(fc.record({ match: text, effect: text, on: fc.array(text, { maxLength: 2 }) },
    { noNullPrototype: true, requiredKeys: ['match', 'effect'] }), { maxLength: 2 }) }),
  flag: body('flag', { ...place, rule: text, call: text }, 'via'),
  fork: body('fork', { name: text, session: text }, 'session'),
  merge: body('merge', { session: text, seq: count }),
  commit: body('commit', {
    id: text, changes: count, guard: text, durability: text, paths: fc.array(anyPath, { maxLength: 3 }), moves: fc.array(anyPath, { maxLength: 4 }),
    versions: fc.array(fc.record({ path: anyPath, version: anyVersion }, { noNullPrototype: true }), { maxLength: 2 }),
    record: fc.array(text, { maxLength: 2 }),
  }, 'paths', 'moves', 'versions', 'record'),
  revert: body('revert', { id: text, moves: fc.array(anyPath, { maxLength: 4 }) }, 'moves'),
  seal: body('seal', { hash: anyVersion }),
};

const stamp = fc.record({
  seq: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
  time: fc.date({ min: new Date('1970-01-01'), max: new Date('2999-01-01'), noInvalidDate: true }).map((date) => date.toISOString()),
  actor: fc.oneof(fc.constantFrom('main', 'agent-1'), text),
  process,
  kept: fc.array(fc.record({ path: anyPath, base: lowerBase, blob: anyVersion, extents: fc.array(extent, { maxLength: 2 }) },
    { noNullPrototype: true, requiredKeys: ['path'] }), { maxLength: 2 }),
}, { noNullPrototype: true, requiredKeys: ['seq', 'time', 'actor'] });

/** An event with any body of `ops` (of every op where none is named). */
export function anyEvent(...ops: readonly Op[]): fc.Arbitrary<Event> {
  const chosen = ops.length === 0 ? Object.values(bodies) : ops.map((op) => bodies[op]);
  return fc.tuple(stamp, fc.oneof(...chosen)).map(([{ process: asker, kept, ...rest }, event]) =>
    Object.assign({}, rest, event, asker === undefined ? {} : { process: asker }, kept === undefined ? {} : { kept }));
}

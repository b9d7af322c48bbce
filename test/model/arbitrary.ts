import fs from 'node:fs';
import fc from 'fast-check';
import { SLOTS } from './program.ts';
import { AWKWARD_NAMES, LONG_NAME } from './tree.ts';
import type { Data, DescriptorStep, PathStep, Program, Step, Style, WorldStep } from './program.ts';

/**
 * Random programs. Names come from a small pool, so that collisions are the rule; the rest is chosen to hurt. O_CREAT with
 * O_DIRECTORY is left out: what it does depends on the kernel's version.
 */

const { O_APPEND, O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY } = fs.constants;

const plainName = fc.constantFrom('a', 'a', 'b', 'b', 'd', 'd', 'e', 'f', 'l', 'm', 'n', 'o', 't');
/** What is a directory, or leads to one, in the tree that most programs start from. */
const directory = fc.constantFrom('d', 'd', 'd', 'd/d', 'e', 't', 'm', 'n', 'd/l');
const oddName = fc.constantFrom(...AWKWARD_NAMES, LONG_NAME + 'x');
const name = fc.oneof({ weight: 30, arbitrary: plainName }, { weight: 1, arbitrary: oddName });

const treePath = fc.tuple(
  fc.oneof({ weight: 20, arbitrary: fc.constant('') }, { weight: 1, arbitrary: fc.constantFrom('./', '../q/', 'd/../', 'l/../', 'm/../', 'x//') }),
  fc.oneof(
    { weight: 8, arbitrary: fc.tuple(name) },
    { weight: 10, arbitrary: fc.tuple(directory, name) },
    { weight: 2, arbitrary: fc.tuple(name, name) },
    { weight: 1, arbitrary: fc.tuple(directory, name, name) },
  ).map((names) => names.join('/')),
  fc.oneof({ weight: 20, arbitrary: fc.constant('') }, { weight: 1, arbitrary: fc.constantFrom('/', '/.', '/..', '//') }),
).map((parts) => parts.join(''));

const path = fc.oneof({ weight: 40, arbitrary: treePath }, { weight: 1, arbitrary: fc.constantFrom('', '.', '..') });
/** For what works on directories alone, or moves them. */
const directoryPath = fc.oneof({ weight: 2, arbitrary: directory }, { weight: 3, arbitrary: path });
/** `rm -r` must not reach the roots of the two worlds. */
const inside = treePath.filter((text) => !text.endsWith('..'));

const data: fc.Arbitrary<Data> = fc.oneof(
  { weight: 10, arbitrary: fc.record({ text: fc.constantFrom('', 'x', 'yy', 'abcdefghij', 'zz\n', 'é') }) },
  { weight: 2, arbitrary: fc.record({ text: fc.constantFrom('0123456789abcdef', 'q'), times: fc.constantFrom(100, 4096, 5000, 70_000) }) },
);
const size = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 20 }) },
  { weight: 2, arbitrary: fc.constantFrom(4095, 4096, 65_536, 70_000, 131_073, 1_048_577) },
);
const position = fc.oneof(fc.constant(null), size);
const mode = fc.constantFrom(0o777, 0o666, 0o644, 0o600, 0o755, 0o400, 0, 0o4755, 0o2755, 0o1777, 0o7777);
const owner = fc.constantFrom(0, 1000, 65534);
/** Seconds; all in the past, and some that a double cannot hold exactly. */
const time = fc.constantFrom(0, 1, 1.5, 1_234_567_890, 1_234_567_890.123, 1_300_000_000.987654, 1_500_000_000.000001, -1.25);
const access = fc.constantFrom(0, 1, 2, 4, 6, 7);
const textFlags = fc.constantFrom('r', 'r+', 'w', 'wx', 'w+', 'wx+', 'a', 'a+', 'ax', 'as', 'rs+');
const numericFlags = fc.constantFrom(
  O_RDONLY | O_TRUNC, O_RDONLY | O_CREAT, O_RDONLY | O_DIRECTORY, O_RDONLY | O_NOFOLLOW, O_RDWR | O_CREAT | O_NOFOLLOW,
  O_RDWR | O_APPEND, O_WRONLY | O_APPEND | O_TRUNC, O_RDWR | O_CREAT | O_EXCL, O_RDWR | O_EXCL,
  O_RDWR | O_DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, O_RDWR | O_CREAT | O_TRUNC | O_EXCL | O_NOFOLLOW,
);
const flags = fc.oneof({ weight: 3, arbitrary: textFlags }, { weight: 1, arbitrary: numericFlags });
const fileFlag = fc.constantFrom('w', 'a', 'wx', 'ax', 'r+', 'w+', 'a+');
const target = fc.oneof(
  { weight: 8, arbitrary: treePath },
  { weight: 4, arbitrary: treePath.map((text) => `../${text}`) },
  { weight: 4, arbitrary: treePath.map((text) => `@/${text}`) },
  { weight: 1, arbitrary: fc.constantFrom('', '.', '..', 'x/'.repeat(2047), 'x/'.repeat(2050)) },
);
const slot = fc.integer({ min: 0, max: SLOTS - 1 });
const flag = fc.boolean();

const caller = {
  actor: fc.constantFrom<0 | 1>(0, 1),
  style: fc.constantFrom<Style>('sync', 'callback', 'promises'),
};
const form = fc.option(fc.constantFrom('buffer', 'url'), { nil: undefined, freq: 8 });

type Fields = Record<string, fc.Arbitrary<unknown>>;

function onPath(op: PathStep['op'], fields: Fields = {}, at = path): fc.Arbitrary<PathStep> {
  return fc.record({ op: fc.constant(op), path: at, ...caller, form, ...fields }) as fc.Arbitrary<unknown> as fc.Arbitrary<PathStep>;
}

function onSlot(op: DescriptorStep['op'], fields: Fields = {}): fc.Arbitrary<DescriptorStep> {
  return fc.record({ op: fc.constant(op), slot, ...fields, ...caller }) as fc.Arbitrary<unknown> as fc.Arbitrary<DescriptorStep>;
}

const pathSteps: readonly [number, fc.Arbitrary<PathStep>][] = [
  [8, onPath('open', { flags, mode, slot })],
  [4, onPath('readFile', { flag: fc.constantFrom('r', 'r', 'r', 'a+', 'w+'), encoding: fc.constantFrom(undefined, 'utf8', 'latin1') })],
  [8, onPath('writeFile', { data, flag: fileFlag, mode })],
  [3, onPath('appendFile', { data })],
  [6, onPath('mkdir', { mode, recursive: flag })],
  [4, onPath('rmdir', {}, directoryPath)],
  [2, onPath('rm', { recursive: flag, force: flag }, inside)],
  [12, onPath('rename', { to: directoryPath }, directoryPath)],
  [5, onPath('link', { to: path })],
  [4, onPath('copyFile', { to: path, exclusive: flag })],
  // Its promise face looks at both names at once: which of two errors comes first is chance.
  [1, onPath('cp', { to: path, force: flag, style: fc.constant('sync') }, directoryPath)],
  [5, onPath('symlink', { target })],
  [6, onPath('unlink')],
  [3, onPath('chmod', { mode })],
  [2, onPath('chown', { uid: owner, gid: owner })],
  [1, onPath('lchown', { uid: owner, gid: owner })],
  [2, onPath('utimes', { atime: time, mtime: time })],
  [1, onPath('lutimes', { atime: time, mtime: time })],
  [3, onPath('truncate', { size })],
  [4, onPath('readdir', { recursive: flag, types: flag, encoding: fc.constantFrom(undefined, undefined, 'buffer') }, directoryPath)],
  [1, onPath('opendir', {}, directoryPath)],
  [3, onPath('stat', { bigint: flag, quiet: flag })],
  [3, onPath('lstat', { bigint: flag, quiet: flag })],
  [2, onPath('readlink')],
  [2, onPath('realpath')],
  [2, onPath('native')],
  [2, onPath('access', { mode: access })],
  [1, onPath('exists')],
  [1, onPath('readStream', { start: fc.option(size, { nil: undefined }), end: fc.option(size, { nil: undefined }) })],
  [1, onPath('writeStream', { data, flags: fileFlag, start: fc.option(size, { nil: undefined }) })],
];

const descriptorSteps: readonly [number, fc.Arbitrary<DescriptorStep>][] = [
  [6, onSlot('read', { length: size, position })],
  [1, onSlot('readv', { length: size, position })],
  [8, onSlot('write', { data, position })],
  [1, onSlot('writev', { data, position })],
  [3, onSlot('ftruncate', { size })],
  [3, onSlot('fstat')],
  [1, onSlot('fchmod', { mode })],
  [1, onSlot('fchown', { uid: owner, gid: owner })],
  [1, onSlot('futimes', { atime: time, mtime: time })],
  [1, onSlot('fsync')],
  [1, onSlot('fdatasync')],
  [2, onSlot('close')],
  [2, onSlot('readFileFd')],
  [2, onSlot('writeFileFd', { data })],
  [1, onSlot('appendFileFd', { data })],
];

const worldSteps: readonly [number, fc.Arbitrary<WorldStep>][] = [
  [1, fc.record({ op: fc.constant('umask' as const), mask: fc.constantFrom(0, 0o022, 0o077, 0o777) })],
  [3, fc.record({ op: fc.constant('reopen' as const), leaky: flag })],
];

function weighted<T>(choices: readonly [number, fc.Arbitrary<T>][]): fc.Arbitrary<T> {
  return fc.oneof(...choices.map(([weight, arbitrary]) => ({ weight, arbitrary })));
}

const step: fc.Arbitrary<Step> = fc.oneof<fc.WeightedArbitrary<Step>[]>(
  { weight: 16, arbitrary: weighted(pathSteps) },
  { weight: 6, arbitrary: weighted(descriptorSteps) },
  { weight: 1, arbitrary: weighted(worldSteps) },
);

/** Programs of up to `longest` steps. */
export function program(longest: number): fc.Arbitrary<Program> {
  return fc.record({
    lower: fc.oneof(
      { weight: 12, arbitrary: fc.constant<Program['lower']>('mixed') },
      { weight: 2, arbitrary: fc.constant<Program['lower']>('awkward') },
      { weight: 1, arbitrary: fc.constant<Program['lower']>('large') },
      { weight: 1, arbitrary: fc.constant<Program['lower']>('empty') },
    ),
    umask: fc.constantFrom(0o022, 0o022, 0o077, 0),
    session: fc.constantFrom<Program['session']>('directory', 'memory'),
    watched: flag,
    nobody: fc.nat({ max: 7 }).map((roll) => roll === 0 && process.getuid?.() === 0),
    steps: fc.array(step, { maxLength: longest, size: 'max' }),
  }).map(({ nobody, ...each }) => reopenable(nobody ? asNobody(each) : each));
}

/**
 * Without hard links: whether one may link what one does not own is a setting of the kernel (`protected_hardlinks`), not
 * a property of the file system. Without access(2), which asks for the real user, who is root still. Without what goes through
 * many names and ends at the first that is refused, which is the first in the order of the listing.
 */
function asNobody(program: Program): Program {
  return { ...program, lower: 'guarded', user: 'nobody', steps: program.steps.filter((each) => !isUnfit(each)) };
}

function isUnfit(step: Step): boolean {
  // The overlay reads the lower as this process may: its own chmod cannot open what the real file denies.
  return ['link', 'access', 'exists', 'cp', 'rm', 'chmod', 'fchmod'].includes(step.op) || (step.op === 'readdir' && step.recursive === true);
}

/** A session in memory cannot be reopened: such programs get a directory. */
function reopenable(program: Program): Program {
  return program.steps.some((each) => each.op === 'reopen') ? { ...program, session: 'directory' } : program;
}

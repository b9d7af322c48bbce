import fc from 'fast-check';
import type { DescriptorStep, PathStep, Program, Step, Style, WorldStep } from './program.ts';

/** Random programs about the bytes of few files, around the sizes at which content is stored in another way. */

const { constant, constantFrom, integer, nat, oneof, record } = fc;

const path = constantFrom('a', 'b', 'd/1', 'new', 'new2');
const slot = integer({ min: 0, max: 3 });
/** Blocks of a blob pack, the limit of what is kept in one blob, and anything between. */
const size = oneof(
  integer({ min: 0, max: 64 }), integer({ min: 0, max: 200_000 }), integer({ min: 900_000, max: 1_400_000 }),
  constantFrom(65_535, 65_536, 65_537, 1_048_575, 1_048_576, 1_048_577, 3_000_000),
);
const position = oneof(constant(null), size);
const data = record({
  text: constantFrom('x', 'yz', '0123456789'),
  times: oneof(integer({ min: 0, max: 30 }), integer({ min: 0, max: 20_000 }), constantFrom(65_536, 104_858)),
});
const who = { actor: constantFrom<0 | 1>(0, 1), style: constantFrom<Style>('sync', 'callback', 'promises') };

const choices: readonly [number, fc.Arbitrary<PathStep | DescriptorStep | WorldStep>][] = [
  [5, record({ op: constant('open' as const), path, flags: constantFrom('r', 'r+', 'r+', 'r+', 'w+', 'a', 'a+'), slot, ...who })],
  [8, record({ op: constant('write' as const), slot, data, position, ...who })],
  [6, record({ op: constant('read' as const), slot, length: size, position, ...who })],
  [3, record({ op: constant('ftruncate' as const), slot, size, ...who })],
  [2, record({ op: constant('truncate' as const), path, size, ...who })],
  [2, record({ op: constant('writeFile' as const), path, data, flag: constantFrom('w', 'a', 'r+'), ...who })],
  [2, record({ op: constant('readFile' as const), path, ...who })],
  [1, record({ op: constant('readStream' as const), path, start: nat({ max: 100_000 }), ...who })],
  [1, record({ op: constant('writeStream' as const), path, data, flags: constantFrom('r+', 'a', 'w'), start: nat({ max: 100_000 }), ...who })],
  [1, record({ op: constant('copyFile' as const), path, to: path, ...who })],
  [1, record({ op: constant('link' as const), path, to: path, ...who })],
  [1, record({ op: constant('unlink' as const), path, ...who })],
  [2, record({ op: constant('rename' as const), path, to: path, ...who })],
  [1, record({ op: constant('fsync' as const), slot, ...who })],
  [1, record({ op: constant('reopen' as const), leaky: fc.boolean() })],
];
const step: fc.Arbitrary<Step> = oneof(...choices.map(([weight, arbitrary]) => ({ weight, arbitrary })));

/** Programs of up to `longest` steps. */
export function contentProgram(longest: number): fc.Arbitrary<Program> {
  return record({
    lower: constant<Program['lower']>('large'),
    umask: constant(0o022),
    session: constant<Program['session']>('directory'),
    watched: fc.boolean(),
    steps: fc.array(step, { maxLength: longest, size: 'max' }),
  });
}

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openDirectoryLower } from '../../src/lower/directory.ts';
import type { Lower } from '../../src/lower/lower.ts';
import { stackLowers } from '../../src/lower/stack.ts';
import { at, descriptors, kept, outcome, planted } from './ground.ts';
import type { Plan } from './ground.ts';

function stack(...plans: Plan[]): Lower {
  return kept(stackLowers(plans.map((plan) => openDirectoryLower(planted(plan)))));
}

/** One line a case: the layers from the top, what is asked, what must come. */
const CASES: readonly (readonly [string, readonly Plan[], (lower: Lower) => unknown, unknown])[] = [
  ['merges the names of directories, each once and with the type of the first layer that has it',
    [{ 'd/a': '', 'd/both/x': '' }, { 'd/b': '', 'd/both': 'a file here' }, { 'd/a': { link: 'b' }, 'd/c': null }],
    (lower) => lower.list(at('d')), ['a file', 'b file', 'both directory', 'c directory']],
  ['takes a file from the first layer that has it',
    [{ 'd/a': 'first' }, { 'd/a': 'second', 'd/b': 'second' }],
    (lower) => [lower.slurp(at('d/a'), 9), lower.slurp(at('d/b'), 9)].map((found) => outcome(() => found)).map((type) => ({ name: type, type: '' })),
    ['whole: first ', 'whole: second ']],
  ['lets a file hide a directory beneath', [{ d: 'file' }, { 'd/x': 'hidden' }],
    (lower) => lower.slurp(at('d/x'), 9), 'unwalkable'],
  ['lets a symlink hide a directory beneath', [{ d: { link: 'e' } }, { 'd/x': 'hidden' }],
    (lower) => lower.slurp(at('d/x'), 9), 'unwalkable'],
  ['lets a directory hide a file beneath', [{ 'd/x': 'shown' }, { d: 'hidden' }],
    (lower) => lower.slurp(at('d'), 9), 'a directory'],
  ['stops merging at the first layer that has something else', [{ 'd/x': '' }, { d: 'file' }, { 'd/y': 'hidden' }],
    (lower) => lower.list(at('d')), ['x file']],
  ['finds nothing below where merging has stopped', [{ 'd/x': '' }, { d: 'file' }, { 'd/y': 'hidden' }],
    (lower) => lower.slurp(at('d/y'), 9), 'absent'],
  ['finds nothing far below where merging has stopped', [{ 'd/x': '' }, { d: 'file' }, { 'd/y/z/w': 'hidden' }],
    (lower) => lower.lstat(at('d/y/z/w')), 'unwalkable'],
  ['lists nothing far below where merging has stopped', [{ 'd/e/x': '' }, { 'd/e': 'file' }, { 'd/e/f/y': 'hidden' }],
    (lower) => lower.list(at('d/e/f')), 'refused ENOENT'],
  ['looks through layers that lack the directory', [{}, { 'd/e/x': 'shown' }, {}],
    (lower) => lower.slurp(at('d/e/x'), 9), 'whole: shown'],
  ['looks through layers that lack a directory above', [{ 'd/other': '' }, {}, { 'd/e/f/x': 'shown' }],
    (lower) => lower.slurp(at('d/e/f/x'), 9), 'whole: shown'],
  ['says absent where any layer has the directory', [{}, { 'd/x': '' }], (lower) => lower.lstat(at('d/y')), 'absent'],
  ['says unwalkable where no layer has it', [{}, { d: '' }], (lower) => lower.lstat(at('d/y')), 'unwalkable'],
  ['reads a symlink of a lower layer', [{}, { 'd/l': { link: 'x' } }], (lower) => lower.readlink(at('d/l')), 'x'],
  ['does not read a symlink beneath a file', [{ 'd/l': '' }, { 'd/l': { link: 'x' } }],
    (lower) => lower.readlink(at('d/l')), 'refused EINVAL'],
];

it.each(CASES)('%s', (_, plans, call, expected) => {
  const lower = stack(...plans);
  for (let look = 0; look < 3; look++) expect(outcome(() => call(lower))).toEqual(expected);
});

it('gives the attributes of the topmost of merged directories', () => {
  const [top, beneath] = [openDirectoryLower(planted({ 'd/x': '' })), openDirectoryLower(planted({ 'd/y': '' }))];
  const lower = kept(stackLowers([top, beneath]));
  expect(lower.lstat(at('d'))).toEqual(top.lstat(at('d')));
  expect(lower.lstat(at(''))).toEqual(top.lstat(at('')));
});

it('sees what outsiders do to any layer', () => {
  const [top, beneath] = [planted({ 'd/x': 'top' }), planted({ 'd/x': 'beneath' })];
  const lower = kept(stackLowers([openDirectoryLower(top), openDirectoryLower(beneath)]));
  const read = (): unknown => outcome(() => lower.slurp(at('d/x'), 20));
  expect(read()).toBe('whole: top');
  rmSync(join(top, 'd/x'));
  expect(read()).toBe('whole: beneath');
  rmSync(join(top, 'd'), { recursive: true });
  writeFileSync(join(top, 'd'), '');
  expect(read()).toBe('unwalkable');
  rmSync(join(top, 'd'));
  mkdirSync(join(top, 'd'));
  expect(read()).toBe('whole: beneath');
});

it('closes its layers with it', () => {
  const before = descriptors();
  const lower = stackLowers([openDirectoryLower(planted({ 'd/x': '' })), openDirectoryLower(planted({ 'd/x': '' }))]);
  outcome(() => lower.list(at('d')));
  lower.close();
  expect(descriptors()).toBe(before);
});

it('needs a layer, and is that layer where it has but one', () => {
  expect(() => stackLowers([])).toThrow(RangeError);
  const one = kept(openDirectoryLower(planted({})));
  expect(stackLowers([one])).toBe(one);
});

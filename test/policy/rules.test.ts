import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TreePath } from '../../src/core/path.ts';
import { anyOf, compileGlob } from '../../src/policy/glob.ts';
import { Rules, rulesOf, type Rule } from '../../src/policy/rules.ts';
import { anyPath } from '../support/event-arbitrary.ts';

const at = (path: string): TreePath => path as TreePath;
const denied = (rules: Rules, path: string): string | undefined => rules.at(at(path))?.denies.get('read');
const deny = (...globs: string[]): Rules => new Rules(rulesOf({ deny: globs }));

describe('a glob', () => {
  it.each([
    ['tests/hidden/**', 'tests/hidden', true], ['tests/hidden/**', 'tests/hidden/.a/b', true], ['tests/hidden/**', 'tests/hidden2', false],
    ['./tests/', 'tests', true], ['*', '.env', true], ['*', 'a/b', false], ['**/*.key', 'a\nb/c\nd.key', true], ['{a,b}/?', 'b/x', true],
    ['app/[id]/page', 'app/[id]/page', true], ['a\\*b', 'a*b', true], ['a\\*b', 'axb', false], ['!(src)', 'docs', true], ['!(src)', 'src', false],
    ['caf\u00e9/**', 'caf\u00e9/x', true], ['bad\udcff*', 'bad\udcff1', true],
  ])('%s, asked of %s, says %s', (glob, path, matches) => {
    expect(compileGlob(glob).matches(path)).toBe(matches);
    expect(anyOf(['no-such', glob])(path)).toBe(matches);
  });

  it.each(['', '[a', 'a]', '{a,b', '@(a', '/etc/**', '../x', 'a/./b', 'a\0b', 'a\\'])('%j is malformed, and named', (glob) => {
    expect(() => compileGlob(glob)).toThrow(TypeError);
    expect(() => compileGlob(glob)).toThrow(`"${glob}"`);
    expect(() => new Rules([{ match: glob, effect: 'flag' }])).toThrow(`"${glob}"`);
  });
});

describe('a rule', () => {
  it('holds of what it matches and of all below that', () => {
    const rules = deny('a/b', '*.key');
    for (const path of ['a/b', 'a/b/c/d', 'x.key', 'x.key/y']) expect(denied(rules, path), path).toBeDefined();
    for (const path of ['', 'a', 'a/c', 'ab', 'a/x.key']) expect(denied(rules, path), path).toBeUndefined();
  });

  it('of everything holds of the root, which cannot be hidden', () => {
    expect(denied(deny('**'), '')).toBe('**');
    const rules = new Rules(rulesOf({ hide: ['**'] }));
    expect(rules.at(at(''))).toBeUndefined();
    expect(rules.at(at('a/b'))?.hides).toBe('**');
  });

  it('holds whatever the order, the first of those that deny being named, and each of those that flag', () => {
    const rules = new Rules([
      { match: 'a/**', effect: 'flag', on: ['read'] }, { match: 'a/b', effect: 'deny', on: ['write'] }, { match: '**/b', effect: 'flag' },
      { match: 'a', effect: 'deny' },
    ]);
    const ruling = rules.at(at('a/b'));
    expect(ruling?.denies.get('write')).toBe('a/b');
    expect(ruling?.denies.get('read')).toBe('a');
    expect(ruling?.flags.get('read')).toEqual(['a/**', '**/b']);
    expect(ruling?.flags.get('write')).toEqual(['**/b']);
  });

  it('knows where it may hold of something below', () => {
    const rules = deny('a/b/**', 'c/*.key');
    const reached = ['', 'a', 'c', 'c/d'], not = ['a/c', 'd', 'ab'];
    expect(reached.filter((path) => rules.reach(at(path)))).toEqual(reached);
    expect(not.filter((path) => rules.reach(at(path)))).toEqual([]);
  });

  it.each<[string, unknown, string]>([
    ['no list', { match: 'a' }, 'rules'], ['no rule', [3], 'rules[0]'], ['another key', [{ match: 'a', effect: 'deny', of: [] }], 'rules[0].of'],
    ['no glob', [{ effect: 'deny' }], 'rules[0].match'], ['another effect', [{ match: 'a', effect: 'forbid' }], 'rules[0].effect'],
    ['another operation', [{ match: 'a', effect: 'deny', on: ['read', 'open'] }], '"open"'], ['no operation', [{ match: 'a', effect: 'deny', on: [] }], 'rules[0].on'],
    ['a negated glob', [{ match: '!src/**', effect: 'deny' }], '!src/**'],
  ])('with %s is refused, and what is wrong is named', (_, rules, named) => {
    expect(() => new Rules(rules as Rule[])).toThrow(TypeError);
    expect(() => new Rules(rules as Rule[])).toThrow(named);
  });
});

describe('rules', () => {
  const globs = ['a/**', '**/b', 'src/*', '*.ts', '**/app.ts', 'b/{a,src}/**', '?', '**'];

  it('say of a path what its globs say of it and of the paths above it', () => {
    fc.assert(fc.property(fc.subarray(globs), fc.array(anyPath, { minLength: 1, maxLength: 8 }), (chosen, paths) => {
      const rules = deny(...chosen);
      for (const path of paths) {
        const parts = path.split('/'), above = parts.map((_, index) => parts.slice(0, index + 1).join('/'));
        const first = path === '' ? chosen.find((glob) => glob === '**') : chosen.find((glob) => above.some((each) => compileGlob(glob).matches(each)));
        expect(denied(rules, path)).toBe(first);
      }
    }), { numRuns: 200 });
  });

  it('reach every directory below which another ruling is', () => {
    fc.assert(fc.property(fc.subarray(globs), anyPath, (chosen, path) => {
      const rules = deny(...chosen), ruling = rules.at(path);
      for (let above = path as string; above !== '';) {
        above = above.slice(0, Math.max(0, above.lastIndexOf('/')));
        expect(rules.at(at(above)) === ruling || rules.reach(at(above)), above).toBe(true);
      }
    }), { numRuns: 200 });
  });

  it('are what rulesOf made of lists of globs', () => {
    expect(rulesOf({ hide: ['a'], flag: ['b', 'c'] })).toEqual([
      { match: 'b', effect: 'flag' }, { match: 'c', effect: 'flag' }, { match: 'a', effect: 'hide' },
    ]);
    expect(() => rulesOf({ deny: ['[a'] })).toThrow('"[a"');
    expect(rulesOf({})).toEqual([]);
  });
});

import { describe, expect, it } from 'vitest';
import { quoted, visible } from '../../src/cli/text.ts';

describe('a name on a terminal', () => {
  it.each([
    ['a plain one', 'src/a b.js', 'src/a b.js'],
    ['one with letters of any script', 'päth/日本/😀', 'päth/日本/😀'],
    ['a newline and a tab', 'a\nb\tc', '"a\\nb\\tc"'],
    ['quotes and backslashes', 'a"b\\c', '"a\\"b\\\\c"'],
    ['an escape', '\x1b[31mred', '"\\033[31mred"'],
    ['a C1 control', 'a\x9b', '"a\\302\\233"'],
    ['a mark that turns text around', 'a\u202eb', '"a\\342\\200\\256b"'],
    ['a byte that is no UTF-8', 'a\udcff', '"a\\377"'],
  ])('shows %s', (_, name, shown) => {
    expect(quoted(name)).toBe(shown);
  });

  it('keeps words on one line', () => {
    expect(visible('one\ntwo "three"')).toBe('one\\ntwo "three"');
  });
});

import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { causesOf, Overlay } from '../../src/index.ts';

let root: string, overlay: Overlay;
beforeAll(() => {
  root = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'palimpsest-why-')));
  fs.mkdirSync(join(root, 'd'));
  for (const name of ['a', 'b', 'd/x', 'untouched']) fs.writeFileSync(join(root, name), `${name}\n`);
  overlay = Overlay.openSync({ root });
});
afterAll(() => {
  overlay.closeSync();
  fs.rmSync(root, { recursive: true, force: true });
});

const at = (path: string): string => join(root, path);
const why = (path: string): string[] => causesOf(() => overlay.events(), path as Parameters<typeof causesOf>[1]).map(({ event, seen, copied }) =>
  [`${event.op} ${'path' in event ? event.path : ''}`, ...seen.map((each) => `${each.op} ${'path' in each ? each.path : ''}`), ...copied === undefined ? [] : [`copy of ${(copied as { path: string }).path}`]].join(' < '));

describe('why', () => {
  it('follows a file across renames of it and of what holds it, and says what its writer had seen', () => {
    const { fs: face } = overlay, eve = overlay.as('eve').fs;
    face.readFileSync(at('a'));
    eve.readFileSync(at('b'));
    face.existsSync(at('none'));
    face.writeFileSync(at('d/new'), 'new\n');
    face.renameSync(at('d/new'), at('d/y'));
    face.renameSync(at('d'), at('e'));
    eve.readdirSync(at('e'));
    eve.appendFileSync(at('e/y'), 'more\n');
    eve.chmodSync(at('e/y'), 0o600);
    expect(why('e/y')).toEqual(['write d/new < read a < miss none', 'rename d/new', 'rename d', 'write e/y < read b < list e', 'chmod e/y']);
  });

  it('begins anew where the name was deleted, and where another file was moved onto it', () => {
    const { fs: face } = overlay;
    face.writeFileSync(at('t'), 'one\n');
    face.unlinkSync(at('t'));
    face.writeFileSync(at('t'), 'two\n');
    expect(why('t')).toEqual(['write t']);
    face.writeFileSync(at('t.tmp'), 'three\n');
    face.renameSync(at('t.tmp'), at('t'));
    expect(why('t')).toEqual(['write t.tmp', 'rename t.tmp']);
  });

  it('knows a file by its other names, and a copy by what it is a copy of', () => {
    const { fs: face } = overlay;
    face.writeFileSync(at('one'), '1');
    face.linkSync(at('one'), at('two'));
    face.writeFileSync(at('two'), '2');
    expect(why('one')).toEqual(['write one', 'write two']);
    expect(why('two')).toEqual(['write one', 'link one', 'write two']);
    face.copyFileSync(at('a'), at('copy'));
    expect(why('copy')).toEqual(['write copy < read a < copy of a']);
  });

  it('has nothing to tell of what the lower has', () => {
    expect(why('untouched')).toEqual([]);
    overlay.fs.writeFileSync(at('untouched'), 'x');
    overlay.discard({ paths: ['untouched'] });
    expect(why('untouched')).toEqual(['discard ']);
  });
});

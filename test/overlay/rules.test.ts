import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Overlay, OverlayOptions, Rule } from '../../src/index.ts';
import { facesOf, type Face } from '../cases/face.ts';
import { checkLaws } from '../support/laws.ts';
import { lowerWith, opened } from './ground.ts';

const STYLES = ['sync', 'callback', 'promises', 'descriptor', 'streams'] as const;
const TREE = { 'tests/hidden/a': 'secret', 'tests/hidden/d/b': 'deep', 'tests/pub': 'pub', 'src/main': 'main' };

interface Scene {
  readonly root: string;
  readonly overlay: Overlay;
  readonly face: Face;
  at(name: string): string;
}

function scene(style: Face['name'], rules: readonly Rule[], options: Partial<OverlayOptions> = {}, prepare?: (root: string) => void): Scene {
  const root = lowerWith(TREE);
  prepare?.(root);
  const overlay = opened({ root, rules, ...options });
  return { root, overlay, face: faceOf(overlay, style), at: (name) => `${root}/${name}` };
}

function faceOf(overlay: Overlay, style: Face['name']): Face {
  return facesOf(overlay.fs).find(({ name }) => name === style) as Face;
}

const hide = (match: string): Rule => ({ match, effect: 'hide' });
const deny = (match: string, ...on: NonNullable<Rule['on']>): Rule => ({ match, effect: 'deny', ...(on.length > 0 && { on }) });
const flag = (match: string, ...on: NonNullable<Rule['on']>): Rule => ({ match, effect: 'flag', ...(on.length > 0 && { on }) });

/** What the log says, but the rules themselves. */
function story(overlay: Overlay): string[] {
  checkLaws(overlay);
  return [...overlay.events()].flatMap((event) => {
    switch (event.op) {
      case 'rules': return [];
      case 'flag': return [`flag ${event.call} ${event.path} by ${event.rule}`];
      case 'refuse': return [`refuse ${event.call} ${event.path ?? event.outside} by ${event.rule ?? 'nobody'}`];
      default: return ['path' in event && event.path !== undefined ? `${event.op} ${event.path}` : event.op];
    }
  });
}

async function refuses(act: Promise<unknown>, code: string): Promise<void> {
  await expect(act, `refused with ${code}`).rejects.toMatchObject({ code });
}

describe.each(STYLES)('a hidden path (%s)', (style) => {
  it('is not there for any call, without a miss, and every touch is a flag', async () => {
    const { overlay, face, at } = scene(style, [hide('tests/hidden/**')]);
    for (const name of ['tests/hidden/a', 'tests/hidden/d/b', 'tests/hidden/no']) {
      await refuses(face.read(at(name)), 'ENOENT');
      await refuses(face.stat(at(name)), 'ENOENT');
      await refuses(face.lstat(at(name)), 'ENOENT');
      await refuses(face.removeFile(at(name)), 'ENOENT');
      await refuses(face.truncate(at(name), 0), 'ENOENT');
      await refuses(face.chmod(at(name), 0o600), 'ENOENT');
      await refuses(face.rename(at(name), at('src/x')), 'ENOENT');
      await refuses(face.link(at(name), at('src/x')), 'ENOENT');
      await refuses(face.copy(at(name), at('src/x')), 'ENOENT');
      await refuses(face.readlink(at(name)), 'ENOENT');
    }
    await refuses(face.list(at('tests/hidden')), 'ENOENT');
    await refuses(face.read(at('src/../tests/hidden/a')), 'ENOENT');
    await refuses(face.read(at('tests/hidden/../pub')), 'ENOENT');
    expect(await face.list(at('tests'))).toEqual(['pub']);
    const told = story(overlay);
    expect(told.filter((line) => /^(miss|refuse)/.test(line))).toEqual([]);
    expect(told).toContain('flag open tests/hidden/a by tests/hidden/**');
    expect(told.filter((line) => line.includes('hidden') && !line.startsWith('flag '))).toEqual([]);
    expect(overlay.observation('tests/hidden/a')).toEqual({ kind: 'unseen' });
    expect(overlay.changes()).toEqual([]);
  });

  it('cannot be made, by any call', async () => {
    const { overlay, face, at } = scene(style, [hide('tests/hidden'), hide('**/*.key')]);
    for (const name of ['tests/hidden', 'new.key', 'src/new.key']) {
      await refuses(face.write(at(name), 'mine'), 'EACCES');
      await refuses(face.append(at(name), 'mine'), 'EACCES');
      await refuses(face.makeDirectory(at(name)), 'EACCES');
      await refuses(face.symlink('x', at(name)), 'EACCES');
      await refuses(face.link(at('src/main'), at(name)), 'EACCES');
      await refuses(face.rename(at('src/main'), at(name)), 'EACCES');
      await refuses(face.copy(at('src/main'), at(name)), 'EACCES');
    }
    await refuses(face.write(at('tests/hidden/new'), 'mine'), 'ENOENT');
    expect(overlay.changes()).toEqual([]);
    expect(story(overlay).filter((line) => /^(refuse|write|miss)/.test(line))).toEqual([]);
    expect(story(overlay)).toContain('flag rename src/new.key by **/*.key');
  });

  it('keeps its directory where it is, and there', async () => {
    const { overlay, face, at } = scene(style, [hide('tests/hidden/*')]);
    expect(await face.list(at('tests/hidden'))).toEqual([]);
    await refuses(face.removeDirectory(at('tests/hidden')), 'ENOTEMPTY');
    await refuses(face.removeTree(at('tests')), 'ENOTEMPTY');
    await refuses(face.rename(at('tests/hidden'), at('tests/h')), 'EACCES');
    await refuses(face.rename(at('tests'), at('t')), 'EACCES');
    await face.makeDirectory(at('empty'));
    await refuses(face.rename(at('empty'), at('tests/hidden')), 'ENOTEMPTY');
    expect(overlay.changes().filter(({ path: name }) => name.startsWith('tests/hidden'))).toEqual([]);
    expect(story(overlay)).toContain('flag rmdir tests/hidden/a by tests/hidden/*');
    expect(story(overlay)).toContain('flag rename tests/hidden/a by tests/hidden/*');
  });

  it('is not there through symlinks and hard links, whoever made them', async () => {
    const { overlay, face, at } = scene(style, [hide('tests/hidden/**')], {}, (root) => {
      fs.symlinkSync('tests/hidden', path.join(root, 'way'));
      fs.linkSync(path.join(root, 'tests/hidden/a'), path.join(root, 'src/twin'));
    });
    await face.symlink('tests/hidden/a', at('mine'));
    await refuses(face.read(at('way/a')), 'ENOENT');
    await refuses(face.read(at('mine')), 'ENOENT');
    await refuses(face.write(at('mine'), 'x'), 'ENOENT');
    await refuses(face.read(at('src/twin')), 'ENOENT');
    await refuses(face.append(at('src/twin'), 'x'), 'EACCES');
    expect(await face.list(at('src'))).toEqual(['main']);
    expect([...overlay.events({ op: 'flag' })]).toContainEqual(expect.objectContaining({ path: 'tests/hidden/a', via: 'way/a' }));
    expect(overlay.changes()).toEqual([expect.objectContaining({ path: 'mine' })]);
  });

  it('stays where a directory would bring it in by its name', async () => {
    const { face, at } = scene(style, [hide('out/secret')]);
    await face.makeDirectory(at('made'));
    await face.write(at('made/secret'), 'x');
    await refuses(face.rename(at('made'), at('out')), 'EACCES');
    await face.rename(at('made'), at('other'));
    expect(await face.list(at('other'))).toEqual(['secret']);
  });
});

describe.each(STYLES)('a denied path (%s)', (style) => {
  it('is refused to every call, and each refusal is an event', async () => {
    const { overlay, face, at } = scene(style, [deny('tests/hidden')]);
    const a = at('tests/hidden/a');
    await refuses(face.read(a), 'EACCES');
    await refuses(face.write(a, 'x'), 'EACCES');
    await refuses(face.append(a, 'x'), 'EACCES');
    await refuses(face.truncate(a, 0), 'EACCES');
    await refuses(face.stat(a), 'EACCES');
    await refuses(face.lstat(a), 'EACCES');
    await refuses(face.list(at('tests/hidden')), 'EACCES');
    await refuses(face.removeFile(a), 'EACCES');
    await refuses(face.removeDirectory(at('tests/hidden/d')), 'EACCES');
    await refuses(face.removeTree(at('tests/hidden')), 'EACCES');
    await refuses(face.rename(a, at('x')), 'EACCES');
    await refuses(face.rename(at('src/main'), a), 'EACCES');
    await refuses(face.link(a, at('x')), 'EACCES');
    await refuses(face.link(at('src/main'), at('tests/hidden/new')), 'EACCES');
    await refuses(face.symlink('x', at('tests/hidden/new')), 'EACCES');
    await refuses(face.makeDirectory(at('tests/hidden/new')), 'EACCES');
    await refuses(face.copy(a, at('x')), 'EACCES');
    await refuses(face.copy(at('src/main'), a), 'EACCES');
    await refuses(face.chmod(a, 0o600), 'EACCES');
    await refuses(face.read(at('tests/hidden/no')), 'EACCES');
    expect(await face.list(at('tests'))).toEqual(['hidden', 'pub']);
    expect(overlay.changes()).toEqual([]);
    const told = story(overlay);
    expect(told.filter((line) => line.includes('hidden')).every((line) => line.startsWith('refuse ') && line.endsWith('by tests/hidden'))).toBe(true);
    expect(told).toContain('refuse open tests/hidden/a by tests/hidden');
    expect(told).toContain('refuse rename tests/hidden/a by tests/hidden');
  });

  it('is denied what the rule names, and nothing else', async () => {
    const { face, at } = scene(style, [deny('tests/hidden/**', 'write')]);
    const a = at('tests/hidden/a');
    expect(await face.read(a)).toEqual(Buffer.from('secret'));
    await refuses(face.write(a, 'x'), 'EACCES');
    await refuses(face.append(a, 'x'), 'EACCES');
    await refuses(face.write(at('tests/hidden/new'), 'x'), 'EACCES');
    await face.chmod(a, 0o600);
    await face.removeFile(a);
    await face.makeDirectory(at('tests/hidden/made'));
    expect(await face.list(at('tests/hidden'))).toEqual(['d', 'made']);
  });

  it('is left neither by a rename of it or of what it is in, nor by a link of either kind', async () => {
    const { face, at } = scene(style, [deny('tests/hidden/**', 'read')], {}, (root) => {
      fs.linkSync(path.join(root, 'tests/hidden/a'), path.join(root, 'src/twin'));
    });
    await refuses(face.read(at('src/twin')), 'EACCES');
    await face.link(at('tests/hidden/d/b'), at('linked'));
    await refuses(face.read(at('linked')), 'EACCES');
    await face.symlink('tests/hidden/a', at('soft'));
    await refuses(face.read(at('soft')), 'EACCES');
    await face.rename(at('tests/hidden/a'), at('moved'));
    await refuses(face.read(at('moved')), 'EACCES');
    await refuses(face.copy(at('moved'), at('copy')), 'EACCES');
    await face.rename(at('tests'), at('t'));
    await refuses(face.read(at('t/hidden/d/b')), 'EACCES');
    expect(await face.read(at('t/pub'))).toEqual(Buffer.from('pub'));
    await face.append(at('moved'), 'more');
    await refuses(face.read(at('moved')), 'EACCES');
  });

  it('keeps what was made there from leaving', async () => {
    const { overlay, face, at } = scene(style, [deny('box', 'read')]);
    await face.makeDirectory(at('box'));
    await face.write(at('box/letter'), 'sealed');
    await refuses(face.read(at('box/letter')), 'EACCES');
    await refuses(face.rename(at('box/letter'), at('letter')), 'EACCES');
    await refuses(face.link(at('box/letter'), at('letter')), 'EACCES');
    await refuses(face.rename(at('box'), at('open')), 'EACCES');
    await face.rename(at('box/letter'), at('box/other'));
    await refuses(face.read(at('box/other')), 'EACCES');
    expect(overlay.changes().map(({ path: name }) => name)).toEqual(['box', 'box/other']);
  });

  it('is not followed where it is a symlink', async () => {
    const { overlay, face, at } = scene(style, [deny('tests/hidden')], {}, (root) => {
      fs.symlinkSync('../../src', path.join(root, 'tests/hidden/way'));
    });
    await refuses(face.read(at('tests/hidden/way/main')), 'EACCES');
    expect(story(overlay)).toEqual(['refuse open tests/hidden/way by tests/hidden']);
  });
});

describe.each(STYLES)('a flagged path (%s)', (style) => {
  it('is what it was, and a flag goes before what happens to it', async () => {
    const { overlay, face, at } = scene(style, [flag('tests/hidden/**', 'read', 'list')]);
    expect(await face.read(at('tests/hidden/a'))).toEqual(Buffer.from('secret'));
    await face.list(at('tests/hidden'));
    await face.lstat(at('tests/hidden/a'));
    await face.read(at('tests/pub'));
    expect(story(overlay)).toEqual([
      'flag open tests/hidden/a by tests/hidden/**', 'read tests/hidden/a', 'flag scandir tests/hidden by tests/hidden/**',
      'list tests/hidden', 'stat tests/hidden/a', 'read tests/pub',
    ]);
  });

  it('is flagged once while nothing else happens, and by each rule', async () => {
    const { overlay, face, at } = scene(style, [flag('tests/**'), flag('**/a')]);
    for (let turn = 0; turn < 3; turn++) await face.read(at('tests/hidden/a'));
    await face.read(at('src/main'));
    await face.read(at('tests/hidden/a'));
    const once = ['flag open tests/hidden/a by tests/**', 'flag open tests/hidden/a by **/a', 'read tests/hidden/a'];
    expect(story(overlay)).toEqual([...once, 'read src/main', ...once]);
  });

  it('is flagged when it is changed, made, missed and taken away', async () => {
    const { overlay, face, at } = scene(style, [flag('tests/hidden')]);
    await face.write(at('tests/hidden/new'), 'x');
    await refuses(face.read(at('tests/hidden/no')), 'ENOENT');
    await face.rename(at('tests/hidden/a'), at('b'));
    await face.read(at('b'));
    await face.removeFile(at('tests/hidden/d/b'));
    expect(story(overlay).filter((line) => line.startsWith('flag '))).toEqual([
      'flag open tests/hidden/new', 'flag open tests/hidden/no', 'flag rename tests/hidden/a', 'flag open b', 'flag unlink tests/hidden/d/b',
    ].map((line) => `${line} by tests/hidden`));
    expect(story(overlay)).toContain('miss tests/hidden/no');
  });
});

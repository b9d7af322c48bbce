import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Overlay } from '../../src/index.ts';

describe('changes of names by hard links', () => {
  let root: string;
  beforeEach(() => { root = fs.mkdtempSync(join(tmpdir(), 'palimpsest-links-')); });
  afterEach(() => fs.rmSync(root, { recursive: true, force: true }));

  it('are told where a link takes the place of another lower file', async () => {
    for (const name of ['a', 'b']) fs.writeFileSync(join(root, name), name);
    const overlay = Overlay.openSync({ root });
    overlay.fs.unlinkSync(join(root, 'a'));
    overlay.fs.linkSync(join(root, 'b'), join(root, 'a'));
    const [row, ...more] = overlay.changes();
    expect(more).toEqual([]);
    expect(row).toMatchObject({ path: 'a', kind: 'update', after: overlay.version('b') });
    await overlay.close();
  });

  it.each<[string, (face: Overlay['fs'], at: (name: string) => string) => void, object[]]>([
    ['removed', (face, at) => { face.unlinkSync(at('a')); face.appendFileSync(at('f'), 'x'); }, [{ kind: 'delete', path: 'a' }, { kind: 'update', path: 'f' }]],
    ['renamed', (face, at) => { face.renameSync(at('a'), at('l')); face.writeFileSync(at('f'), 'new'); },
      [{ kind: 'delete', path: 'a' }, { kind: 'update', path: 'f' }, { kind: 'link', path: 'l', from: 'f' }]],
    ['given another mode', (face, at) => { face.renameSync(at('a'), at('l')); face.chmodSync(at('d/g'), 0o600); },
      [{ kind: 'delete', path: 'a' }, { kind: 'mode', path: 'd/g' }, { kind: 'link', path: 'l', from: 'd/g' }]],
  ])('are told by the name that a file was changed by, when another of its names in the lower was %s', async (_, act, rows) => {
    fs.mkdirSync(join(root, 'd'));
    fs.writeFileSync(join(root, 'a'), 'one');
    for (const name of ['f', 'd/g']) fs.linkSync(join(root, 'a'), join(root, name));
    const overlay = Overlay.openSync({ root });
    act(overlay.fs, (name) => join(root, name));
    expect(overlay.changes()).toMatchObject(rows);
    await overlay.close();
  });
});

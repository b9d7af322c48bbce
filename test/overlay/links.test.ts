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
});

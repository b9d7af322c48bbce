import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { lowerWith, opened } from '../overlay/ground.ts';

describe('a commit of the overlay', () => {
  it('publishes an update, leaves nothing in the overlay, and is one event', async () => {
    const root = lowerWith({ a: 'old', 'd/b': 'b' }), overlay = opened({ root });
    overlay.fs.writeFileSync(path.join(root, 'a'), 'new');
    overlay.fs.renameSync(path.join(root, 'd'), path.join(root, 'e'));
    overlay.fs.mkdirSync(path.join(root, 'd'));
    const receipt = await overlay.commit();
    expect(fs.readFileSync(path.join(root, 'a'), 'utf8')).toBe('new');
    expect(fs.readdirSync(root).sort()).toEqual(['a', 'd', 'e']);
    expect(fs.readdirSync(path.join(root, 'e'))).toEqual(['b']);
    expect(receipt.changes.map(({ kind, path: name }) => `${kind} ${name}`)).toEqual(['update a', 'create d', 'rename e']);
    expect(overlay.changes()).toEqual([]);
    expect([...overlay.events({ op: 'commit' })]).toMatchObject([{ id: receipt.id, changes: 3 }]);
    const again = await overlay.commit();
    expect(again.changes).toEqual([]);
    await overlay.revert(receipt.id);
    expect(fs.readFileSync(path.join(root, 'a'), 'utf8')).toBe('old');
    expect(fs.readdirSync(root).sort()).toEqual(['a', 'd']);
    expect(fs.readdirSync(path.join(root, 'd'))).toEqual(['b']);
  });
});

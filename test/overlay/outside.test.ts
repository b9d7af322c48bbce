import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Overlay } from '../../src/index.ts';
import { facesOf } from '../cases/face.ts';
import { lowerWith, opened } from './ground.ts';

const refusals = (overlay: Overlay): string[] =>
  [...overlay.events({ op: 'refuse' })].map(({ actor, call, code, outside }) => `${actor} ${call} ${code} ${outside}`);

describe('an attempt to leave the tree', () => {
  it.each(['sync', 'callback', 'promises', 'descriptor', 'streams'])('is an event, whatever the style (%s)', async (style) => {
    const root = lowerWith({ a: 'x' }), overlay = opened({ root, actor: 'ann' });
    const face = facesOf(overlay.fs).find(({ name }) => name === style) as ReturnType<typeof facesOf>[number];
    await expect(face.read('/etc/passwd')).rejects.toMatchObject({ code: 'EACCES', fsCode: 'FS_SANDBOX_DENIED' });
    await expect(face.write('/etc/passwd', 'x')).rejects.toMatchObject({ code: 'EACCES' });
    await expect(face.list('/etc')).rejects.toMatchObject({ code: 'EACCES' });
    await expect(face.removeFile('/etc/passwd')).rejects.toMatchObject({ code: 'EACCES' });
    await expect(face.rename(path.join(root, 'a'), '/etc/a')).rejects.toMatchObject({ code: 'EACCES' });
    expect(refusals(overlay)).toEqual([
      'ann open EACCES /etc/passwd', 'ann scandir EACCES /etc', 'ann unlink EACCES /etc/passwd', 'ann rename EACCES /etc/a',
    ]);
  });

  it('is told by the path that it would have reached, with any bytes in it', () => {
    const root = lowerWith({ 'd/a': 'x' }), overlay = opened({ root, session: path.join(root, '../session') });
    overlay.fs.symlinkSync('/etc/shadow', path.join(root, 'd/link'));
    expect(() => overlay.fs.readFileSync(path.join(root, 'd/link'))).toThrow(/EACCES/);
    expect(() => overlay.fs.statSync(path.join(root, 'd/../../../other/x'))).toThrow(/EACCES/);
    expect(() => overlay.fs.chmodSync('/etc/shadow', 0o777)).toThrow(/EACCES/);
    expect(overlay.fs.existsSync(Buffer.from('/bad\xff', 'latin1'))).toBe(false);
    expect(overlay.fs.existsSync(path.dirname(root))).toBe(true);
    const beside = path.resolve(root, '../../other/x');
    expect(refusals(overlay)).toEqual([
      'main open EACCES /etc/shadow', `main stat EACCES ${beside}`, 'main chmod EACCES /etc/shadow', 'main access EACCES /bad\udcff',
    ]);
  });

  it('is told only of what is refused where the outside may be read', () => {
    const root = lowerWith({ a: 'x' }), overlay = opened({ root, outside: 'readonly' });
    expect(overlay.fs.existsSync('/etc/passwd')).toBe(true);
    expect(() => overlay.fs.appendFileSync('/etc/passwd', 'x')).toThrow(/EACCES/);
    expect(() => overlay.fs.mkdirSync('/etc/d')).toThrow();
    expect(() => overlay.fs.statSync('/etc/no-such-file')).toThrow(/ENOENT/);
    expect(refusals(overlay)).toEqual(['main open EACCES /etc/passwd', 'main mkdir EACCES /etc/d']);
  });

  it('is one event while nothing else happens', () => {
    const root = lowerWith({ a: 'x' }), overlay = opened({ root });
    for (let turn = 0; turn < 3; turn++) expect(overlay.fs.existsSync('/etc/passwd')).toBe(false);
    overlay.fs.readFileSync(path.join(root, 'a'));
    expect(overlay.fs.existsSync('/etc/passwd')).toBe(false);
    expect([...overlay.events()].map(({ op }) => op)).toEqual(['refuse', 'read', 'refuse']);
  });
});

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { toTreeSync } from '@jsonjoy.com/fs-print';
import * as snapshot from '@jsonjoy.com/fs-snapshot';
import { createFsFromVolume, memfs, Volume } from 'memfs';
import { nodeToFsa } from 'memfs/lib/node-to-fsa/index.js';
import { Union } from 'unionfs';
import { describe, expect, it } from 'vitest';
import { Overlay } from '../../src/index.ts';
import { onBoth, packagesInto, treeOf, twin, type Fs } from './twin.ts';

/** What unionfs takes as one of its file systems. */
type Member = Parameters<InstanceType<typeof Union>['use']>[0];

describe('a memfs volume beneath', () => {
  const FILES = { '/app/README.md': '1', '/app/src/index.js': '2', '/app/node_modules/debug/index.js': '3', '/app/empty': null };

  it('is read through the overlay and keeps what it holds, whatever is changed there', async () => {
    const vol = Volume.fromJSON(FILES);
    await using overlay = Overlay.openSync({ lower: createFsFromVolume(vol) });
    const { fs } = overlay;
    expect(fs.readFileSync('/app/src/index.js', 'utf8')).toBe('2');
    expect(fs.readdirSync('/app').sort()).toEqual(['README.md', 'empty', 'node_modules', 'src']);

    fs.writeFileSync('/app/README.md', 'changed');
    fs.rmSync('/app/node_modules', { recursive: true });
    await fs.promises.mkdir('/app/empty/deep/er', { recursive: true });
    await pipeline(fs.createReadStream('/app/src/index.js'), fs.createWriteStream('/app/empty/deep/er/copy.js'));
    fs.renameSync('/app/src', '/app/lib');

    expect(fs.readFileSync('/app/empty/deep/er/copy.js', 'utf8')).toBe('2');
    expect(fs.existsSync('/app/node_modules/debug/index.js')).toBe(false);
    expect(await fs.promises.readFile('/app/lib/index.js', 'utf8')).toBe('2');
    expect(vol.toJSON()).toEqual(FILES);
    expect(overlay.changes().map(({ kind, path }) => `${kind} ${path}`)).toEqual([
      'update app/README.md', 'create app/empty/deep', 'create app/empty/deep/er', 'create app/empty/deep/er/copy.js',
      'rename app/lib', 'delete app/node_modules', 'delete app/node_modules/debug', 'delete app/node_modules/debug/index.js',
    ]);
  });

  it('lies under each of two overlays that unionfs joins', async () => {
    const first = Volume.fromJSON({ '/foo': 'bar', '/only/first': '1' }), second = Volume.fromJSON({ '/foo': 'baz', '/only/second': '2' });
    await using overlay = Overlay.openSync({ lower: createFsFromVolume(first) });
    await using beneath = Overlay.openSync({ lower: createFsFromVolume(second) });
    expect([overlay, beneath].map(({ fs }) => fs.readFileSync('/foo', 'utf8'))).toEqual(['bar', 'baz']);
    const union = new Union().use(beneath.fs).use(overlay.fs);
    expect(union.readFileSync('/foo', 'utf8')).toBe('bar');
    expect([...union.readdirSync('/only')].map(String).sort()).toEqual(['first', 'second']);
  });
});

describe('tools of the memfs family over overlay.fs', () => {
  const fill = (dir: string): void => {
    packagesInto(dir, ['picomatch', 'nanoid']);
    mkdirSync(join(dir, 'files'));
    writeFileSync(join(dir, 'files/note.txt'), 'hi');
  };

  it('print the tree as they print that of the disk', async () => {
    const { sides } = twin(fill);
    const [ours, real] = await onBoth(sides, ({ fs, dir }) => {
      fs.rmSync(join(dir, 'node_modules/nanoid/bin'), { recursive: true });
      fs.symlinkSync('files/note.txt', join(dir, 'link'));
      return toTreeSync(fs as never, { dir }).replaceAll(dir, '<dir>').replace(/^.*\n/, '');
    });
    expect(ours).toBe(real);
    expect(ours).toContain('note.txt');
  });

  it('take a snapshot of it, and put one back into it', async () => {
    const { sides } = twin(fill);
    const [ours, real] = await onBoth(sides, async (side) => {
      const { fs, dir } = side;
      fs.appendFileSync(join(dir, 'files/note.txt'), ' there');
      const taken = snapshot.toSnapshotSync({ fs: fs as never, path: dir });
      const bytes = await snapshot.toBinarySnapshot({ fs: fs.promises as never, path: dir });
      fs.mkdirSync(join(dir, 'restored'));
      snapshot.fromSnapshotSync(taken, { fs: fs as never, path: join(dir, 'restored') });
      await snapshot.fromBinarySnapshot(bytes, { fs: fs.promises as never, path: join(dir, 'again') });
      return { taken, tree: treeOf(side) };
    });
    expect(ours).toEqual(real);
    const { fs, vol } = memfs();
    snapshot.fromSnapshotSync(ours.taken, { fs, path: '/' });
    expect(vol.readFileSync('/files/note.txt', 'utf8')).toBe('hi there');
  });

  it('offer it as handles of a browser, which write by renaming a swap file', async () => {
    const { sides } = twin(fill);
    const [ours, real] = await onBoth(sides, async (side) => {
      const files = nodeToFsa(side.fs as never, join(side.dir, 'files'), { mode: 'readwrite' });
      const note = await files.getFileHandle('note.txt');
      const content = await text((await note.getFile()).stream());
      const created = await files.getFileHandle('new.txt', { create: true });
      const writable = await created.createWritable();
      await writable.write('data');
      await writable.close();
      await files.removeEntry('note.txt');
      const names: string[] = [];
      for await (const name of files.keys()) names.push(name);
      return { content, names: names.sort(), tree: treeOf(side) };
    });
    expect(ours).toEqual(real);
    expect(ours.names).toEqual(['new.txt']);
  });
});

describe('unionfs with overlay.fs among its members', () => {
  const union = (fs: Fs): { all: Fs; vol: Volume } => {
    const vol = Volume.fromJSON({ '/memory/1': 'one', '/shared': 'of memory' });
    return { all: new Union().use(vol as unknown as Member).use(fs) as unknown as Fs, vol };
  };

  it('reads from whichever has the file, by every face', async () => {
    const { sides } = twin((dir) => { packagesInto(dir, ['picomatch']); });
    const [ours, real] = await onBoth(sides, async ({ fs, dir }) => {
      const { all } = union(fs), manifest = join(dir, 'node_modules/picomatch/package.json');
      return [
        all.readFileSync('/memory/1', 'utf8'), all.readFileSync(manifest, 'utf8'), await all.promises.readFile(manifest, 'utf8'),
        await text(all.createReadStream(manifest)), await new Promise((done) => { all.readFile(manifest, 'utf8', (_error, data) => { done(data); }); }),
        all.existsSync(join(dir, 'nothing')), all.readdirSync(join(dir, 'node_modules/picomatch')).sort(),
        all.statSync(manifest).size, failure(() => all.readFileSync(join(dir, 'nothing'))).replaceAll(dir, '<dir>'),
      ];
    });
    expect(ours).toEqual(real);
  });

  it('writes into the overlay, which is the last that was added', async () => {
    const { sides, overlay, lower } = twin((dir) => { writeFileSync(join(dir, 'a'), 'old'); });
    const { all, vol } = union(sides[0].fs);
    all.writeFileSync(join(lower, 'a'), 'new');
    await all.promises.writeFile(join(lower, 'b'), 'more');
    expect(overlay.changes().map(({ kind, path }) => `${kind} ${path}`)).toEqual(['update a', 'create b']);
    expect(Object.keys(vol.toJSON())).toEqual(['/memory/1', '/shared']);
  });
});

function failure(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    return (error as Error).message;
  }
  return 'nothing failed';
}

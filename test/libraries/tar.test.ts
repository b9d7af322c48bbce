import { chmodSync, linkSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { Readable } from 'node:stream';
import tar from 'tar-fs';
import { expect, it } from 'vitest';
import { onBoth, packagesInto, treeOf, twin, type Fs, type Side } from './twin.ts';

/** Files of all usual modes, links of both kinds, a file of several blocks. */
function fill(dir: string): void {
  packagesInto(dir, ['immer', 'picomatch']);
  writeFileSync(join(dir, 'big'), Buffer.alloc(3 << 20, 'big'));
  writeFileSync(join(dir, 'script'), '#!/bin/sh\n');
  chmodSync(join(dir, 'script'), 0o755);
  linkSync(join(dir, 'script'), join(dir, 'second-name'));
  symlinkSync('node_modules/immer', join(dir, 'link'));
  symlinkSync('nowhere', join(dir, 'dangling'));
}

/** The library's `fs` option, which its types leave out. */
const over = <Options>(fs: Fs, options: Options): Options => ({ ...options, fs });
const packed = ({ fs, dir }: Side): Promise<Buffer> => buffer(tar.pack(dir, over<tar.PackOptions & { sort: boolean }>(fs, { sort: true })));

it('tar-fs packs the lower into the same bytes', async () => {
  const [ours, real] = await onBoth(twin(fill).sides, packed);
  expect(ours.equals(real)).toBe(true);
  expect(ours.length).toBeGreaterThan(3 << 20);
});

it('tar-fs packs what was changed, as it is now', async () => {
  const { sides } = twin(fill);
  const [ours, real] = await onBoth(sides, async (side) => {
    const { fs, dir } = side, when = new Date(1_700_000_000_000);
    fs.rmSync(join(dir, 'node_modules/immer/src'), { recursive: true });
    fs.renameSync(join(dir, 'node_modules/picomatch'), join(dir, 'moved'));
    fs.appendFileSync(join(dir, 'big'), 'more');
    fs.chmodSync(join(dir, 'script'), 0o700);
    const paths = fs.readdirSync(dir, { recursive: true, encoding: 'utf8' }).concat('').sort((a, b) => b.length - a.length);
    for (const path of paths) fs.lutimesSync(join(dir, path), when, when);
    return packed(side);
  });
  expect(ours.equals(real)).toBe(true);
});

it('tar-fs extracts a tree into the overlay as onto the disk, over what is there already', async () => {
  const archive = await packed(twin(fill).sides[1]);
  const { sides } = twin(fill);
  const [ours, real] = await onBoth(sides, async (side) => {
    const { fs, dir } = side;
    fs.writeFileSync(join(dir, 'script'), 'in the way');
    await pipeline(Readable.from([archive]), tar.extract(join(dir, 'into/it'), over<tar.ExtractOptions>(fs, {})));
    await pipeline(Readable.from([archive]), tar.extract(dir, over<tar.ExtractOptions>(fs, {})));
    const times = ['big', 'script', 'into/it/script', 'into/it/node_modules/immer/package.json'].map((path) => fs.statSync(join(dir, path)).mtimeMs);
    return { tree: treeOf(side), times, nlink: fs.statSync(join(dir, 'into/it/script')).nlink };
  });
  expect(ours).toEqual(real);
});

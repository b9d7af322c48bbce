import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import fc from 'fast-check';
import { extract } from 'tar-stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Overlay } from '../../src/index.ts';
import { program } from '../model/arbitrary.ts';
import type { NodeFs } from '../model/world.ts';
import { CI_SEED } from '../support/seed.ts';
import { archivedIn, played } from './exported.ts';

const RUNS = Number(process.env['EXPORT_RUNS'] ?? 25), SEED = Number(process.env['EXPORT_SEED'] ?? CI_SEED);
const STEPS = 30;

describe('an archive of a tree', () => {
  let scratch: string;
  beforeAll(() => { scratch = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'palimpsest-tar-'))); });
  afterAll(() => fs.rmSync(scratch, { recursive: true, force: true }));

  /** Where tar(1) has unpacked the overlay's archive. */
  function unpacked(overlay: Overlay): string {
    const archive = join(scratch, 'archive.tar'), place = join(scratch, 'place');
    fs.rmSync(place, { recursive: true, force: true });
    fs.mkdirSync(place);
    fs.writeFileSync(archive, Buffer.concat([...overlay.export('tar', {})]));
    execFileSync('tar', ['-x', '-p', '-f', archive, '-C', place], { env: { ...process.env, LC_ALL: 'C' } });
    return place;
  }

  it('is unpacked by tar to the same tree, for random programs', { timeout: 600_000 }, async () => {
    const root = join(scratch, 'root');
    await fc.assert(fc.asyncProperty(program(STEPS).filter(({ user }) => user === undefined), (each) => played(each, root, (overlay) => {
      expect(archivedIn(fs, unpacked(overlay))).toEqual(archivedIn(overlay.fs as NodeFs, root));
    })), { numRuns: RUNS, seed: SEED });
  });

  it('keeps long names, names of any bytes, special files, links and extended attributes', async () => {
    const root = join(scratch, 'odd'), at = (name: string): string => join(root, name), long = 'd'.repeat(200);
    fs.mkdirSync(at(`${long}/${long}`), { recursive: true });
    fs.writeFileSync(at(`${long}/${long}/${'f'.repeat(255)}`), 'far down\n');
    fs.linkSync(at(`${long}/${long}/${'f'.repeat(255)}`), at('near'));
    execFileSync('mkfifo', [at('fifo')]);
    const overlay = Overlay.openSync({ root }), { fs: over } = overlay;
    over.writeFileSync(Buffer.concat([Buffer.from(at('bytes ')), Buffer.from([0xff, 0xfe])]), 'any\n');
    over.writeFileSync(Buffer.concat([Buffer.from(at('x'.repeat(120))), Buffer.from([0xff])]), 'long, and any\n');
    over.symlinkSync('t'.repeat(300), at('far link'));
    over.symlinkSync('grüße', at('ümlaut'));
    over.utimesSync(at('near'), -1.5, -1.5);
    const place = unpacked(overlay);
    expect(archivedIn(fs, place)).toEqual(archivedIn(over as NodeFs, root));
    expect(fs.statSync(join(place, 'fifo')).isFIFO()).toBe(true);
    await overlay.close();
  });

  it('is read by another reader of archives', async () => {
    const root = join(scratch, 'plain'), at = (name: string): string => join(root, name);
    fs.mkdirSync(at('dir'), { recursive: true });
    fs.writeFileSync(at('dir/file'), 'below\n');
    const overlay = Overlay.openSync({ root });
    overlay.fs.writeFileSync(at(`${'n'.repeat(150)}é`), Buffer.alloc(3_000_000, 7), { mode: 0o640 });
    overlay.fs.linkSync(at('dir/file'), at('second'));
    const found: string[] = [], reader = extract();
    reader.on('entry', ({ name, type, size, mode, linkname }, stream, next) => {
      found.push(`${name} ${type} ${size} ${mode?.toString(8)} ${linkname ?? ''}`.trim());
      stream.on('end', next).resume();
    });
    await pipeline(Readable.from(overlay.export('tar', {})), reader);
    expect(found).toEqual(['dir/ directory 0 755', 'dir/file file 6 644', `${'n'.repeat(150)}é file 3000000 640`, 'second link 0 644 dir/file']);
    await overlay.close();
  });

  it('leaves out what is not chosen, hidden or redacted', () => {
    const root = join(scratch, 'part'), at = (name: string): string => join(root, name);
    fs.mkdirSync(at('a/b'), { recursive: true });
    for (const name of ['a/b/key', 'a/b/plain', 'a/other', 'hidden']) fs.writeFileSync(at(name), `${name}\n`);
    const overlay = Overlay.openSync({ root, rules: [{ match: 'hidden', effect: 'hide' }] }), omitted: string[] = [];
    const names = (bytes: Buffer): string[] => execFileSync('tar', ['-t'], { input: bytes, encoding: 'utf8' }).trim().split('\n');
    const part = Buffer.concat([...overlay.export('tar', { paths: ['a/b'], redact: ['**/key'], onOmitted: ({ words }) => omitted.push(words) })]);
    expect(names(part)).toEqual(['a/', 'a/b/', 'a/b/key', 'a/b/plain']);
    expect(omitted).toEqual(['content of a/b/key, redacted']);
    expect(part.includes('a/b/key\n')).toBe(false);
    expect(part.toString('latin1')).toMatch(/redacted sha256:\w{64}\n/);
    expect(names(Buffer.concat([...overlay.export('tar', {})]))).not.toContain('hidden');
    overlay.closeSync();
  });
});

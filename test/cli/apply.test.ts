import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { differencesOf, patchOf } from '../../src/cli/difference.ts';
import { Overlay } from '../../src/index.ts';
import { program } from '../model/arbitrary.ts';
import { Player } from '../model/player.ts';
import type { Program } from '../model/program.ts';
import { buildTree } from '../model/tree.ts';
import { CI_SEED } from '../support/seed.ts';
import { ACTORS, type NodeFs, type World } from '../model/world.ts';

/** Programs that are played: the same ones each time, others and more with `APPLY_SEED` and `APPLY_RUNS`. */
const RUNS = Number(process.env['APPLY_RUNS'] ?? 120), SEED = Number(process.env['APPLY_SEED'] ?? CI_SEED);
const STEPS = 30;

/** Path, as latin1 → what git keeps of it. */
type Kept = Record<string, string>;

const ENVIRONMENT = { ...process.env, GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null', GIT_CEILING_DIRECTORIES: '/', LC_ALL: 'C' };

describe('what diff prints', () => {
  let scratch: string;
  beforeAll(() => { scratch = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'palimpsest-apply-'))); });
  afterAll(() => fs.rmSync(scratch, { recursive: true, force: true }));

  /** Applies the diff of an overlay to a copy of its lower; gives what is there then, and what should be. */
  function applied(root: string, overlay: Overlay): { there: Kept; wanted: Kept } {
    const copy = join(scratch, 'copy'), patch = join(scratch, 'patch');
    fs.rmSync(copy, { recursive: true, force: true });
    execFileSync('cp', ['-a', root, copy]);
    const lower = Overlay.openSync({ root });
    const bytes = [...differencesOf(overlay, lower, [])].flatMap((difference) => {
      const found = patchOf(difference);
      if (found === undefined) throw new Error(`no patch of ${difference.path}`);
      return [Buffer.from(difference.notes.map((note) => `# ${note}\n`).join('')), found];
    });
    lower.closeSync();
    fs.writeFileSync(patch, Buffer.concat(bytes));
    // Where git keeps nothing of what changed there is nothing to apply.
    if (/^diff --git/m.test(fs.readFileSync(patch, 'latin1'))) git(copy, ['apply', '--whitespace=nowarn', patch]);
    return { there: keptIn(fs, copy), wanted: keptIn(overlay.fs as NodeFs, root) };
  }

  function git(cwd: string, args: readonly string[]): void {
    const { status, stderr } = spawnSync('git', args, { cwd, env: ENVIRONMENT, encoding: 'utf8' });
    if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}\n${fs.readFileSync(join(scratch, 'patch'), 'latin1')}`);
  }

  async function play({ lower, umask, steps }: Program): Promise<void> {
    const root = join(scratch, 'root'), before = process.umask(umask);
    buildTree(root, lower);
    const overlay = Overlay.openSync({ root });
    const world: World = {
      root, leaksDescriptors: true, fs: (actor) => overlay.as(ACTORS[actor]).fs as NodeFs, reopen: async () => undefined, close: async () => overlay.close(),
    };
    const player = new Player(world, Date.now());
    try {
      for (const step of steps) await player.play(step);
      await player.closeAll();
      process.umask(0o022);
      const { there, wanted } = applied(root, overlay);
      expect(there).toEqual(wanted);
    } finally {
      process.umask(before);
      await overlay.close();
    }
  }

  it('is taken by git apply, and back, whatever changed', async () => {
    const root = join(scratch, 'fixed'), at = (name: string): string => join(root, name);
    fs.mkdirSync(at('moved/deep'), { recursive: true });
    const files: Record<string, string | Buffer> = {
      text: 'one\ntwo\nthree\n', crlf: 'one\r\ntwo\r\n', bytes: Buffer.from('a\xff\nb\n', 'latin1'), 'no newline': 'last', empty: '', gone: 'gone\n', 'gone.bin': Buffer.alloc(300),
      binary: Buffer.from([...Array(2000).keys()].map((each) => each * 7 % 256)), script: '#!/bin/sh\n', taken: 'taken\n', 'moved/deep/a': 'a\n', 'moved/b': 'b\n', linked: 'linked\n', 'new\nline "q" é': 'odd\n',
    };
    for (const [name, content] of Object.entries(files)) fs.writeFileSync(at(name), content);
    fs.linkSync(at('linked'), at('other name'));
    fs.symlinkSync('text', at('link'));
    execFileSync('mkfifo', [at('fifo')]);
    const overlay = Overlay.openSync({ root }), { fs: over } = overlay;
    over.writeFileSync(at('text'), 'one\n2\nthree');
    over.writeFileSync(at('crlf'), 'one\r\n2\r\n');
    over.writeFileSync(at('bytes'), Buffer.from('a\xff\nb\xfe\n', 'latin1'));
    over.appendFileSync(at('no newline'), ', and more');
    over.writeFileSync(at('empty'), 'no more\n');
    for (const name of ['gone', 'gone.bin', 'fifo']) over.rmSync(at(name));
    over.writeFileSync(at('binary'), Buffer.concat([Buffer.from([0]), files['binary'] as Buffer]));
    over.chmodSync(at('script'), 0o755);
    over.utimesSync(at('script'), 1, 1);
    over.renameSync(at('moved'), at('new\tname'));
    over.appendFileSync(at('new\tname/deep/a'), 'more\n');
    over.renameSync(at('text'), at('taken'));
    over.appendFileSync(at('linked'), 'through one name\n');
    over.linkSync(at('script'), at('hard'));
    over.rmSync(at('link'));
    over.mkdirSync(at('link'));
    over.writeFileSync(at('link/file of a directory'), '');
    over.symlinkSync(Buffer.from([0xff, 0x2f, 0x61]), at('to bytes'));
    over.writeFileSync(Buffer.concat([Buffer.from(at('name ')), Buffer.from([0xfe])]), 'name of bytes\n');
    over.renameSync(at('new\nline "q" é'), at('back\\slash'));
    const { there, wanted } = applied(root, overlay);
    expect(there).toEqual(wanted);
    git(join(scratch, 'copy'), ['apply', '--whitespace=nowarn', '-R', join(scratch, 'patch')]);
    expect(keptIn(fs, join(scratch, 'copy'))).toEqual(keptIn(fs, root));
    await overlay.close();
  });

  it('is taken by git apply, and makes of the lower what the overlay holds, for random programs', { timeout: 600_000 }, async () => {
    await fc.assert(fc.asyncProperty(program(STEPS).filter(({ user }) => user === undefined), play), { numRuns: RUNS, seed: SEED });
  });
});

/** What git keeps of a tree: files with their content and whether they are executable, symlinks. */
function keptIn(face: Pick<NodeFs, 'readdirSync' | 'lstatSync' | 'readlinkSync' | 'readFileSync'>, root: string): Kept {
  const kept: Kept = {};
  const visit = (path: Buffer): void => {
    for (const name of face.readdirSync(path, 'buffer')) {
      const whole = Buffer.concat([path, Buffer.from('/'), name]), stats = face.lstatSync(whole), key = whole.toString('latin1').slice(root.length + 1);
      if (stats.isDirectory()) visit(whole);
      else if (stats.isSymbolicLink()) kept[key] = `symlink ${face.readlinkSync(whole, 'latin1')}`;
      else if (stats.isFile()) kept[key] = `${(stats.mode & 0o100) === 0 ? 'file' : 'executable'} ${createHash('sha256').update(face.readFileSync(whole)).digest('hex')}`;
    }
  };
  visit(Buffer.from(root));
  return kept;
}

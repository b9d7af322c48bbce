import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Overlay, type Exports, type Omission } from '../../src/index.ts';
import { program } from '../model/arbitrary.ts';
import type { NodeFs } from '../model/world.ts';
import { CI_SEED } from '../support/seed.ts';
import { git, keptIn, played, type Kept } from './exported.ts';

const RUNS = Number(process.env['EXPORT_RUNS'] ?? 25), SEED = Number(process.env['EXPORT_SEED'] ?? CI_SEED);
const STEPS = 30;
/** A mark after every so many steps. */
const MARKED = 7;

describe('a history for git', () => {
  let scratch: string;
  beforeAll(() => { scratch = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'palimpsest-git-'))); });
  afterAll(() => fs.rmSync(scratch, { recursive: true, force: true }));

  /** Imports the history into a new repository; gives the commits, oldest first, by the event each was made at. */
  function imported(overlay: Overlay, options: Exports['git'] = {}): { repository: string; commits: { id: string; seq: number }[]; omitted: Omission[] } {
    const repository = join(scratch, 'repository'), stream = join(scratch, 'stream'), omitted: Omission[] = [];
    fs.rmSync(repository, { recursive: true, force: true });
    fs.mkdirSync(repository);
    const fd = fs.openSync(stream, 'w');
    for (const piece of overlay.export('git', { onOmitted: (each) => omitted.push(each), ...options })) fs.writeSync(fd, piece);
    fs.closeSync(fd);
    git(repository, ['init', '-q']);
    git(repository, ['fast-import', '--quiet'], stream, stream);
    const log = git(repository, ['log', '--reverse', '--format=%H %(trailers:key=Palimpsest-Seq,valueonly,separator=)', options.branch ?? 'palimpsest']);
    const commits = log.trim().split('\n').map((line) => ({ id: line.slice(0, 40), seq: Number(line.slice(41)) }));
    return { repository, commits, omitted };
  }

  function checkedOut(repository: string, id: string): Kept {
    git(repository, ['checkout', '-q', '-f', '--detach', id]);
    git(repository, ['clean', '-q', '-f', '-d', '-x']);
    return keptIn(fs, repository);
  }

  it('is the tree at every mark when it is imported and checked out, for random programs', { timeout: 600_000 }, async () => {
    const root = join(scratch, 'root');
    await fc.assert(fc.asyncProperty(program(STEPS).filter(({ user }) => user === undefined), async (each) => {
      const marks: { seq: number; tree: Kept }[] = [];
      let count = 0;
      const base = (overlay: Overlay): Kept => keptIn(overlay.fs as NodeFs, root);
      await played(each, root, (overlay) => {
        const wanted = [...marks.map(({ tree }) => tree), base(overlay)];
        const { repository, commits } = imported(overlay);
        const trees = commits.map(({ id }) => checkedOut(repository, id)), [beneath, ...after] = trees;
        expect(beneath).toEqual(keptIn(fs, root));
        expect(commits.slice(1, marks.length + 1).map(({ seq }) => seq)).toEqual(marks.map(({ seq }) => seq));
        expect(after).toEqual(wanted.slice(0, after.length));
        // Without a commit behind the last mark nothing happened there.
        expect(trees.at(-1)).toEqual(wanted.at(-1));
      }, { after: (overlay) => { if (++count % MARKED === 0) marks.push({ seq: overlay.mark(`step ${count}`), tree: base(overlay) }); } });
    }), { numRuns: RUNS, seed: SEED });
  });

  it('has labels, data, actors and times, and renames that git sees', async () => {
    const root = join(scratch, 'told'), at = (name: string): string => join(root, name);
    fs.mkdirSync(at('dir/.git'), { recursive: true });
    fs.writeFileSync(at('dir/a'), 'the same content\n'.repeat(9));
    fs.writeFileSync(at('dir/.git/config'), '');
    fs.writeFileSync(at('key'), 'secret\n');
    const clock = (): number => Date.UTC(2026, 1, 3, 4, 5, 6);
    const overlay = Overlay.openSync({ root, actor: 'ann <a@b>', clock });
    overlay.fs.renameSync(at('dir'), at('moved'));
    overlay.as('bob').fs.writeFileSync(at('b'), 'by bob\n');
    overlay.mark('first\nof two', { turn: 1 });
    overlay.mark('nothing');
    overlay.as('bob').fs.writeFileSync(at('key'), 'another\n');
    const { repository, commits, omitted } = imported(overlay, { branch: 'runs/42', redact: ['key'] });
    expect(commits).toHaveLength(4);
    expect(git(repository, ['log', '--format=%an|%ae|%at|%B', '-1', commits[1]?.id ?? ''])).toBe(
      `ann  a@b|ann-a-b@palimpsest.invalid|${clock() / 1000}|first\nof two\n\n{\n  "turn": 1\n}\n\nPalimpsest-Seq: ${commits[1]?.seq}\nCo-authored-by: bob <bob@palimpsest.invalid>\n\n`);
    expect(git(repository, ['show', '--format=', '--name-status', '-M', commits[1]?.id ?? '']).trim().split('\n')).toEqual(['A\tb', 'R100\tdir/a\tmoved/a']);
    expect(git(repository, ['show', '--format=%s', '--name-status', commits[2]?.id ?? '']).trim()).toBe('nothing');
    expect(git(repository, ['show', 'runs/42:key'])).toMatch(/^redacted sha256:\w{64}\n$/);
    expect(git(repository, ['log', '-p', 'runs/42'])).not.toContain('another');
    expect(omitted.map(({ path, kind }) => `${path} ${kind}`)).toEqual(['dir/.git repository', 'key redacted', 'moved/.git/config repository', 'key redacted']);
    const { commits: turns } = imported(overlay, { per: 'actor' });
    expect(turns.map(({ id }) => git(repository, ['log', '-1', '--format=%an %s', id]).trim())).toEqual([
      'palimpsest What was there before: ' + root, 'ann  a@b 1 change, not marked', 'ann  a@b first of two', 'ann  a@b nothing', 'bob 1 change, not marked',
    ]);
    expect(() => [...overlay.export('git', { branch: '../x' })]).toThrow(/no name for a branch/);
    await overlay.close();
  });

  it('begins with what is beneath after a commit to the directory', async () => {
    const root = join(scratch, 'committed'), at = (name: string): string => join(root, name);
    fs.mkdirSync(root);
    fs.writeFileSync(at('a'), 'a\n');
    const overlay = Overlay.openSync({ root });
    overlay.fs.writeFileSync(at('a'), 'published\n');
    overlay.fs.writeFileSync(at('b'), 'kept back\n');
    overlay.mark('before');
    await overlay.commit({ paths: ['a'] });
    overlay.fs.writeFileSync(at('c'), 'later\n');
    overlay.mark('after');
    const { repository, commits } = imported(overlay);
    expect(commits.map(({ id }) => Object.keys(checkedOut(repository, id)))).toEqual([['a'], ['a', 'b', 'c']]);
    expect(git(repository, ['show', `${commits[0]?.id}:a`])).toBe('published\n');
    await overlay.close();
  });

  it('is refused by git where it is cut short', () => {
    const root = join(scratch, 'short');
    fs.mkdirSync(root);
    const overlay = Overlay.openSync({ root }), stream = join(scratch, 'cut');
    overlay.fs.writeFileSync(join(root, 'a'), 'a\n');
    const whole = Buffer.concat([...overlay.export('git', {})]);
    overlay.closeSync();
    fs.writeFileSync(stream, whole.subarray(0, whole.length - 'done\n'.length));
    const repository = join(scratch, 'refusing');
    git(scratch, ['init', '-q', repository]);
    expect(() => git(repository, ['fast-import', '--quiet'], undefined, stream)).toThrow(/stream ends early/);
  });
});

import fs from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { recover } from '../../src/commit/recovery.ts';
import { acknowledge, pending, wasPublished } from '../../src/commit/site.ts';
import { bury, killed } from './faults.ts';
import { at, below, census, commit, file, now, plant, scratch } from './ground.ts';
import { mixedSteps, plantMixed } from './mixed.ts';

let root: string, clear: () => void;
beforeEach(() => { ({ root, clear } = scratch('recovery')); });
afterEach(() => clear());

const write = (name: string, text: string): void => fs.writeFileSync(path.join(root, name), text);
const read = (name: string): string => fs.readFileSync(path.join(root, name), 'utf8');
const staging = (): string => path.join(root, '.palimpsest-commit');

/** Kills a commit when its last step is done, and the journal does not say so yet. */
async function killedAtTheEnd(steps: () => Parameters<typeof commit>[1]): Promise<void> {
  await killed((name, target) => name === 'renameSync' && target.endsWith('/journal'), () => commit(root, steps()));
  bury(root);
}

describe('recovery', () => {
  it('has nothing to do where nothing was begun', async () => {
    plant(root, { a: 'a' });
    expect(pending(root)).toBe(undefined);
    await expect(recover(root)).resolves.toMatchObject({ outcome: 'nothing', left: [] });
  });

  it('says that something is pending, goes back, and leaves nothing', async () => {
    plantMixed(root);
    const before = census(root);
    await killedAtTheEnd(() => mixedSteps(root));
    expect(pending(root)).toMatchObject({ state: 'published', pid: undefined });
    expect(census(root)).not.toEqual(before);
    await expect(recover(root)).resolves.toMatchObject({ outcome: 'back', id: 'test', left: [], late: [] });
    expect(census(root)).toEqual(before);
    expect(pending(root)).toBe(undefined);
  });

  it('comes before the next commit', async () => {
    plantMixed(root);
    await killedAtTheEnd(() => mixedSteps(root));
    let told: unknown;
    await commit(root, [{ act: 'create', path: at('next'), node: file('x') }], { id: 'second', recovered: (recovery) => { told = recovery; } });
    expect(told).toMatchObject({ outcome: 'back', id: 'test' });
    expect(read('next')).toBe('x');
    expect(read('update')).toBe('old bytes');
  });

  it('leaves what an outsider wrote since, keeps the version before, and takes back the rest', async () => {
    plant(root, { a: 'a', b: 'b', c: 'c', 'd/x': 'x', m: 'm', 'r/in': 'in', p: 'p' });
    await killedAtTheEnd(() => [
      { act: 'replace', path: at('a'), before: now(root, 'a'), node: file('new a'), attributes: 'kept' },
      { act: 'replace', path: at('b'), before: now(root, 'b'), node: file('new b'), attributes: 'kept' },
      { act: 'remove', path: at('c'), before: now(root, 'c') },
      { act: 'remove', path: at('d'), before: now(root, 'd'), below: below(root, 'd') },
      { act: 'move', from: at('m'), to: at('n'), before: now(root, 'm') },
      { act: 'move', from: at('r'), to: at('s'), before: now(root, 'r') },
      { act: 'create', path: at('made'), node: { type: 'directory' } },
      { act: 'create', path: at('made/f'), node: file('f') },
      { act: 'create', path: at('new'), node: file('new') },
      { act: 'replace', path: at('p'), before: now(root, 'p'), node: file('new p'), attributes: 'kept' },
    ]);
    write('a', 'outsider');
    fs.unlinkSync(path.join(root, 'b'));
    write('c', 'outsider');
    fs.mkdirSync(path.join(root, 'd'));
    write('d/other', 'outsider');
    write('tmp', 'outsider');
    fs.renameSync(path.join(root, 'tmp'), path.join(root, 'n'));
    write('s/more', 'outsider');
    write('made/g', 'outsider');
    write('new', 'outsider');
    const { outcome, left } = await recover(root);
    expect(outcome).toBe('back');
    expect(left.map(({ path: where, found, saved }) => [where, found, saved.map(({ side, path: place }) => `${side}: ${read(`${place}${where === 'd' ? '/x' : ''}`)}`)])).toEqual([
      ['new', 'a file of 8 bytes', []], ['made', 'a directory', []], ['n', 'a file of 8 bytes', []], ['d', 'a directory', ['before: x']],
      ['c', 'a file of 8 bytes', ['before: c']], ['b', 'nothing', ['before: b']], ['a', 'a file of 8 bytes', ['before: a']],
    ]);
    for (const name of ['a', 'c', 'd/other', 'n', 'r/more', 'made/g', 'new']) expect(read(name)).toBe('outsider');
    expect([read('m'), read('r/in'), read('p')]).toEqual(['m', 'in', 'p']);
    expect(fs.readdirSync(root).sort()).toEqual(['.palimpsest-saved-test', 'a', 'c', 'd', 'm', 'made', 'n', 'new', 'p', 'r']);
    expect(fs.readdirSync(path.join(root, 'made'))).toEqual(['g']);
    expect(read('.palimpsest-saved-test/.gitignore')).toBe('*\n');
  });

  it('puts a file back into which an outsider wrote after it was displaced', async () => {
    plant(root, { a: 'a' });
    const fd = fs.openSync(path.join(root, 'a'), 'r+');
    await killedAtTheEnd(() => [{ act: 'replace', path: at('a'), before: now(root, 'a'), node: file('new'), attributes: 'kept' }]);
    fs.writeSync(fd, 'late');
    fs.closeSync(fd);
    await expect(recover(root)).resolves.toMatchObject({ outcome: 'back', left: [] });
    expect(read('a')).toBe('late');
  });

  it('tells of a commit that was done, to the session that could not write it down', async () => {
    plant(root, { a: 'a' });
    const steps = [{ act: 'replace', path: at('a'), before: now(root, 'a'), node: file('new'), attributes: 'kept' }] as const;
    await expect(commit(root, steps, { confirm: () => { throw new Error('the log is full'); } })).rejects.toThrow('the log is full');
    expect(read('a')).toBe('new');
    expect(wasPublished(root, 'test')).toBe(false);
    await expect(recover(root)).resolves.toMatchObject({ outcome: 'forward', id: 'test' });
    expect(wasPublished(root, 'test')).toBe(true);
    acknowledge(root, 'test');
    acknowledge(root, 'test');
    expect(wasPublished(root, 'test')).toBe(false);
    expect(fs.readdirSync(root)).toEqual(['a']);
  });

  it('leaves no word of a commit that was confirmed', async () => {
    plant(root, { a: 'a' });
    let confirmed = false;
    await commit(root, [{ act: 'remove', path: at('a'), before: now(root, 'a') }], { confirm: () => {
      confirmed = !fs.existsSync(path.join(root, 'a'));
    } });
    expect(confirmed).toBe(true);
    expect(fs.readdirSync(root)).toEqual([]);
  });
});

describe('a late write', () => {
  it('into a file that was replaced is reported, and its bytes are saved', async () => {
    plant(root, { a: 'a', 'd/b': 'b' });
    const one = fs.openSync(path.join(root, 'a'), 'r+'), two = fs.openSync(path.join(root, 'd/b'), 'r+');
    const { late } = await commit(root, [
      { act: 'replace', path: at('a'), before: now(root, 'a'), node: file('new'), attributes: 'kept' },
      { act: 'remove', path: at('d'), before: now(root, 'd'), below: below(root, 'd') },
    ], { confirm: () => {
      fs.writeSync(one, 'late a');
      fs.writeSync(two, 'late b');
    } });
    fs.closeSync(one);
    fs.closeSync(two);
    expect(late.map(({ path: where, saved }) => [where, read(saved)])).toEqual([['a', 'late a'], ['d/b', 'late b']]);
    expect(read('a')).toBe('new');
  });
});

describe('a journal', () => {
  const journal = (): string => path.join(staging(), 'journal');
  const interrupted = async (): Promise<string[]> => {
    plantMixed(root);
    await killedAtTheEnd(() => mixedSteps(root));
    return census(root);
  };

  it('of a newer version is refused by name, and nothing is touched', async () => {
    await interrupted();
    write('.palimpsest-commit/journal', '{"palimpsest-journal":2,"crc":"00000000"}\n');
    const before = census(root);
    await expect(recover(root)).rejects.toMatchObject({ code: 'ERR_JOURNAL_DAMAGED' });
    const { crc32 } = await import('node:zlib');
    const head = '{"palimpsest-journal":2';
    write('.palimpsest-commit/journal', `${head},"crc":"${crc32(head).toString(16).padStart(8, '0')}"}\n`);
    await expect(recover(root)).rejects.toMatchObject({ code: 'ERR_JOURNAL_NEWER', message: expect.stringContaining('format 2') as string });
    await expect(commit(root, [{ act: 'create', path: at('x'), node: file('') }])).rejects.toMatchObject({ code: 'ERR_JOURNAL_NEWER' });
    expect(census(root).filter((line) => !line.includes('/journal"'))).toEqual(before.filter((line) => !line.includes('/journal"')));
  });

  it.each([
    ['with a byte changed', (bytes: Buffer) => { bytes[300] = (bytes[300] as number) ^ 1; return bytes; }],
    ['cut short', (bytes: Buffer) => bytes.subarray(0, bytes.length - 5)],
    ['without its last line', (bytes: Buffer) => bytes.subarray(0, bytes.lastIndexOf(10, bytes.length - 2) + 1)],
    ['with a line missing', (bytes: Buffer) => Buffer.concat([bytes.subarray(0, bytes.indexOf(10) + 1), bytes.subarray(bytes.indexOf(10, bytes.indexOf(10) + 1) + 1)])],
    ['with something behind it', (bytes: Buffer) => Buffer.concat([bytes, bytes.subarray(0, bytes.indexOf(10) + 1)])],
    ['that is empty', () => Buffer.alloc(0)],
  ])('%s is refused, and nothing is touched', async (_, harm) => {
    await interrupted();
    fs.writeFileSync(journal(), harm(fs.readFileSync(journal())));
    const before = census(root);
    await expect(recover(root)).rejects.toMatchObject({ code: 'ERR_JOURNAL_DAMAGED', file: journal() });
    expect(census(root)).toEqual(before);
  });
});

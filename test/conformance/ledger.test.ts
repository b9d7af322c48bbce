import { appendFileSync, chmodSync, lstatSync, mkdirSync, mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { differences } from './ledger.ts';

let scratch = '', dir = '', ledger = '';
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), 'palimpsest-ledger-'));
  [dir, ledger] = [join(scratch, 'dir'), join(scratch, 'ledger')];
  mkdirSync(join(dir, 'a'), { recursive: true });
  writeFileSync(join(dir, 'a/b'), 'bytes');
  for (const path of ['a', 'a/b']) note(join(dir, path));
});
afterEach(() => { rmSync(scratch, { recursive: true }); });

function note(path: string): void {
  const { mode, ino, size, mtimeNs, ctimeNs } = lstatSync(path, { bigint: true });
  const keys = lstatSync(path).isDirectory() ? [mode, ino] : [mode, ino, size, mtimeNs, ctimeNs];
  appendFileSync(ledger, `${JSON.stringify([path, keys.join(' ')])}\n`);
}

it('finds nothing where all is as noted', () => {
  expect(differences(dir, ledger)).toEqual([]);
});

it.each<[string, () => void, RegExp[]]>([
  ['a file that no one noted', () => { writeFileSync(join(dir, 'new'), ''); }, [/^appeared: .*new$/]],
  ['a file that is gone', () => { rmSync(join(dir, 'a/b')); }, [/^gone: .*b$/]],
  ['a file that moved', () => { renameSync(join(dir, 'a/b'), join(dir, 'c')); }, [/^appeared: .*c$/, /^gone: .*b$/]],
  ['other bytes', () => { writeFileSync(join(dir, 'a/b'), 'other'); }, [/^changed: .*b,/]],
  ['other times alone', () => { utimesSync(join(dir, 'a/b'), 1, 1); }, [/^changed: .*b,/]],
  ['another mode of a directory', () => { chmodSync(join(dir, 'a'), 0o700); }, [/^changed: .*a,/]],
])('finds %s', (_, change, lines) => {
  change();
  const found = differences(dir, ledger);
  expect(found).toHaveLength(lines.length);
  for (const [index, line] of lines.entries()) expect(found[index]).toMatch(line);
});

import { renameSync } from 'node:fs';
import { join } from 'node:path';
import fastGlob, { type FileSystemAdapter } from 'fast-glob';
import { glob, globStream, globSync } from 'glob';
import * as tinyglobby from 'tinyglobby';
import { describe, expect, it } from 'vitest';
import { WORK_MS, onBoth, packagesInto, twin, type Side } from './twin.ts';

/** A tree of some thousand files, changed in every way that a listing may show. */
function change({ fs, dir }: Side): void {
  const at = (path: string): string => join(dir, 'node_modules', path);
  fs.rmSync(at('memfs/lib'), { recursive: true });
  fs.renameSync(at('picomatch'), at('renamed'));
  fs.mkdirSync(at('immer/dist'), { recursive: true });
  fs.writeFileSync(at('immer/dist/added.js'), 'new');
  fs.writeFileSync(at('immer/.hidden.js'), 'dot');
  fs.unlinkSync(at('immer/package.json'));
  fs.symlinkSync('../renamed', at('memfs/link'));
  fs.symlinkSync('nowhere', at('memfs/dangling.js'));
  // A directory that lost its own files and got others is another directory of the same name.
  fs.rmSync(at('nanoid'), { recursive: true });
  fs.mkdirSync(at('nanoid'));
  fs.writeFileSync(at('nanoid/only.js'), '');
}

const PACKAGES = ['memfs', 'picomatch', 'immer', 'nanoid', 'webpack'];
const PATTERNS = ['**', '**/*.js', '**/{package.json,*.d.ts}', 'node_modules/*/', 'node_modules/renamed/**', '**/.*', 'node_modules/memfs/**/*.js', '!**/lib/**'];

function sides(): readonly [Side, Side] {
  const both = twin((dir) => {
    packagesInto(dir, PACKAGES);
    // In the lower from the start, so that the renaming above moves a directory that was itself never listed.
    renameSync(join(dir, 'node_modules/picomatch/lib'), join(dir, 'node_modules/picomatch/inner'));
  }).sides;
  for (const side of both) change(side);
  return both;
}

const sorted = (paths: Iterable<unknown>): string[] => [...paths].map(String).sort();

describe('fast-glob', () => {
  it('finds the same, by sync calls, promises and streams', { timeout: WORK_MS }, async () => {
    const both = sides();
    for (const pattern of PATTERNS.slice(0, -1)) {
      const [ours, real] = await onBoth(both, async ({ fs, dir }) => {
        const options = { cwd: dir, fs: fs as unknown as Partial<FileSystemAdapter>, dot: true, stats: false };
        const streamed: unknown[] = [];
        for await (const path of fastGlob.stream(pattern, options)) streamed.push(path);
        return [
          sorted(fastGlob.sync(pattern, options)), sorted(await fastGlob(pattern, options)), sorted(streamed),
          sorted(fastGlob.sync(pattern, { ...options, onlyFiles: false, markDirectories: true, followSymbolicLinks: false })),
        ];
      });
      expect(ours, pattern).toEqual(real);
    }
  });

  it('gives the stats that the fs gives', { timeout: WORK_MS }, async () => {
    const [ours, real] = await onBoth(sides(), ({ fs, dir }) =>
      fastGlob.sync('**/*.json', { cwd: dir, fs: fs as unknown as Partial<FileSystemAdapter>, stats: true })
        .map(({ path, stats }) => `${path} ${stats?.size} ${stats?.mode}`).sort());
    expect(ours).toEqual(real);
    expect(ours.length).toBeGreaterThan(10);
  });
});

describe('tinyglobby', () => {
  it('finds the same, by sync calls and promises', { timeout: WORK_MS }, async () => {
    const both = sides();
    for (const pattern of PATTERNS) {
      const [ours, real] = await onBoth(both, async ({ fs, dir }) => {
        const options = { cwd: dir, fs, dot: true, patterns: pattern.startsWith('!') ? ['**', pattern] : [pattern] };
        return [
          sorted(tinyglobby.globSync(options)), sorted(await tinyglobby.glob(options)),
          sorted(tinyglobby.globSync({ ...options, onlyDirectories: true })), sorted(tinyglobby.globSync({ ...options, followSymbolicLinks: false })),
        ];
      });
      expect(ours, pattern).toEqual(real);
    }
  });
});

describe('glob', () => {
  it('finds the same, by sync calls, promises and streams, with and without stats', { timeout: WORK_MS }, async () => {
    const both = sides();
    for (const pattern of PATTERNS.slice(0, -1)) {
      const [ours, real] = await onBoth(both, async ({ fs, dir }) => {
        const options = { cwd: dir, fs, dot: true };
        const streamed: unknown[] = [];
        for await (const path of globStream(pattern, options)) streamed.push(path);
        return [
          sorted(globSync(pattern, options)), sorted(await glob(pattern, options)), sorted(streamed),
          sorted(globSync(pattern, { ...options, follow: true, mark: true, ignore: '**/lib/**' })),
          (await glob(pattern, { ...options, withFileTypes: true, stat: true })).map((entry) => `${entry.relative()} ${entry.mode} ${entry.isFile() && entry.size}`).sort(),
        ];
      });
      expect(ours, pattern).toEqual(real);
    }
  });
});

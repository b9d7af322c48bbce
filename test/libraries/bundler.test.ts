import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import resolver from 'enhanced-resolve';
import { describe, expect, it } from 'vitest';
import webpack from 'webpack';
import { WORK_MS, onBoth, packagesInto, treeOf, twin, type Side } from './twin.ts';

function fill(dir: string): void {
  packagesInto(dir, ['immer', 'nanoid', 'picomatch', 'memfs', 'thingies', 'tslib']);
  writeFileSync(join(dir, 'package.json'), '{ "name": "app", "type": "module" }');
  writeFileSync(join(dir, 'entry.js'), `
import { produce } from 'immer';
import picomatch from 'picomatch';
import { greet } from './greet';
export default produce({ names: [] }, (draft) => { draft.names.push(greet('x'), picomatch.isMatch('a/b', '*/b')); });
`);
  writeFileSync(join(dir, 'greet.js'), `export const greet = (name) => 'hello ' + name;\n`);
}

const REQUESTS = [
  './entry', './entry.js', './greet', 'immer', 'immer/package.json', 'nanoid', 'nanoid/non-secure', 'picomatch', 'memfs/lib/node',
  './nothing', 'no-such-package', 'immer/no/such/file', './node_modules/immer', 'app', '../outside',
];

describe('enhanced-resolve', () => {
  it.each([['with its cache', true], ['without a cache', false]])('resolves and refuses the same, %s', { timeout: WORK_MS }, async (_, cached) => {
    const { sides, overlay } = twin(fill);
    const [ours, real] = await onBoth(sides, async ({ fs, dir }) => {
      const fileSystem = cached ? new resolver.CachedInputFileSystem(fs, 4000) : fs;
      const options = { fileSystem, extensions: ['.mts', '.js', '.json'], conditionNames: ['import', 'default'] };
      const sync = resolver.ResolverFactory.createResolver({ ...options, fileSystem, useSyncFileSystemCalls: true });
      const plain = resolver.ResolverFactory.createResolver({ ...options, fileSystem });
      const results: string[] = [];
      for (const request of REQUESTS) {
        const outcome = (error: Error | null, found?: string | false): string =>
          `${request}: ${(error === null ? String(found) : error.message).replaceAll(dir, '<dir>')}`;
        results.push(await new Promise((done) => {
          plain.resolve({}, dir, request, {}, (error, found) => { done(outcome(error, found)); });
        }));
        try {
          results.push(outcome(null, sync.resolveSync({}, dir, request)));
        } catch (error) {
          results.push(outcome(error as Error));
        }
      }
      return results;
    });
    expect(ours).toEqual(real);
    expect(ours.filter((line) => line.includes("Can't resolve"))).not.toEqual([]);
    // What was looked for and not there is in the log: the candidate that was tried before entry.js.
    const missed = [...overlay.events({ op: 'miss' })].map((event) => 'path' in event && event.path);
    expect(missed).toContain('entry.mts');
  });
});

describe('webpack', () => {
  it('reads from the overlay and writes its bundle there, the same as on the disk', { timeout: WORK_MS }, async () => {
    const { sides } = twin(fill);
    const [ours, real] = await onBoth(sides, async (side) => {
      const first = await bundle(side);
      side.fs.writeFileSync(join(side.dir, 'greet.js'), `export const greet = (name) => 'good morning ' + name;\n`);
      side.fs.rmSync(join(side.dir, 'node_modules/nanoid'), { recursive: true });
      return { first, second: await bundle(side) };
    });
    expect(ours).toEqual(real);
    expect(ours.first.assets).not.toEqual(ours.second.assets);
    expect(treeOf(sides[0])).toEqual(treeOf(sides[1]));
  });

  it('reports what it does not find in the words it has for the real fs', { timeout: WORK_MS }, async () => {
    const { sides } = twin(fill);
    const [ours, real] = await onBoth(sides, async (side) => {
      side.fs.unlinkSync(join(side.dir, 'greet.js'));
      return bundle(side);
    });
    expect(ours).toEqual(real);
    expect(ours.errors.join('\n')).toContain("Can't resolve './greet'");
  });
});

/** One run of the compiler: what it wrote and what it complained of. */
async function bundle({ fs, dir }: Side): Promise<{ errors: string[]; assets: Record<string, string> }> {
  const compiler = webpack({
    context: dir, entry: './entry.js', mode: 'production', target: 'node',
    output: { path: join(dir, 'dist'), clean: true }, optimization: { minimize: false }, resolve: { symlinks: false, fullySpecified: false },
    module: { rules: [{ test: /\.js$/, resolve: { fullySpecified: false } }] },
  });
  compiler.inputFileSystem = new resolver.CachedInputFileSystem(fs, 4000) as unknown as NonNullable<typeof compiler.inputFileSystem>;
  compiler.outputFileSystem = fs as unknown as NonNullable<typeof compiler.outputFileSystem>;
  compiler.intermediateFileSystem = fs as unknown as NonNullable<typeof compiler.intermediateFileSystem>;
  const stats = await new Promise<webpack.Stats>((done, fail) => {
    compiler.run((error, result) => {
      if (error !== null || result === undefined) fail(error ?? new Error('webpack gave nothing'));
      else done(result);
    });
  });
  await new Promise<void>((done) => { compiler.close(() => { done(); }); });
  const { errors = [] } = stats.toJson({ all: false, errors: true });
  const written = stats.hasErrors() ? [] : fs.readdirSync(join(dir, 'dist'));
  return {
    errors: errors.map(({ message }) => message.replaceAll(dir, '<dir>')),
    assets: Object.fromEntries(written.map((name) => [name, fs.readFileSync(join(dir, 'dist', name), 'utf8')])),
  };
}

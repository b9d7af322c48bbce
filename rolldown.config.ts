import { resolve } from 'node:path';
import { defineConfig } from 'rolldown';

const library = resolve('dist/index.js');

/** Bundles what tsc has made: the library as one file, and the command, whose verbs are loaded one by one. */
export default defineConfig([
  {
    input: 'dist/index.js',
    platform: 'node',
    external: ['immer', 'nanoid', 'picomatch'],
    output: { file: 'dist/palimpsest.js', format: 'esm', sourcemap: true },
  },
  {
    input: { palimpsest: 'dist/cli/main.js' },
    platform: 'node',
    plugins: [{
      name: 'the library stays one file',
      async resolveId(specifier, importer, options) {
        if (!specifier.startsWith('.')) return undefined;
        const found = await this.resolve(specifier, importer, { ...options, skipSelf: true });
        return found?.id === library ? { id: '../palimpsest.js', external: true } : undefined;
      },
    }],
    output: { dir: 'dist/bin', format: 'esm', chunkFileNames: '[name].js', cleanDir: true },
  },
]);

import { defineConfig } from 'rolldown';

/**
 * Bundles what tsc has made. All entries share what they have in common, so that what one makes the others know: the
 * library, the command (whose verbs are loaded one by one), and the thread that serves a mount.
 */
export default defineConfig({
  input: {
    palimpsest: 'dist/index.js', mount: 'dist/mount/index.js', tools: 'dist/tools/index.js', cli: 'dist/cli/main.js',
    worker: 'dist/mount/worker.js', pump: 'dist/mount/pump.js',
  },
  platform: 'node',
  external: ['immer', 'nanoid', 'picomatch'],
  output: { dir: 'dist/bundle', format: 'esm', sourcemap: true, chunkFileNames: '[name].js', cleanDir: true },
});

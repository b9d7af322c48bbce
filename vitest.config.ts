import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/seed.ts'],
    // Tests change umask, working directory and open descriptors: those belong to a process, not to a thread.
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    teardownTimeout: 10_000,
    // A test that changes a global must put it back itself; a mock never outlives its test.
    restoreMocks: true,
    unstubEnvs: true,
  },
});

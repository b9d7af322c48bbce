import fc from 'fast-check';

/** The seed of every property in CI; elsewhere each run has another. */
export const CI_SEED = 1;

if (process.env['CI'] !== undefined) fc.configureGlobal({ seed: CI_SEED });

'use strict';
/**
 * Loaded (--require) before a test of Node's suite, and in every Node process and worker that the test starts: files
 * below CONFORMANCE_SUITE get the subject where they ask for fs or fs/promises. All other code, the subject's own and
 * Node's, keeps the real ones.
 *
 * CONFORMANCE_SUBJECT is a module that exports `({ testDir, suiteDir }) => fs`.
 */
const Module = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');

const suiteDir = process.env.CONFORMANCE_SUITE;
const isOfSuite = (file) => typeof file === 'string' && file.startsWith(suiteDir + path.sep);

const subject = quietly(() => require(process.env.CONFORMANCE_SUBJECT)({ testDir: process.env.NODE_TEST_DIR, suiteDir }));

const substitutes = {
  'fs': subject, 'node:fs': subject,
  'fs/promises': subject.promises, 'node:fs/promises': subject.promises,
};
const loadReal = Module._load;
Module._load = function load(request, parent, isMain) {
  return Object.hasOwn(substitutes, request) && isOfSuite(parent?.filename)
    ? substitutes[request] : loadReal.call(this, request, parent, isMain);
};

if (process.argv[1]?.endsWith('.mjs')) {
  globalThis[Symbol.for('conformance.subject')] = subject;
  quietly(() => Module.register(pathToFileURL(path.join(__dirname, 'hooks.mjs')), { data: pathToFileURL(suiteDir).href + '/' }));
}

// A directory that only the subject has can be no real working directory: it is remembered here instead.
const real = { cwd: process.cwd, chdir: process.chdir };
let remembered;
process.cwd = () => remembered ?? real.cwd.call(process);
process.chdir = (directory) => {
  const target = path.resolve(directory);
  try {
    real.chdir.call(process, directory);
    remembered = undefined;
  } catch (error) {
    if (error.code !== 'ENOENT' || !subject.statSync(target, { throwIfNoEntry: false })?.isDirectory()) throw error;
    remembered = target;
  }
};

/** Runs `action` without its warnings: tests count those they see. */
function quietly(action) {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return action();
  } finally {
    process.emitWarning = emitWarning;
  }
}

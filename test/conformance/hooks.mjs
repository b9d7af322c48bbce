/**
 * Module hooks for the suite's ES modules: `import … from 'fs'` there is a module made of the subject's members. They
 * run on a thread of their own, so they only write its source; the subject is found by the source when it runs.
 */
import * as fs from 'node:fs';
import * as promises from 'node:fs/promises';

const SCHEME = 'conformance-subject:';
const NAMES = { 'fs': Object.keys(fs), 'fs/promises': Object.keys(promises) };
let suite;

export function initialize(suiteUrl) {
  suite = suiteUrl;
}

export async function resolve(specifier, context, next) {
  const name = specifier.replace(/^node:/, '');
  if (!Object.hasOwn(NAMES, name) || !context.parentURL?.startsWith(suite)) return next(specifier, context);
  return { url: SCHEME + name, shortCircuit: true };
}

export async function load(url, context, next) {
  if (!url.startsWith(SCHEME)) return next(url, context);
  const name = url.slice(SCHEME.length);
  const source = [
    `const subject = globalThis[Symbol.for('conformance.subject')]${name === 'fs' ? '' : '.promises'};`,
    'export default subject;',
    ...NAMES[name].filter((key) => key !== 'default').map((key) => `export const ${key} = subject.${key};`),
  ];
  return { format: 'module', source: source.join('\n'), shortCircuit: true };
}

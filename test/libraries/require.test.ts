import { createRequire } from 'node:module';
import { join } from 'node:path';
import { patchRequire } from 'fs-monkey';
import { expect, it } from 'vitest';
import { packagesInto, twin } from './twin.ts';

// In a file of its own, and so in a process of its own: the patch cannot be taken back.
it('fs-monkey lets require load modules that only the overlay has', () => {
  const { sides: [{ fs, dir }] } = twin((target) => { packagesInto(target, ['picomatch']); }, { outside: 'readonly' });
  fs.writeFileSync(join(dir, 'index.js'), `module.exports = require('picomatch').isMatch('a/b', '*/b') && require('./part');\n`);
  fs.writeFileSync(join(dir, 'part.js'), `module.exports = 'loaded';\n`);
  fs.renameSync(join(dir, 'node_modules/picomatch/lib'), join(dir, 'lib'));
  fs.symlinkSync('../../lib', join(dir, 'node_modules/picomatch/lib'));
  patchRequire(fs);
  expect(createRequire(import.meta.url)(join(dir, 'index.js'))).toBe('loaded');
});

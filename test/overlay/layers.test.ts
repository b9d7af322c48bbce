import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { glance, lowerOf, Overlay } from '../../src/index.ts';

describe('the lower that a session names', () => {
  let scratch: string;
  beforeEach(() => { scratch = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'palimpsest-layers-'))); });
  afterEach(() => fs.rmSync(scratch, { recursive: true, force: true }));

  it('is one directory, there or not, whatever is in its name; or the ones that were stacked', () => {
    const session = join(scratch, 'session'), [odd, plain] = [join(scratch, 'a:b'), join(scratch, 'c')];
    for (const directory of [odd, plain]) fs.mkdirSync(directory);
    for (const lower of [[odd], [odd, plain]]) {
      fs.rmSync(session, { recursive: true, force: true });
      Overlay.openSync({ lower, session }).closeSync();
      const expected = lower.length === 1 ? { root: odd } : { lower };
      expect(lowerOf(glance(session).header)).toEqual(expected);
      fs.renameSync(odd, odd + '.gone');
      expect(lowerOf(glance(session).header)).toEqual(expected);
      fs.renameSync(odd + '.gone', odd);
    }
  });
});

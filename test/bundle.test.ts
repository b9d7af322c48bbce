import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import * as source from '../src/index.ts';
import type * as toolSource from '../src/tools/index.ts';

/** What package.json exports. Named by a variable, since it is there only after a build. */
const { exports } = JSON.parse(fs.readFileSync('package.json', 'utf8')) as { exports: { '.': { default: string } } };
const bundle: string = path.resolve(exports['.'].default);

describe('the built package', () => {
  it('has the tools for its own overlays, refusing with its own class of error', async () => {
    const { Overlay, FsError, observationPolicy } = await import(bundle) as typeof source;
    const { tools } = await import(path.resolve('dist/bundle/tools.js')) as typeof toolSource;
    const root = fs.mkdtempSync(path.join(os.tmpdir(), 'palimpsest-bundle-'));
    fs.writeFileSync(path.join(root, 'a'), 'x');
    const overlay = await Overlay.open({ root });
    overlay.use(observationPolicy());
    expect(() => tools(overlay).write.execute({ file_path: 'a', content: '' })).toThrow(FsError);
    await overlay.close();
    fs.rmSync(root, { recursive: true });
  });

  it('gives what the source gives, and works', async () => {
    const built = await import(bundle) as typeof source;
    expect(Object.keys(built).sort()).toEqual(Object.keys(source).sort());
    const root = fs.mkdtempSync(path.join(os.tmpdir(), 'palimpsest-bundle-'));
    const overlay = await built.Overlay.open({ root });
    overlay.fs.writeFileSync(path.join(root, 'a'), 'x');
    expect(overlay.changes()).toMatchObject([{ kind: 'create', path: 'a' }]);
    await overlay.close();
    fs.rmdirSync(root);
  });

  it('loads no file but its own and those of its dependencies', () => {
    const packages = new Set<string>(), files = [path.basename(bundle)];
    for (const file of files) {
      const lines = fs.readFileSync(path.join(path.dirname(bundle), file), 'utf8').split('\n').filter((line) => line.startsWith('import '));
      for (const name of lines.map((line) => line.split('"')[1] as string)) {
        if (name.startsWith('./')) files.push(...(files.includes(path.basename(name)) ? [] : [path.basename(name)]));
        else if (!name.startsWith('node:')) packages.add(name);
      }
    }
    expect([...packages].sort()).toEqual(['immer', 'nanoid', 'picomatch']);
    expect(files.length).toBeLessThanOrEqual(6);
  });
});

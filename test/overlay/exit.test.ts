import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { expect, it } from 'vitest';
import { lowerWith, opened } from './ground.ts';

it('keeps the last events of a process that ends without closing its session', () => {
  const root = lowerWith({ a: 'x' }), session = path.join(root, '../session');
  const program = `
    import { Overlay } from ${JSON.stringify(path.resolve('src/index.ts'))};
    const overlay = Overlay.openSync({ root: ${JSON.stringify(root)}, session: ${JSON.stringify(session)} });
    overlay.fs.readFileSync(${JSON.stringify(path.join(root, 'a'))});
    overlay.fs.writeFileSync(${JSON.stringify(path.join(root, 'b'))}, 'kept');
  `;
  execFileSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', program], { cwd: path.resolve('.') });
  const overlay = opened({ root, session });
  expect(overlay.fs.readFileSync(path.join(root, 'b'), 'utf8')).toBe('kept');
  expect([...overlay.events({ to: 2 })].map(({ op }) => op)).toEqual(['read', 'write']);
});

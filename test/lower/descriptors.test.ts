import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openDirectoryLower } from '../../src/lower/directory.ts';
import { at, descriptors, outcome, planted } from './ground.ts';

it('walks 5,000 directories with no more descriptors than it was granted', () => {
  const root = planted({});
  const paths: string[] = [];
  for (let outer = 0; outer < 50; outer++) {
    for (let inner = 0; inner < 100; inner++) paths.push(`d${outer}/e${inner}`);
  }
  for (const path of paths) mkdirSync(join(root, path), { recursive: true });
  for (const path of paths) writeFileSync(join(root, path, 'x'), path);
  const before = descriptors();
  const lower = openDirectoryLower(root, { by: 'descriptors', descriptors: 40 });
  let most = 0;
  for (let round = 0; round < 2; round++) {
    for (const [index, path] of paths.entries()) {
      expect(outcome(() => lower.slurp(at(`${path}/x`), 100))).toBe(`whole: ${path}`);
      expect(outcome(() => lower.list(at(path)))).toEqual(['x file']);
      if (index % 50 === 0) most = Math.max(most, descriptors() - before);
    }
  }
  // One more: the root's own.
  expect(most).toBeLessThanOrEqual(41);
  expect(most).toBeGreaterThan(20);
  lower.close();
  expect(descriptors()).toBe(before);
});

it('holds a quarter of what the process may have, all lowers together', () => {
  const root = planted(Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`d${index}/x`, 'text'])));
  const script = `
    import { readdirSync } from 'node:fs';
    import { openDirectoryLower } from ${JSON.stringify(join(import.meta.dirname, '../../src/lower/directory.ts'))};
    const before = readdirSync('/proc/self/fd').length;
    const lowers = [1, 2, 3].map(() => openDirectoryLower(${JSON.stringify(root)}));
    for (let round = 0; round < 3; round++) for (let d = 0; d < 200; d++) for (const lower of lowers) lower.slurp('d' + d + '/x', 100);
    process.stdout.write(String(readdirSync('/proc/self/fd').length - before - lowers.length));`;
  const held = execFileSync('sh', ['-c', 'ulimit -n 400; exec "$@"', 'sh', process.execPath, '--import',
    import.meta.resolve('tsx'), '--input-type=module', '-e', script]).toString();
  expect(Number(held)).toBe(100);
});

it('gives back its descriptors rather than fail when the process has none left', () => {
  const root = planted(Object.fromEntries(Array.from({ length: 90 }, (_, index) => [`d${index}/x`, `text ${index}`])));
  const script = `
    import { openSync } from 'node:fs';
    import { openDirectoryLower } from ${JSON.stringify(join(import.meta.dirname, '../../src/lower/directory.ts'))};
    const lower = openDirectoryLower(${JSON.stringify(root)}, { descriptors: 60 });
    for (let d = 0; d < 90; d++) lower.slurp('d' + d + '/x', 100);
    try { for (;;) openSync('/dev/null'); } catch (error) { if (error.code !== 'EMFILE') throw error; }
    const texts = [];
    for (let d = 0; d < 90; d++) texts.push(Buffer.from(lower.slurp('d' + d + '/x', 100).bytes).toString());
    process.stdout.write(texts.join());`;
  const texts = execFileSync('sh', ['-c', 'ulimit -n 200; exec "$@"', 'sh', process.execPath, '--import',
    import.meta.resolve('tsx'), '--input-type=module', '-e', script]).toString();
  expect(texts).toBe(Array.from({ length: 90 }, (_, index) => `text ${index}`).join());
});

it.each(['descriptors', 'checks'] as const)('by %s: leaves none open, whatever the outcome', (by) => {
  const root = planted({ 'a/b/x': 'text', 'a/link': { link: 'b' }, 'a/big': 'b'.repeat(1000) });
  execFileSync('mkfifo', [join(root, 'a/fifo')]);
  const before = descriptors();
  const lower = openDirectoryLower(root, { by });
  for (let round = 0; round < 30; round++) {
    for (const path of ['', 'a', 'a/b', 'a/b/x', 'a/link', 'a/link/x', 'a/big', 'a/fifo', 'a/none', 'none/x', 'n'.repeat(300)]) {
      for (const call of [
        () => lower.lstat(at(path)), () => lower.slurp(at(path), 100), () => lower.open(at(path)), () => lower.list(at(path)),
        () => lower.readlink(at(path)),
      ]) outcome(call);
    }
    renameSync(join(root, 'a'), join(root, `gone${round}`));
    outcome(() => lower.slurp(at('a/b/x'), 100));
    renameSync(join(root, `gone${round}`), join(root, 'a'));
  }
  lower.close();
  lower.close();
  expect(descriptors()).toBe(before);
});

it('opens nothing for a root that it refuses', () => {
  const root = planted({ x: '' });
  const before = descriptors();
  for (const path of ['none', 'x', 'x/y']) expect(() => openDirectoryLower(join(root, path))).toThrow();
  expect(descriptors()).toBe(before);
});

it('is closed for good', () => {
  const lower = openDirectoryLower(planted({ 'a/x': '' }), { by: 'descriptors' });
  outcome(() => lower.lstat(at('a/x')));
  lower.close();
  for (const path of ['', 'a', 'a/x']) expect(outcome(() => lower.lstat(at(path)))).toBe('refused EBADF');
  expect(outcome(() => lower.slurp(at('a/x'), 100))).toBe('refused EBADF');
});

it.runIf(process.getuid?.() === 0)('passes on what the system refuses, and searches directories that it may not read', () => {
  const root = planted({ 'closed/x': 'text', 'search/x': 'text', 'unread': 'text' });
  chmodSync(root, 0o755);
  chmodSync(join(root, 'closed'), 0);
  chmodSync(join(root, 'search'), 0o711);
  chmodSync(join(root, 'unread'), 0o600);
  const script = `
    import { openDirectoryLower } from ${JSON.stringify(join(import.meta.dirname, '../../src/lower/directory.ts'))};
    process.setgroups([]); process.setgid(65534); process.setuid(65534);
    const lower = openDirectoryLower(${JSON.stringify(root)});
    const told = (call) => { try { const found = call(); return found.kind ?? (typeof found === 'string' ? found : found.length ?? 'attr'); } catch (refusal) { return refusal.code; } };
    const outcomes = [];
    for (let look = 0; look < 20; look++) outcomes.push([
      told(() => lower.lstat('closed')), told(() => lower.lstat('closed/x')), told(() => lower.slurp('closed/x', 100)), told(() => lower.list('closed')),
      told(() => lower.lstat('search/x')), told(() => lower.slurp('search/x', 100)), told(() => lower.lstat('search/none')), told(() => lower.list('search')),
      told(() => lower.slurp('unread', 100)),
    ].join());
    process.stdout.write([...new Set(outcomes)].join(' '));`;
  expect(execFileSync(process.execPath, ['--import', import.meta.resolve('tsx'), '--input-type=module', '-e', script]).toString())
    .toBe('attr,EACCES,EACCES,EACCES,attr,whole,absent,EACCES,EACCES');
  rmSync(join(root, 'closed'), { recursive: true });
});

import { execFileSync } from 'node:child_process';
import { chownSync, closeSync, constants, openSync, statSync, utimesSync, writeFileSync, chmodSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openDirectoryLower } from '../../src/lower/directory.ts';
import { at, kept, outcome, planted } from './ground.ts';

const isRoot = process.getuid?.() === 0;

/** Whether anyone has the FIFO open for reading: without, a writer that does not wait is refused. */
function hasReader(fifo: string): boolean {
  try {
    closeSync(openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK));
    return true;
  } catch (error) {
    if ((error as { code?: string }).code !== 'ENXIO') throw error;
    return false;
  }
}

/** Arguments with which Node runs `script`, which may import our sources. */
function asModule(script: string): string[] {
  return ['--import', import.meta.resolve('tsx'), '--input-type=module', '-e', script];
}

describe.each(['descriptors', 'checks'] as const)('by %s', (by) => {
  it('tells a FIFO and leaves it alone, remembered or not', async () => {
    const root = planted({ 'd/x': '' });
    const fifo = join(root, 'd/fifo');
    execFileSync('mkfifo', [fifo]);
    await new Promise((resolve) => { setTimeout(resolve, 30); });
    const lower = kept(openDirectoryLower(root, { by }));
    for (let look = 0; look < 50; look++) {
      expect(outcome(() => lower.open(at('d/fifo')))).toBe('a fifo');
      expect(outcome(() => lower.slurp(at('d/fifo'), 100))).toBe('a fifo');
      expect(outcome(() => lower.lstat(at('d/fifo')))).toBe('a fifo');
      expect(outcome(() => lower.list(at('d')))).toEqual(['fifo fifo', 'x file']);
      expect(hasReader(fifo)).toBe(false);
    }
  });

  it('tells a socket and leaves it alone', async () => {
    const root = planted({});
    const server = createServer();
    let calls = 0;
    server.on('connection', () => calls++);
    await new Promise<void>((resolve) => { server.listen(join(root, 'socket'), resolve); });
    const lower = kept(openDirectoryLower(root, { by }));
    expect(outcome(() => lower.open(at('socket')))).toBe('a socket');
    expect(outcome(() => lower.slurp(at('socket'), 100))).toBe('a socket');
    expect(outcome(() => lower.list(at('')))).toEqual(['socket socket']);
    await new Promise((resolve) => { server.close(resolve); });
    expect(calls).toBe(0);
  });

  it.runIf(isRoot)('tells devices with their numbers', () => {
    const root = planted({});
    execFileSync('mknod', [join(root, 'null'), 'c', '1', '3']);
    execFileSync('mknod', [join(root, 'disk'), 'b', '7', '250']);
    const lower = kept(openDirectoryLower(root, { by }));
    expect(lower.slurp(at('null'), 100)).toMatchObject({ rdev: statSync('/dev/null').rdev });
    expect(outcome(() => lower.open(at('null')))).toBe('a character');
    expect(outcome(() => lower.open(at('disk')))).toBe('a block');
    expect(outcome(() => lower.list(at('')))).toEqual(['disk block', 'null character']);
  });

  it('opens nothing but regular files, by the trace of its system calls', () => {
    const root = planted({ 'd/x': 'text' });
    execFileSync('mkfifo', [join(root, 'd/fifo')]);
    const script = `
      import { openDirectoryLower } from ${JSON.stringify(join(import.meta.dirname, '../../src/lower/directory.ts'))};
      const lower = openDirectoryLower(${JSON.stringify(root)}, { by: '${by}' });
      for (let look = 0; look < 50; look++) for (const path of ['d/x', 'd/fifo', 'd', 'd/none']) lower.slurp(path, 100);`;
    const trace = join(root, 'trace');
    execFileSync('strace', ['-f', '-o', trace, '-e', 'trace=open,openat,openat2', process.execPath, ...asModule(script)]);
    const opens = execFileSync('grep', ['-E', '/(x|fifo)"', trace]).toString();
    for (const flag of ['O_RDONLY', 'O_NOCTTY', 'O_NONBLOCK', 'O_NOFOLLOW', 'O_CLOEXEC', 'O_NOATIME']) {
      expect(opens.split('\n').filter((line) => line.includes('/x"') && !line.includes(flag))).toEqual([]);
    }
    expect(opens).toContain('/x"');
    expect(opens).not.toContain('fifo');
  });

  it('leaves access times as they are', () => {
    const root = planted({ x: 'text', 'd/y': 'text' });
    const old = new Date(1e12);
    for (const path of ['x', 'd/y']) utimesSync(join(root, path), old, old);
    const lower = kept(openDirectoryLower(root, { by }));
    for (const path of ['x', 'd/y']) {
      outcome(() => lower.slurp(at(path), 100));
      outcome(() => lower.open(at(path)));
      expect(statSync(join(root, path)).atimeMs).toBe(1e12);
    }
  });
});

it.runIf(isRoot).each(['descriptors', 'checks'] as const)(
  'by %s: reads files of others, of which it may not spare the access time, and still spares its own', (by) => {
    const root = planted({ 'd/own': 'own', 'd/other': 'other' });
    chmodSync(root, 0o755);
    chownSync(join(root, 'd/own'), 65534, 65534);
    const old = new Date(1e12);
    for (const path of ['d/own', 'd/other']) utimesSync(join(root, path), old, old);
    const result = join(root, 'result');
    writeFileSync(result, '');
    chownSync(result, 65534, 65534);
    // The modules are loaded as root: an ordinary user may not be able to read them.
    const script = `
      import { writeFileSync } from 'node:fs';
      import { openDirectoryLower } from ${JSON.stringify(join(import.meta.dirname, '../../src/lower/directory.ts'))};
      process.setgroups([]); process.setgid(65534); process.setuid(65534);
      const lower = openDirectoryLower(${JSON.stringify(root)}, { by: '${by}' });
      const texts = [];
      for (const path of ['d/other', 'd/own', 'd/other', 'd/own']) texts.push(Buffer.from(lower.slurp(path, 100).bytes).toString());
      writeFileSync(${JSON.stringify(result)}, texts.join(' '));`;
    execFileSync(process.execPath, asModule(script));
    expect(execFileSync('cat', [result]).toString()).toBe('other own other own');
    expect(statSync(join(root, 'd/own')).atimeMs).toBe(1e12);
  });

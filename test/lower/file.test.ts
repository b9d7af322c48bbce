import { appendFileSync, closeSync, fstatSync, ftruncateSync, openSync, readFileSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openDirectoryLower } from '../../src/lower/directory.ts';
import { readWhole } from '../../src/lower/file.ts';
import type { LowerFile } from '../../src/lower/lower.ts';
import { attrOf } from '../../src/lower/stats.ts';
import { at, descriptors, kept, outcome, planted } from './ground.ts';

it('reads a file that shrank since it was looked at as it is now, attributes included', () => {
  const path = join(planted({ x: 'a long text' }), 'x');
  const before = descriptors();
  const fd = openSync(path, 'r');
  const attr = attrOf(fstatSync(fd, { bigint: true }));
  truncateSync(path, 6);
  const whole = readWhole({ fd, attr });
  expect(Buffer.from(whole.bytes).toString()).toBe('a long');
  expect(whole.attr.size).toBe(6);
  expect(whole.attr.mtime).toBeGreaterThan(attr.mtime);
  expect(descriptors()).toBe(before);
});

it('reads a file that was emptied since as empty', () => {
  const path = join(planted({ x: 'a long text' }), 'x');
  const fd = openSync(path, 'r');
  const attr = attrOf(fstatSync(fd, { bigint: true }));
  truncateSync(path, 0);
  const whole = readWhole({ fd, attr });
  expect(whole.bytes.length).toBe(0);
  expect(whole.attr.size).toBe(0);
});

it('reads what the attributes tell of a file that is appended to', () => {
  const path = join(planted({ x: 'text' }), 'x');
  const fd = openSync(path, 'r');
  const attr = attrOf(fstatSync(fd, { bigint: true }));
  appendFileSync(path, ' and more');
  const whole = readWhole({ fd, attr });
  expect(Buffer.from(whole.bytes).toString()).toBe('text');
  expect(whole.attr).toEqual(attr);
});

it('reads files that say they are empty and are not', () => {
  const lower = kept(openDirectoryLower('/proc/sys/kernel'));
  expect(outcome(() => lower.slurp(at('ostype'), 100))).toBe(`whole: ${readFileSync('/proc/sys/kernel/ostype', 'utf8')}`);
});

it('gives bytes of their own, all of their buffer', () => {
  const root = planted({ x: 'text' });
  const lower = kept(openDirectoryLower(root));
  const [one, two] = [lower.slurp(at('x'), 100), lower.slurp(at('x'), 100)];
  if (typeof one === 'string' || typeof two === 'string' || !('bytes' in one) || !('bytes' in two)) throw new Error('not read');
  expect(one.bytes.buffer).not.toBe(two.bytes.buffer);
  expect(one.bytes.buffer.byteLength).toBe(4);
  one.bytes[0] = 0;
  expect(outcome(() => lower.slurp(at('x'), 100))).toBe('whole: text');
});

it('reads at offsets past 4 GiB', async () => {
  const root = planted({ x: '' });
  const offset = 5 * 2 ** 30;
  const fd = openSync(join(root, 'x'), 'r+');
  ftruncateSync(fd, offset);
  writeSync(fd, 'the end', offset);
  closeSync(fd);
  const file = kept(openDirectoryLower(root)).slurp(at('x'), 2 ** 20) as LowerFile;
  expect(file.kind).toBe('open');
  expect(file.attr.size).toBe(offset + 7);
  const into = Buffer.alloc(10);
  expect(file.read(into, 0, 10, offset + 4)).toBe(3);
  expect(into.toString('latin1', 0, 3)).toBe('end');
  expect(await file.readLater(into, 0, 10, offset)).toBe(7);
  file.close();
});

it('shows by restat what changed since the opening', () => {
  const root = planted({ x: 'text' });
  const file = kept(openDirectoryLower(root)).open(at('x')) as LowerFile;
  writeFileSync(join(root, 'x'), 'another text');
  expect(file.attr.size).toBe(4);
  expect(file.restat().size).toBe(12);
  file.close();
});

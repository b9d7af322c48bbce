import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { checkMachine } from '../../src/mount/machine.ts';
import { CAN_MOUNT } from './launcher.ts';

describe('what a machine needs for mounts and runs', () => {
  it('is named, with what it is for, and what to do where it is missing', () => {
    const checks = checkMachine();
    expect(checks.map(({ name }) => name)).toEqual(expect.arrayContaining(['/dev/fuse', 'root, or user namespaces', 'unshare', 'ip', 'getfattr']));
    for (const { ok, remedy, neededFor } of checks) {
      expect(neededFor).not.toBe('');
      expect(remedy === '').toBe(ok);
    }
  });

  it('names the package of a program that is missing', () => {
    const there = spawnSync('getfattr', ['--version']).status === 0;
    expect(checkMachine().find(({ name }) => name === 'getfattr')).toMatchObject({ ok: there, remedy: there ? '' : 'getfattr is not installed: it comes with attr' });
  });

  it.runIf(CAN_MOUNT)('is all there where runs are tested (needs root and FUSE)', () => {
    expect(checkMachine().filter(({ ok, neededFor }) => !ok && neededFor.includes('run,'))).toEqual([]);
  });
});

import fs from 'node:fs';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { playground } from './playground.ts';
import type { Playground } from './playground.ts';
import type { Program, Step } from './program.ts';

/** Programs that once told an overlay from a real directory, as small as shrinking made them. */
const { O_DIRECTORY, O_NOFOLLOW, O_TRUNC } = fs.constants;
const text = (content: string): { text: string } => ({ text: content });
const LONG = 'x'.repeat(256);

const FOUND: readonly [string, readonly Step[]][] = [
  ['realpath of a missing path', [{ op: 'realpath', path: 'none/a' }]],
  ['realpath through what path.resolve takes away', [{ op: 'realpath', path: 'l/../b' }, { op: 'realpath', path: 'd/e/..' }]],
  ['rename onto an ancestor', [{ op: 'rename', path: 'd/a', to: 'd' }]],
  ['rename of a directory into itself, onto a file', [{ op: 'rename', path: 'd', to: 'd/a' }, { op: 'rename', path: 'd', to: 'd/l' }]],
  ['rename onto dot and dot-dot', [
    { op: 'rename', path: 'none', to: '.' }, { op: 'rename', path: 'a', to: 'd/o/..' }, { op: 'rename', path: 'a', to: 'd/..' },
    { op: 'rename', path: '.', to: 'none' }, { op: 'rename', path: 'm/a/..', to: 'a/a' },
  ]],
  ['rename of and onto links with a slash', [{ op: 'rename', path: 'd/l/', to: 'd/o' }, { op: 'rename', path: 'm', to: 'd/' }]],
  ['rename looks at both parents first', [{ op: 'rename', path: `d/${LONG}`, to: 'd/a/a' }, { op: 'rename', path: 't/none', to: `e/${LONG}` }]],
  ['a miss of a name that ends in a dot', [{ op: 'rename', path: 'a', to: 'e/a/.' }, { op: 'mkdir', path: 'e/o/..' }, { op: 'reopen' }]],
  ['copyFile of a directory', [
    { op: 'copyFile', path: 'e', to: 'd/a' }, { op: 'copyFile', path: '', to: 'none/x' }, { op: 'copyFile', path: 'd', to: 'b', exclusive: true },
    { op: 'copyFile', path: 't', to: 'a' }, { op: 'copyFile', path: 'd/d/', to: 'b/a' },
  ]],
  ['copyFile onto a name with a slash', [{ op: 'copyFile', path: 'a', to: 'a/' }, { op: 'copyFile', path: 'd/a', to: 'e/', exclusive: true }]],
  ['link of a directory', [
    { op: 'link', path: 'd', to: 'd/a' }, { op: 'link', path: 'd', to: 'a/a' }, { op: 'link', path: '', to: 'none/a' }, { op: 'link', path: 'd', to: 'new' },
  ]],
  ['link onto a file with a slash', [{ op: 'link', path: 'd/a', to: 'a/' }, { op: 'link', path: 'd/a', to: 'new/' }]],
  ['symlinks with long targets', [
    { op: 'symlink', path: 'a', target: 'x/'.repeat(2050) }, { op: 'symlink', path: 'd/o', target: 'x/'.repeat(2050) },
    { op: 'symlink', path: 'a/a/', target: '' }, { op: 'symlink', path: 'd/x', target: 'x/'.repeat(2047) },
  ]],
  ['creating opens of names that end in a slash or dot', (['open', 'writeFile', 'appendFile'] as const).flatMap((op): Step[] =>
    ['a/', 'none/', 'none/.', 'd/.', 'e/', 'a/.'].map((path) => (op === 'open' ? { op, path, flags: 'a', slot: 0 } : { op, path, data: text('x') })))],
  ['creating opens of dots, and through a link with a slash', [
    { op: 'open', path: '..', flags: 'wx', slot: 0 }, { op: 'writeFile', path: '.', data: text(''), flag: 'ax' },
    { op: 'symlink', path: 'new', target: 'a/' }, { op: 'writeFile', path: 'new', data: text('') },
  ]],
  ['an opened link that has to be a directory', [{ op: 'open', path: 'l', flags: O_DIRECTORY | O_NOFOLLOW, slot: 0 }]],
  ['truncation by a reading open', [{ op: 'open', path: 'b', flags: O_TRUNC, slot: 0 }, { op: 'open', path: 'd/a', flags: O_TRUNC, slot: 1 }]],
  ['truncation of what is empty', [{ op: 'writeFile', path: 'd/a', data: text('') }]],
  ['truncation by a reading open of what was written', [{ op: 'writeFile', path: 'a', data: text('x') }, { op: 'open', path: 'a', flags: O_TRUNC, slot: 0 }]],
  ['listing of what is not there', [{ op: 'opendir', path: 'none' }, { op: 'opendir', path: 'a' }, { op: 'opendir', path: 'none', style: 'promises' }]],
  ['quiet stat below a file', [{ op: 'stat', path: 'd/a/a', quiet: true }, { op: 'lstat', path: 'a/a', quiet: true }]],
  ['an unlinked name of a changed hard link', [{ op: 'chmod', path: 'f', mode: 0o777 }, { op: 'unlink', path: 'a' }]],
  ['a changed hard link, one name of which was unlinked', [{ op: 'unlink', path: 'a' }, { op: 'chmod', path: 'f', mode: 0o777 }]],
  ['a replaced name of a hard link', [{ op: 'appendFile', path: 'a', data: text('!') }, { op: 'rename', path: 'n', to: 'f' }]],
  ['a renamed name of a hard link', [{ op: 'utimes', path: 'a', atime: 0, mtime: 0 }, { op: 'rename', path: 'f', to: 'd/a' }]],
  ['an open hard link, one name of which is replaced', [{ op: 'open', path: 'a', flags: 'r', slot: 0 }, { op: 'rename', path: 'l', to: 'a' }]],
  ['an open hard link, another name of which is unlinked', [{ op: 'open', path: 'a', flags: 'r', slot: 0 }, { op: 'unlink', path: 'd/f' }]],
  ['an open directory in which something changes', [
    { op: 'open', path: '', flags: 'r', slot: 0 }, { op: 'open', path: 'd', flags: 'r', slot: 1 }, { op: 'rename', path: 'd', to: 'e' },
    { op: 'writeStream', path: 'm/m', data: text('') }, { op: 'writeFile', path: 'e/new', data: text('') },
  ]],
  ['an open directory whose owner is changed', [
    { op: 'mkdir', path: 'd/o' }, { op: 'open', path: '', flags: 'r', slot: 0 }, { op: 'fchown', slot: 0, uid: 0, gid: 65534 },
  ]],
  ['mkdir of names that end in a slash or dot', [
    { op: 'mkdir', path: 'none/.' }, { op: 'symlink', path: 't/f', target: '../d/l/l' }, { op: 'mkdir', path: 't/f/' }, { op: 'mkdir', path: 'new/' },
  ]],
  ['recursive mkdir through a dangling link', [
    { op: 'mkdir', path: 'd/e/a', recursive: true }, { op: 'mkdir', path: 'd/e/a', recursive: true, style: 'callback' },
    { op: 'mkdir', path: 'd/e/a', recursive: true, style: 'promises' },
  ]],
  ['a positioned write of an appending descriptor', [
    { op: 'open', path: 'd/a', flags: 'a+', slot: 1 }, { op: 'writev', slot: 1, data: text('é'), position: 4095 }, { op: 'read', slot: 1, length: 1, position: null },
  ]],
  ['an empty write to a read-only handle', [
    { op: 'open', path: 'd/a', flags: 'r', slot: 2, style: 'promises' }, { op: 'appendFileFd', slot: 2, data: text(''), style: 'promises' },
    { op: 'writeFileFd', slot: 2, data: text(''), style: 'promises' },
  ]],
  ['copyFile of a directory onto itself', [{ op: 'copyFile', path: 'e', to: 'e' }]],
  ['nothing read or written by a descriptor of the wrong kind', [
    { op: 'open', path: 'd/a', flags: 'a', slot: 0 }, { op: 'readv', slot: 0, length: 0, position: null }, { op: 'read', slot: 0, length: 0, position: null },
    { op: 'open', path: 'd/a', flags: 'r', slot: 1 }, { op: 'writeFileFd', slot: 1, data: text(''), style: 'callback' }, { op: 'writeFileFd', slot: 1, data: text('') },
  ]],
];

/** The same, as nobody over the tree of files with owners. */
const FOUND_AS_NOBODY: readonly [string, readonly Step[]][] = [
  ['a directory that may be read and not searched', [{ op: 'readdir', path: 'o' }, { op: 'stat', path: 'o/a' }]],
  ['an unlinked file that may not be read', [{ op: 'unlink', path: 'd/f' }, { op: 'reopen' }]],
  ['a new file that may not be read', [{ op: 'umask', mask: 0o777 }, { op: 'writeFile', path: 'd/m', data: text('x'), mode: 0o777 }]],
  ['a write to a setuid file', [{ op: 'writeFile', path: 'd/m', data: text('zz'), mode: 0o7777 }, { op: 'appendFile', path: 'n/b', data: text('x') }]],
  ['a read-only directory that is moved', [{ op: 'rename', path: 'd/d', to: 'n/n' }, { op: 'rename', path: 'd/d', to: 'd/e' }]],
  ['removals of what is full or closed', [
    { op: 'rmdir', path: 'o' }, { op: 'rename', path: 'd', to: 'o' }, { op: 'unlink', path: '' }, { op: 'rename', path: 'e', to: 'd/d' },
  ]],
  ['a truncation of a setuid file', [{ op: 'truncate', path: 'n/b', size: 4095 }]],
  ['a session under a umask that hides all', [{ op: 'umask', mask: 0o777 }, { op: 'reopen' }, { op: 'reopen' }]],
  ['a directory that may not be read, read as a file', [{ op: 'readFile', path: 'e/e' }]],
  ['a closed directory onto a file', [{ op: 'rename', path: 'd/d', to: 'a' }]],
  ['a copy onto what a stranger owns', [{ op: 'copyFile', path: 'a', to: 'n/a' }]],
  ['recursive mkdir in a closed place', [{ op: 'mkdir', path: 'e/e/a/b/c', recursive: true, style: 'promises' }, { op: 'mkdir', path: 'e/e/x/b', recursive: true }]],
];

describe('regressions', () => {
  let ground: Playground;
  beforeAll(() => { ground = playground(); });
  afterAll(() => ground.clear());
  const as = (more: Partial<Program>, steps: readonly Step[]): Program =>
    ({ lower: 'mixed', umask: 0o022, session: 'directory', watched: false, ...more, steps });

  it.each(FOUND)('%s', async (_, steps) => {
    await ground.play(as({}, steps));
    await ground.play(as({ watched: true }, steps));
  });

  it.each(FOUND_AS_NOBODY)('%s, as nobody', async (_, steps) => {
    // Only root can become someone else; anyone else is subject to permissions as it is.
    const isRoot = process.getuid?.() === 0;
    await ground.play(as(isRoot ? { lower: 'guarded', user: 'nobody' } : {}, steps));
  });
});

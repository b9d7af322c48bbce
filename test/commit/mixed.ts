import fs from 'node:fs';
import path from 'node:path';
import type { Step } from '../../src/core/plan.ts';
import { at, below, file, now, plant } from './ground.ts';

/** The tree that the mixed batch changes. */
export function plantMixed(root: string): void {
  fs.mkdirSync(root, { recursive: true });
  plant(root, {
    update: 'old bytes', script: '#!/bin/sh\n', delete: 'gone', 'dir/x': 'x', 'dir/sub/y': 'y', 'tree/a': 'a', 'tree/deep/b': 'b',
    'to-dir': 'a file', 'to-file/inner/z': 'z', link: '->update', stays: 'stays', old: 'a file that moves', p: 'p', 'q/in': 'q',
    one: 'two names', attr: 'attr', 'empty-dir': null,
    me: 'moved and edited', ma: 'moved and adjusted', mr: 'moved and removed',
  });
  fs.chmodSync(path.join(root, 'script'), 0o4750);
  fs.linkSync(path.join(root, 'one'), path.join(root, 'two'));
}

/** A mixed batch: every act, every type, and the combinations that are hard to take back. */
export function mixedSteps(root: string): Step[] {
  return [
    { act: 'park', path: at('p'), before: now(root, 'p'), slot: 0 },
    { act: 'move', from: at('q'), to: at('p'), before: now(root, 'q') },
    { act: 'move', from: at('dir'), to: at('moved'), before: now(root, 'dir') },
    { act: 'move', from: at('old'), to: at('moved/new'), before: now(root, 'old') },
    { act: 'move', from: at('me'), to: at('me2'), before: now(root, 'me') },
    { act: 'replace', path: at('me2'), before: now(root, 'me'), node: file('edited'), attributes: 'kept' },
    { act: 'move', from: at('ma'), to: at('ma2'), before: now(root, 'ma') },
    { act: 'adjust', path: at('ma2'), before: now(root, 'ma'), set: { mode: 0o700 } },
    { act: 'move', from: at('mr'), to: at('mr2'), before: now(root, 'mr') },
    { act: 'remove', path: at('mr2'), before: now(root, 'mr') },
    { act: 'adjust', path: at('attr'), before: now(root, 'attr'), set: { mode: 0o600, mtime: 1_000_000_000_000_000_000n } },
    { act: 'create', path: at('created'), node: file('new file', { mode: 0o640 }) },
    { act: 'create', path: at('made'), node: { type: 'directory', mode: 0o555 } },
    { act: 'create', path: at('made/in'), node: file('in a new directory', { mode: 0o644 }) },
    { act: 'create', path: at('made/sub'), node: { type: 'directory', mode: 0o711, mtime: 1_111_111_111_000_000_000n } },
    { act: 'replace', path: at('update'), before: now(root, 'update'), node: file('new bytes, and more of them'), attributes: 'kept' },
    { act: 'replace', path: at('script'), before: now(root, 'script'), node: file('#!/bin/bash\n'), attributes: 'kept' },
    { act: 'replace', path: at('moved/sub/y'), before: now(root, 'dir/sub/y'), node: file('edited in a moved directory'), attributes: 'kept' },
    { act: 'remove', path: at('delete'), before: now(root, 'delete') },
    { act: 'remove', path: at('tree'), before: now(root, 'tree'), below: below(root, 'tree') },
    { act: 'replace', path: at('to-dir'), before: now(root, 'to-dir'), node: { type: 'directory', mode: 0o755 }, attributes: 'own' },
    { act: 'create', path: at('to-dir/child'), node: file('child', { mode: 0o644 }) },
    { act: 'replace', path: at('to-file'), before: now(root, 'to-file'), below: below(root, 'to-file'), node: file('now a file', { mode: 0o644 }), attributes: 'own' },
    { act: 'replace', path: at('link'), before: now(root, 'link'), node: { type: 'symlink', target: 'stays' }, attributes: 'own' },
    { act: 'create', path: at('symlink'), node: { type: 'symlink', target: 'nowhere' } },
    { act: 'replace', path: at('one'), before: now(root, 'one'), node: file('both names', { mode: 0o644 }), attributes: 'kept' },
    { act: 'replace', path: at('two'), before: now(root, 'two'), node: { type: 'link', of: at('one') }, attributes: 'own' },
    { act: 'create', path: at('stays-too'), node: { type: 'link', of: at('stays') } },
    { act: 'unpark', slot: 0, path: at('q') },
    { act: 'replace', path: at('q'), before: now(root, 'p'), node: file('edited after it was swapped'), attributes: 'kept' },
    { act: 'remove', path: at('empty-dir'), before: now(root, 'empty-dir'), below: [] },
  ];
}

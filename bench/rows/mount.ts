import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { join } from 'node:path';
import type { MountRow } from '../mounted.ts';
import { plant, SOURCES } from '../tree.ts';

const work = {
  kind: 'mount', needs: [], limit: { free: 1.6, pinned: 1.1, of: 'fuse-overlayfs' }, stage: sources, events: 0,
} satisfies Partial<MountRow>;

/** Every row, in the order of the table. */
export const MOUNT_ROWS: readonly MountRow[] = [
  { ...work, name: 'mount-find', work: 'find over 20,000 files', script: 'find . -type f | wc -l' },
  { ...work, name: 'mount-grep', work: 'grep -r over 20,000 files', events: 1, script: 'grep -rc nothing-like-it . | wc -l' },
  { ...work, name: 'mount-reads', work: '20,000 small reads', events: 1, script: 'xargs -0 cat <"$ASIDE/files" | cksum' },
  { ...work, name: 'mount-rm', work: 'rm -r of 20,000 files', events: 1, script: 'rm -r packages && ls -A' },
  {
    ...work, name: 'mount-tar', work: 'tar x of 20,000 files', events: 1, script: 'tar -xf "$ASIDE/tar" && find . -type f | wc -l',
    stage: (_root, aside, n) => {
      const from = join(aside, 'tree');
      plant(from, SOURCES, n);
      execFileSync('tar', ['-cf', join(aside, 'tar'), '-C', from, '.']);
    },
  },
  {
    ...work, name: 'mount-git', work: 'git status over 20,000 files', needs: ['git'], script: 'git status --porcelain | wc -l',
    stage: (root, aside, n) => {
      sources(root, aside, n);
      // No maintenance of its own in the background, under the copies that are made next.
      for (const args of [['init', '-q'], ['config', 'maintenance.auto', 'false'], ['config', 'gc.auto', '0'], ['add', '.'], ['-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-qm', 'a']]) {
        execFileSync('git', args, { cwd: root });
      }
    },
  },
  {
    ...work, name: 'mount-npm', work: 'npm install of 98 packages, from its cache', script: `${npm('$ASIDE/cache')} && ls node_modules | wc -l`,
    stage: (root, aside) => {
      fs.writeFileSync(join(root, 'package.json'), JSON.stringify({ private: true, dependencies: { memfs: '4.80.1', mocha: '10.8.2' } }));
      const warm = join(aside, 'warm');
      fs.cpSync(root, warm, { recursive: true });
      // Twice: with a lock file npm asks for other things than without.
      const install = npm(join(aside, 'cache'));
      execFileSync('sh', ['-ec', `${install}; rm -r node_modules; ${install}`], { cwd: warm, stdio: 'ignore' });
      fs.copyFileSync(join(warm, 'package-lock.json'), join(root, 'package-lock.json'));
    },
  },
  {
    kind: 'mount', name: 'mount-start', work: 'run -- true (raw: node -e 0)', needs: [], stage: sources, events: 0,
    script: `'${process.execPath}' -e 0`, run: ['true'], limit: { free: 100, pinned: 100, of: 'ms over raw' },
  },
];

function sources(root: string, aside: string, n: number): void {
  const { files } = plant(root, SOURCES, n, 'shuffled');
  fs.writeFileSync(join(aside, 'files'), files.join('\0'));
}

function npm(cache: string): string {
  return `npm install --silent --no-audit --no-fund --ignore-scripts --prefer-offline --cache "${cache}"`;
}

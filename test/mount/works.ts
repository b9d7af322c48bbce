import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cloneInto, packagesInto, repository } from '../libraries/twin.ts';

/** A piece of real work: a tree, and a script of the shell over it. */
export interface Work {
  readonly name: string;
  /** Programs it needs beside a shell, Node and npm. */
  readonly programs: readonly string[];
  /** Part of the short run. */
  readonly short: boolean;
  /** Makes the tree in a directory that is there and empty. */
  plant(directory: string): void;
  /** Runs with the tree as its working directory. What it prints must be the same each time. */
  readonly script: string;
  /** Files that hold times or inode numbers, or what an order of two processes decides: only their being there is compared. */
  readonly own?: RegExp;
  /** Parts of names that programs choose by chance, or by their process ids. */
  readonly chance?: RegExp;
}

/** What makes programs say and write the same each time. */
export const STEADY: Readonly<Record<string, string>> = {
  LC_ALL: 'C', TZ: 'UTC', PYTHONDONTWRITEBYTECODE: '1', SOURCE_DATE_EPOCH: '1700000000',
  GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null', GIT_AUTHOR_NAME: 'A. Scribe', GIT_AUTHOR_EMAIL: 'scribe@example.org',
  GIT_COMMITTER_NAME: 'A. Scribe', GIT_COMMITTER_EMAIL: 'scribe@example.org',
  GIT_AUTHOR_DATE: '1700000000 +0000', GIT_COMMITTER_DATE: '1700000000 +0000',
  npm_config_fund: 'false', npm_config_audit: 'false', npm_config_update_notifier: 'false', npm_config_loglevel: 'error',
};

/** What git calls files that are not done, and where npm puts away what it replaces. */
const GIT_CHANCE = /(?<=tmp_(?:obj|pack|idx|rev|graph|mtimes|bitmap)_)\w{6}|(?<=info\/(?:refs|packs)_)\w{6}|(?<=\.tmp-)\d+|(?<=index\.stash\.)\d+|(?<=\.git\/)t\w{6}$|(?<=\.merge_file_)\w{6}|(?<=gc\.pid)\w*|(?<=^sed)\w{6}$|(?<=\/pack-)[0-9a-f]{40}/g;

/**
 * git's index holds inode numbers and times, a multi-pack index and a commit graph only digests. In which order objects lie in a pack,
 * and so what it is called, depends on the order in which a directory lists other packs; what is in it, the works print.
 */
const INDEX = /(?:^|\/)\.git\/(?:.*\/)?(?:index|objects\/info\/packs|objects\/pack\/[^/]+)$/;

export const WORKS: readonly Work[] = [
  {
    name: 'git', programs: ['git'], short: true, plant: cloneInto, own: INDEX, chance: GIT_CHANCE,
    script: `
      git status --short --branch
      git -c init.defaultBranch=main clone -q . inner && git -C inner fsck --full --strict --no-dangling
      git checkout -q -b topic HEAD~1 && echo topic >topic.txt && git add topic.txt && git commit -qm topic
      sed -i '1s/^/# /' README.md && git commit -qam readme && git stash list
      git checkout -q - && echo main >main.txt && git add main.txt && git commit -qm main
      git rebase -q main topic 2>/dev/null || git rebase -q - topic
      git log --format='%H %s' -4 && git status --porcelain
      git -c pack.threads=1 -c gc.auto=0 gc -q --prune=now && git fsck --full --strict --no-dangling && git count-objects -v | grep -v size
      git cat-file --batch-all-objects --batch-check
      echo changed >>README.md && git stash -q && git stash pop -q && git diff --stat
      git rm -qr src && git status --porcelain | wc -l && git reset -q --hard && git clean -qfdx && git status --porcelain`,
  },
  {
    name: 'worktree', programs: ['git'], short: false, plant: cloneInto, own: INDEX, chance: GIT_CHANCE,
    script: `
      git worktree add -q wt -b side HEAD~2 && echo wt >>.git/info/exclude
      cd wt && echo x >x && git add x && git commit -qm x && cd .. && git merge -q --no-edit side 2>&1 | sort
      git log --format=%T -1 && git bundle create -q all.bundle --all 2>/dev/null && git bundle verify -q all.bundle 2>&1 | sort && rm all.bundle
      git archive HEAD | tar -t | sort | cksum && git grep -c export -- src | sort`,
  },
  {
    name: 'npm install and test', programs: [], short: true, own: /node_modules\/\.package-lock\.json$/, chance: /(?<=\/\.[\w.-]+-)\w{8}(?=\/|$)/g,
    plant: (directory) => {
      const tarball = execFileSync('npm', ['pack', '--silent', 'concat-map@0.0.1'], { cwd: directory, encoding: 'utf8' }).trim();
      execFileSync('tar', ['-xzf', tarball, '--strip-components=1'], { cwd: directory });
    },
    script: `
      npm install --silent && npm ls --all && npm test --silent
      npm install --silent left-pad@1.3.0 && node -e 'console.log(require("left-pad")("a", 3))'
      npm uninstall --silent left-pad && ls node_modules | wc -l`,
  },
  {
    name: 'typescript', programs: [], short: true, plant: sources,
    script: `
      node node_modules/typescript/bin/tsc -p tsconfig.build.json && find dist -name '*.js' | wc -l
      node -e 'import("./dist/core/path.js").then((m) => console.log(Object.keys(m).sort().join()))'
      echo 'export const wrong: number = "";' >src/core/wrong.ts
      node node_modules/typescript/bin/tsc -p tsconfig.build.json || echo "status $?"`,
  },
  {
    name: 'two builds at once', programs: [], short: false, plant: sources,
    script: `
      build() { node node_modules/typescript/bin/tsc -p tsconfig.build.json --outDir "$1"; }
      build out1 & one=$!; build out2 & two=$!
      wait $one && wait $two && diff -r out1 out2 && find out1 -type f | wc -l`,
  },
  {
    name: 'make', programs: ['cc', 'make'], short: true, plant: program, chance: /(?<=^st)\w{6}$/g,
    script: `
      make -s -j2 && ./sum && make -s -j2 && touch -d '2030-01-01' part3.h && make -s -n | wc -l && touch -d '2020-01-01' part3.h
      ar t libparts.a | sort && make -s clean && ls && make -s sum`,
  },
  {
    name: 'python', programs: ['python3'], short: true, own: /\.pyc$/, chance: /(?<=\.pyc\.)\d+|(?<=(?:INSTALLER|RECORD|REQUESTED|METADATA))\w{8}(?=\.tmp)/g,
    plant: (directory) => {
      mkdirSync(join(directory, 'pkg'));
      writeFileSync(join(directory, 'pkg/__init__.py'), 'from .deep import answer\n');
      writeFileSync(join(directory, 'pkg/deep.py'), 'import json, os\ndef answer():\n    return json.dumps(sorted(os.listdir(".")))\n');
      writeFileSync(join(directory, 'test_pkg.py'), 'import unittest, pkg\nclass T(unittest.TestCase):\n    def test(self):\n' +
        '        self.assertIn("pkg", pkg.answer())\n');
    },
    script: `
      python3 -m venv .venv && .venv/bin/python -c 'import sys; print(sys.prefix == sys.base_prefix)'
      .venv/bin/python -m pip --version | cut -d' ' -f1 && .venv/bin/python -m unittest 2>&1 | sed 's/ in .*s$//'
      unset PYTHONDONTWRITEBYTECODE && .venv/bin/python -c 'import pkg; print(pkg.answer())' && ls pkg
      .venv/bin/python -m compileall -q pkg && find . -name '*.pyc' -newer test_pkg.py | grep -c pkg`,
  },
  {
    name: 'editors', programs: ['vim'], short: true, chance: /(?<=^sed)\w{6}$|^XX\w{6}$/g,
    plant: (directory) => {
      for (let i = 0; i < 20; i++) writeFileSync(join(directory, `file ${i}.txt`), `line\r\nalpha ${i}\nomega\n`, { mode: i % 2 === 0 ? 0o755 : 0o640 });
    },
    script: `
      sed -i 's/alpha/beta/' *.txt && grep -c beta *.txt | sort
      vim -es -u NONE -i NONE 'file 1.txt' -c '%s/beta/gamma/' -c 'set backup writebackup' -c 'wq' && cat 'file 1.txt'
      vim -es -u NONE -i NONE 'file 2.txt' -c 'set backupcopy=yes' -c 'normal Gonew' -c 'wq' && stat -c '%a %n' *.txt
      perl -pi.bak -e 's/omega/psi/' 'file 3.txt' && cp -p 'file 4.txt' copy && install -m 600 'file 5.txt' kept && ls -1`,
  },
  {
    name: 'sqlite', programs: ['sqlite3'], short: true, own: /\.db$/,
    plant: (directory) => {
      execFileSync('sqlite3', [join(directory, 'a.db'), 'pragma journal_mode=wal; create table t(w, n);'], { stdio: 'ignore' });
    },
    script: `
      fill() { for i in 1 2 3 4 5 6 7 8 9 10; do
        sqlite3 a.db ".timeout 20000" "begin immediate; insert into t select '$1', value from generate_series($i, 100); commit;"; done; }
      fill one & a=$!; fill two & b=$!; wait $a && wait $b
      sqlite3 a.db 'pragma journal_mode; pragma integrity_check; select w, count(*), sum(n) from t group by w'
      sqlite3 b.db 'create table u(x); insert into u values (zeroblob(3000000)); vacuum; select count(*), sum(length(x)) from u' && ls`,
  },
  {
    name: 'tar and find', programs: ['tar'], short: true, plant: cloneInto, own: INDEX, chance: GIT_CHANCE,
    script: `
      tar --sort=name -cf a.tar src test && mkdir x && tar -xf a.tar -C x && diff -r --no-dereference src x/src && tar -tf a.tar | wc -l
      cp -a src y && chmod -R go-w x && find x -type f -name '*.ts' -delete && find x -depth -delete && ls
      find src -type f -size +8k -exec rm {} + && find src -type d -empty -delete && find . -path ./.git -prune -o -type f -print | sort | cksum
      mv y src/moved && ln -s ../README.md src/link && ln README.md hard && stat -c %h README.md && rm -r src && ls`,
  },
];

/** Our own sources and what compiles them. */
function sources(directory: string): void {
  execFileSync('cp', ['-a', ...['src', 'package.json', 'tsconfig.json', 'tsconfig.build.json'].map((name) => join(repository, name)), directory]);
  const { dependencies } = JSON.parse(execFileSync('cat', [join(repository, 'package.json')], { encoding: 'utf8' })) as { dependencies: Record<string, string> };
  packagesInto(directory, ['typescript', '@types/node', '@types/picomatch', 'undici-types', ...Object.keys(dependencies)]);
}

/** A program of C in parts, with a library between, and a Makefile that finds out by itself what hangs on what. */
function program(directory: string): void {
  const parts = Array.from({ length: 12 }, (_, i) => `part${i}`);
  for (const [i, part] of parts.entries()) {
    writeFileSync(join(directory, `${part}.h`), `#pragma once\n${i > 0 ? `#include "part${i - 1}.h"\n` : ''}long ${part}(long);\n`);
    writeFileSync(join(directory, `${part}.c`), `#include "${part}.h"\n#include <stdlib.h>\nlong ${part}(long x) { return ${i > 0 ? `part${i - 1}(x)` : 'labs(x)'} + ${i}; }\n`);
  }
  writeFileSync(join(directory, 'main.c'), '#include "part11.h"\n#include <stdio.h>\nint main(void) { printf("%ld\\n", part11(-7)); return 0; }\n');
  writeFileSync(join(directory, 'Makefile'), `CFLAGS = -MMD -O1 -Wall -Werror
OBJECTS = ${parts.map((part) => `${part}.o`).join(' ')}
sum: main.o libparts.a
	$(CC) -o $@ main.o -L. -lparts
libparts.a: $(OBJECTS)
	ar rcs $@ $(OBJECTS)
-include *.d
.PHONY: clean
clean:
	rm -f *.o *.d *.a sum
`);
}

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { palimpsest, shell } from './command.ts';
import { smallSession, type SmallSession } from './small-session.ts';

describe('verbs that look', () => {
  let small: SmallSession;
  beforeAll(() => { small = smallSession(); });
  afterAll(() => small.clear());

  /** What a command line prints, without what is another one each time. */
  function printed(...args: readonly string[]): { status: number | null; stdout: string; stderr: string } {
    const { status, stdout, stderr } = palimpsest(args, small.surroundings);
    const plain = (text: string): string => text.replaceAll(small.scratch, '@');
    return { status, stdout: plain(stdout), stderr: plain(stderr) };
  }
  const prints = (stdout: string): object => ({ status: 0, stdout, stderr: '' });
  const refuses = (status: number, words: string): object => ({ status, stdout: '', stderr: `palimpsest: ${words}\n` });
  const lines = (text: string): unknown[] => text.trimEnd().split('\n').map((line) => JSON.parse(line) as unknown);

  it('status: counts, the change list, flags and refusals', () => {
    expect(printed('status')).toEqual(prints(`\
Session  @/state/palimpsest/repo-1
Root     @/repo
Events   17 events, 2025-12-01T10:00:00.000Z to 2025-12-01T10:00:00.130Z
         2 reads, 1 listing, 2 looks, 1 miss, 6 mutations, 1 refusal, 1 flag
Actors   main, eve

Changes (6)
  mode    README.md (644 → 755)
  delete  data.bin
  create  notes.txt
  update  src/index.js
  rename  src/old/ → src/new/
  create  to notes (symlink)

Flagged (1)
  open secret (rule secret, as eve)

Refused (1)
  EACCES open /etc/passwd (outside the root, as eve)
`));
    expect(printed('status', '-z')).toEqual(prints(
      'mode\tREADME.md\0delete\tdata.bin\0create\tnotes.txt\0update\tsrc/index.js\0rename\tsrc/new\0src/old\0create\tto notes\0'));
    const { stdout } = printed('status', '--json');
    expect(JSON.parse(stdout)).toMatchObject({
      directory: '@/state/palimpsest/repo-1', root: '@/repo', created: '2025-12-01T10:00:00.000Z', process: null, events: 17,
      first: '2025-12-01T10:00:00.000Z', last: '2025-12-01T10:00:00.130Z',
      total: { reads: 2, lists: 1, looks: 2, misses: 1, mutations: 6, refusals: 1, flags: 1 },
      ops: { rules: 1, read: 2, list: 1, miss: 1, stat: 2, mark: 1, write: 2, rename: 1, delete: 1, flag: 1, refuse: 1, chmod: 1, symlink: 1, seal: 1 },
      actors: { main: { reads: 1, mutations: 4 }, eve: { reads: 1, mutations: 2, refusals: 1 } },
      changes: [
        { path: 'README.md', kind: 'mode', before: '644', after: '755' }, { path: 'data.bin', kind: 'delete' }, { path: 'notes.txt', kind: 'create' },
        { path: 'src/index.js', kind: 'update' }, { path: 'src/new', kind: 'rename', from: 'src/old', type: 'directory' }, { path: 'to notes', type: 'symlink' },
      ],
      flags: [{ call: 'open', path: 'secret', rule: 'secret', actor: 'eve', first: 12, count: 1 }],
      refusals: [{ code: 'EACCES', call: 'open', outside: '/etc/passwd', actor: 'eve', first: 14, count: 1 }],
    });
  });

  it('diff: what git takes, whole or in part, in figures, as JSON', () => {
    // How zlib deflates is its own affair.
    const whole = printed('diff');
    expect({ ...whole, stdout: whole.stdout.replaceAll(/^(literal \d+)\n.*$/gm, '$1\n…') }).toEqual(prints(`\
diff --git a/README.md b/README.md
old mode 100644
new mode 100755
diff --git a/data.bin b/data.bin
deleted file mode 100644
index 8352675d67aed6625ece79af41c27fdb4ee2e867..0000000000000000000000000000000000000000
GIT binary patch
literal 0
…

literal 3
…

diff --git a/notes.txt b/notes.txt
new file mode 100644
index 0000000..9ed40b4
--- /dev/null
+++ b/notes.txt
@@ -0,0 +1,2 @@
+one
+two
\\ No newline at end of file
diff --git a/src/index.js b/src/index.js
index aef2224..842e368 100644
--- a/src/index.js
+++ b/src/index.js
@@ -1 +1 @@
-export default 1;
+export default 2;
diff --git a/src/old/a.js b/src/new/a.js
similarity index 100%
rename from src/old/a.js
rename to src/new/a.js
diff --git a/src/old/b.js b/src/new/b.js
similarity index 100%
rename from src/old/b.js
rename to src/new/b.js
diff --git a/to notes b/to notes
new file mode 120000
index 0000000..d669de9
--- /dev/null
+++ b/to notes\t
@@ -0,0 +1 @@
+notes.txt
\\ No newline at end of file
`));
    expect(printed('diff', '--stat')).toEqual(prints(`\
 README.md                    |   0
 data.bin                     | Bin 3 -> 0 bytes
 notes.txt                    |   2 ++
 src/index.js                 |   2 +-
 src/old/a.js => src/new/a.js |   0
 src/old/b.js => src/new/b.js |   0
 to notes                     |   1 +
 7 paths changed, 4 insertions(+), 1 deletion(-)
`));
    expect(printed('diff', '--stat', '-z', 'src', 'data.bin')).toEqual(prints(
      ['-\t-\tdata.bin', '1\t1\tsrc/index.js', '0\t0\tsrc/new/a.js', 'src/old/a.js', '0\t0\tsrc/new/b.js', 'src/old/b.js', ''].join('\0')));
    expect(lines(printed('diff', '--json', 'src/new', 'src/index.js').stdout)).toEqual([
      {
        path: 'src/index.js', kind: 'update', type: 'file', added: 1, removed: 1, diff: 'diff --git a/src/index.js b/src/index.js\n' +
          'index aef2224..842e368 100644\n--- a/src/index.js\n+++ b/src/index.js\n@@ -1 +1 @@\n-export default 1;\n+export default 2;\n',
      },
      expect.objectContaining({ path: 'src/new/a.js', kind: 'rename', type: 'file', from: 'src/old/a.js' }),
      expect.objectContaining({ path: 'src/new/b.js', kind: 'rename', type: 'file', from: 'src/old/b.js' }),
    ]);
    // A path that is there and did not change is no fault; one that never was is.
    expect(printed('diff', 'secret')).toEqual(prints(''));
    expect(printed('diff', 'secret', 'nosuch')).toEqual(refuses(1, 'nosuch: no such path, neither in the session nor in the directory beneath'));
    expect(printed('diff', '-z')).toEqual(refuses(2, '-z goes with --stat; status -z lists the paths that changed'));
  });

  it('diff: applied by git to another copy of the directory', () => {
    const line = `cp -a . "$COPY" && palimpsest diff | git -C "$COPY" apply && cd "$COPY" && ls && cat notes.txt && stat -c %a README.md && readlink 'to notes'`;
    const { cwd, env } = small.surroundings;
    expect(shell(line, { cwd, env: { ...env, COPY: `${small.scratch}/copy`, GIT_CONFIG_GLOBAL: '/dev/null' } })).toMatchObject({
      status: 0, stdout: 'README.md\nlink\nnotes.txt\nsecret\nsrc\nto notes\none\ntwo755\nnotes.txt\n', stderr: '',
    });
  });

  const EVENTS = [
    '     1 2025-12-01T10:00:00.000Z main rules       flag secret',
    '     2 2025-12-01T10:00:00.000Z main read        README.md (15 bytes, sha256:076bd27ce75c)',
    '     3 2025-12-01T10:00:00.010Z main list        src (2 names, sha256:f94ffb8f0b5c)',
    '     4 2025-12-01T10:00:00.020Z main miss        tsconfig.json (access)',
    '     5 2025-12-01T10:00:00.030Z main stat        data.bin (file)',
    '     6 2025-12-01T10:00:00.040Z main mark        turn 1 {"tries":2}',
    '     7 2025-12-01T10:00:00.050Z main write       src/index.js (18 bytes, sha256:38b5a31fa5dd)',
    '     8 2025-12-01T10:00:00.060Z main write       notes.txt (new, 7 bytes, sha256:21066d108d53)',
    '     9 2025-12-01T10:00:00.070Z main rename      src/old → src/new',
    '    10 2025-12-01T10:00:00.080Z main stat        data.bin (file)',
    '    11 2025-12-01T10:00:00.080Z main delete      data.bin',
    '    12 2025-12-01T10:00:00.090Z eve  flag        open secret (rule secret)',
    '    13 2025-12-01T10:00:00.090Z eve  read        secret (5 bytes, sha256:7935b0a71b2f)',
    '    14 2025-12-01T10:00:00.100Z eve  refuse      EACCES open /etc/passwd (outside the root)',
    '    15 2025-12-01T10:00:00.110Z eve  chmod       README.md (755)',
    '    16 2025-12-01T10:00:00.120Z eve  symlink     to notes -> notes.txt',
  ];
  const events = (...seqs: readonly number[]): object => prints(seqs.map((seq) => `${EVENTS[seq - 1] ?? ''}\n`).join(''));

  it('log: all events, or those that filters ask for', () => {
    expect(printed('log', '--to', '16')).toEqual(events(...EVENTS.map((_, at) => at + 1)));
    expect(printed('log').stdout).toMatch(/^ {4}17 2025-12-01T10:00:00.130Z main seal {8}sha256:[0-9a-f]{12}$/m);
    expect(printed('log', '--op', 'miss,mark', '--op', 'rules')).toEqual(events(1, 4, 6));
    expect(printed('log', '--path', 'src/**')).toEqual(events(3, 7, 9));
    expect(printed('log', '--path', 'src/**', '--from', '4', '--to', '8', '--actor', 'main')).toEqual(events(7));
    expect(printed('log', '--actor', 'nobody')).toEqual(prints(''));
    expect(lines(printed('log', '--json', '--from', '4', '--to', '4').stdout)).toEqual([
      { seq: 4, time: '2025-12-01T10:00:00.020Z', actor: 'main', op: 'miss', path: 'tsconfig.json', call: 'access', crc: expect.stringMatching(/^[0-9a-f]{8}$/) as string },
    ]);
    expect(printed('log', '--op', 'reed').stderr).toMatch(/^palimpsest: there is no op "reed"; there are read, list,/);
    expect(printed('log', '--from', '0')).toEqual(refuses(2, '--from takes the number of an event, not "0"'));
    // Followed to an event that is there already, it ends.
    expect(printed('log', '--follow', '--from', '15', '--to', '16').stdout.split('\n')).toHaveLength(3);
  });

  it('seen: who saw what at which version', () => {
    expect(printed('seen')).toEqual(prints(`\
eve   present  #15  -                    README.md  (nothing of its content)
eve   present  #13  sha256:7935b0a71b2f  secret
eve   present  #16  -                    to notes
main  present   #2  sha256:076bd27ce75c  README.md
main  absent   #11  -                    data.bin
main  present   #8  sha256:21066d108d53  notes.txt
main  present   #9  -                    src
main  present   #7  sha256:38b5a31fa5dd  src/index.js
main  present   #9  -                    src/new  (nothing of its content)
main  absent    #9  -                    src/old
main  absent    #4  -                    tsconfig.json
`));
    expect(printed('seen', '-z', '--actor', 'eve')).toEqual(prints('present\teve\tREADME.md\0present\teve\tsecret\0present\teve\tto notes\0'));
    expect(lines(printed('seen', '--json', 'tsconfig.json', 'secret').stdout)).toMatchObject([
      { actor: 'eve', path: 'secret', kind: 'present', seq: 13 }, { actor: 'main', path: 'tsconfig.json', kind: 'absent', seq: 4 },
    ]);
    expect(printed('seen', 'secret', 'nosuch')).toEqual({
      status: 1, stdout: 'eve  present  #13  sha256:7935b0a71b2f  secret\n', stderr: 'palimpsest: nosuch: not seen by anybody, and not looked for\n',
    });
    expect(printed('seen', 'src', '--actor', 'eve')).toEqual(refuses(1, 'src: not seen by eve, and not looked for'));
  });

  it.each<[string[], object]>([
    [['cat', 'notes.txt'], prints('one\ntwo')],
    [['cat', '../repo/src/index.js'], prints('export default 2;\n')],
    [['cat', 'link'], prints('# Repo\n\nWords.\n')],
    [['cat', 'data.bin'], refuses(1, 'data.bin: no such file or directory')],
    [['cat', 'src'], refuses(1, 'src: is a directory')],
    [['cat', 'notes.txt/x'], refuses(1, 'notes.txt/x: not a directory')],
    [['cat', '/etc/passwd'], refuses(2, '/etc/passwd lies outside @/repo')],
    [['cat'], refuses(2, "missing required argument 'path'")],
    [['ls'], prints('README.md\nlink\nnotes.txt\nsecret\nsrc\nto notes\n')],
    [['ls', '-z', 'src'], prints('index.js\0new\0')],
    [['ls', 'src/new/a.js'], prints('src/new/a.js\n')],
    [['ls', '-l', 'to notes'], prints(`lrwxrwxrwx 1 ${process.getuid?.()}:${process.getgid?.()} 9 2025-12-01T10:00:00Z to notes -> notes.txt\n`)],
    [['ls', 'src/old'], refuses(1, 'src/old: no such file or directory')],
    [['ls', '--json', '-z'], refuses(2, "option '-z' cannot be used with option '--json'")],
  ])('%s', (args, outcome) => {
    expect(printed(...args)).toEqual(outcome);
  });

  it('ls: with everything, as JSON', () => {
    expect(lines(printed('ls', '--json').stdout)).toMatchObject([
      { name: 'README.md', type: 'file', mode: '755', size: 15 }, { name: 'link', type: 'symlink', target: 'README.md' },
      { name: 'notes.txt', type: 'file', mode: '644', nlink: 1, size: 7, mtime: '2025-12-01T10:00:00.060Z' }, { name: 'secret' },
      { name: 'src', type: 'directory' }, { name: 'to notes', type: 'symlink', target: 'notes.txt' },
    ]);
  });

  it('sessions: the list of them', () => {
    expect(printed('sessions')).toEqual(prints('repo-1  2025-12-01T10:00:00.000Z  17  @/repo\n'));
    expect(printed('sessions', '-z')).toEqual(prints('@/state/palimpsest/repo-1\0'));
    expect(lines(printed('sessions', '--json').stdout)).toMatchObject([
      { name: 'repo-1', directory: '@/state/palimpsest/repo-1', root: '@/repo', created: '2025-12-01T10:00:00.000Z', last: 17, process: null },
    ]);
  });
});

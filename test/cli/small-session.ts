import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Overlay } from '../../src/index.ts';

/** A place with a directory and a session about it, the same each time but for inode numbers and the place itself. */
export interface SmallSession {
  readonly scratch: string;
  /** The directory beneath. */
  readonly root: string;
  readonly session: string;
  /** What makes `palimpsest` find that session, and nobody else's. */
  readonly surroundings: { readonly cwd: string; readonly env: Readonly<Record<string, string>> };
  clear(): void;
}

/** The time of the first event; each has its own, 10 ms later than the one before. */
export const BEGINNING = Date.parse('2025-12-01T10:00:00Z');

/** Makes it anew. Two actors have worked in it: `main`, then `eve`. */
export function smallSession(): SmallSession {
  const scratch = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'palimpsest-cli-')));
  const root = join(scratch, 'repo'), state = join(scratch, 'state'), session = join(state, 'palimpsest/repo-1');
  fs.mkdirSync(join(root, 'src/old'), { recursive: true });
  fs.mkdirSync(join(state, 'palimpsest'), { recursive: true });
  const files = { 'README.md': '# Repo\n\nWords.\n', 'src/index.js': 'export default 1;\n', 'src/old/a.js': 'a\n', 'src/old/b.js': 'b\n', 'data.bin': '\0\x01\x02', secret: 'hush\n' };
  for (const [name, content] of Object.entries(files)) fs.writeFileSync(join(root, name), content);
  fs.chmodSync(join(root, 'src'), 0o755);
  fs.symlinkSync('README.md', join(root, 'link'));
  let time = BEGINNING;
  const overlay = Overlay.openSync({ root, session, clock: () => time, rules: [{ match: 'secret', effect: 'flag' }] });
  const at = (name: string): string => join(root, name), step = (act: () => unknown): void => {
    act();
    time += 10;
  };
  const umask = process.umask(0o022);
  try {
    step(() => overlay.fs.readFileSync(at('README.md')));
    step(() => overlay.fs.readdirSync(at('src')));
    step(() => overlay.fs.existsSync(at('tsconfig.json')));
    step(() => overlay.fs.statSync(at('data.bin')));
    step(() => overlay.mark('turn 1', { tries: 2 }));
    step(() => overlay.fs.writeFileSync(at('src/index.js'), 'export default 2;\n'));
    step(() => overlay.fs.writeFileSync(at('notes.txt'), 'one\ntwo'));
    step(() => overlay.fs.renameSync(at('src/old'), at('src/new')));
    step(() => overlay.fs.rmSync(at('data.bin')));
    const eve = overlay.as('eve').fs;
    step(() => eve.readFileSync(at('secret')));
    step(() => { try { eve.readFileSync('/etc/passwd'); } catch { /* it is refused */ } });
    step(() => eve.chmodSync(at('README.md'), 0o755));
    step(() => eve.symlinkSync('notes.txt', at('to notes')));
  } finally {
    process.umask(umask);
    overlay.closeSync();
  }
  return {
    scratch, root, session, surroundings: { cwd: root, env: { XDG_STATE_HOME: state } },
    clear: () => fs.rmSync(scratch, { recursive: true, force: true }),
  };
}

import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PROJECT } from '../../bench/project.ts';
import { lack, program } from '../mount/union.ts';
import { shell } from './command.ts';

const missing = lack('palimpsest');
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(`CI must be able to mount: ${missing}`);

/** The README's transcript: command lines, each with what it prints. */
const readme = fs.readFileSync(join(PROJECT, 'README.md'), 'utf8');
const steps = [...readme.matchAll(/^```console\n([^]*?)^```$/gm)].flatMap(([, block = '']) => block.split(/^\$ /m).slice(1))
  .map((step) => ({ line: step.slice(0, step.indexOf('\n')), output: step.slice(step.indexOf('\n') + 1) }));

describe.runIf(missing === undefined)('the command line in README.md', () => {
  it('prints what it says, one line after another', { timeout: 120_000 }, () => {
    expect(steps.length).toBeGreaterThan(10);
    const scratch = fs.mkdtempSync(join(fs.realpathSync(tmpdir()), 'palimpsest-transcript-')), repo = join(scratch, 'repo');
    fs.mkdirSync(join(repo, 'src'), { recursive: true });
    const files = { 'README.md': '# A repository\n', 'config.json': '{ "answer": 42 }\n', 'src/index.js': 'export default 0;\n' };
    for (const [name, content] of Object.entries(files)) fs.writeFileSync(join(repo, name), content);
    // As a user has it, in the path.
    fs.mkdirSync(join(scratch, 'bin'));
    fs.writeFileSync(join(scratch, 'bin/palimpsest'), `#!/bin/sh\nexec '${process.execPath}' '${program()}' "$@"\n`, { mode: 0o755 });
    const env = { PATH: `${join(scratch, 'bin')}:${process.env['PATH']}`, XDG_STATE_HOME: join(scratch, 'state') };
    try {
      for (const { line, output } of steps) {
        const { stdout } = shell(`unset -f palimpsest\nexec 2>&1\n${line}`, { cwd: repo, env });
        // How wide a column is depends on what is in it.
        const pattern = output.split('…').map((text) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('[^\\n]*?').replaceAll(/ {2,}/g, ' +');
        expect([line, stdout]).toEqual([line, expect.stringMatching(new RegExp(`^${pattern}$`))]);
      }
      expect(Object.entries(files).map(([name]) => fs.readFileSync(join(repo, name), 'utf8'))).toEqual(Object.values(files));
    } finally {
      fs.rmSync(scratch, { recursive: true, force: true });
    }
  });
});

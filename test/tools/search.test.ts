import { describe, expect, it } from 'vitest';
import { tools } from '../../src/tools/index.ts';
import { withGround } from '../policy/ground.ts';
import { withTools } from './bench.ts';

const TREE = {
  'src/a.ts': 'import x\nlet Needle = 1\nlast\n', 'src/b.js': 'needle\nneedle\n', 'src/deep/c.ts': 'none\n', '.hidden/d.ts': 'needle\n', 'bin': 'needle\0',
  '.gitignore': 'out/\n*.log\n!keep.log\n', 'out/e.ts': 'needle\n', 'x.log': 'needle', 'keep.log': 'needle', '.git/config': 'needle',
};

describe('grep', () => {
  it('answers files, lines or counts, over what the overlay has', () => withGround(TREE, ({ overlay, at }) => {
    const kit = tools(overlay), text = (input: object) => kit.grep.call({ pattern: 'needle', ...input }).text;
    overlay.fs.writeFileSync(at('src/new.ts'), 'a needle');
    overlay.fs.unlinkSync(at('out/e.ts'));
    expect(text({})).toBe('.hidden/d.ts\nkeep.log\nsrc/b.js\nsrc/new.ts\nx.log');
    expect(text({ '-i': true, type: 'ts' })).toBe('.hidden/d.ts\nsrc/a.ts\nsrc/new.ts');
    expect(text({ glob: '*.js', output_mode: 'count' })).toBe('src/b.js:2');
    expect(text({ glob: 'src/*.ts', output_mode: 'content' })).toBe('src/new.ts:1:a needle');
    expect(text({ path: 'src/b.js', output_mode: 'content', '-n': false })).toBe('src/b.js:needle\nsrc/b.js:needle');
    expect(text({ gitignore: true })).toBe('.hidden/d.ts\nkeep.log\nsrc/b.js\nsrc/new.ts');
    expect(text({ head_limit: 1 })).toBe('.hidden/d.ts\n(1 of 5 files)');
    expect(kit.grep.call({ pattern: 'nowhere' }).text).toBe('No matches found.');
    expect(kit.grep.call({ pattern: '(' })).toMatchObject({ isError: true, code: 'TOOL_BAD_INPUT' });
    expect(kit.grep.call({ pattern: 'x', path: 'none' })).toMatchObject({ code: 'FS_NOT_FOUND', text: 'cannot grep "none": not found' });
  }));

  it('shows the lines around, each once, and groups apart', () => withGround({ f: '1\nx\n3\n4\n5\n6\nx\n8\n' }, ({ overlay }) => {
    const { grep } = tools(overlay);
    expect(grep.call({ pattern: 'x', output_mode: 'content', '-C': 1 }).text).toBe('f-1-1\nf:2:x\nf-3-3\n--\nf-6-6\nf:7:x\nf-8-8');
    expect(grep.call({ pattern: 'x', output_mode: 'content', '-A': 5 }).text).toBe('f:2:x\nf-3-3\nf-4-4\nf-5-5\nf-6-6\nf:7:x\nf-8-8');
    expect(grep.call({ pattern: '4\\n5', output_mode: 'content', multiline: true }).text).toBe('f:4:4\nf:5:5');
    expect(overlay.observation('f')).toMatchObject({ kind: 'present', shown: 'whole' });
  }));

  it('is a seeing of the lines it showed, and none of the files it only went through', () => withTools(TREE, (kit, { overlay }) => {
    kit.grep.call({ pattern: 'Needle', output_mode: 'content' });
    expect(overlay.as('ann').observation('src/a.ts')).toMatchObject({ shown: [[9, 24]] });
    expect(kit.write.call({ file_path: 'src/b.js', content: '' }).code).toBe('FS_NOT_OBSERVED');
    expect([...overlay.events({ op: 'read', path: 'src/b.js' })]).toMatchObject([{ actor: 'ann', search: true, ranges: [] }]);
  }));
});

describe('glob and list', () => {
  it('find by name, with a leading dot too, and list what there is', () => withGround(TREE, ({ overlay, at }) => {
    const kit = tools(overlay);
    overlay.fs.symlinkSync('a.ts', at('src/l'));
    expect(kit.glob.call({ pattern: '**/*.ts' }).text).toBe('.hidden/d.ts\nout/e.ts\nsrc/a.ts\nsrc/deep/c.ts');
    expect(kit.glob.call({ pattern: '*.ts', path: 'src' }).text).toBe('src/a.ts');
    expect(kit.glob.call({ pattern: 'src/{a,b}.*' }).data).toMatchObject({ files: ['src/a.ts', 'src/b.js'], total: 2 });
    expect(kit.glob.call({ pattern: '**/*.ts', gitignore: true, path: at('') }).text).toBe(['.hidden/d.ts', 'src/a.ts', 'src/deep/c.ts'].map(at).join('\n'));
    expect(kit.glob.call({ pattern: '*.none' }).text).toBe('No files found.');
    expect(kit.glob.call({ pattern: '../*' }).code).toBe('TOOL_BAD_INPUT');
    expect(kit.list.call({ path: 'src' }).text).toBe('a.ts\nb.js\ndeep/\nl -> a.ts');
    expect(kit.list.call({ path: 'bin' })).toMatchObject({ code: 'FS_NOT_DIRECTORY', text: 'cannot list "bin": not a directory' });
    expect(overlay.observation('src').kind).toBe('present');
  }));
});
